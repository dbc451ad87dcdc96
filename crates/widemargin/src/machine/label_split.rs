//! Rows without labels among the rows given.

use std::borrow::Cow;

use super::fit::FitInput;
use crate::data::{Dataset, Label, Labels};
use crate::error::{Error, Result};

/// The rows of an input by whether they have a label.
pub(in crate::machine) struct LabelSplit<'a> {
    data: Cow<'a, Dataset>,
    labelled: Option<Vec<usize>>,
    /// Rows of the data set without a label.
    pub(in crate::machine) unlabelled: Vec<usize>,
}

impl<'a> LabelSplit<'a> {
    /// Rows whose label is written as `mark` have none. Words that are left become numbers where all of them
    /// spell one: the mark had made them words.
    ///
    /// # Errors
    /// [`Error::Empty`] when no row has a label.
    pub(in crate::machine) fn new(mark: Option<&Label>, input: FitInput<'a>) -> Result<Self> {
        let data = input.data();
        let (Some(mark), false) = (mark, data.labels().is_empty()) else {
            return Ok(Self { data: Cow::Borrowed(data), labelled: None, unlabelled: Vec::new() });
        };
        let mark = mark.to_string();
        let is_marked = |row: &usize| match data.labels() {
            Labels::Text(words) => words[*row] == mark,
            labels => labels.get(*row).is_some_and(|label| label.to_string() == mark),
        };
        let (unlabelled, labelled): (Vec<usize>, Vec<usize>) = input.rows().partition(is_marked);
        if labelled.is_empty() {
            return Err(Error::Empty { what: "row with a label" });
        }
        let data = match data.labels() {
            Labels::Text(words) if !unlabelled.is_empty() => match numbers(words, &labelled) {
                Some(labels) => Cow::Owned(data.clone().with_labels(labels)?),
                None => Cow::Borrowed(data),
            },
            _ => Cow::Borrowed(data),
        };
        Ok(Self { data, labelled: Some(labelled), unlabelled })
    }

    /// The rows with labels; `all` is the input that was split.
    pub(in crate::machine) fn labelled<'b>(&'b self, all: FitInput<'b>) -> Result<FitInput<'b>> {
        match &self.labelled {
            Some(rows) => FitInput::with_rows(&self.data, rows),
            None => Ok(all),
        }
    }
}

/// The labels as numbers if those of `rows` are; others become 0.
fn numbers(words: &[String], rows: &[usize]) -> Option<Labels> {
    fn all<T: Clone + Default + std::str::FromStr>(
        words: &[String],
        rows: &[usize],
    ) -> Option<Vec<T>> {
        let mut values = vec![T::default(); words.len()];
        for &row in rows {
            values[row] = words[row].trim().parse().ok()?;
        }
        Some(values)
    }
    let real = |values: Vec<f64>| values.iter().all(|v| v.is_finite()).then_some(values);
    all(words, rows).map(Labels::Int).or_else(|| all(words, rows).and_then(real).map(Labels::Real))
}
