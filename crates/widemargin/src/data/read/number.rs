//! Decimal text to the nearest `f64`, for the inner loop of the text readers.
//!
//! [`decimal_prefix`] promises the value `str::parse::<f64>` gives, bit for bit. Digits are read eight
//! at a time; with a mantissa `m ≤ 2⁵³` and an exponent `|e| ≤ 22`, both `m` and `10^|e|` are exact
//! doubles and one multiplication or division rounds correctly (Clinger, "How to read floating point
//! numbers accurately", 1990); up to 19 digits go through [`scaled`](super::scaled) and anything longer
//! to the standard library.

use super::scaled::nearest_double;

const LARGEST_EXACT_MANTISSA: u64 = 1 << 53;

const POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

const WHOLE_POWERS_OF_TEN: [u64; 9] =
    [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The byte at `at`, or a line end past the last one.
#[inline(always)]
pub(crate) fn byte_at(bytes: &[u8], at: usize) -> u8 {
    if at < bytes.len() { bytes[at] } else { b'\n' }
}

/// Reads digits at `at` as a continuation of `sum`: the place after them and the new sum, which wraps
/// beyond 19 digits.
///
/// Eight bytes are taken as one word: `t = word ^ "00000000"` has the digits' values, and adding
/// `0x76` to a byte sets its high bit unless it is at most 9, so that the lowest high bit marks the end
/// of the run whatever its length, without a branch per digit. Three multiplications then add up
/// neighbouring digits, pairs and fours.
#[inline(always)]
fn digits(bytes: &[u8], mut at: usize, mut sum: u64) -> (usize, u64) {
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let values = u64::from_le_bytes(*word) ^ 0x3030_3030_3030_3030;
        let ends = (values.wrapping_add(0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080;
        let count = (ends.trailing_zeros() / 8) as usize;
        if count == 0 {
            return (at, sum);
        }
        let aligned = values << (64 - 8 * count);
        let pairs = (aligned & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(2561) >> 8;
        let fours = (pairs & 0x00ff_00ff_00ff_00ff).wrapping_mul(6_553_601) >> 16;
        let eight = (fours & 0x0000_ffff_0000_ffff).wrapping_mul(42_949_672_960_001) >> 32;
        sum = sum.wrapping_mul(WHOLE_POWERS_OF_TEN[count]).wrapping_add(eight);
        at += count;
        if count < 8 {
            return (at, sum);
        }
    }
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
    // A zero before the point is no digit of the mantissa.
    let fits = digit_count - usize::from(byte_at(bytes, start) == b'0') <= 19;
    let magnitude = if fits && mantissa <= LARGEST_EXACT_MANTISSA && exponent.abs() <= 22 {
        let power = POWERS_OF_TEN[exponent.unsigned_abs() as usize];
        let mantissa = mantissa as f64;
        if exponent < 0 { mantissa / power } else { mantissa * power }
    } else {
        match nearest_double(mantissa, exponent) {
            Some(value) if fits => value,
            _ => parse_slowly(&bytes[start..end])?,
        }
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

/// The whole number that `text` with the value `value` stands for, if it is one of 64 bits: `7`, `+7`,
/// `7.0` and `7e0` alike.
pub(crate) fn whole(text: &[u8], value: f64) -> Option<i64> {
    match std::str::from_utf8(text).ok()?.parse() {
        Ok(whole) => Some(whole),
        Err(_) => whole_value(value),
    }
}

/// `value` as a whole number of 64 bits, if it is one.
pub(crate) fn whole_value(value: f64) -> Option<i64> {
    const BEYOND: f64 = (1_u64 << 63) as f64;
    (value.fract() == 0.0 && value.abs() < BEYOND).then_some(value as i64)
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
            "12345678",
            "123456789",
            "1234567812345678",
            "0.12345678",
            "0.012345678901234567890",
            "0.00000001",
            "9223372036854775807e-27",
            "18446744073709551615",
            "9999999999999999999e55",
            "9007199254740993e1",
            "9007199254740993e-1",
            "1e-27",
            "9007199254740995e-5",
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
        fn equals_the_standard_library_between_and_on_doubles(value in 1e-3..1e3_f64, scale in -20_i32..20) {
            // Sixteen to nineteen digits, and exact midpoints between doubles, are the hard cases.
            let value = value * 10_f64.powi(scale);
            for digits in 14..19 {
                check(&format!("{value:.digits$e}"));
            }
            check(&format!("{value}"));
            let above = f64::from_bits(value.to_bits() + 1);
            check(&format!("{:.18e}", value + (above - value) / 2.0));
        }

        #[test]
        fn equals_the_standard_library_on_midpoints(whole in (1_u64 << 53)..(1 << 62), exponent in -27_i32..30) {
            check(&format!("{whole}e{exponent}"));
            check(&format!("{}", whole | 1));
            check(&format!("{}", (whole >> 9 << 10) + 512));
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
