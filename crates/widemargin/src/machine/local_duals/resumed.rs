//! Solving again after rows were added: only the rows near the margin take part, the others are tested.
//!
//! The values of the last solution w on its rows are known. A solution w′ over a part of the rows differs from it
//! on any row x by at most ‖w′ − w‖ √k(x, x), and ‖w′ − w‖ follows from values on rows of the part, which holds the
//! support vectors of both. Rows whose constraint holds with this bound need no kernel value; those that it
//! leaves open are computed, and join the part where they violate their constraint.

use super::{LocalDuals, SOLVE_SHARE, SolvedDual, apply};
use crate::context::Context;
use crate::data::Dataset;
use crate::kernel::{MatrixRows, RowCaching};
use crate::outcome::Outcome;
use crate::solver::{Status, smo};

/// Rows from which on leaving some out costs less than they do.
const LEAST_ROWS: usize = if cfg!(test) { 8 } else { 1000 };

/// Solutions over parts of the rows before all of them take part.
const MOST_PARTS: usize = 8;

/// Rounding in squared norms and products of two solutions, as a share of their squared norms: kernel values in single
/// precision, whose errors mostly cancel.
const ROUNDING: f64 = 1e-6;

/// What a solution is worth on one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownValue {
    pub(crate) place: usize,
    /// ⟨w, φ(x)⟩
    pub(crate) value: f64,
    /// By how much the value may be wrong.
    pub(crate) error: f64,
    /// √k(x, x)
    pub(crate) length: f64,
}

/// The values of a solution on the rows that it was found over.
#[derive(Clone, Debug)]
pub(crate) struct KnownValues {
    /// Places ascending.
    pub(crate) rows: Vec<KnownValue>,
    /// ‖w‖²
    pub(crate) norm: f64,
    pub(crate) offset: f64,
}

impl KnownValues {
    /// What is known of the row at a place.
    pub(crate) fn of(&self, place: usize) -> Option<&KnownValue> {
        let found = self.rows.binary_search_by_key(&place, |row| row.place);
        found.ok().map(|at| &self.rows[at])
    }
}

/// ‖a − b‖ at most, from ‖a‖², ‖b‖² and ⟨a, b⟩.
pub(crate) fn distance(a: f64, b: f64, product: f64) -> f64 {
    ((a - 2.0 * product + b).max(0.0) + ROUNDING * (a + b)).sqrt()
}

/// A point over the rows at some places, with what is known of its values.
struct KnownPoint {
    /// Coefficient, value, error and √k(x, x) of every row.
    coefficients: Vec<f64>,
    values: Vec<f64>,
    errors: Vec<f64>,
    lengths: Vec<f64>,
    norm: f64,
    offset: f64,
}

/// What the rows outside the part that was solved say of its solution.
#[derive(Default)]
struct Tested {
    violators: Vec<usize>,
    largest: f64,
    loss: f64,
}

/// The function that is solved, and its rows.
pub(super) struct Resumed<'a, R> {
    pub(super) duals: &'a LocalDuals,
    pub(super) function: usize,
    pub(super) table: &'a Dataset,
    /// The place of every row of the matrix.
    pub(super) places: &'a [usize],
    /// The matrix of the rows, as often as there are copies of variables.
    pub(super) matrix: &'a R,
    pub(super) copies: usize,
}

