//! Dual coordinate descent for the multi-class machine of Crammer and Singer.
//!
//! `min ½ Σₘ‖wₘ‖² + Σ Cᵢ max(0, maxₘ≠c 1 + ⟨wₘ − w_c, xᵢ⟩)` with c the choice of row i; dual variables
//! αᵢᵐ ≤ Cᵢ[m = c], Σₘ αᵢᵐ = 0, wₘ = Σ αᵢᵐxᵢ. All variables of one row are minimised together and
//! go somewhat beyond the minimum, and both rows and alternatives that stay at their bound become inactive (shrinking).
//! Keerthi, Sundararajan, Chang, Hsieh and Lin (2008). To a coarse tolerance the weights are kept in
//! single precision, half the memory, at first.

use super::batch::is_coarse;
use super::problem::{Options, Passes, Problem, RowLoss, Solution, squared_norm};
use super::tuning::batch::SINGLE_PASSES;
use super::tuning::crammer_singer::{FINAL_RELAXATION, RELAXATION};
use super::tuning::dual::{MOST_TIGHTENED, NEGLIGIBLE, ROWS_AHEAD, TIGHTER};
use crate::context::Context;
use crate::numeric::random::Generator;
use crate::numeric::simd::{PlainLoop, Real, run_plain};
use crate::solver::linear::rows::{LinearRows, WeightTable, fetch};
use crate::solver::{Outcome, Status};

/// What each row should be chosen as.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choices<'a> {
    /// Number of alternatives.
    pub count: usize,
    /// The right one for every row.
    pub right: &'a [u32],
    /// Cᵢ of every row.
    pub costs: &'a [f64],
}

/// Alternatives that are added up as one vector.
const LANES: usize = 8;

struct Descent<'a, R, T> {
    rows: &'a R,
    choices: Choices<'a>,
    /// Weights feature by feature, `blocks` of alternatives for each.
    weights: WeightTable<T, LANES>,
    blocks: usize,
    /// αᵢᵐ row by row.
    alpha: Vec<f64>,
    squares: Vec<f64>,
    /// The alternatives of every row, the active ones first, and how many those are.
    order: Vec<u32>,
    active: Vec<u32>,
    relaxation: f64,
    scratch: Scratch<T>,
}

/// What one row needs.
struct Scratch<T> {
    /// By place in the order.
    gradient: Vec<f64>,
    /// By alternative.
    sums: Vec<T>,
    terms: Vec<f64>,
    steps: Vec<(usize, T)>,
}

/// Solves the problem, from the dual variables `start` of a related one if there are some; the weights are those of
/// the first alternative, then of the second, ...
///
/// The tolerance bounds the range of the gradient over the variables of a row that can move.
pub(crate) fn solve<R: LinearRows>(
    rows: &R,
    choices: Choices<'_>,
    options: &Options,
    start: Option<&[f64]>,
    context: &Context,
) -> Solution {
    if choices.count == 2 {
        return solve_two(rows, choices, options, start, context);
    }
    let mut passes = Passes::new(options, context);
    let mut alpha = start.map_or_else(|| vec![0.0; rows.rows() * choices.count], <[f64]>::to_vec);
    for (i, own) in alpha.chunks_exact_mut(choices.count).enumerate() {
        // A row of zeros loses its cost whatever the weights are, and its variables are at once optimal.
        if rows.squared_norm(i) == 0.0 {
            own.fill(0.0);
            let right = choices.right[i] as usize;
            own[right] = choices.costs[i];
            own[(right + 1) % choices.count] = -choices.costs[i];
        }
    }
    if is_coarse(options, rows.rows()) {
        let mut descent = Descent::<R, f32>::new(rows, choices, alpha);
        if let Some(status) = descent.run(options, &mut passes, SINGLE_PASSES) {
            return descent.solution(status, &passes);
        }
        alpha = descent.alpha;
    }
    let mut descent = Descent::<R, f64>::new(rows, choices, alpha);
    let status = descent.run(options, &mut passes, u64::MAX).unwrap_or(Status::IterationLimit);
    descent.solution(status, &passes)
}

