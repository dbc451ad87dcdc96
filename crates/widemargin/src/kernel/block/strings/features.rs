//! Counts of substrings as a table of their own, for linear machines and for people who want to see which
//! substrings count.

use std::collections::HashMap;

use super::patterns::Patterns;
use super::symbols;
use super::trie::{FrozenTrie, ROOT, Trie};
use crate::data::{Csr, Matrix};
use crate::error::{Error, Result};
use crate::kernel::{StringKernel, StringSimilarity};

/// Marks a node that is no feature: a beginning of substrings.
const ABSENT: u32 = u32::MAX;

/// The substrings that occur in some strings, a feature each: products of their counts are the values of
/// the [spectrum kernel](StringSimilarity::Spectrum).
#[derive(Clone)]
pub struct SubstringFeatures {
    kernel: StringKernel,
    patterns: Patterns,
    trie: Trie,
    /// Column of every node of the trie.
    columns: Vec<u32>,
    names: Vec<String>,
}

impl SubstringFeatures {
    /// The substrings of the rows of a table, in the order of their code points.
    ///
    /// # Errors
    /// [`Error::Parameter`] for parameters out of range, [`Error::Kernel`] for another kernel than that of
    /// spectra and for rows that are no strings, [`Error::TooLarge`] when there are too many substrings.
    pub fn fit(kernel: StringKernel, rows: &Matrix) -> Result<Self> {
        kernel.validate()?;
        let name = kernel.similarity.name();
        if !matches!(kernel.similarity, StringSimilarity::Spectrum { .. }) {
            return Err(Error::kernel(
                name,
                "the spectrum kernel, whose features are substrings",
                name,
            ));
        }
        let (patterns, _) = Patterns::of(&kernel);
        let (mut trie, mut string, mut nodes) = (Trie::new(ROOT + 1), Vec::new(), Vec::new());
        for row in 0..rows.rows() {
            symbols(name, rows, row, &mut string)?;
            patterns.walk(&string, &mut trie, &mut |_, node| nodes.push(node))?;
            nodes.sort_unstable();
            nodes.dedup();
        }
        let mut named: Vec<(String, u32)> = trie.texts(&nodes).into_iter().zip(nodes).collect();
        named.sort_unstable();
        let mut columns = vec![ABSENT; trie.next() as usize];
        for (column, (_, node)) in named.iter().enumerate() {
            columns[*node as usize] = column as u32;
        }
        let names = named.into_iter().map(|(name, _)| name).collect();
        Ok(Self { kernel, patterns, trie, columns, names })
    }

    /// The substrings, in the order of the columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The counts of the substrings of strings; those that are not known are left out but count for the
    /// length of a normalised row.
    ///
    /// # Errors
    /// [`Error::Kernel`] for rows that are no strings.
    pub fn transform(&self, rows: &Matrix) -> Result<Matrix> {
        let known = self.trie.next();
        let (mut string, mut found, mut others) = (Vec::new(), Vec::new(), Trie::new(known));
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in 0..rows.rows() {
            symbols(self.kernel.similarity.name(), rows, row, &mut string)?;
            others.clear();
            let mut nodes = FrozenTrie { trie: &self.trie, others: &mut others };
            let column = |node: u32| self.columns.get(node as usize).copied().unwrap_or(node);
            let visit = &mut |_, node| found.push((column(node), node >= known));
            self.patterns.walk(&string, &mut nodes, visit)?;
            found.sort_unstable_by_key(|&(column, unknown)| (unknown, column));
            let (begin, mut squares) = (values.len(), 0.0);
            for run in found.chunk_by(|a, b| a == b) {
                let count = run.len() as f64;
                squares += count * count;
                if !run[0].1 {
                    columns.push(run[0].0);
                    values.push(count);
                }
            }
            if self.kernel.normalize && squares > 0.0 {
                let norm = squares.sqrt();
                values[begin..].iter_mut().for_each(|value| *value /= norm);
            }
            starts.push(values.len());
            found.clear();
        }
        Csr::new(self.names.len(), starts, columns, values).map(Matrix::SparseF64)
    }
}

impl Trie {
    /// The strings that lead to some nodes.
    fn texts(&self, nodes: &[u32]) -> Vec<String> {
        let before: HashMap<u32, (u32, u32)> = self.edges().map(|(a, s, b)| (b, (a, s))).collect();
        let text = |&node: &u32| {
            let (mut text, mut at) = (Vec::new(), node);
            while let Some(&(from, symbol)) = before.get(&at) {
                text.push(char::from_u32(symbol - 1).unwrap_or(char::REPLACEMENT_CHARACTER));
                at = from;
            }
            text.iter().rev().collect()
        };
        nodes.iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::kernel::Kernel;

    #[test]
    fn products_of_features_are_values_of_the_kernel_and_unknown_substrings_count_for_the_length() {
        let rows = Matrix::of_strings(["banana", "bandana", "é", ""]).unwrap();
        let new = Matrix::of_strings(["nanana!", "cabana", "xyz"]).unwrap();
        for (shortest, normalize) in [(3, true), (1, true), (1, false)] {
            let similarity = StringSimilarity::Spectrum { length: 3, shortest };
            let kernel = StringKernel { similarity, normalize };
            let features = SubstringFeatures::fit(kernel, &rows).unwrap();
            let (left, right) =
                (features.transform(&new).unwrap(), features.transform(&rows).unwrap());
            let linear = Kernel::Linear.values(&left, &right, &Context::new()).unwrap();
            let exact = Kernel::String(kernel).values(&new, &rows, &Context::new()).unwrap();
            for (a, b) in linear.values().iter().zip(exact.values()) {
                assert!((a - b).abs() < 1e-12, "{a} {b}");
            }
        }
        let similarity = StringSimilarity::Spectrum { length: 2, shortest: 2 };
        let kernel = StringKernel { similarity, normalize: false };
        let features = SubstringFeatures::fit(kernel, &rows).unwrap();
        assert_eq!(features.names(), ["an", "ba", "da", "na", "nd"]);
        let mut row = [0.0; 5];
        features.transform(&rows).unwrap().copy_row(0, &mut row);
        assert_eq!(row, [2.0, 1.0, 0.0, 2.0, 0.0]);
        // The names alone make the same features again.
        let again =
            SubstringFeatures::fit(kernel, &Matrix::of_strings(features.names()).unwrap()).unwrap();
        assert_eq!(again.names(), features.names());
    }
}
