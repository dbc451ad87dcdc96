//! Which rows are learnt from and which are held out, again and again.

use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::operation::folds::Folds;

/// Rows to learn from and rows to predict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Rows to learn from, ascending.
    pub train: Vec<usize>,
    /// Rows held out.
    pub test: Vec<usize>,
}

/// The splits of `times` divisions into folds, with seeds from `seed` on.
///
/// # Errors
/// As [`Folds::assign`]; [`Error::Parameter`] for no times at all.
pub fn repeated(folds: &Folds, times: usize, data: &Dataset, seed: u64) -> Result<Vec<Split>> {
    if times == 0 {
        return Err(Error::parameter("repeats", "at least 1", times));
    }
    let mut splits = Vec::new();
    for time in 0..times {
        let plan = folds.assign(data, seed.wrapping_add(time as u64))?;
        splits.extend((0..plan.count()).map(|fold| {
            let (train, test) = plan.split(fold);
            Split { train, test }
        }));
    }
    Ok(splits)
}
