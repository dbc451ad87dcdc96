//! Ways to use several kernels, for classes or numbers, compared like machines: learnt weights beside uniform ones and those of rules,
//! every kernel alone, the best of them, voting, features side by side, and every subset.
//!
//! All of them see the same folds; penalties, the best kernel and the best subset are chosen by
//! cross-validation inside every training part (nested), kernels whose γ is a rule see training rows alone, and
//! scaling and traces are those of the training rows. The shares of the kernels have intervals from
//! samples of the rows drawn with replacement (bootstrap).

use super::tuned_machines::{Candidate, TunedMachine};
use super::{CompareOptions, Comparison, Measure, check, run};
use crate::context::{Context, Event};
use crate::data::{ClassOrder, Dataset};
use crate::error::{Error, Result};
use crate::machine::specification::Value;
use crate::machine::{
    FitInput, KernelDefaults, KernelExpression, MachineKind, Model, Specification, kernel_texts,
};
use crate::numeric::random::Generator;

/// Kernels of which every subset can be tried.
const MOST_IN_SUBSETS: usize = 8;

/// Training rows up to which signed weights, whose cost is cubic, are compared.
const MOST_SIGNED_ROWS: usize = 1000;

/// Penalties that are chosen from unless one is given.
const PENALTIES: [f64; 3] = [1.0, 10.0, 100.0];

/// How ways to use kernels are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelOptions {
    /// Folds, repetitions and confidence; its machines are ignored.
    pub compare: CompareOptions,
    /// Penalties C to choose from, unless the specification has one.
    pub penalties: Vec<f64>,
    /// Whether every subset of the kernels is tried, which at most 8 kernels allow.
    pub subsets: bool,
    /// Samples that give the intervals of the kernels' shares; 0 for no shares.
    pub resamples: usize,
}

impl Default for KernelOptions {
    fn default() -> Self {
        let (compare, penalties) = (CompareOptions::default(), PENALTIES.to_vec());
        Self { compare, penalties, subsets: false, resamples: 50 }
    }
}

/// The share of one kernel in the learnt sum.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct KernelShare {
    /// The kernel.
    pub kernel: String,
    /// Its weight µ on all rows, of the kernel scaled to trace n.
    pub weight: f64,
    /// The interval of weights over samples of the rows.
    pub weight_interval: (f64, f64),
    /// Its share µᵢβᵀKᵢβ / βᵀKβ of the squared length of the weight vectors.
    pub contribution: f64,
    /// The interval of shares over samples of the rows.
    pub contribution_interval: (f64, f64),
}

/// The combinations, the best first, and the kernels.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct KernelComparison {
    /// The scores of each combination.
    pub comparison: Comparison,
    /// The kernels in the order given; empty when that was not asked for or cut short.
    pub shares: Vec<KernelShare>,
    /// The penalty at which the shares were computed: that chosen most often.
    pub penalty: f64,
}