impl<R: MatrixRows> Resumed<'_, R> {
    /// Solves from a point whose values are known; none where that would not save anything.
    pub(super) fn solve(
        &self,
        start: &[(usize, f64)],
        known: &KnownValues,
        context: &Context,
    ) -> Option<SolvedDual> {
        let n = self.places.len();
        if n < LEAST_ROWS || !self.duals.kernel.is_semidefinite() {
            return None;
        }
        let (mut point, mut keep) = self.first_part(start, known);
        let mut effort = (0, 0);
        for _ in 0..MOST_PARTS {
            let members: Vec<usize> = (0..n).filter(|&i| keep[i]).collect();
            if 2 * members.len() > n {
                return None;
            }
            let outcome = self.solve_part(&members, &mut point, &keep, context);
            effort = (effort.0 + outcome.iterations, effort.1 + outcome.blocks);
            if matches!(outcome.status, Status::TimeLimit | Status::Interrupted) {
                return None;
            }
            let tested = self.test(&keep, &mut point);
            if tested.violators.is_empty() {
                let outcome = Outcome {
                    primal: outcome.primal + tested.loss,
                    violation: outcome.violation + tested.largest,
                    iterations: effort.0,
                    blocks: effort.1,
                    ..outcome
                };
                return Some(self.solved(&point, outcome));
            }
            tested.violators.into_iter().for_each(|i| keep[i] = true);
        }
        None
    }

    /// The share of the tolerance that is left to the part and to the rows outside of it, each.
    fn tolerance(&self) -> f64 {
        0.5 * SOLVE_SHARE * self.duals.options.tol
    }

    fn slack(&self, i: usize, value: f64, radius: f64, offset: f64) -> f64 {
        let label = super::label(self.table, self.places[i]);
        let at = |value: f64| self.duals.slack(self.function, label, value - offset);
        // Constraints are convex in the value.
        at(value - radius).max(at(value + radius))
    }

    /// The start, and the rows of the first part: support vectors, new rows, and as many of the others, those
    /// nearest to violating their constraint.
    fn first_part(&self, start: &[(usize, f64)], known: &KnownValues) -> (KnownPoint, Vec<bool>) {
        let n = self.places.len();
        let mut by_place = vec![0.0; self.table.rows()];
        start.iter().for_each(|&(place, value)| by_place[place] = value);
        let mut point = KnownPoint {
            coefficients: self.places.iter().map(|&place| by_place[place]).collect(),
            values: vec![0.0; n],
            errors: vec![0.0; n],
            lengths: vec![0.0; n],
            norm: known.norm,
            offset: known.offset,
        };
        let (mut keep, mut others) = (vec![false; n], Vec::new());
        for i in 0..n {
            match known.of(self.places[i]) {
                Some(row) => {
                    (point.values[i], point.errors[i]) = (row.value, row.error);
                    point.lengths[i] = row.length;
                    if point.coefficients[i] == 0.0 {
                        others.push((self.slack(i, row.value, row.error, known.offset), i));
                        continue;
                    }
                }
                None => point.lengths[i] = self.matrix.diagonal(i).max(0.0).sqrt(),
            }
            keep[i] = true;
        }
        let room = (n - others.len()).min(others.len());
        others.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        others[..room].iter().for_each(|&(_, i)| keep[i] = true);
        (point, keep)
    }

    /// Solves over some rows; the values of the others are wrong by no more than their new errors.
    fn solve_part(
        &self,
        members: &[usize],
        point: &mut KnownPoint,
        keep: &[bool],
        context: &Context,
    ) -> Outcome {
        let (n, m) = (self.places.len(), members.len());
        let places: Vec<usize> = members.iter().map(|&i| self.places[i]).collect();
        let mut problem = self.duals.problem(self.function, self.table, &places);
        let start: Vec<(usize, f64)> =
            members.iter().map(|&i| (self.places[i], point.coefficients[i])).collect();
        apply(&start, self.table.rows(), &places, &mut problem);
        let variables: Vec<u32> = (0..self.copies)
            .flat_map(|copy| members.iter().map(move |&i| (copy * n + i) as u32))
            .collect();
        let options = smo::Options {
            tol: self.tolerance(),
            ..self.duals.options.for_problem(variables.len())
        };
        let few = variables.len() <= options.in_memory_up_to;
        let caching = if few { RowCaching::Off } else { RowCaching::All };
        let solution =
            smo::solve(&self.matrix.compact(&variables, caching), &problem, &options, context);
        let (mut norm, mut product) = (0.0, 0.0);
        for (at, &i) in members.iter().enumerate() {
            let beta: f64 = (0..self.copies).map(|copy| solution.beta[copy * m + at]).sum();
            let value = value_of(&problem, &solution, at);
            norm += beta * value;
            product += point.coefficients[i] * value;
            (point.coefficients[i], point.values[i], point.errors[i]) = (beta, value, 0.0);
        }
        let moved = distance(norm, point.norm, product);
        for i in (0..n).filter(|&i| !keep[i]) {
            point.errors[i] += moved * point.lengths[i];
        }
        (point.norm, point.offset) = (norm, solution.multipliers[0]);
        solution.outcome
    }

    /// Tests the rows that took no part; the values of those that the bound leaves open are computed.
    fn test(&self, keep: &[bool], point: &mut KnownPoint) -> Tested {
        let n = self.places.len();
        let weight = |i: usize| self.table.weight(self.places[i]);
        let is_open = |&i: &usize| {
            let slack = self.slack(i, point.values[i], point.errors[i], point.offset);
            // A bound that is not a number proves nothing.
            !keep[i] && weight(i) > 0.0 && (slack > 0.0 || slack.is_nan())
        };
        let open: Vec<usize> = (0..n).filter(is_open).collect();
        for (i, value) in self.values(&open, &point.coefficients) {
            (point.values[i], point.errors[i]) = (value, 0.0);
        }
        let mut tested = Tested::default();
        for i in open {
            let slack = self.slack(i, point.values[i], 0.0, point.offset);
            let slack = if slack.is_nan() { f64::INFINITY } else { slack.max(0.0) };
            tested.loss += self.duals.row_loss(weight(i), slack);
            tested.largest = tested.largest.max(slack);
            if slack > self.tolerance() {
                tested.violators.push(i);
            }
        }
        tested
    }

    /// The values on some rows, and on others where that costs nothing.
    fn values(&self, open: &[usize], coefficients: &[f64]) -> Vec<(usize, f64)> {
        let n = self.places.len();
        let support = coefficients.iter().filter(|c| **c != 0.0).count();
        if open.is_empty() {
            return Vec::new();
        }
        if 2 * (open.len() + support) > n {
            let mut beta = vec![0.0; self.copies * n];
            beta[..n].copy_from_slice(coefficients);
            let product = self.matrix.product(&beta);
            return open.iter().map(|&i| (i, product[i])).collect();
        }
        let mut needed: Vec<u32> = open.iter().map(|&i| i as u32).collect();
        needed.extend((0..n as u32).filter(|&i| coefficients[i as usize] != 0.0));
        needed.sort_unstable();
        let beta: Vec<f64> = needed.iter().map(|&i| coefficients[i as usize]).collect();
        let product = self.matrix.compact(&needed, RowCaching::Off).product(&beta);
        let place = |i: usize| needed.partition_point(|&other| (other as usize) < i);
        open.iter().map(|&i| (i, product[place(i)])).collect()
    }

    fn solved(&self, point: &KnownPoint, outcome: Outcome) -> SolvedDual {
        let n = self.places.len();
        let row = |i: usize| KnownValue {
            place: self.places[i],
            value: point.values[i],
            error: point.errors[i],
            length: point.lengths[i],
        };
        let coefficients = self.places.iter().copied().zip(point.coefficients.iter().copied());
        let known = known_values((0..n).map(row).collect(), point.norm, point.offset);
        SolvedDual::new(coefficients.collect(), point.offset, outcome, Some(known))
    }
}

