//! Error-correcting output codes (Dietterich and Bakiri, 1995; Allwein, Schapire and Singer, 2000).
//!
//! A code matrix has a row per class and a column per two-class problem; +1 and −1 name the sides a
//! class is on, 0 leaves it out.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::machine::names::names;
use crate::numeric::random::Generator;

/// Most classes for which the exhaustive code (2^(k−1) − 1 columns) is used.
const EXHAUSTIVE_CLASSES: usize = 7;

/// Random matrices among which the best separated one is taken.
const RANDOM_TRIALS: usize = 200;

/// What a decision value costs on its side of a code word; the class with the least sum wins (Allwein, Schapire
/// and Singer 2000, loss-based decoding). With z = side · value, 0 for classes that a column leaves out:
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Decoding {
    /// max(0, 1 − z), the loss that the functions were trained with.
    #[default]
    Hinge,
    /// (1 − sign z) / 2: the number of wrong signs, Hamming's distance.
    Hamming,
    /// e^−z
    Exponential,
    /// −z
    Linear,
}

names!(Decoding, "decoding", Hinge: "hinge", Hamming: "hamming", Exponential: "exponential",
       Linear: "linear");

impl Decoding {
    fn loss(self, z: f64) -> f64 {
        match self {
            Self::Hinge => (1.0 - z).max(0.0),
            Self::Hamming if z == 0.0 => 0.5,
            Self::Hamming => f64::from(u8::from(z < 0.0)),
            Self::Exponential => (-z).exp(),
            Self::Linear => -z,
        }
    }
}

/// A code matrix, a row per class and a column per function with entries −1, 0 and +1, and how it is decoded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredCode", into = "StoredCode")]
pub struct OutputCode {
    /// One row per class.
    pub rows: Vec<Vec<i8>>,
    /// What decision values cost.
    pub decoding: Decoding,
}

/// In a file: the rows alone where the hinge loss decodes them, as in all files of version 2.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredCode {
    Rows(Vec<Vec<i8>>),
    Decoded { rows: Vec<Vec<i8>>, decoding: Decoding },
}

impl From<StoredCode> for OutputCode {
    fn from(stored: StoredCode) -> Self {
        match stored {
            StoredCode::Rows(rows) => rows.into(),
            StoredCode::Decoded { rows, decoding } => Self { rows, decoding },
        }
    }
}

impl From<OutputCode> for StoredCode {
    fn from(OutputCode { rows, decoding }: OutputCode) -> Self {
        match decoding {
            Decoding::Hinge => Self::Rows(rows),
            decoding => Self::Decoded { rows, decoding },
        }
    }
}

impl From<Vec<Vec<i8>>> for OutputCode {
    fn from(rows: Vec<Vec<i8>>) -> Self {
        Self { rows, decoding: Decoding::default() }
    }
}

impl Deref for OutputCode {
    type Target = [Vec<i8>];

    fn deref(&self) -> &[Vec<i8>] {
        &self.rows
    }
}

impl OutputCode {
    /// What the decision values of all functions cost a class.
    pub(in crate::machine) fn cost(&self, class: usize, values: &[f64]) -> f64 {
        let sides = self.rows[class].iter().zip(values);
        sides.map(|(&side, value)| self.decoding.loss(f64::from(side) * value)).sum()
    }
}

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

    #[test]
    fn decoding_sums_the_loss_of_every_function() {
        let code = |decoding| OutputCode { rows: vec![vec![1, -1, 0], vec![-1, 1, 1]], decoding };
        let values = [0.5, 2.0, -1.0];
        let expected = [
            (Decoding::Hinge, 0.5 + 3.0 + 1.0),
            (Decoding::Hamming, 0.0 + 1.0 + 0.5),
            (Decoding::Exponential, (-0.5_f64).exp() + 2.0_f64.exp() + 1.0),
            (Decoding::Linear, -0.5 + 2.0),
        ];
        for (decoding, cost) in expected {
            assert_eq!(code(decoding).cost(0, &values), cost, "{decoding}");
        }
    }

    #[test]
    fn files_keep_the_rows_alone_unless_another_loss_decodes_them() {
        let rows = vec![vec![1, -1], vec![-1, 1]];
        let plain = OutputCode::from(rows.clone());
        assert_eq!(serde_json::to_string(&plain).unwrap(), "[[1,-1],[-1,1]]");
        let hamming = OutputCode { rows, decoding: Decoding::Hamming };
        for code in [plain, hamming] {
            let text = serde_json::to_string(&code).unwrap();
            assert_eq!(serde_json::from_str::<OutputCode>(&text).unwrap(), code);
        }
    }
}
