//! The dual problems of a machine over some of its rows, for trainings whose rows are at several places.
//!
//! Every function is a problem whose constraints belong to rows: a margin yᵢf(xᵢ) ≥ 1 − ξᵢ, a tube
//! |yᵢ − f(xᵢ)| ≤ ε + ξᵢ or a half space f(xᵢ) ≥ −ξᵢ. The optimum over some rows is that over all rows if
//! the constraints of the others hold with ξ = 0, because then the primal objective over all rows is the
//! dual one over some.

mod resumed;

pub(crate) use resumed::{KnownValues, distance};

use std::ops::Range;

use self::resumed::{KnownValue, Resumed, known_values, value_of};
use super::definiteness;
use super::fit::FitInput;
use super::model::{ClassTable, MachineKind, Model, Scheme};
use super::parameters::{Loss, SolverOptions};
use super::specification::Value;
use super::training::{
    Expansion, RowSegments, TrainingCost, TrainingRows, assemble, start_from, with_precision,
};
use super::warm_start::feasible;
use crate::context::Context;
use crate::data::scaling::Scaler;
use crate::data::{Dataset, Label, Labels};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, MatrixRows, RowCaching};
use crate::numeric::simd::Real;
use crate::solver::{Outcome, Status, smo};

/// Share of a machine's tolerance to which problems over some rows are solved.
const SOLVE_SHARE: f64 = 0.25;

/// Share of a machine's tolerance by which a row may violate its constraint. Rows that took part in a
/// solution violate it by at most [`SOLVE_SHARE`]; all together then m(α) − M(α) ≤ tol as for any other
/// training, because both differ from the offset by at most half of it.
const VERIFY_SHARE: f64 = 0.5;

/// The dual problems of a machine, and the rows they are about: of all places together, or of one.
///
/// Made by [`Machine::local_duals`](super::Machine::local_duals) for the trainings of
/// [`operation::distribute`](crate::operation::distribute).
pub struct LocalDuals {
    pub(in crate::machine) kind: MachineKind,
    pub(in crate::machine) kernel: Kernel,
    pub(in crate::machine) options: SolverOptions,
    pub(in crate::machine) form: Form,
    pub(in crate::machine) parameters: Vec<(String, Value)>,
    /// Rows of this place with their class or target, and with weights that classes are part of.
    pub(in crate::machine) table: Dataset,
    /// How many rows there are at all places.
    pub(in crate::machine) all_rows: usize,
    pub(in crate::machine) scaler: Option<Scaler>,
}

/// Which quadratic programs.
pub(in crate::machine) enum Form {
    /// Two-class problems: the sign of every class, 0 for those that take no part.
    Classes { names: Vec<Label>, scheme: Scheme, signs: Vec<Vec<f64>>, c: f64, loss: Loss },
    /// A tube around targets.
    Tube { c: f64, epsilon: f64, loss: Loss },
    /// The sum of all coefficients is given.
    Sum { sum: f64 },
}

/// The solution of one function over the rows of a table.
#[derive(Clone, Debug)]
pub(crate) struct SolvedDual {
    /// Places with coefficients other than 0, ascending.
    pub(crate) coefficients: Vec<(usize, f64)>,
    pub(crate) offset: f64,
    pub(crate) outcome: Outcome,
    /// Its values on the rows of the table, where the solver computed them.
    pub(crate) known: Option<KnownValues>,
}

impl SolvedDual {
    /// A solution with its coefficients in any order, some of them 0.
    fn new(
        mut coefficients: Vec<(usize, f64)>,
        offset: f64,
        outcome: Outcome,
        known: Option<KnownValues>,
    ) -> Self {
        coefficients.retain(|&(_, value)| value != 0.0);
        coefficients.sort_unstable_by_key(|&(place, _)| place);
        Self { coefficients, offset, outcome, known }
    }
}

/// A point to start from.
#[derive(Clone, Debug, Default)]
pub(crate) struct LocalStart<'a> {
    /// Coefficients by place, none for a start from nothing.
    pub(crate) coefficients: Vec<(usize, f64)>,
    /// The values of this point, if it is an earlier solution over the first rows of the table.
    pub(crate) known: Option<&'a KnownValues>,
}

/// The rows of a training with classes or targets as numbers.
pub(in crate::machine) fn table(
    data: &Dataset,
    kernel: &Kernel,
    labels: Vec<f64>,
    weights: Vec<f64>,
) -> Result<Dataset> {
    if kernel.has_given_values() {
        let expected = "a kernel of features, which rows can take to another place";
        return Err(Error::kernel(kernel.name(), expected, "given values"));
    }
    data.clone().with_labels(Labels::Real(labels))?.with_weights(weights)
}

