//! Sequences of positions with features and, where they are known, tags.

use std::ops::Range;

use super::{Classes, Csr, Label, Matrix};
use crate::error::{Error, Result};

/// The code of a position whose tag is not known.
pub const NO_TAG: u32 = u32::MAX;

/// Sequences, one after another: a row of features for every position, and perhaps its tag.
///
/// ```
/// use widemargin::data::{Dense, Label, Matrix, TaggedSequences};
///
/// let rows = Matrix::DenseF64(Dense::new(3, 1, vec![0.1, 0.2, 0.9])?);
/// let words = |names: &[&str]| names.iter().map(|n| Label::Text((*n).into())).collect::<Vec<_>>();
/// let data = TaggedSequences::new(rows, vec![2, 1])?.with_tags(&words(&["low", "low", "high"]))?;
/// assert_eq!(data.tags().unwrap().codes, [1, 1, 0]);
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TaggedSequences {
    rows: Matrix,
    starts: Vec<usize>,
    tags: Option<Classes>,
    weights: Option<Vec<f64>>,
    names: Option<Vec<String>>,
}

impl TaggedSequences {
    /// Sequences of these lengths.
    ///
    /// # Errors
    /// [`Error::Empty`] for a sequence without positions, [`Error::Length`] when lengths and rows do not agree.
    pub fn new(rows: Matrix, lengths: Vec<usize>) -> Result<Self> {
        if lengths.is_empty() {
            return Err(Error::Empty { what: "sequence" });
        }
        let mut starts = vec![0_usize];
        let mut end = 0_usize;
        for length in &lengths {
            if *length == 0 {
                return Err(Error::Empty { what: "position of every sequence" });
            }
            end = end.saturating_add(*length);
            starts.push(end);
        }
        if end != rows.rows() {
            return Err(Error::length("positions of all sequences", end, rows.rows()));
        }
        Ok(Self { rows, starts, tags: None, weights: None, names: None })
    }

    /// With the tag of every position.
    ///
    /// # Errors
    /// [`Error::Length`] when there is not one tag per position.
    pub fn with_tags(self, tags: &[Label]) -> Result<Self> {
        self.with_known_tags(&tags.iter().map(Some).collect::<Vec<_>>())
    }

    /// With the tags of the positions where they are known; the distinct ones in ascending order are the classes.
    ///
    /// # Errors
    /// [`Error::Length`] when there is not one entry per position.
    pub(crate) fn with_known_tags(self, tags: &[Option<&Label>]) -> Result<Self> {
        let mut names: Vec<Label> = Vec::new();
        let mut last: Option<&Label> = None;
        for tag in tags.iter().flatten() {
            // Neighbours are often equal, and there are few names.
            if last != Some(*tag) && !names.contains(*tag) {
                names.push((*tag).clone());
            }
            last = Some(*tag);
        }
        names.sort_by(Label::order);
        let code = |tag: &Option<&Label>| match tag {
            Some(tag) => names.iter().position(|name| name == *tag).map_or(NO_TAG, |c| c as u32),
            None => NO_TAG,
        };
        let codes = tags.iter().map(code).collect();
        self.with_classes(Classes { names, codes })
    }

    /// With the class of every position, [`NO_TAG`] where it is not known.
    ///
    /// # Errors
    /// [`Error::Length`] when there is not one code per position, [`Error::Labels`] for a code without a name.
    pub fn with_classes(mut self, tags: Classes) -> Result<Self> {
        if tags.codes.len() != self.positions() {
            return Err(Error::length("tags", self.positions(), tags.codes.len()));
        }
        let known = |code: u32| code == NO_TAG || (code as usize) < tags.names.len();
        if let Some(at) = tags.codes.iter().position(|&code| !known(code)) {
            let (sequence, position) = self.place(at);
            return Err(Error::labels(
                format!("codes below {}", tags.names.len()),
                format!("{} at position {position} of sequence {sequence}", tags.codes[at]),
            ));
        }
        self.tags = Some(tags);
        Ok(self)
    }

    /// With a weight of every sequence, which multiplies the price of its loss.
    ///
    /// # Errors
    /// [`Error::Length`] when there is not one per sequence, [`Error::Parameter`] for one that is negative or not
    /// finite.
    pub fn with_weights(mut self, weights: Vec<f64>) -> Result<Self> {
        if weights.len() != self.count() {
            return Err(Error::length("weights of sequences", self.count(), weights.len()));
        }
        weights.iter().try_for_each(|weight| Error::check_not_negative("weights", *weight))?;
        self.weights = Some(weights);
        Ok(self)
    }

    /// With names of the features.
    ///
    /// # Errors
    /// [`Error::Length`] when there is not one per feature.
    pub fn with_feature_names(mut self, names: Vec<String>) -> Result<Self> {
        if names.len() != self.rows.columns() {
            return Err(Error::length("feature names", self.rows.columns(), names.len()));
        }
        self.names = Some(names);
        Ok(self)
    }

