//! Several machines on the same data: repeated stratified cross-validation with shared folds, each
//! machine tuned inside every training part, and tests of the differences.
//!
//! The variance of a mean over r repetitions of k folds is (1/(rk) + test/train) s², because the
//! training parts overlap (Nadeau and Bengio, "Inference for the generalization error", 2003);
//! intervals and p-values are those of Student's t with rk − 1 degrees of freedom. Two machines are
//! also compared by McNemar's exact test on the rows that only one of them gets right.

mod clusterings;
mod kernels;
mod statistics;
mod tuned_machines;

use std::time::Instant;

pub use self::clusterings::{
    ClusteringComparison, ClusteringOptions, ComparedClustering, compare_clusterings,
};
pub use self::kernels::{KernelComparison, KernelOptions, KernelShare, compare_kernels};
use self::tuned_machines::{Candidate, TunedMachine};
pub use self::tuned_machines::{machine_names, usual_machines};
use super::folds::{Folds, fit_part, run_folds};
use super::metrics::Confusion;
use crate::context::Context;
use crate::data::{ClassOrder, Dataset, Labels, memory};
use crate::error::{Error, Result};
use crate::machine::Model;
use crate::numeric::random::Generator;
use crate::solver::Status;

/// Rows that choose among the settings of a machine.
const TUNING_ROWS: usize = 800;

/// Folds of that choice.
const TUNING_FOLDS: usize = 3;

/// How the comparison is made.
#[derive(Clone, Debug, PartialEq)]
pub struct CompareOptions {
    /// Folds of one repetition.
    pub folds: usize,
    /// Repetitions.
    pub repeats: usize,
    /// Names of the machines, as [`machine_names`] lists them; empty for the [usual ones](usual_machines).
    pub machines: Vec<String>,
    /// Probability that an interval holds the accuracy.
    pub confidence: f64,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self { folds: 5, repeats: 2, machines: Vec::new(), confidence: 0.95 }
    }
}

/// What one machine did.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Compared {
    /// Its name.
    pub name: String,
    /// Accuracy of every finished fold, repetition after repetition.
    pub accuracies: Vec<f64>,
    /// Their mean.
    pub mean: f64,
    /// The interval around it.
    pub interval: (f64, f64),
    /// Probability of a difference to the best machine at least as large if there were none; 1 for
    /// the best itself.
    pub p_value: f64,
    /// Mean seconds of choosing settings, of training and of predicting a fold.
    pub seconds: [f64; 3],
    /// The settings chosen most often.
    pub settings: String,
    /// Whether each row of the first repetition was answered rightly; empty when it was cut short.
    pub right: Vec<bool>,
}

/// The machines, the best first.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// What each did.
    pub machines: Vec<Compared>,
    /// Finished folds of every machine.
    pub folds: usize,
    /// Folds that were asked for.
    pub planned: usize,
    /// Test rows over training rows of a fold.
    pub ratio: f64,
    /// Why folds are missing, or `Solved`.
    pub status: Status,
}

/// McNemar's test of two machines.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Mcnemar {
    /// Rows only the first gets right.
    pub first_only: usize,
    /// Rows only the second gets right.
    pub second_only: usize,
    /// Two-sided exact probability.
    pub p_value: f64,
}

impl Comparison {
    /// Compares two machines on the rows of the first repetition; `None` when it was cut short.
    pub fn mcnemar(&self, first: usize, second: usize) -> Option<Mcnemar> {
        let (a, b) = (&self.machines.get(first)?.right, &self.machines.get(second)?.right);
        if a.is_empty() || a.len() != b.len() {
            return None;
        }
        let only = |a: &[bool], b: &[bool]| a.iter().zip(b).filter(|(a, b)| **a && !**b).count();
        let (first_only, second_only) = (only(a, b), only(b, a));
        let p_value = statistics::mcnemar(first_only, second_only);
        Some(Mcnemar { first_only, second_only, p_value })
    }

    /// The corrected resampled t-test of two machines: the mean difference of accuracy and its
    /// p-value.
    pub fn difference(&self, first: usize, second: usize) -> Option<(f64, f64)> {
        let (a, b) = (self.machines.get(first)?, self.machines.get(second)?);
        let differences: Vec<f64> =
            a.accuracies.iter().zip(&b.accuracies).map(|(a, b)| a - b).collect();
        Some(statistics::corrected_t(&differences, self.ratio))
    }
}