/// With two alternatives w₂ = −w₁, and v = w₁ − w₂ is the hinge machine of twice the cost, whose
/// objective is twice this one.
fn solve_two<R: LinearRows>(
    rows: &R,
    choices: Choices<'_>,
    options: &Options,
    start: Option<&[f64]>,
    context: &Context,
) -> Solution {
    let targets: Vec<f64> =
        choices.right.iter().map(|&c| if c == 0 { 1.0 } else { -1.0 }).collect();
    let costs: Vec<f64> = choices.costs.iter().map(|c| 2.0 * c).collect();
    let problem = Problem { loss: RowLoss::Hinge, targets: &targets, costs: &costs, shift: 0.0 };
    let start: Option<Vec<f64>> =
        start.map(|alpha| alpha.iter().step_by(2).map(|first| 2.0 * first).collect());
    let Solution { weights, dual, outcome } =
        super::dual::solve(rows, &problem, options, start.as_deref(), context);
    let both = |list: &[f64]| [0.5, -0.5].map(|half| list.iter().map(|v| half * v).collect());
    let [first, second]: [Vec<f64>; 2] = both(&weights);
    let outcome = Outcome { primal: 0.5 * outcome.primal, dual: 0.5 * outcome.dual, ..outcome };
    let dual = dual.iter().flat_map(|beta| [0.5 * beta, -0.5 * beta]).collect();
    Solution { weights: [first, second].concat(), dual, outcome }
}

/// A pass over the rows of a list, which loses those that become inactive; the largest KKT violation met.
struct Pass<'b, 'a, R, T> {
    descent: &'b mut Descent<'a, R, T>,
    list: &'b mut Vec<u32>,
    slack: f64,
    shrinking: bool,
}

impl<R: LinearRows, T: Real> PlainLoop for Pass<'_, '_, R, T> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let (mut worst, mut kept) = (f64::NEG_INFINITY, 0);
        for s in 0..self.list.len() {
            if let Some(&next) = self.list.get(s + ROWS_AHEAD) {
                let (next, k) = (next as usize, self.descent.choices.count);
                self.descent.rows.prefetch(next);
                for line in (0..k).step_by(LANES) {
                    fetch(&self.descent.alpha, next * k + line);
                    fetch(&self.descent.order, next * k + line);
                }
            }
            let i = self.list[s] as usize;
            if self.descent.step(i, self.slack, self.shrinking, &mut worst) {
                self.list[kept] = self.list[s];
                kept += 1;
            }
        }
        self.list.truncate(kept);
        worst
    }
}

impl<'a, R: LinearRows, T: Real> Descent<'a, R, T> {
    /// Where the variables have these values.
    fn new(rows: &'a R, choices: Choices<'a>, alpha: Vec<f64>) -> Self {
        let k = choices.count;
        let blocks = k.div_ceil(LANES);
        let mut descent = Self {
            rows,
            choices,
            weights: WeightTable::new(rows.width() * blocks),
            blocks,
            alpha,
            squares: (0..rows.rows()).map(|i| rows.squared_norm(i)).collect(),
            order: (0..rows.rows()).flat_map(|_| 0..k as u32).collect(),
            active: vec![k as u32; rows.rows()],
            relaxation: RELAXATION,
            scratch: Scratch {
                gradient: vec![0.0; k],
                sums: vec![T::ZERO; blocks * LANES],
                terms: Vec::with_capacity(k),
                steps: Vec::with_capacity(k),
            },
        };
        for i in 0..rows.rows() {
            let alpha = descent.alpha[i * k..][..k].iter().map(|alpha| T::from_f64(*alpha));
            descent.scratch.steps.clear();
            descent.scratch.steps.extend(alpha.enumerate().filter(|step| step.1 != T::ZERO));
            descent.add_steps(i);
        }
        descent
    }

    /// Passes until the tolerance is met, one has to stop or, without a solution, as many as `most`
    /// have been made.
    fn run(&mut self, options: &Options, passes: &mut Passes<'_>, most: u64) -> Option<Status> {
        let k = self.choices.count as u32;
        let movable =
            |&i: &u32| self.choices.costs[i as usize] > 0.0 && self.squares[i as usize] > 0.0;
        let all: Vec<u32> = (0..self.rows.rows() as u32).filter(movable).collect();
        let mut active = all.clone();
        let context = passes.context();
        let mut generator = Generator::new(context.seed());
        let mut slack = (10.0 * options.tol).max(1.0);
        let mut from_all = true;
        let (mut tol, mut tightened) = (options.tol, 0);
        while passes.done < most {
            generator.shuffle(&mut active);
            let looked_at = active.len();
            let shrinking = options.shrinking;
            let last = from_all && slack <= tol;
            self.relaxation = if last { FINAL_RELAXATION } else { RELAXATION };
            let pass = Pass { descent: &mut *self, list: &mut active, slack, shrinking };
            let worst = run_plain(context.instruction_set(), pass);
            let stop = passes.finish(looked_at, worst, || self.objective());
            if worst < slack {
                if worst < tol && from_all {
                    if self.gap_is_met(options.gap) {
                        return Some(Status::Solved);
                    } else if size_of::<T>() == size_of::<f32>() {
                        return None;
                    } else if tightened == MOST_TIGHTENED {
                        return Some(Status::AlmostSolved);
                    }
                    (tol, tightened) = (TIGHTER * tol, tightened + 1);
                }
                active.clone_from(&all);
                self.active.fill(k);
                slack = (0.5 * slack).max(tol);
                from_all = true;
            } else {
                from_all = false;
            }
            if stop.is_some() {
                return stop;
            }
        }
        None
    }

