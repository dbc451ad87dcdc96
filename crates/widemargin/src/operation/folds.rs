//! Which rows are held out together, and running something once per fold.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::context::{Context, Event};
use crate::data::{ClassOrder, Dataset, Label, Labels};
use crate::error::{Error, Result};
use crate::machine::{FitInput, Machine, MachineKind, Model};
use crate::numeric::random::Generator;
use crate::solver::Status;

/// How rows are divided into folds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Folds {
    /// This many folds of equal size, rows at random.
    Random(usize),
    /// This many folds, each with its share of every class, rows of a class at random (LIBSVM's
    /// rule for classification).
    Stratified(usize),
    /// Every row is a fold.
    LeaveOneOut,
    /// This many folds of about equal size that keep the rows of a group (`qid`) together.
    Grouped(usize),
    /// The fold of every row, by any numbers.
    Given(Vec<usize>),
}

/// The fold of every row that is held out once; folds are numbered from 0 and none is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldPlan {
    fold_of: Vec<usize>,
    count: usize,
}

impl Folds {
    /// What LIBSVM does for `-v count`: stratified for classifiers, otherwise random; queries stay
    /// together for rankers.
    pub fn usual(kind: MachineKind, count: usize) -> Self {
        match kind {
            _ if kind.is_classifier() => Self::Stratified(count),
            _ if kind.is_ranker() => Self::Grouped(count),
            _ => Self::Random(count),
        }
    }

    /// Divides the rows of a data set; the same seed gives the same folds.
    ///
    /// # Errors
    /// [`Error::Parameter`] for fewer than two folds or more folds than rows or groups;
    /// [`Error::Length`] for given folds that are not one per row; [`Error::Labels`] when classes
    /// or groups are needed and missing.
    pub fn assign(&self, data: &Dataset, seed: u64) -> Result<FoldPlan> {
        self.assign_labelled(data, None, seed)
    }

    /// As [`assign`](Self::assign), for rows of which those labelled `unlabelled` have no label: they are in no
    /// fold, which leaves them to every training ([`Machine::unlabelled`]).
    ///
    /// # Errors
    /// As [`assign`](Self::assign); [`Error::Empty`] when no row has a label.
    pub fn assign_labelled(
        &self,
        data: &Dataset,
        unlabelled: Option<&Label>,
        seed: u64,
    ) -> Result<FoldPlan> {
        let marked = unlabelled.map_or_else(Vec::new, |mark| data.labels().rows_marked(mark));
        let rows: Vec<usize> =
            (0..data.rows()).filter(|row| marked.binary_search(row).is_err()).collect();
        if rows.is_empty() && !marked.is_empty() {
            return Err(Error::Empty { what: "row with a label" });
        }
        let mut generator = Generator::new(seed);
        FoldPlan::compressed(self.divide(data, &rows, &mut generator)?, &rows, data.rows())
    }

    /// The fold of each of `rows`.
    fn divide(
        &self,
        data: &Dataset,
        rows: &[usize],
        generator: &mut Generator,
    ) -> Result<Vec<usize>> {
        let size = rows.len();
        let mut fold_of = vec![0; size];
        match self {
            Self::Random(count) => {
                check_count(*count, size, "rows")?;
                deal(&mut (0..size).collect::<Vec<_>>(), *count, generator, &mut fold_of);
            }
            Self::Stratified(count) => {
                check_count(*count, size, "rows")?;
                let classes = select(data.labels(), rows).classes(ClassOrder::Sorted)?;
                for mut members in classes.rows_by_class() {
                    deal(&mut members, *count, generator, &mut fold_of);
                }
            }
            Self::LeaveOneOut => {
                check_count(size, size, "rows")?;
                fold_of = (0..size).collect();
            }
            Self::Grouped(count) => fold_of = grouped(data, rows, *count, generator)?,
            Self::Given(given) if given.len() == data.rows() => {
                fold_of = rows.iter().map(|&row| given[row]).collect();
            }
            Self::Given(given) => {
                return Err(Error::length("folds of rows", data.rows(), given.len()));
            }
        }
        Ok(fold_of)
    }
}

/// The labels of `rows`, without a copy where those are all.
fn select<'a>(labels: &'a Labels, rows: &[usize]) -> Cow<'a, Labels> {
    match rows.len() == labels.len() {
        true => Cow::Borrowed(labels),
        false => Cow::Owned(labels.select(rows)),
    }
}