/// Accuracy, times and settings of one machine in one fold.
struct FoldOutcome {
    accuracy: f64,
    seconds: [f64; 3],
    settings: String,
    right: Vec<(usize, bool)>,
}

/// Runs the machines, all on the same folds; a deadline of the context ends the comparison with the
/// folds finished by then.
///
/// ```
/// use widemargin::Context;
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::operation::compare::{CompareOptions, compare};
///
/// let rows: Vec<f64> = (0..80).map(|i| f64::from(i % 8) + f64::from(i % 2) * 20.0).collect();
/// let labels = Labels::Int((0..80).map(|i| i % 2).collect());
/// let data = Dataset::new(Matrix::DenseF64(Dense::new(80, 1, rows)?), labels)?;
/// let machines = vec!["fisher".into(), "knn".into()];
/// let options = CompareOptions { machines, ..CompareOptions::default() };
/// let result = compare(&data, &options, &Context::new())?;
/// assert!(result.machines.iter().all(|machine| machine.mean == 1.0));
/// # Ok::<(), widemargin::Error>(())
/// ```
///
/// # Errors
/// [`Error::Parameter`] for an unknown machine, fewer than two folds or a class with fewer rows than
/// folds; [`Error::Interrupted`] when fewer than two folds were finished.
pub fn compare(data: &Dataset, options: &CompareOptions, context: &Context) -> Result<Comparison> {
    check(data, options)?;
    run(data, &tuned_machines::chosen(&options.machines, data)?, options, context)
}

/// Fails for data or options that cannot be compared with.
fn check(data: &Dataset, options: &CompareOptions) -> Result<()> {
    data.features().validate()?;
    let classes = data.labels().classes(ClassOrder::Sorted)?;
    if let [only] = classes.names.as_slice() {
        return Err(Error::OneClass { label: only.to_string() });
    }
    let smallest = classes.rows_by_class().iter().map(Vec::len).min().unwrap_or(0);
    if !(2..=smallest).contains(&options.folds) {
        let expected = format!("at least 2 and at most the {smallest} rows of the smallest class");
        return Err(Error::parameter("folds", expected, options.folds));
    }
    if options.repeats == 0 {
        return Err(Error::parameter("repeats", "at least 1", 0));
    }
    let numbers = data.rows() as u128 * options.repeats as u128;
    memory::check(|| format!("{} divisions of the rows", options.repeats), 8 * numbers)?;
    if !(options.confidence > 0.0 && options.confidence < 1.0) {
        return Err(Error::parameter("confidence", "between 0 and 1", options.confidence));
    }
    Ok(())
}

/// Compares machines; data and options were checked.
fn run(
    data: &Dataset,
    tuned_machines: &[TunedMachine],
    options: &CompareOptions,
    context: &Context,
) -> Result<Comparison> {
    let plans = (0..options.repeats)
        .map(|repeat| {
            context.checkpoint()?;
            let seed = context.seed().wrapping_add(repeat as u64);
            Folds::Stratified(options.folds).assign(data, seed)
        })
        .collect::<Result<Vec<_>>>()?;
    let planned = options.folds * options.repeats;
    let run = run_folds(planned, "folds", context, |fold, context| {
        let (train, held) = plans[fold / options.folds].split(fold % options.folds);
        let mut outcomes = Vec::with_capacity(tuned_machines.len());
        for tuned in tuned_machines {
            match fold_outcome(tuned, data, &train, &held, context)? {
                Some(fold_outcome) => outcomes.push(fold_outcome),
                None => return Ok(None),
            }
        }
        Ok(Some(outcomes))
    })?;
    let whole = run.results.iter().take(options.folds).all(Option::is_some);
    let finished: Vec<Vec<FoldOutcome>> = run.results.into_iter().flatten().collect();
    if finished.len() < 2 {
        return Err(Error::Interrupted);
    }
    let ratio = 1.0 / (options.folds as f64 - 1.0);
    let rows = if whole { data.rows() } else { 0 };
    let mut machines: Vec<Compared> = tuned_machines
        .iter()
        .enumerate()
        .map(|(c, tuned)| {
            let outcomes: Vec<&FoldOutcome> =
                finished.iter().map(|outcomes| &outcomes[c]).collect();
            summary(&tuned.name, &outcomes, options, ratio, rows)
        })
        .collect();
    machines.sort_by(|a, b| b.mean.total_cmp(&a.mean).then(a.seconds[1].total_cmp(&b.seconds[1])));
    let mut comparison = Comparison {
        machines,
        folds: finished.len(),
        planned,
        ratio,
        status: run.stopped.unwrap_or(Status::Solved),
    };
    for place in 1..comparison.machines.len() {
        let p_value = comparison.difference(0, place).map_or(1.0, |(_, p_value)| p_value);
        comparison.machines[place].p_value = p_value;
    }
    Ok(comparison)
}

