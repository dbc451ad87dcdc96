//! Error-correcting output codes (Dietterich and Bakiri, 1995; Allwein, Schapire and Singer, 2000).
//!
//! A code matrix has a row per class and a column per two-class problem; +1 and −1 name the sides a
//! class is on, 0 leaves it out.

use crate::error::{Error, Result};
use crate::numeric::random::Generator;

/// Most classes for which the exhaustive code (2^(k−1) − 1 columns) is used.
const EXHAUSTIVE_CLASSES: usize = 7;

/// Random matrices among which the best separated one is taken.
const RANDOM_TRIALS: usize = 200;

/// A code for `classes` classes: exhaustive up to 7, beyond that the best of many random dense
/// codes with ⌈10 log₂ k⌉ columns, by smallest distance between two rows.
///
/// ```
/// let code = widemargin::machine::error_correcting_code(3, 0);
/// assert_eq!(code[0].len(), 3);
/// ```
pub fn error_correcting_code(classes: usize, seed: u64) -> Vec<Vec<i8>> {
    if classes <= EXHAUSTIVE_CLASSES {
        return exhaustive(classes);
    }
    let columns = (10.0 * (classes as f64).log2()).ceil() as usize;
    let mut generator = Generator::new(seed);
    let mut best = (0, Vec::new());
    for _ in 0..RANDOM_TRIALS {
        let code = random(classes, columns, &mut generator);
        let distance = smallest_distance(&code);
        if check(&code, classes).is_ok() && (distance > best.0 || best.1.is_empty()) {
            best = (distance, code);
        }
    }
    if best.1.is_empty() { one_vs_rest(classes) } else { best.1 }
}

fn one_vs_rest(classes: usize) -> Vec<Vec<i8>> {
    (0..classes).map(|c| (0..classes).map(|f| if f == c { 1 } else { -1 }).collect()).collect()
}

/// Every split of the classes into two sides, the last class always on the negative one.
fn exhaustive(classes: usize) -> Vec<Vec<i8>> {
    let splits = 1_usize..1 << classes.saturating_sub(1);
    let side = |c: usize, split: usize| if split >> c & 1 == 1 { 1 } else { -1 };
    (0..classes).map(|c| splits.clone().map(|split| side(c, split)).collect()).collect()
}

fn random(classes: usize, columns: usize, generator: &mut Generator) -> Vec<Vec<i8>> {
    let mut bit = || if generator.bits() >> 63 == 1 { 1 } else { -1 };
    (0..classes).map(|_| (0..columns).map(|_| bit()).collect()).collect()
}

fn smallest_distance(code: &[Vec<i8>]) -> usize {
    let distance = |a: &[i8], b: &[i8]| a.iter().zip(b).filter(|(x, y)| x != y).count();
    let pairs = (0..code.len()).flat_map(|i| (i + 1..code.len()).map(move |j| (i, j)));
    pairs.map(|(i, j)| distance(&code[i], &code[j])).min().unwrap_or(0)
}

/// Checks that a code has a row per class, columns with both signs, and distinct rows.
///
/// # Errors
/// [`Error::Parameter`] otherwise.
pub(in crate::machine) fn check(code: &[Vec<i8>], classes: usize) -> Result<()> {
    let fail =
        |expected: &str, found: String| Err(Error::parameter("code", expected.to_owned(), found));
    if code.len() != classes {
        return fail("one row per class", format!("{} rows for {classes} classes", code.len()));
    }
    let columns = code[0].len();
    if columns == 0 || code.iter().any(|row| row.len() != columns) {
        return fail("rows of one positive length", "rows of other lengths".into());
    }
    for f in 0..columns {
        let has = |sign: i8| code.iter().any(|row| row[f] == sign);
        if !has(1) || !has(-1) || code.iter().any(|row| row[f].abs() > 1) {
            return fail(
                "entries -1, 0, +1 with both signs in every column",
                format!("column {f}"),
            );
        }
    }
    for i in 0..classes {
        if let Some(j) = (i + 1..classes).find(|&j| code[i] == code[j]) {
            return fail("distinct rows", format!("equal rows for classes {i} and {j}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exhaustive_codes_have_the_known_size_and_distance() {
        for classes in 3..=7 {
            let code = error_correcting_code(classes, 0);
            check(&code, classes).unwrap();
            assert_eq!(code[0].len(), (1 << (classes - 1)) - 1);
            assert_eq!(smallest_distance(&code), 1 << (classes - 2));
        }
    }

    #[test]
    fn random_codes_are_valid_and_repeatable() {
        for classes in [8, 10, 26] {
            let code = error_correcting_code(classes, 7);
            check(&code, classes).unwrap();
            assert_eq!(code, error_correcting_code(classes, 7));
        }
    }
}