/// Compares ways to use the kernels of a specification with `kernels`.
///
/// ```
/// use widemargin::Context;
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::machine::{MachineKind, Specification};
/// use widemargin::operation::compare::{KernelOptions, compare_kernels};
///
/// let rows: Vec<f64> = (0..80).map(|i| f64::from(i % 4) + 0.1 * f64::from(i % 7)).collect();
/// let labels = Labels::Int((0..80).map(|i| i64::from(i % 4 == 0 || i % 4 == 3)).collect());
/// let data = Dataset::new(Matrix::DenseF64(Dense::new(80, 1, rows)?), labels)?;
/// let mut machine = Specification::new(MachineKind::CSvc);
/// machine.parse("kernels", "linear, rbf(gamma=1)")?;
/// let options = KernelOptions { resamples: 10, ..KernelOptions::default() };
/// let found = compare_kernels(&data, &machine, &options, &Context::new())?;
/// let mean = |name: &str| found.comparison.machines.iter().find(|m| m.name == name).unwrap().mean;
/// assert!(mean("nonnegative") > 0.9 && mean("kernel 1") < 0.8);
/// assert!(found.shares[1].weight > found.shares[0].weight);
/// # Ok::<(), widemargin::Error>(())
/// ```
///
/// # Errors
/// Those of [`compare`](super::compare); [`Error::Parameter`] without kernels or with too many for subsets.
pub fn compare_kernels(
    data: &Dataset,
    specification: &Specification,
    options: &KernelOptions,
    context: &Context,
) -> Result<KernelComparison> {
    let measure = Measure::of(specification.kind());
    let combinations = KernelCombinations::new(specification, options)?;
    check(data, measure, &options.compare)?;
    let rows = data.rows() - data.rows() / options.compare.folds;
    let tuned_machines = combinations.tuned_machines(rows, options.subsets)?;
    let comparison = run(data, measure, &tuned_machines, &options.compare, context)?;
    let learnt = comparison.machines.iter().find(|combination| combination.name == "nonnegative");
    let settings = learnt.map_or("", |combination| combination.settings.as_str());
    let penalty = combinations.penalties.iter().find(|c| penalty_words(**c) == settings);
    let penalty = penalty.copied().unwrap_or(combinations.penalties[0]);
    let candidate = Candidate {
        settings: String::new(),
        voters: vec![combinations.of(&combinations.kernels.join(", "), "nonnegative", penalty)?],
    };
    let level = options.compare.confidence;
    let shares = shares(
        data,
        measure,
        &candidate,
        &combinations.kernels,
        options.resamples,
        level,
        context,
    )?;
    Ok(KernelComparison { comparison, shares, penalty })
}

fn penalty_words(c: f64) -> String {
    format!("c={c}")
}

/// What all combinations of kernels share.
struct KernelCombinations {
    base: Specification,
    kernels: Vec<String>,
    penalties: Vec<f64>,
}

impl KernelCombinations {
    fn new(specification: &Specification, options: &KernelOptions) -> Result<Self> {
        let kind = specification.kind();
        if !matches!(kind, MachineKind::CSvc | MachineKind::AllInOne(_) | MachineKind::EpsilonSvr) {
            let expected = "c-svc, an all-in-one machine or epsilon-svr";
            return Err(Error::parameter("machine", expected, kind));
        }
        let Some(list) = specification.value("kernels") else {
            return Err(Error::parameter("kernels", "kernels to compare", "none"));
        };
        let texts = kernel_texts(&list.to_string())?;
        let kernels: Vec<String> = texts.iter().map(|text| text.trim().to_owned()).collect();
        if options.subsets && kernels.len() > MOST_IN_SUBSETS {
            let expected = format!("at most {MOST_IN_SUBSETS} kernels for all subsets");
            return Err(Error::parameter("subsets", expected, kernels.len()));
        }
        let mut base = Specification::new(kind);
        for (name, value) in specification.given() {
            if !["kernels", "weights", "c"].contains(&name) {
                base.set(name, value.clone())?;
            }
        }
        let penalties = match specification.is_given("c") {
            true => vec![specification.value("c").and_then(|c| c.number()).unwrap_or(1.0)],
            false => options.penalties.clone(),
        };
        if penalties.is_empty() {
            return Err(Error::parameter("c", "at least one penalty", "none"));
        }
        Ok(Self { base, kernels, penalties })
    }

    /// A machine with kernels, a rule for their weights and a penalty.
    fn of(&self, kernels: &str, weights: &str, c: f64) -> Result<Specification> {
        let mut specification = self.base.clone();
        specification.parse("kernels", kernels)?;
        specification.parse("weights", weights)?;
        specification.set("c", c)?;
        Ok(specification)
    }

    /// A combination with a setting for every penalty and every one of `choices`: words and voters.
    fn tuned(
        &self,
        name: String,
        choices: &[(String, Vec<(String, &str)>)],
    ) -> Result<TunedMachine> {
        let mut candidates = Vec::new();
        for (words, kernels) in choices {
            for &c in &self.penalties {
                let voters = kernels.iter().map(|(list, weights)| self.of(list, weights, c));
                let comma = if words.is_empty() { "" } else { ", " };
                let settings = format!("{words}{comma}{}", penalty_words(c));
                candidates.push(Candidate { settings, voters: voters.collect::<Result<_>>()? });
            }
        }
        Ok(TunedMachine { name, candidates })
    }

