//! Which rows are learnt from and which are held out, again and again.

use std::mem::size_of;

use crate::data::{Dataset, Label, memory};
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

/// The splits of `times` divisions into folds, with seeds from `seed` on; rows labelled `unlabelled` have no
/// label and are never held out.
///
/// # Errors
/// As [`Folds::assign_labelled`]; [`Error::Parameter`] for no times at all, [`Error::TooLarge`] where the numbers of the
/// rows of all splits do not fit in memory.
pub fn repeated(
    folds: &Folds,
    times: usize,
    data: &Dataset,
    unlabelled: Option<&Label>,
    seed: u64,
) -> Result<Vec<Split>> {
    if times == 0 {
        return Err(Error::parameter("repeats", "at least 1", times));
    }
    let mut splits = Vec::new();
    for time in 0..times {
        let plan = folds.assign_labelled(data, unlabelled, seed.wrapping_add(time as u64))?;
        if time == 0 {
            let numbers = data.rows() as u128 * plan.count() as u128 * times as u128;
            let what = || format!("the rows of {} splits", plan.count() as u128 * times as u128);
            memory::check(what, size_of::<usize>() as u128 * numbers)?;
        }
        splits.extend((0..plan.count()).map(|fold| {
            let (train, test) = plan.split(fold);
            Split { train, test }
        }));
    }
    Ok(splits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Labels, Matrix};

    #[test]
    fn splits_that_memory_cannot_hold_are_refused_before_they_are_made() {
        let table = Dense::new(4, 1, vec![0.0, 1.0, 2.0, 3.0]).unwrap();
        let labels = Labels::Int(vec![0, 0, 1, 1]);
        let data = Dataset::new(Matrix::DenseF64(table), labels).unwrap();
        let folds = Folds::Stratified(2);
        assert_eq!(repeated(&folds, 3, &data, None, 0).unwrap().len(), 6);
        let error = repeated(&folds, usize::MAX, &data, None, 0).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    }
}
