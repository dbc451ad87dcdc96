//! Rows without labels among the rows given.

use std::borrow::Cow;

use super::fit::FitInput;
use crate::data::{Dataset, Label};
use crate::error::{Error, Result};

/// The rows of an input by whether they have a label.
pub(in crate::machine) struct LabelSplit<'a> {
    data: Cow<'a, Dataset>,
    labelled: Option<Vec<usize>>,
    /// Rows of the data set without a label.
    pub(in crate::machine) unlabelled: Vec<usize>,
}

impl<'a> LabelSplit<'a> {
    /// Rows whose label is written as `mark` have none ([`Labels::without_mark`]).
    ///
    /// # Errors
    /// [`Error::Empty`] when no row has a label.
    pub(in crate::machine) fn new(mark: Option<&Label>, input: FitInput<'a>) -> Result<Self> {
        let data = input.data();
        let (Some(mark), false) = (mark, data.labels().is_empty()) else {
            return Ok(Self { data: Cow::Borrowed(data), labelled: None, unlabelled: Vec::new() });
        };
        let marked = data.labels().rows_marked(mark);
        let is_marked = |row: &usize| marked.binary_search(row).is_ok();
        let (unlabelled, labelled): (Vec<usize>, Vec<usize>) = input.rows().partition(is_marked);
        if labelled.is_empty() {
            return Err(Error::Empty { what: "row with a label" });
        }
        let data = match data.labels().without_mark(mark) {
            Cow::Owned(labels) if !unlabelled.is_empty() => {
                Cow::Owned(data.clone().with_labels(labels)?)
            }
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
