//! Numbers as LIBSVM prints them: 17 significant digits, which every `double` survives, and 8 for
//! features.

use crate::data::write::general;

/// Appends `value` as `%.17g`.
pub(super) fn push_number(out: &mut String, value: f64) {
    out.push_str(&general(value, 17));
}

/// Appends `value` as LIBSVM prints features, `%.8g`, unless digits would be lost.
pub(super) fn push_feature(out: &mut String, value: f64) {
    let short = general(value, 8);
    if short.parse() == Ok(value) {
        out.push_str(&short);
    } else {
        push_number(out, value);
    }
}

#[cfg(test)]
mod tests {
    use super::{push_feature, push_number};
    use proptest::prelude::*;

    fn shown(push: fn(&mut String, f64), value: f64) -> String {
        let mut text = String::new();
        push(&mut text, value);
        text
    }

    #[test]
    fn features_are_short_when_that_is_exact() {
        for (value, expected) in
            [(0.511, "0.511"), (1e-5, "1e-05"), (1e8, "1e+08"), (1.0 / 3.0, "0.33333333333333331")]
        {
            assert_eq!(shown(push_feature, value), expected);
        }
    }

    proptest! {
        #[test]
        fn every_double_survives(
            value in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL
        ) {
            for push in [push_number, push_feature] {
                let text = shown(push, value);
                prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits());
            }
        }
    }
}