fn check_count(count: usize, limit: usize, what: &str) -> Result<()> {
    if (2..=limit).contains(&count) {
        Ok(())
    } else {
        let expected = format!("at least 2 and at most the {limit} {what}");
        Err(Error::parameter("folds", expected, count))
    }
}

/// Shuffles rows and deals runs of equal length to the folds.
fn deal(members: &mut [usize], count: usize, generator: &mut Generator, fold_of: &mut [usize]) {
    generator.shuffle(members);
    for fold in 0..count {
        let run = fold * members.len() / count..(fold + 1) * members.len() / count;
        for &row in &members[run] {
            fold_of[row] = fold;
        }
    }
}

/// Gives the largest groups first, each to the fold with the fewest rows so far.
fn grouped(
    data: &Dataset,
    rows: &[usize],
    count: usize,
    generator: &mut Generator,
) -> Result<Vec<usize>> {
    let Some(groups) = data.groups() else {
        return Err(Error::Labels {
            expected: "a group number (qid) for every row".into(),
            found: "none".into(),
        });
    };
    let groups: Vec<i64> = rows.iter().map(|&row| groups[row]).collect();
    let mut order: Vec<i64> = Vec::new();
    let mut sizes: HashMap<i64, usize> = HashMap::new();
    for &group in &groups {
        *sizes.entry(group).or_insert_with(|| {
            order.push(group);
            0
        }) += 1;
    }
    check_count(count, order.len(), "groups")?;
    generator.shuffle(&mut order);
    order.sort_by_key(|group| std::cmp::Reverse(sizes[group]));
    let mut loads = vec![0; count];
    let mut fold_of_group = HashMap::new();
    for group in order {
        let lightest = (0..count).min_by_key(|&fold| loads[fold]).unwrap_or(0);
        loads[lightest] += sizes[&group];
        fold_of_group.insert(group, lightest);
    }
    Ok(groups.iter().map(|group| fold_of_group[group]).collect())
}

impl FoldPlan {
    /// Numbers the folds that have rows from 0 in ascending order; `of_rows` are those of `rows`, and the others
    /// of `total` are never held out.
    fn compressed(of_rows: Vec<usize>, rows: &[usize], total: usize) -> Result<Self> {
        let mut used = of_rows.clone();
        used.sort_unstable();
        used.dedup();
        if used.len() < 2 {
            let expected = "at least two folds with rows";
            return Err(Error::parameter("folds", expected, used.len()));
        }
        let mut fold_of = vec![used.len(); total];
        for (&row, fold) in rows.iter().zip(of_rows) {
            fold_of[row] = used.partition_point(|number| *number < fold);
        }
        Ok(Self { fold_of, count: used.len() })
    }

    /// Number of folds.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The fold of every row; [`count`](Self::count) for rows that are never held out.
    pub fn fold_of(&self) -> &[usize] {
        &self.fold_of
    }

    /// The rows outside and inside a fold, both ascending.
    pub fn split(&self, fold: usize) -> (Vec<usize>, Vec<usize>) {
        (0..self.fold_of.len()).partition(|&row| self.fold_of[row] != fold)
    }
}

/// The results of the folds, `None` for those an interruption prevented.
pub(super) struct FoldRun<R> {
    pub(super) results: Vec<Option<R>>,
    /// Why folds are missing.
    pub(super) stopped: Option<Status>,
}

/// Calls `work` once per fold, in parallel if the context is; `work` gets a context that reports
/// warnings only and holds its share of the cache, and returns `None` when it was cut short.
pub(super) fn run_folds<R: Send>(
    count: usize,
    stage: &'static str,
    context: &Context,
    work: impl Fn(usize, &Context) -> Result<Option<R>> + Sync,
) -> Result<FoldRun<R>> {
    context.report(&Event::Stage { name: stage, total: count });
    let outer = context.clone();
    let warnings = move |event: &Event| {
        if matches!(event, Event::Warning { .. }) {
            outer.report(event);
        }
    };
    let at_once = context.threads().min(count).max(1);
    let inner =
        context.clone().with_observer(warnings).with_cache_bytes(context.cache_bytes() / at_once);
    let fold = |fold: usize| {
        if context.stop_request().is_some() {
            return Ok(None);
        }
        let result = match work(fold, &inner) {
            Err(Error::Interrupted) => Ok(None),
            other => other,
        };
        context.report(&Event::StageStep { name: stage });
        result
    };
    let results: Vec<Option<R>> = context.try_map(0..count, fold)?;
    let stopped = results
        .iter()
        .any(Option::is_none)
        .then(|| context.stop_request().unwrap_or(Status::Interrupted));
    Ok(FoldRun { results, stopped })
}