    fn tuned_machines(&self, rows: usize, subsets: bool) -> Result<Vec<TunedMachine>> {
        let all = self.kernels.join(", ");
        let one = |list: &str, weights| vec![(String::new(), vec![(list.to_owned(), weights)])];
        let mut rules = vec!["nonnegative", "lp=2", "uniform", "alignment"];
        if self.base.kind().is_classifier() {
            rules.push("margin");
        }
        if rows <= MOST_SIGNED_ROWS {
            rules.insert(1, "signed");
        }
        let mut found = Vec::new();
        for rule in rules {
            found.push(self.tuned(rule.to_owned(), &one(&all, rule))?);
        }
        let alone = |(at, kernel): (usize, &String)| {
            (format!("kernel {}", at + 1), vec![(kernel.clone(), "uniform")])
        };
        let alone: Vec<(String, Vec<(String, &str)>)> =
            self.kernels.iter().enumerate().map(alone).collect();
        found.push(self.tuned("best-single".into(), &alone)?);
        let voters = alone.iter().flat_map(|(_, kernel)| kernel.clone()).collect();
        found.push(self.tuned("voting".into(), &[(String::new(), voters)])?);
        found.extend(self.concatenations()?);
        for (name, kernel) in &alone {
            found.push(self.tuned(name.clone(), &[(String::new(), kernel.clone())])?);
        }
        if subsets {
            let choices = self.subsets();
            // Single kernels and all of them have rows of their own.
            for (name, kernels) in choices.iter().filter(|(name, _)| {
                (2..self.kernels.len()).contains(&(name.matches(',').count() + 1))
            }) {
                found.push(self.tuned(name.clone(), &[(String::new(), kernels.clone())])?);
            }
            found.push(self.tuned("best-subset".into(), &choices)?);
        }
        Ok(found)
    }