/// ⟨w, φ(x)⟩ of a variable, from its gradient.
pub(super) fn value_of(problem: &smo::Problem, solution: &smo::Solution, v: usize) -> f64 {
    let ridge = problem.ridge.as_ref().map_or(0.0, |ridge| ridge[v] * solution.beta[v]);
    solution.gradient[v] - problem.linear[v] - ridge
}

/// Values in the order of their places.
pub(super) fn known_values(mut rows: Vec<KnownValue>, norm: f64, offset: f64) -> KnownValues {
    rows.sort_unstable_by_key(|row| row.place);
    KnownValues { rows, norm, offset }
}

#[cfg(test)]
mod tests {
    use super::super::LocalStart;
    use super::*;
    use crate::data::{Dense, Labels, Matrix};
    use crate::kernel::Kernel;
    use crate::machine::{FitInput, Machine, OneClass, Precision, SolverOptions, Svc, Svr};
    use crate::numeric::random::Generator;

    /// Rows around two points of the plane, far enough apart that most are no support vectors.
    fn rows(count: usize, seed: u64) -> Dataset {
        let mut generator = Generator::new(seed);
        let labels: Vec<i64> = (0..count as i64).map(|i| i % 2).collect();
        let normal = |y: &i64| [generator.normal() + 5.0 * *y as f64, generator.normal()];
        let values = labels.iter().flat_map(normal).collect();
        let features = Matrix::DenseF64(Dense::new(count, 2, values).unwrap());
        Dataset::new(features, Labels::Int(labels)).unwrap()
    }