/// Trains on some rows; `None` when the training was cut short from outside.
pub(super) fn fit_part(
    machine: &dyn Machine,
    data: &Dataset,
    rows: &[usize],
    context: &Context,
) -> Result<Option<Model>> {
    let model = machine.fit_with(FitInput::with_rows(data, rows)?, context)?;
    let status = model.training.as_ref().map(|training| training.outcome.status);
    let whole = !matches!(status, Some(Status::Interrupted | Status::TimeLimit));
    Ok(whole.then_some(model))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Labels, Matrix};
    use proptest::prelude::*;

    fn data(labels: Vec<i64>) -> Dataset {
        let features = Dense::new(labels.len(), 1, vec![1.0; labels.len()]).unwrap();
        Dataset::new(Matrix::DenseF64(features), Labels::Int(labels)).unwrap()
    }

    #[test]
    fn impossible_counts_are_refused() {
        let data = data(vec![0, 0, 1, 1]);
        for folds in [Folds::Random(0), Folds::Random(1), Folds::Stratified(5), Folds::Grouped(2)] {
            assert!(folds.assign(&data, 0).is_err(), "{folds:?}");
        }
        assert!(Folds::Given(vec![1, 1, 1, 1]).assign(&data, 0).is_err());
        assert!(Folds::Given(vec![0, 1]).assign(&data, 0).is_err());
        let given = Folds::Given(vec![9, 3, 9, 4]).assign(&data, 0).unwrap();
        assert_eq!((given.fold_of(), given.count()), ([2, 0, 2, 1].as_slice(), 3));
    }

    #[test]
    fn a_seed_fixes_the_folds() {
        let data = data((0..50).collect());
        let folds = |seed| Folds::Random(5).assign(&data, seed).unwrap();
        assert_eq!(folds(7), folds(7));
        assert_ne!(folds(7), folds(8));
    }

    proptest! {
        #[test]
        fn folds_have_their_share_of_rows_and_classes(
            labels in prop::collection::vec(0..3_i64, 4..80),
            count in 2..5_usize,
            seed in any::<u64>(),
        ) {
            let data = data(labels.clone());
            let spread = |plan: &FoldPlan, class: Option<i64>| {
                let mut sizes = vec![0; plan.count()];
                for (row, &fold) in plan.fold_of().iter().enumerate() {
                    sizes[fold] += usize::from(class.is_none_or(|class| labels[row] == class));
                }
                sizes.iter().max().unwrap() - sizes.iter().min().unwrap()
            };
            let plan = Folds::Random(count).assign(&data, seed).unwrap();
            prop_assert_eq!(plan.count(), count);
            prop_assert!(spread(&plan, None) <= 1);
            if let Ok(plan) = Folds::Stratified(count).assign(&data, seed) {
                for class in 0..3 {
                    prop_assert!(spread(&plan, Some(class)) <= 1);
                }
            }
        }

        #[test]
        fn groups_stay_together(
            groups in prop::collection::vec(0..9_i64, 20..60),
            seed in any::<u64>(),
        ) {
            let data = data(vec![0; groups.len()]).with_groups(groups.clone()).unwrap();
            let Ok(plan) = Folds::Grouped(3).assign(&data, seed) else { return Ok(()) };
            for (i, a) in groups.iter().enumerate() {
                for (j, b) in groups.iter().enumerate() {
                    prop_assert!(a != b || plan.fold_of()[i] == plan.fold_of()[j]);
                }
            }
        }

        #[test]
        fn every_row_is_held_out_once(rows in 4..40_usize, seed in any::<u64>()) {
            let data = data((0..rows as i64).map(|row| row % 2).collect());
            for folds in [Folds::Random(3), Folds::Stratified(2), Folds::LeaveOneOut] {
                let plan = folds.assign(&data, seed).unwrap();
                let mut seen = vec![0; rows];
                for fold in 0..plan.count() {
                    let (train, held) = plan.split(fold);
                    prop_assert_eq!(train.len() + held.len(), rows);
                    prop_assert!(!held.is_empty() && !train.is_empty());
                    held.iter().for_each(|&row| seen[row] += 1);
                    prop_assert!(train.iter().all(|row| !held.contains(row)));
                }
                prop_assert!(seen.iter().all(|&times| times == 1));
            }
        }
    }
}
