//! Which substrings of a string are counted, as nodes of a trie.
//!
//! The mismatch kernel is Σ_d N_d P_d, with P_d the pairs of substrings at Hamming distance d and N_d the
//! strings within m of both, which depend on d alone. P_d follows from the pairs that are equal after j of
//! their k places are left out: M_j = Σ_d C(k − d, j − d) P_d. So K = Σ_j w_j M_j for j = 0 to 2m, and M_j is
//! a product of counts of substrings with wildcards: the work is free of the size of the alphabet.

use super::trie::{Nodes, ROOT};
use crate::error::Result;
use crate::kernel::string::binomial;
use crate::kernel::{StringKernel, StringSimilarity};

/// The edge of a place that is left out; symbols begin at 1.
const WILDCARD: u32 = 0;

/// Substrings counted, in levels that have a weight each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Patterns {
    /// All substrings of so many symbols.
    Lengths { shortest: usize, longest: usize },
    /// Substrings of this length with up to so many places left out, which are the levels.
    Gaps { length: usize, most: usize },
}

impl Patterns {
    /// The patterns of a kernel and the weights of their levels.
    pub(super) fn of(kernel: &StringKernel) -> (Self, Vec<f64>) {
        match kernel.similarity {
            StringSimilarity::Mismatch { length, mismatches, alphabet } => {
                let weights = mismatch_weights(length, mismatches, alphabet);
                (Self::Gaps { length: length as usize, most: weights.len() - 1 }, weights)
            }
            StringSimilarity::Spectrum { length, shortest } => {
                let (shortest, longest) = (shortest as usize, length as usize);
                (Self::Lengths { shortest, longest }, vec![1.0])
            }
            _ => unreachable!("these kernels count no substrings"),
        }
    }

    /// Walks along the counted substrings of `string`; `found` gets the level and the node of each.
    ///
    /// Substrings of the next place follow from those of the last by a link and a step, so that known ones cost
    /// the same for any length.
    ///
    /// # Errors
    /// Those of [`Nodes::child`].
    #[inline(always)]
    pub(super) fn walk(
        self,
        string: &[u32],
        nodes: &mut impl Nodes,
        found: &mut impl FnMut(usize, u32),
    ) -> Result<()> {
        match self {
            Self::Lengths { shortest, longest } => {
                let (mut node, mut length) = (ROOT, 0);
                for &symbol in string {
                    if length == longest {
                        (node, length) = (nodes.link(node), length - 1);
                    }
                    (node, length) = (nodes.extend(node, symbol)?, length + 1);
                    let mut suffix = node;
                    for _ in shortest..=length {
                        found(0, suffix);
                        suffix = nodes.link(suffix);
                    }
                }
            }
            Self::Gaps { length, most } => {
                for piece in string.windows(length) {
                    with_gaps(piece, [ROOT, 0], most, nodes, found)?;
                }
            }
        }
        Ok(())
    }
}

/// All ways to leave out up to `most` of the symbols of a substring, of which `gaps` are left out on the way
/// to `node`.
fn with_gaps(
    piece: &[u32],
    [node, gaps]: [u32; 2],
    most: usize,
    nodes: &mut impl Nodes,
    found: &mut impl FnMut(usize, u32),
) -> Result<()> {
    let Some((&symbol, rest)) = piece.split_first() else {
        found(gaps as usize, node);
        return Ok(());
    };
    if (gaps as usize) < most {
        let (next, _) = nodes.child(node, WILDCARD)?;
        with_gaps(rest, [next, gaps + 1], most, nodes, found)?;
    }
    let (next, _) = nodes.child(node, symbol)?;
    with_gaps(rest, [next, gaps], most, nodes, found)
}

/// w_j with Σ_j w_j C(k − d, j − d) = N_d for d from 0 to 2m.
fn mismatch_weights(length: u32, mismatches: u32, alphabet: u32) -> Vec<f64> {
    let most = length.min(2 * mismatches);
    let mut weights = vec![0.0; most as usize + 1];
    for d in (0..=most).rev() {
        let above = (d + 1..=most).map(|j| weights[j as usize] * binomial(length - d, j - d));
        weights[d as usize] = between(length, mismatches, alphabet, d) - above.sum::<f64>();
    }
    weights
}

/// How many strings are within `mismatches` of both of two strings that differ in `distance` places.
fn between(length: u32, mismatches: u32, alphabet: u32, distance: u32) -> f64 {
    let power = |base: u32, exponent: u32| f64::from(base).powi(exponent as i32);
    let mut sum = 0.0;
    // Of the places that differ, `left` agree with the first string, `right` with the second.
    for left in 0..=distance {
        for right in 0..=distance - left {
            for elsewhere in 0..=length - distance {
                if (distance - left).max(distance - right) + elsewhere > mismatches {
                    break;
                }
                let neither = distance - left - right;
                sum += binomial(distance, left)
                    * binomial(distance - left, right)
                    * power(alphabet - 2, neither)
                    * binomial(length - distance, elsewhere)
                    * power(alphabet - 1, elsewhere);
            }
        }
    }
    sum
}
