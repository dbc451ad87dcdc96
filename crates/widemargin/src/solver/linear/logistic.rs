//! Dual coordinate descent for the logistic loss, of one problem or of a batch of one-vs-rest problems.
//!
//! With w = Σ tᵢαᵢxᵢ it minimises `½‖w‖² + Σ αᵢ log αᵢ + (Cᵢ − αᵢ) log(Cᵢ − αᵢ)` over 0 < αᵢ < Cᵢ, one
//! αᵢ at a time by Newton's method on whichever of αᵢ and Cᵢ − αᵢ is the smaller at the end, so that neither
//! loses digits (Yu, Huang and Lin, 2011). A row is read once for all problems of a batch, and the steps of
//! its variables are vectorised; a problem's steps do not depend on the others. A descent that is slow goes
//! on with Newton's method on the primal.

use super::batch::BatchInputs;
use super::loss_derivatives::log;
use super::newton::{self, Norm, suits_sampling};
use super::problem::{Options, Passes, Problem, RowLoss, Solution, primal, squared_norm};
use super::products::Products;
use super::table::{Table, WeightedRows};
use super::tuning::dual::{
    GUESS_TOLERANCE, LOOKS_BEFORE_NEWTON, MOST_TIGHTENED, NEWTON_GAP, NEWTON_STEPS,
    NEWTON_TOLERANCE, ROWS_AHEAD, TIGHTER,
};
use super::variable::Violation;
use crate::context::Context;
use crate::numeric::InstructionSet;
use crate::numeric::random::Generator;
use crate::numeric::simd::{PlainLoop, run_plain};
use crate::solver::Status;
use crate::solver::linear::rows::{LinearRows, WeightTable, fetch};

/// Newton steps for one variable.
const MOST_STEPS: usize = 100;

/// How closely a variable is minimised in the beginning, and at most.
const FIRST_PRECISION: f64 = 1e-2;
const FINEST_PRECISION: f64 = 1e-8;

/// The least that a variable of this cost can be, and the least that it can be short of it.
fn least_variable(cost: f64) -> f64 {
    (1e-3 * cost).min(1e-8)
}

/// One row's variables in all problems of a batch.
#[derive(Clone, Copy)]
struct RowDuals<const L: usize> {
    /// α and C − α.
    parts: [[f64; L]; 2],
    /// log α / (C − α)
    odds: [f64; L],
    /// The problem in which the row is positive, `L` if there is none.
    own: usize,
    /// C in the other problems and in that one.
    costs: [f64; 2],
    /// ‖x‖²
    square: f64,
}

impl<const L: usize> RowDuals<L> {
    fn new(costs: [f64; 2], own: usize, square: f64) -> Self {
        let mut duals = Self { parts: [[0.5; L]; 2], odds: [0.0; L], own, costs, square };
        (0..L).for_each(|k| duals.set(k, 0.0));
        duals
    }

    #[inline(always)]
    fn cost(&self, k: usize) -> f64 {
        self.costs[usize::from(k == self.own)]
    }

    /// +1 in the problem where the row is positive, −1 in the others.
    #[inline(always)]
    fn side(&self, k: usize) -> f64 {
        if k == self.own { 1.0 } else { -1.0 }
    }

    /// α with the sign of its influence on w.
    #[inline(always)]
    fn signed(&self, k: usize) -> f64 {
        if self.cost(k) > 0.0 { self.side(k) * self.parts[0][k] } else { 0.0 }
    }

    /// Gives variable `k` a value, or the nearest that it can have.
    fn set(&mut self, k: usize, alpha: f64) {
        let cost = self.cost(k);
        if cost > 0.0 {
            let least = least_variable(cost);
            let alpha = alpha.clamp(least, cost - least);
            (self.parts[0][k], self.parts[1][k]) = (alpha, cost - alpha);
            self.odds[k] = log(alpha / (cost - alpha));
        }
    }

