//! Lists of kernels as text: commas between them, and ranges of γ or of the degree that stand for a kernel
//! each, such as `rbf(gamma=2^-3:2^3:7), poly(degree=1:4)`.

use super::specification::number;
use crate::error::{Error, Result};
use crate::numeric::spacing::logarithmic;

/// Kernels that ranges may make of one list.
const MOST_KERNELS: usize = 10_000;

/// The kernels of a list, one text each as it stands there, ranges written out.
///
/// # Errors
/// [`Error::Parameter`] for a range that is none, or for more kernels than anybody wants.
pub(crate) fn kernel_texts(list: &str) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for text in split(list) {
        write_out(text, &mut texts)?;
    }
    Ok(texts)
}

/// The parts between commas that are not inside parentheses.
fn split(list: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, symbol) in list.char_indices() {
        match symbol {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts
}

/// Adds `text` with every value of its first range, and of those after it.
fn write_out(text: &str, texts: &mut Vec<String>) -> Result<()> {
    let Some((name, range, before, after)) = first_range(text) else {
        texts.push(text.to_owned());
        return match texts.len() > MOST_KERNELS {
            true => {
                Err(Error::parameter("kernels", format!("at most {MOST_KERNELS} kernels"), "more"))
            }
            false => Ok(()),
        };
    };
    for value in values(name, range)? {
        write_out(&format!("{before}{value}{after}"), texts)?;
    }
    Ok(())
}

/// The first `NAME=LOW:HIGH...`: name, range, and the text before and after the range.
fn first_range(text: &str) -> Option<(&str, &str, &str, &str)> {
    let mut from = 0;
    while let Some(found) = text[from..].find('=') {
        let start = from + found + 1;
        let end = text[start..].find([',', ')']).map_or(text.len(), |end| start + end);
        if text[start..end].contains(':') {
            let before = &text[..start - 1];
            let name = before.rfind(['(', ',']).map_or(before, |at| &before[at + 1..]);
            return Some((name.trim(), text[start..end].trim(), &text[..start], &text[end..]));
        }
        from = end;
    }
    None
}

/// `LOW:HIGH` of whole numbers for the degree, `LOW:HIGH:COUNT` with equal ratios for γ.
fn values(name: &str, range: &str) -> Result<Vec<f64>> {
    let parts: Option<Vec<f64>> =
        range.split(':').map(|part| number(part.trim()).and_then(|value| value.number())).collect();
    let parts = parts.unwrap_or_default();
    let whole =
        |value: &f64| *value >= 0.0 && value.fract() == 0.0 && *value <= MOST_KERNELS as f64;
    match (name, &parts[..]) {
        ("degree", [low, high]) if whole(low) && whole(high) && low <= high => {
            Ok((*low as usize..=*high as usize).map(|degree| degree as f64).collect())
        }
        ("gamma", [low, high, count])
            if *low > 0.0 && low < high && high.is_finite() && whole(count) && *count >= 2.0 =>
        {
            Ok(logarithmic(*low, *high, *count as usize))
        }
        _ => {
            let expected = "gamma=LOW:HIGH:COUNT with 0 < LOW < HIGH, or degree=LOW:HIGH";
            Err(Error::parameter("kernels", expected, format!("{name}={range}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_stand_for_a_kernel_each_and_commas_in_parentheses_for_none() {
        let texts = |list: &str| -> Vec<String> {
            kernel_texts(list).unwrap().iter().map(|text| text.trim().to_owned()).collect()
        };
        assert_eq!(
            texts("linear, poly(degree=1:3, coef0=1), rbf"),
            [
                "linear",
                "poly(degree=1, coef0=1)",
                "poly(degree=2, coef0=1)",
                "poly(degree=3, coef0=1)",
                "rbf"
            ]
        );
        assert_eq!(
            texts("view(1-2,4: rbf(gamma=2^-1:2:3))"),
            [0.5, 1.0, 2.0].map(|gamma| format!("view(1-2,4: rbf(gamma={gamma}))"))
        );
        assert_eq!(texts("poly(gamma=1:4:3, degree=1:2)").len(), 6);
    }

    #[test]
    fn what_is_no_range_is_told() {
        for list in ["rbf(gamma=1:2)", "rbf(gamma=0:1:3)", "poly(degree=3:1)", "poly(coef0=1:2:2)"]
        {
            let error = kernel_texts(list).unwrap_err().to_string();
            assert!(error.contains("gamma=LOW:HIGH:COUNT"), "{list}: {error}");
        }
        assert!(kernel_texts("poly(degree=0:9999, gamma=1:2:9)").is_err());
    }
}
