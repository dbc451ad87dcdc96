//! max Σ ℓᵢλᵢ − ½ λᵀQλ over 0 ≤ λᵢ ≤ uᵢ for a dense positive semidefinite Q, to rounding.
//!
//! Newton steps on the variables that are not held at a bound by the gradient, projected to the box and
//! shortened until the objective grows, in turn with sweeps of coordinate ascent, which always make progress
//! (Bertsekas 1982). The gap is that to Σ uᵢ max(ℓᵢ − (Qλ)ᵢ, 0) + ½ λᵀQλ, the primal objective.

use super::product::matrix_vector;
use crate::context::Context;
use crate::error::Result;
use crate::numeric::algebra::{Cholesky, add, dot};

/// Most rounds; a warm start takes one or two, a cold one some ten.
const MAX_ROUNDS: usize = 300;

/// Halvings of a Newton step before coordinate ascent goes on.
const HALVINGS: usize = 8;

/// A ridge, relative to the mean diagonal, with which a singular matrix is factored; ×100 until it can be.
const RIDGE: f64 = 1e-13;

/// Relative gap that counts as none: some hundred times the rounding of the sums.
const GAP: f64 = 1e-13;

/// Variables up to which some rounds take no time worth a look at the clock.
const CHEAP: usize = 256;

/// Sweeps at a time limit, where there is none left for a factor: λ is then near enough to the optimum to be of use.
const LAST_SWEEPS: usize = 10;

/// A solution.
pub(crate) struct BoxQp {
    /// The point λ.
    pub lambda: Vec<f64>,
    /// Objective at λ: a lower bound on the maximum.
    pub value: f64,
    /// An upper bound on the maximum, less `value`.
    pub gap: f64,
}

impl BoxQp {
    /// Solves from `start`, with 1 for every upper bound.
    pub(crate) fn solve(q: &[f64], linear: &[f64], start: &[f64], context: &Context) -> Self {
        Self::within(q, linear, &vec![1.0; linear.len()], start, context)
    }

    /// Solves from `start` within the box up to `upper`.
    pub(crate) fn within(
        q: &[f64],
        linear: &[f64],
        upper: &[f64],
        start: &[f64],
        context: &Context,
    ) -> Self {
        let mut state = State::new(q, linear, upper, start, context);
        let mut last_gap = f64::INFINITY;
        for round in 0..MAX_ROUNDS {
            let gap = state.gap();
            let stalled = round > 2 && gap >= last_gap;
            if gap <= GAP * state.value.abs()
                || (stalled && gap <= 1e3 * GAP * state.value.abs())
                || (round > 0 && context.stop_request().is_some())
            {
                break;
            }
            last_gap = gap;
            let free = state.movable();
            let factor = match state.factor(&free) {
                Ok(Some(factor)) => factor,
                Ok(None) => break,
                Err(_) => {
                    (0..LAST_SWEEPS).for_each(|_| state.sweep());
                    state.refresh();
                    break;
                }
            };
            let moved = state.newton_step(&free, &factor);
            if !moved || round >= 2 {
                state.sweep();
                state.refresh();
            }
        }
        let gap = state.gap();
        let State { lambda, value, .. } = state;
        Self { lambda, value, gap }
    }
}

struct State<'a> {
    q: &'a [f64],
    linear: &'a [f64],
    upper: &'a [f64],
    lambda: Vec<f64>,
    gradient: Vec<f64>,
    value: f64,
    context: &'a Context,
}

impl<'a> State<'a> {
    fn new(
        q: &'a [f64],
        linear: &'a [f64],
        upper: &'a [f64],
        start: &[f64],
        context: &'a Context,
    ) -> Self {
        let each = start.iter().zip(upper);
        let lambda: Vec<f64> = each.map(|(value, upper)| value.clamp(0.0, *upper)).collect();
        let gradient = vec![0.0; lambda.len()];
        let mut state = Self { q, linear, upper, lambda, gradient, value: 0.0, context };
        state.refresh();
        state
    }

    /// Gradient and objective afresh.
    fn refresh(&mut self) {
        (self.gradient, self.value) = self.at(&self.lambda);
    }

    fn at(&self, lambda: &[f64]) -> (Vec<f64>, f64) {
        let mut product = vec![0.0; lambda.len()];
        matrix_vector(self.q, lambda, &mut product, self.context);
        let value = dot(self.linear, lambda) - 0.5 * dot(&product, lambda);
        product.iter_mut().zip(self.linear).for_each(|(p, l)| *p = l - *p);
        (product, value)
    }

    fn gap(&self) -> f64 {
        let each = self.gradient.iter().zip(&self.lambda).zip(self.upper);
        each.map(|((g, l), upper)| upper * g.max(0.0) - l * g).sum::<f64>().max(0.0)
    }

    /// Variables that the gradient does not hold at a bound.
    fn movable(&self) -> Vec<usize> {
        let movable = |i: &usize| {
            let (l, g) = (self.lambda[*i], self.gradient[*i]);
            !(l <= 0.0 && g <= 0.0 || l >= self.upper[*i] && g >= 0.0)
        };
        (0..self.lambda.len()).filter(movable).collect()
    }

    /// Factor of Q on some variables, with a ridge where it is singular.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) where it takes long and there is no time.
    fn factor(&self, free: &[usize]) -> Result<Option<Cholesky>> {
        let (n, order) = (self.lambda.len(), free.len());
        let mean = free.iter().map(|&i| self.q[i * n + i]).sum::<f64>() / order.max(1) as f64;
        let mut ridge = 0.0;
        for _ in 0..8 {
            let mut part = Vec::with_capacity(order * order);
            for &i in free {
                let row = &self.q[i * n..][..n];
                part.extend(free.iter().map(|&j| row[j]));
            }
            (0..order).for_each(|k| part[k * order + k] += ridge);
            let factor = match order > CHEAP {
                true => Cholesky::interruptible(part, order, self.context)?,
                false => Cholesky::new(part, order, self.context),
            };
            if factor.is_some() {
                return Ok(factor);
            }
            ridge = if ridge == 0.0 { RIDGE * mean.max(f64::MIN_POSITIVE) } else { 100.0 * ridge };
        }
        Ok(None)
    }

    /// A projected Newton step on `free`, shortened until the objective grows; whether it did.
    fn newton_step(&mut self, free: &[usize], factor: &Cholesky) -> bool {
        let mut step: Vec<f64> = free.iter().map(|&i| self.gradient[i]).collect();
        factor.solve(&mut step);
        let mut length = 1.0;
        for _ in 0..HALVINGS {
            let mut lambda = self.lambda.clone();
            for (&i, step) in free.iter().zip(&step) {
                lambda[i] = (lambda[i] + length * step).clamp(0.0, self.upper[i]);
            }
            let (gradient, value) = self.at(&lambda);
            if value >= self.value {
                (self.lambda, self.gradient, self.value) = (lambda, gradient, value);
                return true;
            }
            length *= 0.5;
        }
        false
    }

    /// One sweep of exact steps on single variables.
    fn sweep(&mut self) {
        let n = self.lambda.len();
        for i in 0..n {
            let (l, g, row) = (self.lambda[i], self.gradient[i], &self.q[i * n..][..n]);
            let target = match row[i] {
                curvature if curvature > 0.0 => (l + g / curvature).clamp(0.0, self.upper[i]),
                _ if g > 0.0 => self.upper[i],
                _ if g < 0.0 => 0.0,
                _ => l,
            };
            if target != l {
                self.lambda[i] = target;
                add(&mut self.gradient, row, l - target);
            }
        }
    }
}