    /// Minimises over every α with all others fixed, to its precision; the changes of the weights'
    /// factors and the gradients met first.
    #[inline(always)]
    fn step(&mut self, values: &[f64; L], precision: &[f64; L]) -> ([f64; L], [f64; L]) {
        let (mut sign, mut cost, mut margin) = ([1.0; L], [1.0; L], [0.0; L]);
        let (mut old, mut z, mut odds) = ([0.5; L], [0.5; L], [0.0; L]);
        let (mut gradient, mut goal) = ([0.0; L], [f64::INFINITY; L]);
        for k in 0..L {
            let side = if k == self.own { 1.0 } else { -1.0 };
            let own = if k == self.own { self.costs[1] } else { self.costs[0] };
            let value = side * values[k];
            let middle = 0.5 * self.square * (self.parts[1][k] - self.parts[0][k]) + value;
            let (part, other) = (self.parts[0][k], self.parts[1][k]);
            goal[k] = if own > 0.0 { precision[k] } else { f64::INFINITY };
            cost[k] = if own > 0.0 { own } else { 1.0 };
            sign[k] = if middle < 0.0 { -1.0 } else { 1.0 };
            old[k] = if middle < 0.0 { other } else { part };
            margin[k] = sign[k] * value;
            let far = cost[k] - old[k] < 0.5 * cost[k];
            z[k] = if far { 0.1 * old[k] } else { old[k] };
            let fresh = log(z[k] / (cost[k] - z[k]));
            odds[k] = if far { fresh } else { sign[k] * self.odds[k] };
            gradient[k] = self.square * (z[k] - old[k]) + margin[k] + odds[k];
        }
        let first = gradient;
        let mut moved = [false; L];
        for _ in 0..MOST_STEPS {
            let mut any = false;
            for k in 0..L {
                any |= gradient[k].abs() >= goal[k];
            }
            if !any {
                break;
            }
            for k in 0..L {
                let goes = gradient[k].abs() >= goal[k];
                let rest = cost[k] - z[k];
                // C / ((C − z)z) with one division instead of two.
                let area = rest * z[k];
                let next = z[k] - gradient[k] * area / (self.square * area + cost[k]);
                let next = if next <= 0.0 { 0.1 * z[k] } else { next };
                let next_odds = log(next / (cost[k] - next));
                let slope = self.square * (next - old[k]) + margin[k] + next_odds;
                z[k] = if goes { next } else { z[k] };
                odds[k] = if goes { next_odds } else { odds[k] };
                gradient[k] = if goes { slope } else { gradient[k] };
                moved[k] |= goes;
            }
        }
        let mut steps = [0.0; L];
        for k in 0..L {
            let side = if k == self.own { 1.0 } else { -1.0 };
            let rest = cost[k] - z[k];
            let (part, other) = if sign[k] < 0.0 { (rest, z[k]) } else { (z[k], rest) };
            steps[k] = if moved[k] { side * sign[k] * (z[k] - old[k]) } else { 0.0 };
            self.parts[0][k] = if moved[k] { part } else { self.parts[0][k] };
            self.parts[1][k] = if moved[k] { other } else { self.parts[1][k] };
            self.odds[k] = if moved[k] { sign[k] * odds[k] } else { self.odds[k] };
        }
        (steps, first)
    }
}

/// A pass over the rows in an order, weights following.
struct Sweep<'a, R, const L: usize> {
    rows: &'a R,
    duals: &'a mut [RowDuals<L>],
    order: &'a [u32],
    weights: &'a mut [[f64; L]],
    precision: &'a [f64; L],
}