    /// The same without names of the features.
    pub(crate) fn without_names(self) -> Self {
        Self { names: None, ..self }
    }

    /// The same with this many features; those beyond are dropped, as unseen ones are.
    #[must_use]
    pub fn resized(mut self, features: usize) -> Self {
        self.rows = self.rows.resized_columns(features);
        self.names = self.names.filter(|names| names.len() == features);
        self
    }

    /// Number of sequences.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of positions of all sequences together.
    pub fn positions(&self) -> usize {
        self.rows.rows()
    }

    /// The positions of a sequence.
    pub fn span(&self, sequence: usize) -> Range<usize> {
        self.starts[sequence]..self.starts[sequence + 1]
    }

    /// Length of every sequence.
    pub fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        self.starts.windows(2).map(|pair| pair[1] - pair[0])
    }

    /// Features of all positions.
    pub fn rows(&self) -> &Matrix {
        &self.rows
    }

    /// The tags, if there are any.
    pub fn tags(&self) -> Option<&Classes> {
        self.tags.as_ref()
    }

    /// Weight of a sequence.
    pub fn weight(&self, sequence: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[sequence])
    }

    /// Names of the features, if there are any.
    pub fn feature_names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// Sequence and position within it, from 1, of a position.
    pub fn place(&self, position: usize) -> (usize, usize) {
        let sequence = self.starts.partition_point(|&start| start <= position);
        (sequence, position - self.starts[sequence - 1] + 1)
    }

    /// The runs of positions with a known tag as sequences of their own.
    ///
    /// # Errors
    /// [`Error::Empty`] when no tag is known.
    pub fn known_runs(&self) -> Result<Self> {
        let Some(tags) = &self.tags else { return Err(Error::Empty { what: "known tag" }) };
        let (mut kept, mut lengths, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for sequence in 0..self.count() {
            let mut length = 0;
            for k in self.span(sequence) {
                if tags.codes[k] != NO_TAG {
                    kept.push(k);
                    length += 1;
                }
                if length > 0 && (tags.codes[k] == NO_TAG || k + 1 == self.starts[sequence + 1]) {
                    lengths.push(length);
                    weights.push(self.weight(sequence));
                    length = 0;
                }
            }
        }
        if kept.is_empty() {
            return Err(Error::Empty { what: "known tag" });
        }
        let codes = kept.iter().map(|&k| tags.codes[k]).collect();
        let mut runs = Self::new(self.rows.select_rows(&kept), lengths)?
            .with_classes(Classes { names: tags.names.clone(), codes })?;
        runs.weights = self.weights.as_ref().map(|_| weights);
        runs.names.clone_from(&self.names);
        Ok(runs)
    }
}

/// Rows of named features, collected position by position.
#[derive(Clone, Debug)]
pub struct SequenceBuilder {
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
    lengths: Vec<usize>,
    length: usize,
    row: Vec<(u32, f64)>,
}

impl Default for SequenceBuilder {
    fn default() -> Self {
        Self {
            starts: vec![0],
            indices: Vec::new(),
            values: Vec::new(),
            lengths: Vec::new(),
            length: 0,
            row: Vec::new(),
        }
    }
}

impl SequenceBuilder {
    /// Adds a value to a feature of the position that is being collected.
    pub fn add(&mut self, feature: u32, value: f64) {
        self.row.push((feature, value));
    }

    /// Ends the position; values of a feature that was added twice are summed.
    pub fn end_position(&mut self) {
        self.row.sort_by_key(|(feature, _)| *feature);
        let mut last = None;
        for &(feature, value) in &self.row {
            match self.values.last_mut() {
                Some(sum) if last == Some(feature) => *sum += value,
                _ => {
                    self.indices.push(feature);
                    self.values.push(value);
                }
            }
            last = Some(feature);
        }
        self.row.clear();
        self.starts.push(self.indices.len());
        self.length += 1;
    }

    /// Ends the sequence, if it has positions.
    pub fn end_sequence(&mut self) {
        if self.length > 0 {
            self.lengths.push(std::mem::take(&mut self.length));
        }
    }

    /// Positions so far.
    pub fn positions(&self) -> usize {
        self.starts.len() - 1
    }

    /// The sequences over this many features.
    ///
    /// # Errors
    /// [`Error::Empty`] without sequences, [`Error::Parameter`] for a feature that does not exist.
    pub fn finish(mut self, features: usize) -> Result<TaggedSequences> {
        self.end_sequence();
        let rows = Csr::new(features, self.starts, self.indices, self.values)?;
        TaggedSequences::new(Matrix::SparseF64(rows), self.lengths)
    }
}
