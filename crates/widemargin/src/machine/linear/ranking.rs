//! Ranking: `min ½‖w‖² + C Σ max(0, 1 − ⟨w, xᵢ − xⱼ⟩)` over the pairs of rows of one query of which i has
//! the larger label, or with the squares of the losses (Joachims, 2002).

use std::time::Instant;

use super::assemble::linear_model;
use super::parameters::LinearOptions;
use super::rows::{FeatureOrder, RowTask, with_rows};
use super::solve::{check_finite, check_memory};
use super::wide::on_occurring_columns;
use crate::context::{Context, Event, SolvedFunction};
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::machine::fit::{FitInput, Machine};
use crate::machine::model::{MachineKind, Model, Training};
use crate::machine::names::defaults;
use crate::solver::linear::rows::LinearRows;
use crate::solver::linear::{MOST_PASSES, Options, OrderedPairs, Solution, solve_ranking};

/// The ranking SVM: scores whose order within every query is that of the labels.
///
/// Queries are the groups (`qid`) of the data; data without groups is one query. Weights of rows must be
/// the same within a query and multiply the C of its pairs.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::machine::{Machine, RankSvm};
/// use widemargin::Context;
///
/// let rows = Dense::new(5, 1, vec![1.0, 2.0, 3.0, 11.0, 10.0])?;
/// let data = Dataset::new(Matrix::DenseF64(rows), Labels::Int(vec![0, 1, 2, 1, 0]))?
///     .with_groups(vec![1, 1, 1, 2, 2])?;
/// let context = Context::new();
/// let model = RankSvm::default().fit(&data, &context)?;
/// let scores = model.predictor(&context)?.decision_values(data.features())?;
/// assert!(scores.values()[2] > scores.values()[1] && scores.values()[3] > scores.values()[4]);
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RankSvm {
    /// Price C of the loss of a pair.
    pub c: f64,
    /// Whether losses are squared.
    pub squared: bool,
    /// Options of the solver, which bounds the relative duality gap; `tol` and `shrinking` are not
    /// used.
    pub options: LinearOptions,
}

defaults!(RankSvm { c: 1.0, squared: false, options: LinearOptions::default() });

impl Machine for RankSvm {
    fn fit_with(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        let learn = |data: &Dataset, _: Option<&Model>| Ok(vec![self.learn(data, context)?]);
        on_occurring_columns(&input.selected(), None, learn)?.pop().ok_or(Error::Interrupted)
    }
}

impl RankSvm {
    fn learn(&self, data: &Dataset, context: &Context) -> Result<Model> {
        Error::check_positive("c", self.c)?;
        self.options.validate()?;
        data.features().validate()?;
        check_memory(data.columns(), 1)?;
        let started = Instant::now();
        let pairs = self.pairs(data)?;
        let options = Options {
            gap: self.options.gap,
            max_passes: self.options.max_iterations.unwrap_or(MOST_PASSES),
            ..Options::default()
        };
        let task = Fit { pairs: &pairs, squared: self.squared, options, context };
        let (set, precision) = (context.instruction_set(), self.options.precision);
        let solution =
            context.install(|| with_rows(data.features(), None, precision, set, 1, task));
        check_finite(&solution.outcome, &solution.weights, data.features())?;
        context.report(&Event::Solved(SolvedFunction {
            index: 0,
            outcome: solution.outcome,
            offset: 0.0,
            support: 0,
            bounded: 0,
            determined: None,
        }));
        let kind = MachineKind::RankSvm;
        let mut model = linear_model(kind, data.columns(), solution.weights, &[0.0], None)?;
        model.feature_names = data.feature_names().map(<[String]>::to_vec);
        let loss = if self.squared { "squared-hinge" } else { "hinge" };
        let parameters = [("c", self.c.into()), ("loss", loss.into()), ("gap", options.gap.into())];
        model.training = Some(Training::new(solution.outcome, data.rows(), started, parameters));
        Ok(model)
    }
}

impl RankSvm {
    /// The pairs of a data set and their prices.
    fn pairs(&self, data: &Dataset) -> Result<OrderedPairs> {
        let targets = data.labels().values()?;
        if let Some(row) = targets.iter().position(|target| !target.is_finite()) {
            let found = format!("{} in row {}", targets[row], row + 1);
            return Err(Error::Labels { expected: "finite numbers to rank by".into(), found });
        }
        let all_one;
        let groups = match data.groups() {
            Some(groups) => groups,
            None => {
                all_one = vec![0; data.rows()];
                &all_one
            }
        };
        if data.weights().is_some() {
            let mut first = std::collections::HashMap::new();
            for (row, &group) in groups.iter().enumerate() {
                let &mut before = first.entry(group).or_insert(row);
                if data.weight(row) != data.weight(before) {
                    let found = format!(
                        "{} in row {} and {} in row {} of query {group}",
                        data.weight(before),
                        before + 1,
                        data.weight(row),
                        row + 1
                    );
                    return Err(Error::parameter(
                        "weights",
                        "one weight for all rows of a query",
                        found,
                    ));
                }
            }
        }
        let pairs = OrderedPairs::new(groups, &targets, |row| self.c * data.weight(row));
        if pairs.total() > 0.0 {
            return Ok(pairs);
        }
        Err(Error::Labels {
            expected: "a query with two different labels (and a weight above 0)".into(),
            found: format!("none among {} rows", data.rows()),
        })
    }
}

struct Fit<'a> {
    pairs: &'a OrderedPairs,
    squared: bool,
    options: Options,
    context: &'a Context,
}

impl RowTask for Fit<'_> {
    type Output = Solution;

    fn run<R: LinearRows>(self, rows: &R, order: &FeatureOrder) -> Solution {
        let mut solution =
            solve_ranking(rows, self.pairs, self.squared, &self.options, self.context);
        solution.weights = order.restored(&solution.weights).collect();
        solution
    }
}