impl<R: LinearRows, const L: usize> PlainLoop for Sweep<'_, R, L> {
    /// The largest gradient met in every problem, and how many variables moved.
    type Output = ([f64; L], [f64; L]);

    #[inline(always)]
    fn run(self) -> Self::Output {
        let Self { rows, duals, order, weights, precision } = self;
        let (mut worst, mut moved) = ([0.0_f64; L], [0.0; L]);
        for (s, &i) in order.iter().enumerate() {
            if let Some(&next) = order.get(s + ROWS_AHEAD) {
                rows.prefetch(next as usize);
                fetch(duals, next as usize);
            }
            let i = i as usize;
            let mut values = [0.0; L];
            if L == 1 {
                values[0] = rows.dot(i, weights.as_flattened());
            } else {
                rows.visit(i, |j, x| {
                    for k in 0..L {
                        values[k] += x * weights[j][k];
                    }
                });
            }
            let (steps, gradients) = duals[i].step(&values, precision);
            let mut any = false;
            for k in 0..L {
                worst[k] = worst[k].max(gradients[k].abs());
                // A maximum forgets what is not a number.
                worst[k] = if gradients[k].is_nan() { f64::INFINITY } else { worst[k] };
                moved[k] += if steps[k] != 0.0 { 1.0 } else { 0.0 };
                any |= steps[k] != 0.0;
            }
            if any {
                add(rows, i, &steps, weights);
            }
        }
        (worst, moved)
    }
}

/// wₖ ← wₖ + stepₖ · xᵢ
#[inline(always)]
fn add<R: LinearRows, const L: usize>(
    rows: &R,
    i: usize,
    steps: &[f64; L],
    weights: &mut [[f64; L]],
) {
    if L == 1 {
        rows.add(i, steps[0], weights.as_flattened_mut());
    } else {
        rows.visit(i, |j, x| {
            for k in 0..L {
                weights[j][k] += x * steps[k];
            }
        });
    }
}

/// The duals of logistic problems, to be descended in one go or block by block.
pub(crate) struct LogisticDescent<const L: usize> {
    duals: Vec<RowDuals<L>>,
    /// The rows that cost something.
    order: Vec<u32>,
    /// How closely the variables of a problem are minimised; infinite for one that has ended.
    precision: [f64; L],
    finest: f64,
}

impl LogisticDescent<1> {
    /// The dual of `problem` over `rows`, from the dual variables `start` or nearly 0.
    ///
    /// Variables are never 0: those of a start that are belong to no w yet, see
    /// [`add_new`](Self::add_new).
    pub(crate) fn new<R: LinearRows>(
        rows: &R,
        problem: &Problem<'_>,
        start: Option<&[f64]>,
        tol: f64,
    ) -> Self {
        let duals = |i: usize| {
            let own = usize::from(problem.targets[i] < 0.0);
            let mut duals = RowDuals::new([problem.costs[i]; 2], own, rows.squared_norm(i));
            duals.set(0, start.map_or(0.0, |start| start[i].abs()));
            duals
        };
        Self::of((0..rows.rows()).map(duals).collect(), tol)
    }

    /// Adds to weights what the variables contribute whose `start` is 0.
    pub(crate) fn add_new<R: LinearRows>(&self, rows: &R, start: &[f64], weights: &mut [f64]) {
        for &i in &self.order {
            if start[i as usize] == 0.0 {
                rows.add(i as usize, self.duals[i as usize].signed(0), weights);
            }
        }
    }

    /// Passes over the rows of a block, w following.
    pub(crate) fn descend_block<R: LinearRows>(
        &mut self,
        rows: &R,
        weights: &mut [f64],
        passes: usize,
        seed: u64,
        set: InstructionSet,
    ) -> Violation {
        let mut generator = Generator::new(seed);
        let mut seen = Violation::default();
        for pass in 0..passes {
            let worst = self.sweep(rows, weights.as_chunks_mut().0, &mut generator, set);
            seen.steps += self.order.len() as u64;
            if pass == 0 {
                seen.highest = worst[0];
            }
        }
        seen
    }
}

impl<const L: usize> LogisticDescent<L> {
    fn of(duals: Vec<RowDuals<L>>, tol: f64) -> Self {
        let costs = |i: &u32| duals[*i as usize].costs.iter().any(|cost| *cost > 0.0);
        let order = (0..duals.len() as u32).filter(costs).collect();
        Self { duals, order, precision: [FIRST_PRECISION; L], finest: tol.min(FINEST_PRECISION) }
    }