fn summary(
    name: &str,
    outcomes: &[&FoldOutcome],
    options: &CompareOptions,
    ratio: f64,
    rows: usize,
) -> Compared {
    let accuracies: Vec<f64> = outcomes.iter().map(|fold_outcome| fold_outcome.accuracy).collect();
    let count = accuracies.len() as f64;
    let mean = accuracies.iter().sum::<f64>() / count;
    let half = statistics::half_width(&accuracies, ratio, options.confidence);
    let seconds = [0, 1, 2]
        .map(|i| outcomes.iter().map(|fold_outcome| fold_outcome.seconds[i]).sum::<f64>() / count);
    let often = |fold_outcome: &&&FoldOutcome| {
        outcomes.iter().filter(|other| other.settings == fold_outcome.settings).count()
    };
    // The first of equals: max_by_key takes the last.
    let settings =
        outcomes.iter().rev().max_by_key(often).map_or(String::new(), |t| t.settings.clone());
    let mut right = vec![false; rows];
    if rows > 0 {
        for &(row, is_right) in
            outcomes.iter().take(options.folds).flat_map(|fold_outcome| &fold_outcome.right)
        {
            right[row] = is_right;
        }
    }
    Compared {
        name: name.to_owned(),
        accuracies,
        mean,
        interval: ((mean - half).max(0.0), (mean + half).min(1.0)),
        p_value: 1.0,
        seconds,
        settings,
        right,
    }
}

/// Chooses settings, trains and predicts; `None` when it was cut short.
fn fold_outcome(
    tuned: &TunedMachine,
    data: &Dataset,
    train: &[usize],
    held: &[usize],
    context: &Context,
) -> Result<Option<FoldOutcome>> {
    let started = Instant::now();
    let Some(choice) = choose(tuned, data, train, context)? else { return Ok(None) };
    let candidate = &tuned.candidates[choice];
    let chosen = started.elapsed().as_secs_f64();
    let mut models = Vec::new();
    for machine in candidate.machines(data, train)? {
        match fit_part(machine.as_ref(), data, train, context)? {
            Some(model) => models.push(model),
            None => return Ok(None),
        }
    }
    let trained = started.elapsed().as_secs_f64();
    let predictions = predictions(&models, data, held, context)?;
    let predicted = started.elapsed().as_secs_f64();
    let truth = data.labels().select(held);
    let accuracy = Confusion::new(&truth, &predictions)?.accuracy();
    let same = |at: usize| match (truth.get(at), predictions.get(at)) {
        (Some(truth), Some(prediction)) => truth.to_string() == prediction.to_string(),
        _ => false,
    };
    Ok(Some(FoldOutcome {
        accuracy,
        seconds: [chosen, trained - chosen, predicted - trained],
        settings: candidate.settings.clone(),
        right: held.iter().enumerate().map(|(at, &row)| (row, same(at))).collect(),
    }))
}

/// The settings with the best accuracy in a small cross-validation among the training rows.
fn choose(
    tuned: &TunedMachine,
    data: &Dataset,
    train: &[usize],
    context: &Context,
) -> Result<Option<usize>> {
    if tuned.candidates.len() == 1 {
        return Ok(Some(0));
    }
    let mut rows = train.to_vec();
    if rows.len() > TUNING_ROWS {
        Generator::new(context.seed()).shuffle(&mut rows);
        rows.truncate(TUNING_ROWS);
        rows.sort_unstable();
    }
    // Tables of kernel values have a column for every row: the rows stay those of the data.
    let Ok(plan) = Folds::Stratified(TUNING_FOLDS).assign(&data.select_rows(&rows), context.seed())
    else {
        return Ok(Some(0));
    };
    let of = |places: Vec<usize>| -> Vec<usize> { places.iter().map(|&at| rows[at]).collect() };
    let mut best = (-1.0, 0);
    for (place, candidate) in tuned.candidates.iter().enumerate() {
        let mut correct = 0;
        for fold in 0..plan.count() {
            if context.stop_request().is_some() {
                return Ok(None);
            }
            let (train, held) = plan.split(fold);
            correct += match correct_predictions(candidate, data, &of(train), &of(held), context) {
                Ok(Some(count)) => count,
                Ok(None) => return Ok(None),
                // Settings that this part cannot take, such as more neighbours than rows.
                Err(Error::Interrupted) => return Ok(None),
                Err(_) => 0,
            };
        }
        if f64::from(correct as u32) > best.0 {
            best = (f64::from(correct as u32), place);
        }
    }
    Ok(Some(best.1))
}