impl LocalDuals {
    /// The rows of all places, labels being classes or targets.
    pub(crate) fn table(&self) -> &Dataset {
        &self.table
    }

    /// Warns when the kernel is not positive semidefinite on rows of this place.
    ///
    /// # Errors
    /// Those of a kernel that does not suit the rows.
    pub(crate) fn warn_of_kernel(&self, context: &Context) -> Result<()> {
        definiteness::warn_of_rows(&self.kernel, self.table.features(), context).map(|_| ())
    }

    /// Number of functions.
    pub(crate) fn functions(&self) -> usize {
        match &self.form {
            Form::Classes { signs, .. } => signs.len(),
            Form::Tube { .. } | Form::Sum { .. } => 1,
        }
    }

    /// Text that identifies this problem.
    pub(crate) fn description(&self) -> String {
        let facts = match &self.form {
            Form::Classes { names, signs, .. } => format!("{names:?} {signs:?}"),
            Form::Tube { .. } => String::new(),
            Form::Sum { sum } => sum.to_string(),
        };
        let (kind, kernel, precision) = (self.kind, &self.kernel, self.options.precision);
        let (parameters, columns) = (&self.parameters, self.table.columns());
        format!("{kind} {kernel:?} {precision} {parameters:?} {columns} {facts}")
    }

    /// Largest violation of a constraint that counts as none.
    pub(crate) fn tolerance(&self) -> f64 {
        VERIFY_SHARE * self.options.tol
    }

    /// Whether values of two solutions differ by at most ‖w − w′‖ √k(x, x).
    pub(crate) fn is_semidefinite(&self) -> bool {
        self.kernel.is_semidefinite()
    }

    /// Whether rows of a label belong to a function.
    pub(crate) fn takes(&self, function: usize, label: f64) -> bool {
        match &self.form {
            Form::Classes { signs, .. } => {
                signs[function].get(label as usize).is_some_and(|s| *s != 0.0)
            }
            Form::Tube { .. } | Form::Sum { .. } => true,
        }
    }

    /// By how much a row violates its constraint if the function has this value.
    pub(crate) fn slack(&self, function: usize, label: f64, value: f64) -> f64 {
        match &self.form {
            Form::Classes { signs, .. } => {
                1.0 - signs[function].get(label as usize).copied().unwrap_or(0.0) * value
            }
            Form::Tube { epsilon, .. } => (label - value).abs() - epsilon,
            Form::Sum { .. } => -value,
        }
    }

    /// What a violation adds to the primal objective.
    pub(crate) fn row_loss(&self, weight: f64, slack: f64) -> f64 {
        match self.form {
            Form::Classes { c, loss: Loss::Hinge, .. }
            | Form::Tube { c, loss: Loss::Hinge, .. } => c * weight * slack,
            Form::Classes { c, .. } | Form::Tube { c, .. } => c * weight * slack * slack,
            Form::Sum { .. } => weight * slack,
        }
    }

