//! Lists of singles as text: eight hexadecimal digits each, so that every bit survives.

use serde::{Deserialize, Deserializer, Serializer};

pub(super) fn serialize<S: Serializer>(list: &[f32], serializer: S) -> Result<S::Ok, S::Error> {
    let text: String = list.iter().map(|v| format!("{:08x}", v.to_bits())).collect();
    serializer.serialize_str(&text)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<f32>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let bytes = text.as_bytes();
    let number = |digits: &[u8]| {
        let digits = std::str::from_utf8(digits).ok()?;
        u32::from_str_radix(digits, 16).ok().map(f32::from_bits)
    };
    let list: Option<Vec<f32>> = bytes.chunks(8).map(number).collect();
    list.filter(|_| bytes.len() % 8 == 0)
        .ok_or_else(|| serde::de::Error::custom("expected eight hexadecimal digits per number"))
}
