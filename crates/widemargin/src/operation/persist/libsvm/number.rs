//! Numbers as C's `%.17g` prints them: 17 significant digits, which every `double` survives.

use std::fmt::Write;

/// Appends `value` as `%.17g`.
pub(super) fn push_number(out: &mut String, value: f64) {
    push_digits(out, value, 17);
}

/// Appends `value` as LIBSVM prints features, `%.8g`, unless digits would be lost.
pub(super) fn push_feature(out: &mut String, value: f64) {
    let before = out.len();
    push_digits(out, value, 8);
    if out[before..].parse() != Ok(value) {
        out.truncate(before);
        push_number(out, value);
    }
}

fn push_digits(out: &mut String, value: f64, digits: i32) {
    if value == 0.0 || !value.is_finite() {
        let text = match (value.is_nan(), value.is_sign_negative(), value == 0.0) {
            (true, _, _) => "nan",
            (_, false, true) => "0",
            (_, true, true) => "-0",
            (_, false, _) => "inf",
            (_, true, _) => "-inf",
        };
        out.push_str(text);
        return;
    }
    let scientific = format!("{value:.*e}", digits as usize - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..digits).contains(&exponent) {
        let decimals = (digits - 1 - exponent) as usize;
        let fixed = format!("{value:.decimals$}");
        out.push_str(trimmed(&fixed));
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
}

/// Without the zeros that end a fraction.
fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::{push_feature, push_number};
    use proptest::prelude::*;

    fn shown(value: f64) -> String {
        let mut text = String::new();
        push_number(&mut text, value);
        text
    }

    #[test]
    fn numbers_look_as_printf_shows_them() {
        // Right-hand sides printed by printf("%.17g").
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.1, "0.10000000000000001"),
            (1.0 / 3.0, "0.33333333333333331"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (123456789012345678.0, "1.2345678901234568e+17"),
            (1e-4, "0.0001"),
            (1e-5, "1.0000000000000001e-05"),
            (5e-324, "4.9406564584124654e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (-2.5e-7, "-2.4999999999999999e-07"),
            (0.42446246576443, "0.42446246576442997"),
            (99999999999999990.0, "99999999999999984"),
        ] {
            assert_eq!(shown(value), expected);
        }
    }

    #[test]
    fn features_are_short_when_that_is_exact() {
        for (value, expected) in
            [(0.511, "0.511"), (1e-5, "1e-05"), (1e8, "1e+08"), (1.0 / 3.0, "0.33333333333333331")]
        {
            let mut text = String::new();
            push_feature(&mut text, value);
            assert_eq!(text, expected);
        }
    }

    proptest! {
        #[test]
        fn every_double_survives(value in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL) {
            prop_assert_eq!(shown(value).parse::<f64>().unwrap().to_bits(), value.to_bits());
        }
    }
}
