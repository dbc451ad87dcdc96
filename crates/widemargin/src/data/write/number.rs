//! Numbers as text: as C's `printf` writes them with `%.{digits}g`, or as short as they can be.

/// `value` with `digits` significant digits (1 to 17) as `%.{digits}g` prints it: in scientific form
/// when the exponent is below −4 or not below `digits`, trailing zeros left out.
pub fn general(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        return format!("{sign}{}", if value.is_nan() { "nan" } else { "inf" });
    }
    let digits = digits.clamp(1, 17);
    let scientific = format!("{value:.*e}", digits - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    trimmed(&format!("{value:.decimals$}")).to_owned()
}

/// Appends the shortest text that reads back as exactly `value`.
pub(crate) fn push_shortest<T: zmij::Float>(text: &mut String, value: T) {
    let mut buffer = zmij::Buffer::new();
    let shown = buffer.format(value);
    text.push_str(shown.strip_suffix(".0").unwrap_or(shown));
}

fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn prints_what_printf_prints() {
        // Right-hand sides printed by printf("%g") and printf("%.17g").
        for (value, six, seventeen) in [
            (0.0, "0", "0"),
            (-0.0, "-0", "-0"),
            (1.0, "1", "1"),
            (0.1, "0.1", "0.10000000000000001"),
            (123456.0, "123456", "123456"),
            (1234567.0, "1.23457e+06", "1234567"),
            (999999.5, "1e+06", "999999.5"),
            (0.0001, "0.0001", "0.0001"),
            (0.00001, "1e-05", "1.0000000000000001e-05"),
            (-8.1e-9, "-8.1e-09", "-8.0999999999999997e-09"),
            (1e100, "1e+100", "1e+100"),
            (0.000099999995, "0.0001", "9.9999994999999998e-05"),
            (123456789.123, "1.23457e+08", "123456789.123"),
            (f64::NAN, "nan", "nan"),
            (f64::NEG_INFINITY, "-inf", "-inf"),
        ] {
            assert_eq!(general(value, 6), six);
            assert_eq!(general(value, 17), seventeen);
        }
    }
}
