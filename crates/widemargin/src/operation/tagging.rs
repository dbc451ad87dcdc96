//! How good tags are: the share of right ones, and precision and recall of the chunks that B-, I- and O tags mark.

use std::collections::HashSet;

use crate::error::{Error, Result};

/// The quality of predicted tags.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TagQuality {
    /// Positions whose tag is known.
    pub positions: usize,
    /// Those with the right one.
    pub right: usize,
    /// Chunks, where the true tags mark some.
    pub chunks: Option<ChunkCounts>,
}

/// Chunks marked by tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChunkCounts {
    /// In the true tags.
    pub truth: usize,
    /// In the predicted ones.
    pub predicted: usize,
    /// In both, with the same ends and kind.
    pub both: usize,
}

impl ChunkCounts {
    /// The harmonic mean of precision and recall.
    pub fn f1(&self) -> f64 {
        2.0 * self.both as f64 / ((self.truth + self.predicted) as f64).max(1.0)
    }
}

impl TagQuality {
    /// Compares sequences of tags; `None` where the true one is not known.
    ///
    /// # Errors
    /// [`Error::Length`] when two lists differ in length.
    pub fn new<'a>(
        sequences: impl IntoIterator<Item = (Vec<Option<&'a str>>, Vec<&'a str>)>,
    ) -> Result<Self> {
        let mut quality = Self { positions: 0, right: 0, chunks: None };
        let (mut counts, mut marked) = (ChunkCounts::default(), false);
        for (truth, predicted) in sequences {
            if truth.len() != predicted.len() {
                return Err(Error::length("tags of a sequence", truth.len(), predicted.len()));
            }
            quality.positions += truth.iter().flatten().count();
            let pairs = truth.iter().zip(&predicted);
            quality.right += pairs.filter(|(truth, own)| **truth == Some(**own)).count();
            marked |= truth.iter().flatten().any(|tag| tag.starts_with("B-"));
            let truth: Vec<&str> = truth.iter().map(|tag| tag.unwrap_or("O")).collect();
            let (truth, predicted) = (chunks(&truth), chunks(&predicted));
            counts.truth += truth.len();
            counts.predicted += predicted.len();
            counts.both += truth.intersection(&predicted).count();
        }
        quality.chunks = marked.then_some(counts);
        Ok(quality)
    }

    /// The share of right tags.
    pub fn accuracy(&self) -> f64 {
        self.right as f64 / self.positions.max(1) as f64
    }
}

/// Chunks as first position, the one after the last, and kind; an I- that continues nothing begins one.
fn chunks<'a>(tags: &[&'a str]) -> HashSet<(usize, usize, &'a str)> {
    let mut found = HashSet::new();
    let mut open: Option<(usize, &str)> = None;
    for (k, tag) in tags.iter().chain(&["O"]).enumerate() {
        let inside = tag.strip_prefix("I-");
        if let Some((start, kind)) = open {
            if inside == Some(kind) {
                continue;
            }
            found.insert((start, k, kind));
        }
        open = tag.strip_prefix("B-").or(inside).map(|kind| (k, kind));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_compared_with_ends_and_kind() {
        let truth = ["B-X", "I-X", "O", "B-Y", "I-X", "B-X"];
        let own = ["B-X", "I-X", "I-X", "B-Y", "O", "B-X"];
        let known = truth.iter().enumerate().map(|(k, tag)| (k != 2).then_some(*tag)).collect();
        let quality = TagQuality::new([(known, own.to_vec())]).unwrap();
        assert_eq!((quality.positions, quality.right), (5, 4));
        // X at 0–2, Y at 3, X at 4, X at 5; predicted X at 0–3, Y at 3, X at 5.
        let counts = quality.chunks.unwrap();
        assert_eq!((counts.truth, counts.predicted, counts.both), (4, 3, 2));
        assert!((counts.f1() - 4.0 / 7.0).abs() < 1e-15);
    }
}