    fn solution(mut self, status: Status, passes: &Passes<'_>) -> Solution {
        let (k, width, blocks) = (self.choices.count, self.rows.width(), self.blocks);
        let (loss, violation) = self.look();
        let own = |j: usize, m: usize| self.weights[j * blocks + m / LANES][m % LANES].to_f64();
        let weights: Vec<f64> = (0..k * width).map(|at| own(at % width, at / width)).collect();
        let primal = 0.5 * squared_norm(&weights) + loss;
        let outcome = passes.outcome(status, primal, self.objective(), violation);
        Solution { weights, dual: self.alpha, outcome }
    }

    /// ⟨wₘ, xᵢ⟩ + [m ≠ right] for the active alternatives of row i, in their order.
    #[inline(always)]
    fn differentiate(&mut self, i: usize) {
        let (k, blocks) = (self.choices.count, self.blocks);
        let order = &self.order[i * k..][..self.active[i] as usize];
        let right = self.choices.right[i];
        let (gradient, sums) = (&mut self.scratch.gradient, &mut self.scratch.sums);
        if order.len() <= blocks {
            for (g, &m) in gradient.iter_mut().zip(order) {
                let (mut sum, block, lane) = (0.0, m as usize / LANES, m as usize % LANES);
                self.rows
                    .visit(i, |j, x| sum += x * self.weights[j * blocks + block][lane].to_f64());
                *g = sum + f64::from(u8::from(m != right));
            }
            return;
        }
        for (block, sums) in sums.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let mut totals = [T::ZERO; LANES];
            self.rows.visit(i, |j, x| {
                let weights = &self.weights[j * blocks + block];
                for lane in 0..LANES {
                    totals[lane] += T::from_f64(x) * weights[lane];
                }
            });
            *sums = totals;
        }
        for (g, &m) in gradient.iter_mut().zip(order) {
            *g = sums[m as usize].to_f64() + f64::from(u8::from(m != right));
        }
    }

    /// Range of the gradient over the variables of row i that can move: the largest value, and the
    /// smallest of one that can still rise.
    #[inline(always)]
    fn range(&self, i: usize) -> (f64, f64) {
        let k = self.choices.count;
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        let order = &self.order[i * k..][..self.active[i] as usize];
        for (&m, &g) in order.iter().zip(&self.scratch.gradient) {
            high = high.max(g);
            if self.alpha[i * k + m as usize] < self.bound(i, m) {
                low = low.min(g);
            }
        }
        (low, high)
    }

    /// The bound of αᵢᵐ.
    #[inline(always)]
    fn bound(&self, i: usize, m: u32) -> f64 {
        if m == self.choices.right[i] { self.choices.costs[i] } else { 0.0 }
    }

    /// Minimises over the variables of row i; whether it stays active.
    #[inline(always)]
    fn step(&mut self, i: usize, slack: f64, shrinking: bool, worst: &mut f64) -> bool {
        let (k, right, cost) = (self.choices.count, self.choices.right[i], self.choices.costs[i]);
        self.differentiate(i);
        let (low, high) = self.range(i);
        if shrinking {
            self.shrink(i, low);
        }
        let active = self.active[i] as usize;
        if active <= 1 {
            return false;
        }
        let range = high - low;
        *worst = worst.max(range);
        if range <= NEGLIGIBLE {
            return !shrinking || range > slack;
        }
        let square = self.squares[i] / self.relaxation;
        let order = &self.order[i * k..][..active];
        let alpha = &mut self.alpha[i * k..][..k];
        let Scratch { gradient, terms, steps, .. } = &mut self.scratch;
        terms.clear();
        for (g, &m) in gradient.iter_mut().zip(order) {
            *g -= square * alpha[m as usize];
            terms.push(if m == right { *g + square * cost } else { *g });
        }
        let level = level(terms, square * cost);
        steps.clear();
        for (g, &m) in gradient.iter().zip(order) {
            let bound = if m == right { cost } else { 0.0 };
            let alpha = &mut alpha[m as usize];
            let reached = ((level - g) / square).min(bound);
            let step = reached - *alpha;
            *alpha = reached;
            if step.abs() >= NEGLIGIBLE {
                steps.push((m as usize, T::from_f64(step)));
            }
        }
        self.add_steps(i);
        true
    }

    /// Has the weights follow the steps of row i.
    #[inline(always)]
    fn add_steps(&mut self, i: usize) {
        let (weights, blocks) = (&mut self.weights[..], self.blocks);
        self.rows.visit(i, |j, x| {
            let weights = weights[j * blocks..][..blocks].as_flattened_mut();
            for &(m, step) in &self.scratch.steps {
                weights[m] += T::from_f64(x) * step;
            }
        });
    }

    /// Makes alternatives inactive that are at their bound with a gradient below `low`.
    #[inline(always)]
    fn shrink(&mut self, i: usize, low: f64) {
        let k = self.choices.count;
        let mut active = self.active[i] as usize;
        let mut at = 0;
        while at < active {
            let m = self.order[i * k + at];
            let at_bound = self.alpha[i * k + m as usize] >= self.bound(i, m);
            if at_bound && self.scratch.gradient[at] < low {
                active -= 1;
                self.order.swap(i * k + at, i * k + active);
                self.scratch.gradient.swap(at, active);
            } else {
                at += 1;
            }
        }
        self.active[i] = active as u32;
    }

    /// Total loss and largest violation with all variables.
    fn look(&mut self) -> (f64, f64) {
        let k = self.choices.count;
        let (mut loss, mut worst) = (0.0, 0.0_f64);
        for i in 0..self.rows.rows() {
            if self.choices.costs[i] <= 0.0 {
                continue;
            }
            self.active[i] = k as u32;
            self.differentiate(i);
            let (low, high) = self.range(i);
            worst = worst.max(high - low);
            let right = self.choices.right[i];
            let own = self.order[i * k..][..k].iter().position(|m| *m == right);
            let own = own.map_or(0.0, |at| self.scratch.gradient[at]);
            loss += self.choices.costs[i] * (high - own);
        }
        (loss, worst)
    }

    /// Whether the duality gap, relative to the primal objective, is at most this.
    fn gap_is_met(&mut self, most: f64) -> bool {
        let squares = self.weights.as_flattened().iter().map(|w| w.to_f64() * w.to_f64());
        let primal = 0.5 * squares.sum::<f64>() + self.look().0;
        primal - self.objective() <= most * primal.abs()
    }

    fn objective(&self) -> f64 {
        let k = self.choices.count;
        let mut sum = 0.0;
        for (i, alpha) in self.alpha.chunks_exact(k).enumerate() {
            sum += alpha.iter().sum::<f64>() - alpha[self.choices.right[i] as usize];
        }
        let mut squares = [0.0; LANES];
        for weights in self.weights.iter() {
            squares.iter_mut().zip(weights).for_each(|(s, w)| *s += w.to_f64() * w.to_f64());
        }
        -0.5 * squares.iter().sum::<f64>() - sum
    }
}