    /// One pass in random order, w following; the largest gradients met.
    fn sweep<R: LinearRows>(
        &mut self,
        rows: &R,
        weights: &mut [[f64; L]],
        generator: &mut Generator,
        set: InstructionSet,
    ) -> [f64; L] {
        generator.shuffle(&mut self.order);
        let Self { duals, order, precision, .. } = self;
        let (worst, moved) = run_plain(set, Sweep { rows, duals, order, weights, precision });
        for k in 0..L {
            if precision[k].is_finite() && moved[k] <= (order.len() / 10) as f64 {
                precision[k] = self.finest.max(0.1 * precision[k]);
            }
        }
        worst
    }

    /// How far the conditions of problem `k` are violated where the rows have these values ⟨w, x⟩.
    pub(crate) fn examine(&self, k: usize, values: &[f64]) -> Violation {
        let gradient = |i: &u32| {
            let duals = &self.duals[*i as usize];
            let gradient = duals.side(k) * values[*i as usize] + duals.odds[k];
            if duals.cost(k) > 0.0 { gradient.abs() } else { 0.0 }
        };
        let highest = self.order.iter().map(gradient).fold(0.0, f64::max);
        Violation { highest, ..Violation::default() }
    }

    /// Dual variable of every row in problem `k`, with the sign of its influence on w.
    pub(crate) fn dual(&self, k: usize) -> Vec<f64> {
        self.duals.iter().map(|duals| duals.signed(k)).collect()
    }

    /// Dual objective of problem `k`, as a maximum.
    fn objective(&self, k: usize, weights: &[f64]) -> f64 {
        let entropy = |duals: &RowDuals<L>| match duals.cost(k) {
            cost if cost > 0.0 => {
                duals.parts.iter().map(|p| p[k] * log(p[k])).sum::<f64>() - cost * log(cost)
            }
            _ => 0.0,
        };
        -0.5 * squared_norm(weights) - self.duals.iter().map(entropy).sum::<f64>()
    }
}

/// One problem of a batch in the course of its solution.
struct ProblemState<'a> {
    tol: f64,
    tightened: u32,
    passes: Passes<'a>,
    newton: bool,
    solution: Option<Solution>,
}

/// A batch of problems over the same rows.
struct Batch<'a, R, const L: usize> {
    rows: &'a R,
    products: Products<'a, R>,
    /// Targets and costs of each problem.
    problems: Vec<(Vec<f64>, Vec<f64>)>,
    descent: LogisticDescent<L>,
    weights: WeightTable<f64, L>,
    options: &'a Options,
    context: &'a Context,
}

/// Solves the dual of a logistic problem, from the dual variables `start`, those that belong to a guess
/// of the weights where there are many rows, or nearly 0.
///
/// The tolerance bounds the largest gradient of the dual.
pub(crate) fn solve<R: LinearRows>(
    rows: &R,
    problem: &Problem<'_>,
    options: &Options,
    start: Option<&[f64]>,
    context: &Context,
) -> Solution {
    let guess = (start.is_none() && suits_sampling(rows, Norm::L2)).then(|| {
        let options = Options { tol: GUESS_TOLERANCE, ..*options };
        newton::solve(rows, None, problem, Norm::L2, &options, None, false, context).dual
    });
    let start = start.or(guess.as_deref());
    let descent = LogisticDescent::new(rows, problem, start, options.tol);
    let problems = vec![(problem.targets.to_vec(), problem.costs.to_vec())];
    let mut solutions = Batch::new(rows, descent, problems, options, context).run();
    // There is one problem, and so one solution.
    solutions.remove(0)
}