    fn solve(duals: &LocalDuals, table: &Dataset, start: LocalStart<'_>) -> SolvedDual {
        let solved = duals.solve(table, &[Some(start)], &Context::new()).unwrap();
        solved.into_iter().flatten().next().unwrap()
    }

    #[test]
    fn going_on_with_known_values_ends_where_a_solution_of_all_rows_does() {
        let options =
            SolverOptions { tol: 1e-6, precision: Precision::F64, ..SolverOptions::default() };
        let kernel = Kernel::Gaussian { gamma: 0.5 };
        let machines: [Box<dyn Machine>; 3] = [
            Box::new(Svc { kernel: kernel.clone(), options, ..Svc::default() }),
            Box::new(Svr { kernel: kernel.clone(), options, epsilon: 0.45, ..Svr::default() }),
            Box::new(OneClass { kernel, options, nu: 0.1 }),
        ];
        for (number, machine) in machines.iter().enumerate() {
            let mut tested = 0;
            for seed in 0..5 {
                let mut data = rows(400, seed);
                if number == 1 {
                    let Labels::Int(labels) = data.labels() else { unreachable!() };
                    let targets = labels.iter().map(|&label| label as f64).collect();
                    data = data.with_labels(Labels::Real(targets)).unwrap();
                }
                let duals = machine.local_duals(&FitInput::new(&data)).unwrap().unwrap();
                let first: Vec<usize> = (0..397).collect();
                let part = solve(&duals, &duals.table().select_rows(&first), LocalStart::default());
                let whole = solve(&duals, duals.table(), LocalStart::default());
                let start = LocalStart {
                    coefficients: part.coefficients.clone(),
                    known: part.known.as_ref(),
                };
                let resumed = solve(&duals, duals.table(), start);
                let scale = whole.outcome.dual.abs().max(1.0);
                assert_eq!(resumed.outcome.status, Status::Solved);
                assert!(resumed.outcome.violation <= 1e-6, "{:?}", resumed.outcome);
                let difference = (resumed.outcome.dual - whole.outcome.dual).abs();
                assert!(difference <= 1e-6 * scale, "{number} {seed} {difference}");
                // Every value is right within its error, and some were never computed.
                let places: Vec<usize> = (0..400).collect();
                let coefficients = [resumed.coefficients.clone()];
                let table = duals.table();
                let exact = duals.values(table, &coefficients, table, &places, &Context::new());
                let exact = exact.unwrap();
                let known = resumed.known.unwrap();
                assert_eq!(known.rows.len(), 400);
                for row in &known.rows {
                    let wrong = (exact[row.place] - row.value).abs();
                    assert!(wrong <= row.error + 1e-9 * scale, "{number} {seed} {row:?} {wrong}");
                }
                tested += known.rows.iter().filter(|row| row.error > 0.0).count();
            }
            assert!(number > 0 || tested > 0, "no row was left to its bound: {number}");
        }
    }
}
