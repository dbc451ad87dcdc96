//! Values of options, with messages that say what was expected.

use std::str::FromStr;

use widemargin::Error;

/// Reads a value of the library's; its error says what was expected.
pub(crate) fn value<T: FromStr<Err = Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| match error {
        Error::Parameter { expected, .. } => format!("expected {expected}"),
        other => other.to_string(),
    })
}

/// Reads a whole number.
pub(crate) fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "expected a whole number of at least 0".to_owned())
}

/// Reads a number of bytes with a unit.
pub(crate) fn bytes(text: &str) -> Result<usize, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: usize = match text[number.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        _ => return Err("expected a size such as 500MB or 1GB".to_owned()),
    };
    let value: f64 =
        number.parse().map_err(|_| "expected a size such as 500MB or 1GB".to_owned())?;
    if value.is_finite() && value > 0.0 {
        Ok((value * factor as f64) as usize)
    } else {
        Err("expected a size above 0".to_owned())
    }
}