/// Weights after some passes from variables of nearly 0, for a method that goes on from them.
pub(super) fn guess<R: LinearRows>(
    rows: &R,
    problem: &Problem<'_>,
    passes: u64,
    context: &Context,
) -> Vec<f64> {
    let mut descent = LogisticDescent::new(rows, problem, None, FINEST_PRECISION);
    let mut weights = vec![0.0; rows.width()];
    descent.add_new(rows, &vec![0.0; rows.rows()], &mut weights);
    let mut generator = Generator::new(context.seed());
    for _ in 0..passes {
        if context.stop_request().is_some() {
            break;
        }
        let weights = weights.as_chunks_mut().0;
        descent.sweep(rows, weights, &mut generator, context.instruction_set());
    }
    weights
}

/// Solves the problems of at most `L` classes, each from its start or nearly 0.
///
/// The tolerance bounds the largest gradient of each dual.
pub(crate) fn solve_batch<const L: usize, R: LinearRows>(
    inputs: &BatchInputs<'_, R>,
) -> Vec<Solution> {
    let BatchInputs { rows, problems, ref classes, options, starts, context, .. } = *inputs;
    let duals = |i: usize| {
        let class = problems.codes[i] as usize;
        let own = if classes.contains(&class) { class - classes.start } else { L };
        let costs = [problems.rest_costs[i], problems.own_costs[i]];
        let mut duals = RowDuals::new(costs, own, rows.squared_norm(i));
        for (k, start) in starts.iter().enumerate() {
            if let Some(start) = start {
                duals.set(k, duals.side(k) * start[i]);
            }
        }
        duals
    };
    let mut descent = LogisticDescent::<L>::of((0..rows.rows()).map(duals).collect(), options.tol);
    descent.precision[classes.len()..].fill(f64::INFINITY);
    let problems = classes.clone().map(|class| problems.targets_and_costs(class)).collect();
    Batch::new(rows, descent, problems, options, context).run()
}

impl<'a, R: LinearRows, const L: usize> Batch<'a, R, L> {
    fn new(
        rows: &'a R,
        descent: LogisticDescent<L>,
        problems: Vec<(Vec<f64>, Vec<f64>)>,
        options: &'a Options,
        context: &'a Context,
    ) -> Self {
        let products = Products::new(rows, options.alone, context);
        let weights = WeightTable::new(rows.width());
        let mut batch = Self { rows, products, problems, descent, weights, options, context };
        for k in 0..batch.problems.len() {
            batch.recompute_weights(k);
        }
        batch
    }

    /// Passes until every problem has a solution.
    fn run(mut self) -> Vec<Solution> {
        let (options, context) = (self.options, self.context);
        let state = |_| {
            let passes = Passes::new(options, context);
            ProblemState { tol: options.tol, tightened: 0, passes, newton: false, solution: None }
        };
        let mut states: Vec<ProblemState<'_>> = (0..self.problems.len()).map(state).collect();
        let mut generator = Generator::new(context.seed());
        while states.iter().any(|state| state.solution.is_none()) {
            let Self { descent, weights, rows, .. } = &mut self;
            let worst = descent.sweep(*rows, weights, &mut generator, context.instruction_set());
            for (k, state) in states.iter_mut().enumerate() {
                if state.solution.is_none() {
                    self.judge(k, state, worst[k]);
                }
            }
        }
        states.into_iter().filter_map(|state| state.solution).collect()
    }

    /// Ends a problem that is solved or has to stop; has Newton's method go on where descent is slow.
    fn judge(&mut self, k: usize, state: &mut ProblemState<'_>, worst: f64) {
        let steps = self.descent.order.len();
        let mut status = state.passes.finish(steps, worst, || f64::NAN);
        if worst < state.tol {
            let solution = self.solution(k, &state.passes, Status::Solved);
            let gap = solution.outcome.gap() <= self.options.gap * solution.outcome.primal.abs();
            if gap || state.tightened == MOST_TIGHTENED {
                status = Some(if gap { Status::Solved } else { Status::AlmostSolved });
            } else {
                state.tol *= TIGHTER;
                state.tightened += 1;
            }
        }
        if let Some(status) = status {
            state.solution = Some(self.solution(k, &state.passes, status));
            self.descent.precision[k] = f64::INFINITY;
        } else if !state.newton && state.passes.done >= LOOKS_BEFORE_NEWTON {
            state.newton = true;
            self.use_newton(k);
        }
    }