    /// Learnt weights of every subset.
    fn subsets(&self) -> Vec<(String, Vec<(String, &'static str)>)> {
        let p = self.kernels.len();
        let subset = |mask: usize| {
            let inside = || (0..p).filter(move |at| mask >> at & 1 == 1);
            let numbers: Vec<String> = inside().map(|at| (at + 1).to_string()).collect();
            let kernels: Vec<&str> = inside().map(|at| self.kernels[at].as_str()).collect();
            (format!("kernels {}", numbers.join(",")), vec![(kernels.join(", "), "nonnegative")])
        };
        (1..1_usize << p).map(subset).collect()
    }

    /// The columns of all views side by side under one kernel, linear or Gaussian: as they are, each
    /// standardised, or every view of the same size; none unless all kernels are views.
    fn concatenations(&self) -> Result<Vec<TunedMachine>> {
        let mut views = Vec::new();
        for kernel in &self.kernels {
            let expression = KernelExpression::parse(kernel, KernelDefaults::default())?;
            match expression.columns() {
                Some(columns) if !kernel.contains("precomputed") => views.push(columns.to_vec()),
                _ => return Ok(Vec::new()),
            }
        }
        let text = |columns: &[std::ops::Range<usize>]| -> String {
            let part =
                |range: &std::ops::Range<usize>| format!("{}-{}", range.start + 1, range.end);
            columns.iter().map(part).collect::<Vec<_>>().join(",")
        };
        let mut every: Vec<usize> = views.iter().flatten().flat_map(Clone::clone).collect();
        every.sort_unstable();
        every.dedup();
        let every: Vec<std::ops::Range<usize>> =
            every.chunk_by(|a, b| a + 1 == *b).map(|run| run[0]..run[run.len() - 1] + 1).collect();
        let every = text(&every);
        let joined = |kernel: &str| {
            (kernel.to_owned(), vec![(format!("view({every}: {kernel})"), "uniform")])
        };
        let joined = [joined("linear"), joined("rbf")];
        // Products of Gaussian kernels with γ = scale are one of all columns, each view divided by its size.
        let of_view = |kernel: &str, between: &str| -> String {
            let view = |columns: &Vec<_>| format!("view({}: {kernel})", text(columns));
            views.iter().map(view).collect::<Vec<_>>().join(between)
        };
        let blocks = [
            ("linear".to_owned(), vec![(of_view("linear", ", "), "uniform")]),
            ("rbf".to_owned(), vec![(of_view("rbf", "*"), "uniform")]),
        ];
        let mut found = vec![
            self.tuned("concatenation".into(), &joined)?,
            self.tuned("concatenation-zscore".into(), &joined)?,
            self.tuned("concatenation-unit-block".into(), &blocks)?,
        ];
        for voter in found[1].candidates.iter_mut().flat_map(|candidate| &mut candidate.voters) {
            voter.parse("scale", "standard")?;
        }
        Ok(found)
    }
}

/// Weights and contributions on all rows, with intervals over samples; none when it is cut short.
fn shares(
    data: &Dataset,
    measure: Measure,
    candidate: &Candidate,
    kernels: &[String],
    resamples: usize,
    confidence: f64,
    context: &Context,
) -> Result<Vec<KernelShare>> {
    if resamples == 0 {
        return Ok(Vec::new());
    }
    let quiet = context.clone().with_observer(|_: &Event| {});
    let on = |rows: &[usize]| -> Result<Option<[Vec<f64>; 2]>> {
        if context.stop_request().is_some() {
            return Ok(None);
        }
        let mut machines = candidate.machines(data, rows)?;
        let Some(machine) = machines.pop() else { return Ok(None) };
        let model = machine.fit_with(FitInput::with_rows(data, rows)?, &quiet)?;
        let of = |name| parameter(&model, name);
        Ok(of("kernel-weights").zip(of("kernel-contributions")).map(|(w, c)| [w, c]))
    };
    let all: Vec<usize> = (0..data.rows()).collect();
    let Some(whole) = on(&all)? else { return Ok(Vec::new()) };
    let strata = match measure {
        Measure::Accuracy => data.labels().classes(ClassOrder::Sorted)?.rows_by_class(),
        Measure::RootMeanSquare => vec![all],
    };
    let sample = |number: usize| -> Vec<usize> {
        let mut generator = Generator::new(context.seed().wrapping_add(1 + number as u64));
        let draw = |class: &Vec<usize>| -> Vec<usize> {
            (0..class.len()).map(|_| class[generator.below(class.len())]).collect()
        };
        let mut rows: Vec<usize> = strata.iter().flat_map(draw).collect();
        rows.sort_unstable();
        rows
    };
    let found = context.try_map(0..resamples, |number| on(&sample(number)))?;
    let found: Vec<[Vec<f64>; 2]> = found.into_iter().flatten().collect();
    if found.len() < resamples {
        return Ok(Vec::new());
    }
    let interval = |which: usize, at: usize| {
        let mut values: Vec<f64> = found.iter().map(|one| one[which][at]).collect();
        values.sort_unstable_by(f64::total_cmp);
        let left = (1.0 - confidence) / 2.0 * (values.len() - 1) as f64;
        let (low, high) = (left.floor() as usize, values.len() - 1 - left.floor() as usize);
        (values[low], values[high])
    };
    let share = |(at, kernel): (usize, &String)| KernelShare {
        kernel: kernel.clone(),
        weight: whole[0][at],
        weight_interval: interval(0, at),
        contribution: whole[1][at],
        contribution_interval: interval(1, at),
    };
    Ok(kernels.iter().enumerate().map(share).collect())
}

fn parameter(model: &Model, name: &str) -> Option<Vec<f64>> {
    let parameters = &model.training.as_ref()?.parameters;
    parameters.iter().find_map(|(own, value)| match value {
        Value::Reals(numbers) if own == name => Some(numbers.clone()),
        _ => None,
    })
}