fn correct_predictions(
    candidate: &Candidate,
    data: &Dataset,
    train: &[usize],
    held: &[usize],
    context: &Context,
) -> Result<Option<usize>> {
    let mut models = Vec::new();
    for machine in candidate.machines(data, train)? {
        match fit_part(machine.as_ref(), data, train, context)? {
            Some(model) => models.push(model),
            None => return Ok(None),
        }
    }
    let predictions = predictions(&models, data, held, context)?;
    Ok(Some(Confusion::new(&data.labels().select(held), &predictions)?.correct()))
}

/// The label that most models predict, the one predicted by the earlier model where several have as many
/// votes.
fn predictions(
    models: &[Model],
    data: &Dataset,
    rows: &[usize],
    context: &Context,
) -> Result<Labels> {
    let features = data.features().select_rows(rows);
    let predict = |model: &Model| model.predictor(context)?.predict_in_time(&features);
    let votes: Vec<Labels> = models.iter().map(predict).collect::<Result<_>>()?;
    let [first, _, ..] = &votes[..] else {
        return votes.into_iter().next().ok_or(Error::Empty { what: "machine" });
    };
    let winner = |row: usize| {
        let given: Vec<String> = (votes.iter())
            .map(|labels| labels.get(row).map_or_else(String::new, |label| label.to_string()))
            .collect();
        let count = |at: &usize| given.iter().filter(|other| **other == given[*at]).count();
        // The last of equals is taken, hence in reverse.
        let at = (0..given.len()).rev().max_by_key(count).unwrap_or(0);
        given[at].clone()
    };
    Ok(Labels::Text((0..first.len()).map(winner).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix};

    fn rings(rows: usize) -> Dataset {
        let mut generator = Generator::new(3);
        let values = (0..rows).flat_map(|i| {
            let angle = generator.unit() * std::f64::consts::TAU;
            let radius = if i % 2 == 0 { 1.0 } else { 3.0 } + 0.3 * generator.normal();
            [radius * angle.cos(), radius * angle.sin()]
        });
        let table = Dense::new(rows, 2, values.collect()).unwrap();
        let labels = Labels::Int((0..rows as i64).map(|i| i % 2).collect());
        Dataset::new(Matrix::DenseF64(table), labels).unwrap()
    }

    #[test]
    fn a_straight_line_loses_on_rings_and_threads_change_nothing() {
        let data = rings(160);
        let options = CompareOptions { folds: 4, ..CompareOptions::default() };
        let result = compare(&data, &options, &Context::new()).unwrap();
        assert_eq!(result.machines.len(), usual_machines().len());
        assert_eq!((result.folds, result.planned), (8, 8));
        let place = |name: &str| result.machines.iter().position(|m| m.name == name).unwrap();
        let fisher = &result.machines[place("fisher")];
        assert!(fisher.mean < 0.7 && fisher.p_value < 0.01, "{fisher:?}");
        assert!(result.machines[0].mean > 0.95);
        let test = result.mcnemar(0, place("fisher")).unwrap();
        assert!(test.p_value < 1e-6 && test.first_only > test.second_only);
        let again = compare(&data, &options, &Context::new().with_threads(2).unwrap()).unwrap();
        for machine in &again.machines {
            let before = &result.machines[place(&machine.name)];
            assert_eq!(machine.accuracies, before.accuracies);
        }
    }

    #[test]
    fn impossible_comparisons_are_refused() {
        let data = rings(12);
        let fail = |options: CompareOptions| {
            compare(&data, &options, &Context::new()).unwrap_err().to_string()
        };
        let unknown = CompareOptions { machines: vec!["oracle".into()], ..Default::default() };
        assert!(fail(unknown).contains("one of"));
        assert!(fail(CompareOptions { folds: 7, ..Default::default() }).contains("smallest class"));
        assert!(fail(CompareOptions { repeats: 0, ..Default::default() }).contains("repeats"));
    }
}
