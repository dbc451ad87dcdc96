//! Decimal text to the nearest `f64`, for the inner loop of the text readers.
//!
//! [`decimal_prefix`] promises the value `str::parse::<f64>` gives, bit for bit, and takes what it takes. The
//! method is that of D. Lemire, "Number parsing at a gigabyte per second", Software: Practice and Experience
//! 51 (2021), as `fast-float2` has it.

/// The byte at `at`, or a line end past the last one.
#[inline(always)]
pub(crate) fn byte_at(bytes: &[u8], at: usize) -> u8 {
    if at < bytes.len() { bytes[at] } else { b'\n' }
}

/// Reads an unsigned whole number at `at`: the place after it and its value, which saturates; no digit
/// gives the place itself.
#[inline(always)]
pub(crate) fn whole_prefix(bytes: &[u8], mut at: usize) -> (usize, u64) {
    let mut value = 0_u64;
    loop {
        let digit = byte_at(bytes, at).wrapping_sub(b'0');
        if digit > 9 {
            return (at, value);
        }
        value = value.saturating_mul(10).saturating_add(u64::from(digit));
        at += 1;
    }
}

/// Reads the longest number (`-12`, `+.5`, `3.`, `1e-7`, `inf`) at `at`: its value and the place after
/// it, or `None` when there is none.
#[inline(always)]
pub(crate) fn decimal_prefix(bytes: &[u8], at: usize) -> Option<(f64, usize)> {
    let (value, length) = fast_float2::parse_partial(bytes.get(at..)?).ok()?;
    Some((value, at + length))
}

/// The number a whole field stands for, with `nan`, `inf` and `infinity` in any case; `None` when it is
/// not a number.
pub(crate) fn number(field: &[u8]) -> Option<f64> {
    fast_float2::parse(field).ok()
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
    const LIMIT: f64 = (1_u64 << 63) as f64;
    (value.fract() == 0.0 && value.abs() < LIMIT).then_some(value as i64)
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
        for text in ["", "-", ".", "+.", "e5", "x", ":", " 1"] {
            assert_eq!(decimal_prefix(text.as_bytes(), 0), None, "{text}");
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
        assert_eq!(decimal_prefix(b"1e+ 2", 0), Some((1.0, 1)));
        for text in ["1x", "1e", "1e+", "infin", "nano", "1 "] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
        assert_eq!(number(b"-inf"), Some(f64::NEG_INFINITY));
    }

    #[test]
    fn whole_numbers_saturate() {
        assert_eq!(whole_prefix(b"0012:1", 0), (4, 12));
        assert_eq!(whole_prefix(b"x", 0), (0, 0));
        assert_eq!(whole_prefix(b"18446744073709551615", 0), (20, u64::MAX));
        assert_eq!(whole_prefix(b"99999999999999999999999", 0), (23, u64::MAX));
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
        fn takes_what_the_standard_library_takes(text in "[-+]?([0-9.eE+-]{0,8}|[infatyINFATY]{0,8})") {
            let expected: Option<f64> = text.parse().ok();
            prop_assert_eq!(number(text.as_bytes()).map(f64::to_bits), expected.map(f64::to_bits));
        }

        #[test]
        fn equals_the_standard_library_on_short_decimals(text in "-?[0-9]{0,4}\\.[0-9]{1,6}(e-?[0-9])?") {
            check(&text);
        }
    }
}