    /// Replaces the variables of problem `k` by those of Newton's method from its weights on.
    fn use_newton(&mut self, k: usize) {
        let (options, context) = (self.options, self.context);
        let (tol, gap) = (NEWTON_TOLERANCE, NEWTON_GAP * options.gap);
        let options = Options { tol, gap, max_passes: NEWTON_STEPS, ..*options };
        let start = self.weights_of(k);
        let (targets, costs) = &self.problems[k];
        let problem = Problem { loss: RowLoss::Logistic, targets, costs, shift: 0.0 };
        let norm = Norm::L2;
        let found =
            newton::solve(self.rows, None, &problem, norm, &options, Some(&start), false, context);
        if found.dual.iter().all(|beta| beta.is_finite()) {
            for (duals, beta) in self.descent.duals.iter_mut().zip(&found.dual) {
                duals.set(k, beta.abs());
            }
            self.recompute_weights(k);
        }
    }

    fn weights_of(&self, k: usize) -> Vec<f64> {
        self.weights.iter().map(|weights| weights[k]).collect()
    }

    /// Makes the weights of problem `k` those of its variables.
    fn recompute_weights(&mut self, k: usize) {
        let weights = self.products.transposed(&WeightedRows::new(&self.descent.dual(k)));
        self.weights.iter_mut().zip(weights).for_each(|(all, weight)| all[k] = weight);
    }

    fn solution(&self, k: usize, passes: &Passes<'_>, status: Status) -> Solution {
        let weights = self.weights_of(k);
        let values = self.products.values(&weights);
        let (targets, costs) = &self.problems[k];
        let problem = Problem { loss: RowLoss::Logistic, targets, costs, shift: 0.0 };
        let primal = primal(&problem, &weights, &values);
        let bound = self.descent.objective(k, &weights);
        let violation = self.descent.examine(k, &values).highest;
        let outcome = passes.outcome(status, primal, bound, violation);
        Solution { weights, dual: self.descent.dual(k), outcome }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::super::batch::tests::RandomProblems;
    use super::*;
    use crate::solver::linear::rows::SparseRows;

    #[test]
    fn problems_of_a_batch_are_those_alone() {
        let random = RandomProblems::new(150, 1.0);
        let rows = SparseRows::new(&random.table, random.table.values(), Some(1.0));
        let lists = rows.lists().unwrap();
        let problems = random.problems(RowLoss::Logistic);
        let options = Options { tol: 1e-7, max_passes: 10_000, ..Options::default() };
        let context = Context::new();
        let of = |classes: Range<usize>| BatchInputs {
            rows: &rows,
            lists: &lists,
            problems: &problems,
            starts: &[None; 5][classes.clone()],
            classes,
            options: &options,
            context: &context,
        };
        let together = solve_batch::<8, _>(&of(0..5));
        let apart = solve_batch::<4, _>(&of(3..5));
        assert_eq!(together[3].weights, apart[0].weights);
        assert_eq!(together[4].dual, apart[1].dual);
        for (class, found) in together.iter().enumerate() {
            let (targets, costs) = problems.targets_and_costs(class);
            let problem =
                Problem { loss: RowLoss::Logistic, targets: &targets, costs: &costs, shift: 0.0 };
            let alone = solve(&rows, &problem, &options, None, &context);
            assert_eq!(found.outcome.status, Status::Solved);
            let (own, other) = (found.outcome, alone.outcome);
            assert!((own.primal - other.primal).abs() < 1e-9 * own.primal, "{own:?} {other:?}");
            assert!((own.primal - own.dual).abs() < 1e-9 * own.primal, "{own:?}");
            assert!(own.violation < 1e-6, "{own:?}");
            let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-6;
            assert!(found.weights.iter().zip(&alone.weights).all(close));
            assert!(found.dual.iter().zip(&alone.dual).all(close));
        }
    }
}