    /// Solves the functions that have a start over the rows of a table.
    pub(crate) fn solve(
        &self,
        table: &Dataset,
        starts: &[Option<LocalStart<'_>>],
        context: &Context,
    ) -> Result<Vec<Option<SolvedDual>>> {
        if table.rows() == 0 {
            let none = SolvedDual::new(Vec::new(), 0.0, nothing(0.0), None);
            let empty = self.over_too_few(table, 0..0).unwrap_or(none);
            return Ok(starts.iter().map(|start| start.as_ref().map(|_| empty.clone())).collect());
        }
        with_precision!(self.options.precision, context, T => self.solve_in::<T>(table, starts, context))
    }

    fn solve_in<T: Real>(
        &self,
        table: &Dataset,
        starts: &[Option<LocalStart<'_>>],
        context: &Context,
    ) -> Result<Vec<Option<SolvedDual>>> {
        let segments = self.segments(table);
        let packed =
            TrainingRows::<T>::new(&self.kernel, table, &segments, RowCaching::All, context)?;
        let solve = |(f, start): (usize, &Option<LocalStart<'_>>)| {
            start.as_ref().map(|start| self.solve_one(&packed, f, table, start, context))
        };
        let solved = context.map(starts.iter().enumerate(), solve);
        packed.spent()?;
        Ok(solved)
    }

    /// Places of the rows with a weight, a list for every class.
    fn segments(&self, table: &Dataset) -> Vec<Vec<usize>> {
        let Form::Classes { names, .. } = &self.form else {
            return vec![(0..table.rows()).collect()];
        };
        let mut segments = vec![Vec::new(); names.len()];
        for place in 0..table.rows() {
            let class = label(table, place) as usize;
            if table.weight(place) > 0.0 && class < names.len() {
                segments[class].push(place);
            }
        }
        segments
    }

    fn solve_one<T: Real>(
        &self,
        packed: &TrainingRows<T>,
        function: usize,
        table: &Dataset,
        start: &LocalStart<'_>,
        context: &Context,
    ) -> SolvedDual {
        let segments = self.segments_of(function);
        let places = packed.layout.places(&segments);
        if let Some(trivial) = self.over_one_side(function, table, &places) {
            return trivial;
        }
        let copies = if let Form::Tube { .. } = self.form { 2 } else { 1 };
        let matrix = packed.rows.view(&segments.repeat(copies), context);
        let resumed = start.known.and_then(|known| {
            let (places, matrix) = (&places[..], &matrix);
            let rows = Resumed { duals: self, function, table, places, matrix, copies };
            rows.solve(&start.coefficients, known, context)
        });
        if let Some(solved) = resumed {
            return solved;
        }
        let mut problem = self.problem(function, table, &places);
        apply(&start.coefficients, table.rows(), &places, &mut problem);
        let options = SolverOptions { tol: SOLVE_SHARE * self.options.tol, ..self.options };
        let n = places.len();
        let solution = smo::solve(&matrix, &problem, &options.for_problem(copies * n), context);
        let beta = |i: usize| (0..copies).map(|copy| solution.beta[copy * n + i]).sum::<f64>();
        let (offset, outcome) = (solution.multipliers[0], solution.outcome);
        let value = |i: usize| value_of(&problem, &solution, i);
        // Of a solution that was broken off the gradient may be that of another point.
        let known = matches!(outcome.status, Status::Solved | Status::AlmostSolved).then(|| {
            let row = |i: usize| KnownValue {
                place: places[i],
                value: value(i),
                error: 0.0,
                length: matrix.diagonal(i).max(0.0).sqrt(),
            };
            let norm = (0..n).map(|i| beta(i) * value(i)).sum();
            known_values((0..n).map(row).collect(), norm, offset)
        });
        let coefficients = (0..n).map(|i| (places[i], beta(i))).collect();
        SolvedDual::new(coefficients, offset, outcome, known)
    }

    /// Segments of a function, ascending.
    fn segments_of(&self, function: usize) -> Vec<usize> {
        match &self.form {
            Form::Classes { signs, .. } => {
                (0..signs[function].len()).filter(|&s| signs[function][s] != 0.0).collect()
            }
            Form::Tube { .. } | Form::Sum { .. } => vec![0],
        }
    }

    /// The quadratic program of a function over the rows at `places`.
    fn problem(&self, function: usize, table: &Dataset, places: &[usize]) -> smo::Problem {
        let weights = || places.iter().map(|&place| table.weight(place));
        let labels = || places.iter().map(|&place| label(table, place));
        match &self.form {
            Form::Classes { signs, c, loss, .. } => {
                let signs: Vec<f64> =
                    labels().map(|class| signs[function][class as usize]).collect();
                let weights: Vec<f64> = weights().collect();
                super::classification::penalty_problem(&signs, &weights, *c, *loss)
            }
            Form::Tube { c, epsilon, loss } => {
                let bound: Vec<f64> = weights().map(|w| c * w).collect();
                let targets: Vec<f64> = labels().collect();
                super::regression::tube_problem(&targets, &bound, *epsilon, *loss)
            }
            Form::Sum { sum } => {
                super::novelty::sum_problem(vec![0.0; places.len()], weights().collect(), *sum)
            }
        }
    }

    /// The solution where the rows at `places` are all on one side, or too few.
    fn over_one_side(
        &self,
        function: usize,
        table: &Dataset,
        places: &[usize],
    ) -> Option<SolvedDual> {
        let Form::Classes { signs, .. } = &self.form else {
            return self.over_too_few(table, 0..table.rows());
        };
        let mut sides = places.iter().map(|&place| signs[function][label(table, place) as usize]);
        let side = sides.next().unwrap_or(0.0);
        let one_side = sides.all(|other| other == side);
        one_side.then(|| SolvedDual::new(Vec::new(), -side, nothing(0.0), None))
    }

    /// A given sum of coefficients that the rows cannot reach: the primal problem has no lower bound, and
    /// every row violates its solution.
    fn over_too_few(&self, table: &Dataset, places: Range<usize>) -> Option<SolvedDual> {
        let Form::Sum { sum } = self.form else { return None };
        let total: f64 = places.clone().map(|place| table.weight(place)).sum();
        // Rounding of a sum must not make the last row missing.
        (total < sum * (1.0 - 1e-12)).then(|| {
            let all = places.map(|place| (place, table.weight(place))).collect();
            SolvedDual::new(all, f64::INFINITY, nothing(f64::NEG_INFINITY), None)
        })
    }

    /// Values of all functions, before offsets, on rows of a table, row by row.
    pub(crate) fn values(
        &self,
        support: &Dataset,
        coefficients: &[Vec<(usize, f64)>],
        table: &Dataset,
        rows: &[usize],
        context: &Context,
    ) -> Result<Vec<f64>> {
        let functions = self.functions();
        if support.rows() == 0 || rows.is_empty() {
            return Ok(vec![0.0; rows.len() * functions]);
        }
        let points = coefficients.iter().map(|coefficients| (coefficients.as_slice(), 0.0));
        let model = self.model(support, points.collect(), None, nothing(0.0), 0.0)?;
        let values = model.predictor(context)?.decision_values_of(table.features(), rows)?;
        Ok(values.into_values())
    }

    /// The model of functions over the rows of a table, given by coefficients and offset; `rows` names
    /// the training row of each, and the scaling goes into the model where they are given.
    pub(crate) fn model(
        &self,
        support: &Dataset,
        functions: Vec<(&[(usize, f64)], f64)>,
        rows: Option<&[usize]>,
        outcome: Outcome,
        seconds: f64,
    ) -> Result<Model> {
        let layout = RowSegments::new(&self.segments(support));
        let expansion = |f: usize, coefficients: &[(usize, f64)], offset: f64| {
            let mut by_place = vec![0.0; support.rows()];
            coefficients.iter().for_each(|&(place, value)| by_place[place] = value);
            let segments = self.segments_of(f);
            let places = layout.places(&segments);
            let coefficients = places.into_iter().map(|place| by_place[place]).collect();
            Expansion { segments, coefficients, offset }
        };
        let expansions: Vec<Expansion> = functions
            .into_iter()
            .enumerate()
            .map(|(f, (c, offset))| expansion(f, c, offset))
            .collect();
        let (part, spent) = (FitInput::new(support), TrainingCost { kernel_rows: 0, seconds });
        let (mut model, per_class) = assemble(
            self.kind,
            &self.kernel,
            self.options.precision,
            &part,
            &layout,
            &expansions,
            outcome,
            spent,
            self.parameters.clone(),
        )?;
        if let Form::Classes { names, scheme, .. } = &self.form {
            let (names, scheme) = (names.clone(), scheme.clone());
            model.classes = Some(ClassTable { names, scheme, support: per_class });
        }
        if let Some(rows) = rows {
            model.body.get_mut().rename_rows(rows);
            model.preparation.scaler = self.scaler.clone();
            if let Some(training) = &mut model.training {
                training.rows = self.all_rows;
            }
        }
        Ok(model)
    }
}

fn label(table: &Dataset, place: usize) -> f64 {
    match table.labels() {
        Labels::Real(labels) => labels[place],
        _ => 0.0,
    }
}

/// The outcome of a problem that needs no solver.
fn nothing(value: f64) -> Outcome {
    Outcome {
        status: Status::Solved,
        primal: value,
        dual: value,
        violation: 0.0,
        iterations: 0,
        blocks: 0,
        kernel_rows: 0,
    }
}

/// Starts a problem from coefficients by place; `places` names the place of every variable, of two copies
/// by turns.
fn apply(start: &[(usize, f64)], rows: usize, places: &[usize], problem: &mut smo::Problem) {
    if start.is_empty() {
        return;
    }
    let mut by_place = vec![0.0; rows];
    start.iter().for_each(|&(place, value)| by_place[place] = value);
    let variables = problem.linear.len();
    let candidate: Vec<f64> = (0..variables)
        .map(|v| {
            let value: f64 = by_place[places[v % places.len()]];
            let fits = if value > 0.0 { problem.upper[v] > 0.0 } else { problem.lower[v] < 0.0 };
            if fits { value } else { 0.0 }
        })
        .collect();
    problem.initial_working_set =
        (0..variables as u32).filter(|&v| candidate[v as usize] != 0.0).collect();
    if let Some(point) = feasible(problem, candidate, None) {
        start_from(problem, point);
    }
}