/// The multiplier at which the variables, cut to their bounds, sum to 0: that of the terms above it,
/// found by leaving out the others time and again. Michelot (1986).
#[inline(always)]
fn level(terms: &mut [f64], budget: f64) -> f64 {
    let mut count = terms.len();
    loop {
        let level = (terms[..count].iter().sum::<f64>() - budget) / count as f64;
        let mut above = 0;
        for at in 0..count {
            let term = terms[at];
            terms[above] = term;
            above += usize::from(term > level);
        }
        if above == count || above == 0 {
            return level;
        }
        count = above;
    }
}

#[cfg(test)]
mod tests {
    use super::super::batch::tests::RandomProblems;
    use super::*;
    use crate::solver::linear::rows::SparseRows;

    fn solved(random: &RandomProblems, tol: f64) -> Solution {
        let rows = SparseRows::new(&random.table, random.table.values(), Some(1.0));
        let problems = random.problems(RowLoss::Hinge);
        let choices = Choices { count: 5, right: problems.codes, costs: problems.rest_costs };
        let options = Options { tol, ..Options::default() };
        let solution = solve(&rows, choices, &options, None, &Context::new());
        assert_eq!(solution.outcome.status, Status::Solved);
        solution
    }

    #[test]
    fn coarse_weights_are_good_for_a_coarse_tolerance() {
        let random = RandomProblems::new(150, 1.0);
        let best = solved(&random, 1e-9).outcome;
        assert!((best.primal - best.dual).abs() < 1e-9 * best.primal, "{best:?}");
        let coarse = solved(&random, 1e-2).outcome;
        assert!(coarse.primal > best.primal && coarse.primal < 1.01 * best.primal, "{coarse:?}");
    }

    #[test]
    fn what_single_precision_cannot_solve_is_solved_in_double() {
        let outcome = solved(&RandomProblems::new(12, 10.0), 1e-2).outcome;
        assert!(outcome.blocks > SINGLE_PASSES, "{outcome:?}");
        assert!(outcome.violation < 2e-2, "{outcome:?}");
    }
}
