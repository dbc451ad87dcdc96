//! Kernels of strings: rows of symbols, as [`Matrix::of_strings`](crate::data::Matrix::of_strings) makes
//! them, compared by the pieces they have in common.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Longest substring or subsequence.
const LONGEST: u32 = 1000;

/// Most patterns of a mismatch kernel: ways to leave out up to 2m of k places.
const MOST_PATTERNS: f64 = 10_000.0;

/// Largest β times a score: exp of it is one factor of an alignment.
const LARGEST_EXPONENT: f64 = 200.0;

/// A similarity of two strings.
///
/// Serialised, it has the form of model files.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StringKernel {
    /// What is compared.
    pub similarity: StringSimilarity,
    /// K(s, t)/√(K(s, s) K(t, t)), 0 where either is 0, instead of K(s, t).
    pub normalize: bool,
}

/// What two strings have in common.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum StringSimilarity {
    /// Σ over substrings u of `shortest` to `length` symbols: the occurrences of u in s times those in t
    /// (Leslie, Eskin and Noble 2002).
    Spectrum {
        /// Symbols of the longest substrings.
        length: u32,
        /// Symbols of the shortest substrings.
        shortest: u32,
    },
    /// Σ over all strings u of `length` symbols: the substrings of s that differ from u in at most
    /// `mismatches` places, times those of t (Leslie, Eskin, Weston and Noble 2003).
    Mismatch {
        /// Symbols of a substring.
        length: u32,
        /// Most places that differ.
        mismatches: u32,
        /// How many symbols there are, which says how many u lie between two substrings.
        alphabet: u32,
    },
    /// Σ over subsequences of `length` symbols, with gaps: λ to the power of the places that each
    /// occurrence spans in s and in t (Lodhi et al. 2002).
    Subsequence {
        /// Symbols of a subsequence.
        length: u32,
        /// λ, above 0 and at most 1.
        decay: f64,
    },
    /// Σ over all local alignments: exp(β score) (Saigo, Vert, Ueda and Akutsu 2004).
    Alignment {
        /// Score of two equal symbols.
        reward: f64,
        /// Score of two different symbols, not above `reward`.
        penalty: f64,
        /// Cost of a gap's first symbol.
        open: f64,
        /// Cost of every further symbol.
        extend: f64,
        /// β
        beta: f64,
        /// ln K(s, t) in the place of K(s, t), which lessens the weight of the diagonal but is not
        /// positive semidefinite.
        log: bool,
    },
}

impl StringSimilarity {
    /// The name used on the command line and in model files.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Spectrum { .. } => "spectrum",
            Self::Mismatch { .. } => "mismatch",
            Self::Subsequence { .. } => "subsequence",
            Self::Alignment { .. } => "alignment",
        }
    }

    /// The kernel of that name with its usual parameters; an alphabet of 0 symbols stands for that of the
    /// data.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "spectrum" => Self::Spectrum { length: 3, shortest: 3 },
            "mismatch" => Self::Mismatch { length: 3, mismatches: 1, alphabet: 0 },
            "subsequence" => Self::Subsequence { length: 3, decay: 0.5 },
            "alignment" => Self::Alignment {
                reward: 1.0,
                penalty: -1.0,
                open: 2.0,
                extend: 0.5,
                beta: 1.0,
                log: false,
            },
            _ => return None,
        })
    }
}

impl StringKernel {
    /// Whether every matrix of its values is positive semidefinite by its formula.
    pub(crate) fn is_semidefinite(&self) -> bool {
        !matches!(self.similarity, StringSimilarity::Alignment { log: true, .. })
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// [`Error::Parameter`] naming the one that is out of range.
    pub fn validate(&self) -> Result<()> {
        match self.similarity {
            StringSimilarity::Spectrum { length, shortest } => {
                check_length(length)?;
                let expected = format!("a whole number from 1 to the length of {length}");
                check("shortest", (1..=length).contains(&shortest), expected, shortest)
            }
            StringSimilarity::Mismatch { length, mismatches, alphabet } => {
                check_length(length)?;
                let expected = format!("a whole number below the length of {length}");
                check("mismatches", mismatches < length, expected, mismatches)?;
                check("alphabet", alphabet >= 2, "at least 2 symbols", alphabet)?;
                let patterns = (0..=length.min(2 * mismatches)).map(|j| binomial(length, j));
                let (patterns, expected) =
                    (patterns.sum::<f64>(), "fewer mismatches or a smaller length");
                let found = format!("{mismatches} in {length}, which are {patterns} patterns");
                check("mismatches", patterns <= MOST_PATTERNS, expected, found)
            }
            StringSimilarity::Subsequence { length, decay } => {
                check_length(length)?;
                let expected = "a number above 0 and at most 1";
                check("decay", decay > 0.0 && decay <= 1.0, expected, decay)
            }
            StringSimilarity::Alignment { reward, penalty, open, extend, beta, .. } => {
                Error::check_positive("beta", beta)?;
                Error::check_not_negative("open", open)?;
                Error::check_not_negative("extend", extend)?;
                let small = |score: f64| (beta * score).abs() <= LARGEST_EXPONENT;
                let expected = format!("a score of at most {LARGEST_EXPONENT}/beta");
                check("match", small(reward), expected, reward)?;
                let expected = format!("a score of at most that of a match, {reward}");
                check("mismatch", penalty.is_finite() && penalty <= reward, expected, penalty)
            }
        }
    }
}

fn check_length(length: u32) -> Result<()> {
    let expected = format!("a whole number from 1 to {LONGEST}");
    check("length", (1..=LONGEST).contains(&length), expected, length)
}

fn check(
    name: &'static str,
    holds: bool,
    expected: impl Into<String>,
    found: impl ToString,
) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::parameter(name, expected, found)) }
}

/// n over k.
pub(super) fn binomial(n: u32, k: u32) -> f64 {
    if k > n {
        return 0.0;
    }
    (0..k).fold(1.0, |product, i| product * f64::from(n - i) / f64::from(i + 1)).round()
}

impl fmt::Display for StringKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.similarity.name())?;
        match self.similarity {
            StringSimilarity::Spectrum { length, shortest } => {
                write!(f, "length={length}, shortest={shortest}")?;
            }
            StringSimilarity::Mismatch { length, mismatches, alphabet } => {
                write!(f, "length={length}, mismatches={mismatches}, alphabet={alphabet}")?;
            }
            StringSimilarity::Subsequence { length, decay } => {
                write!(f, "length={length}, decay={decay}")?;
            }
            StringSimilarity::Alignment { reward, penalty, open, extend, beta, log } => {
                write!(f, "match={reward}, mismatch={penalty}, open={open}, extend={extend}, ")?;
                write!(f, "beta={beta}, log={log}")?;
            }
        }
        write!(f, ", normalize={})", self.normalize)
    }
}
