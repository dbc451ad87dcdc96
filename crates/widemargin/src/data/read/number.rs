//! Decimal text to the nearest `f64`, for the inner loop of the text readers.
//!
//! [`decimal_prefix`] promises the value `str::parse::<f64>` gives, bit for bit: with at most 19
//! digits, a mantissa `m ≤ 2⁵³` and an exponent `|e| ≤ 22`, both `m` and `10^|e|` are exact doubles and
//! one multiplication or division rounds correctly (Clinger, "How to read floating point numbers
//! accurately", 1990); anything longer goes to the standard library.

const LARGEST_EXACT_MANTISSA: u64 = 1 << 53;

const POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// The byte at `at`, or a line end past the last one.
#[inline(always)]
pub(crate) fn byte_at(bytes: &[u8], at: usize) -> u8 {
    if at < bytes.len() { bytes[at] } else { b'\n' }
}

#[inline(always)]
fn digits(bytes: &[u8], mut at: usize, mut sum: u64) -> (usize, u64) {
    loop {
        let digit = byte_at(bytes, at).wrapping_sub(b'0');
        if digit > 9 {
            return (at, sum);
        }
        sum = sum.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
}

/// Reads an unsigned whole number at `at`: its value, saturating far above `u32::MAX`, and the place
/// after it; no digit gives the place itself.
#[inline(always)]
pub(crate) fn whole_prefix(bytes: &[u8], at: usize) -> (usize, u64) {
    let (end, value) = digits(bytes, at, 0);
    if end - at > 19 { (end, u64::MAX) } else { (end, value) }
}

/// Reads the longest decimal number (`-12`, `+.5`, `3.`, `1e-7`) at `at`: its value and the place
/// after it, or `None` when there is none.
#[inline(always)]
pub(crate) fn decimal_prefix(bytes: &[u8], at: usize) -> Option<(f64, usize)> {
    let sign = byte_at(bytes, at);
    let start = at + usize::from(sign == b'-' || sign == b'+');
    let (mut end, mut mantissa) = digits(bytes, start, 0);
    let mut digit_count = end - start;
    let mut exponent = 0_i64;
    if byte_at(bytes, end) == b'.' {
        let fraction = end + 1;
        (end, mantissa) = digits(bytes, fraction, mantissa);
        digit_count += end - fraction;
        exponent = -((end - fraction) as i64);
    }
    if digit_count == 0 {
        return None;
    }
    if byte_at(bytes, end) | 0x20 == b'e' {
        let sign = byte_at(bytes, end + 1);
        let first = end + 1 + usize::from(sign == b'-' || sign == b'+');
        let (last, power) = digits(bytes, first, 0);
        if last == first {
            return None;
        }
        let power = if last - first > 6 { 1_000_000 } else { power as i64 };
        exponent += if sign == b'-' { -power } else { power };
        end = last;
    }
    let exact = digit_count <= 19 && mantissa <= LARGEST_EXACT_MANTISSA && exponent.abs() <= 22;
    let magnitude = if exact {
        let power = POWERS_OF_TEN[exponent.unsigned_abs() as usize];
        let mantissa = mantissa as f64;
        if exponent < 0 { mantissa / power } else { mantissa * power }
    } else {
        parse_slowly(&bytes[start..end])?
    };
    Some((if sign == b'-' { -magnitude } else { magnitude }, end))
}

/// The number a whole field stands for, with `nan`, `inf` and `infinity` in any case; `None` when it is
/// not a number.
pub(crate) fn number(field: &[u8]) -> Option<f64> {
    match decimal_prefix(field, 0) {
        Some((value, end)) if end == field.len() => Some(value),
        _ => parse_slowly(field),
    }
}

#[cold]
#[inline(never)]
fn parse_slowly(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str) {
        let expected: f64 = text.parse().unwrap();
        let (value, end) = decimal_prefix(text.as_bytes(), 0).unwrap();
        assert_eq!((value.to_bits(), end), (expected.to_bits(), text.len()), "{text}");
    }

    #[test]
    fn awkward_spellings_give_the_standard_library_s_bits() {
        for text in [
            "0",
            "-0",
            "+1",
            "1.",
            ".5",
            "-.5e1",
            "1e22",
            "1e23",
            "123456789012345678",
            "9007199254740993",
            "9007199254740993e0",
            "0.1",
            "2.2250738585072011e-308",
            "5e-324",
            "1.7976931348623157e308",
            "1e-400",
            "1e400",
            "0.000000000000000000000000000001",
            "00000000000000000000000000000012",
            "1e0000000000000000000005",
            "1e-99999999999",
            "1797693134862315708145274237317043567980705675258449965989174768",
        ] {
            check(text);
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "-", ".", "+.", "e5", "1e", "1e+", "nan", "inf", ":", " 1"] {
            assert_eq!(decimal_prefix(text.as_bytes(), 0), None, "{text}");
        }
        assert_eq!(number(b"1x"), None);
        assert_eq!(number(b"-inf"), Some(f64::NEG_INFINITY));
    }

    proptest! {
        #[test]
        fn equals_the_standard_library_on_any_double(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            check(&format!("{value}"));
            check(&format!("{value:e}"));
            check(&format!("{value:.3}"));
            check(&format!("{value:.17e}"));
        }

        #[test]
        fn equals_the_standard_library_on_any_decimal(text in "[+-]?[0-9]{1,25}(\\.[0-9]{0,25})?([eE][+-]?[0-9]{1,3})?") {
            check(&text);
        }

        #[test]
        fn equals_the_standard_library_on_short_decimals(text in "-?[0-9]{0,4}\\.[0-9]{1,6}(e-?[0-9])?") {
            check(&text);
        }
    }
}
