//! Which rows are learnt from and which are held out, again and again.

use std::collections::BTreeMap;
use std::mem::size_of;

use crate::data::{Dataset, Label, Labels, memory};
use crate::error::{Error, Result};
use crate::numeric::random::Generator;
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

/// `times` splits that hold out a share of the rows of every class, or of all rows where labels are numbers,
/// at random; rows labelled `unlabelled` are never held out.
///
/// # Errors
/// [`Error::Parameter`] for a share outside of (0, 1), no times at all, or a share that leaves nothing to learn
/// from or to predict; [`Error::TooLarge`] as [`repeated`].
pub fn hold_out(
    share: f64,
    times: usize,
    data: &Dataset,
    unlabelled: Option<&Label>,
    seed: u64,
) -> Result<Vec<Split>> {
    if !(share > 0.0 && share < 1.0) {
        return Err(Error::parameter("hold-out", "a share between 0 and 1", share));
    }
    check_times(times, data)?;
    let groups = groups(data, unlabelled);
    let split = |time: usize| {
        let mut generator = Generator::new(seed.wrapping_add(time as u64) ^ 0x401d);
        let mut test = Vec::new();
        for group in &groups {
            let mut rows = group.clone();
            generator.shuffle(&mut rows);
            rows.truncate((share * rows.len() as f64).round() as usize);
            test.extend(rows);
        }
        test.sort_unstable();
        let mut is_held = vec![false; data.rows()];
        test.iter().for_each(|&row| is_held[row] = true);
        Split { train: (0..data.rows()).filter(|&row| !is_held[row]).collect(), test }
    };
    let splits: Vec<Split> = (0..times).map(split).collect();
    match splits.iter().any(|split| split.train.is_empty() || split.test.is_empty()) {
        true => {
            let found = format!("{share} of {} rows", data.rows());
            Err(Error::parameter("hold-out", "rows to learn from and rows to predict", found))
        }
        false => Ok(splits),
    }
}

/// `times` splits of the bootstrap (Efron 1979): as many rows as there are, drawn with replacement, are learnt
/// from, and those that were not drawn, about 0.37 of all, are predicted. Rows labelled `unlabelled` are always
/// learnt from, once.
///
/// # Errors
/// [`Error::Parameter`] for no times at all or rows so few that none is left to predict;
/// [`Error::TooLarge`] as [`repeated`].
pub fn bootstrap(
    times: usize,
    data: &Dataset,
    unlabelled: Option<&Label>,
    seed: u64,
) -> Result<Vec<Split>> {
    check_times(times, data)?;
    let labelled: Vec<usize> = groups(data, unlabelled).concat();
    let split = |time: usize| {
        let mut generator = Generator::new(seed.wrapping_add(time as u64) ^ 0xb007);
        let mut drawn = vec![0_usize; data.rows()];
        labelled.iter().for_each(|_| drawn[labelled[generator.below(labelled.len())]] += 1);
        let mut test: Vec<usize> =
            labelled.iter().copied().filter(|&row| drawn[row] == 0).collect();
        test.sort_unstable();
        let mut has_label = vec![false; data.rows()];
        labelled.iter().for_each(|&row| has_label[row] = true);
        let times = |row: usize| if has_label[row] { drawn[row] } else { 1 };
        let train = (0..data.rows()).flat_map(|row| std::iter::repeat_n(row, times(row)));
        Split { train: train.collect(), test }
    };
    let splits: Vec<Split> = (0..times).map(split).collect();
    match splits.iter().any(|split| split.test.is_empty()) {
        true => Err(Error::parameter("bootstrap", "more rows with labels", labelled.len())),
        false => Ok(splits),
    }
}

/// The rows with labels: those of every class, or all of them where labels are numbers.
fn groups(data: &Dataset, unlabelled: Option<&Label>) -> Vec<Vec<usize>> {
    let labels = data.labels();
    let is_marked = |row: usize| {
        let label = labels.get(row);
        unlabelled.is_some() && label.map(|l| l.to_string()) == unlabelled.map(ToString::to_string)
    };
    let known = (0..data.rows()).filter(|&row| !is_marked(row));
    match labels {
        Labels::Real(_) | Labels::None => vec![known.collect()],
        _ => {
            let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
            for row in known {
                let name = labels.get(row).map_or_else(String::new, |label| label.to_string());
                by_name.entry(name).or_default().push(row);
            }
            by_name.into_values().collect()
        }
    }
}

fn check_times(times: usize, data: &Dataset) -> Result<()> {
    if times == 0 {
        return Err(Error::parameter("repeats", "at least 1", times));
    }
    let numbers = 2 * data.rows() as u128 * times as u128;
    memory::check(|| format!("the rows of {times} splits"), size_of::<usize>() as u128 * numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix};

    fn lines(classes: &[i64]) -> Dataset {
        let values = (0..classes.len()).map(|i| i as f64).collect();
        let table = Dense::new(classes.len(), 1, values).unwrap();
        Dataset::new(Matrix::DenseF64(table), Labels::Int(classes.to_vec())).unwrap()
    }

    #[test]
    fn a_share_of_every_class_is_held_out() {
        let classes: Vec<i64> = (0..60).map(|i| i64::from(i % 6 == 0)).collect();
        let data = lines(&classes);
        let splits = hold_out(0.3, 4, &data, None, 1).unwrap();
        assert_eq!(splits.len(), 4);
        for split in &splits {
            let ones = split.test.iter().filter(|&&row| classes[row] == 1).count();
            assert_eq!((split.test.len(), ones), (18, 3));
            let mut all = [&split.train[..], &split.test[..]].concat();
            all.sort_unstable();
            assert_eq!(all, (0..60).collect::<Vec<_>>());
        }
        assert_ne!(splits[0], splits[1]);
        assert_eq!(splits, hold_out(0.3, 4, &data, None, 1).unwrap());
        for share in [0.0, 1.0, f64::NAN, 1e-9] {
            assert!(hold_out(share, 1, &data, None, 1).is_err(), "{share}");
        }
    }

    #[test]
    fn the_bootstrap_draws_with_replacement_and_holds_out_the_rest() {
        let classes: Vec<i64> = (0..300).map(|i| i % 3).collect();
        let data = lines(&classes);
        let mut held = 0;
        for split in bootstrap(40, &data, Some(&Label::Int(2)), 5).unwrap() {
            let marked = split.train.iter().filter(|&&row| classes[row] == 2).count();
            assert_eq!((split.train.len(), marked), (300, 100));
            let distinct: std::collections::BTreeSet<usize> = split.train.iter().copied().collect();
            assert!(split.test.iter().all(|row| !distinct.contains(row) && classes[*row] != 2));
            assert_eq!(distinct.len() + split.test.len(), 300);
            held += split.test.len();
        }
        // (1 − 1/200)^200 of the rows with labels are not drawn: 0.367.
        let share = held as f64 / (40.0 * 200.0);
        assert!((share - 0.367).abs() < 0.02, "{share}");
    }

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
