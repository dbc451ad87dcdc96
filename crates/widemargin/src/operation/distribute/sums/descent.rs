//! Newton's method on sums: takes what the sites answered, says what to ask next.
//!
//! A step solves (I + XᵀDX) d = −g by conjugate gradients with the diagonal as preconditioner, to a residual
//! that shrinks with the gradient (Dembo, Eisenstat and Steihaug 1982), and is shortened until the
//! objective falls enough (Armijo).

use super::SumRequest;
use crate::outcome::{Outcome, Status};

/// Largest relative residual of a step.
const LOOSEST: f64 = 0.1;

/// Conjugate-gradient iterations of a step at most.
const MOST_PRODUCTS: usize = 250;

/// Share of the predicted decrease that a step has to bring.
const SUFFICIENT: f64 = 1e-4;

/// Lengths of a step that are tried together: 1, ½, ¼, …
const LENGTHS: usize = 12;

/// Relative changes of the objective below this are rounding.
const ROUNDING: f64 = 1e-14;

/// Steps in a row without a decrease beyond rounding.
const MOST_STALLS: u32 = 3;

/// When a descent ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Norm of the gradient relative to that at 0.
    pub(super) tol: f64,
    /// Duality gap relative to the objective.
    pub(super) gap: f64,
    /// Steps.
    pub(super) steps: u64,
}

/// SumRequest to do next.
pub(super) enum Next {
    /// Ask all sites; true where the weights have changed.
    Request(SumRequest, bool),
    Done(Outcome),
}

/// The descent of one function.
pub(super) struct Descent {
    limits: Limits,
    pub(super) weights: Vec<f64>,
    gradient: Vec<f64>,
    diagonal: Vec<f64>,
    objective: f64,
    bound: f64,
    /// Norm of the gradient at 0, once it is known.
    at_zero: Option<f64>,
    steps: u64,
    products: u64,
    stalls: u32,
    phase: Phase,
}

enum Phase {
    Point,
    Product(Conjugate),
    Along { direction: Vec<f64>, slope: f64 },
}

/// The state of conjugate gradients.
struct Conjugate {
    step: Vec<f64>,
    residual: Vec<f64>,
    direction: Vec<f64>,
    /// ⟨r, M⁻¹r⟩
    product: f64,
    /// Norm of the residual to reach.
    target: f64,
    iterations: usize,
}

impl Descent {
    /// From weights 0; the first request is [`SumRequest::Point`].
    pub(super) fn new(width: usize, limits: Limits) -> Self {
        Self {
            limits,
            weights: vec![0.0; width],
            gradient: vec![0.0; width],
            diagonal: vec![1.0; width],
            objective: f64::INFINITY,
            bound: f64::NEG_INFINITY,
            at_zero: None,
            steps: 0,
            products: 0,
            stalls: 0,
            phase: Phase::Point,
        }
    }

    /// Numbers that a site answers to a request.
    pub(super) fn expected(&self, what: &SumRequest) -> usize {
        match what {
            SumRequest::Point => 2 + 2 * self.weights.len(),
            SumRequest::Product(_) => self.weights.len(),
            SumRequest::Along(_, lengths) => lengths.len(),
        }
    }

    /// Products with the Hessian until now.
    pub(super) fn products(&self) -> u64 {
        self.products
    }

    /// The best lower bound on the objective until now.
    pub(super) fn bound(&self) -> f64 {
        self.bound
    }

    /// The state of things as an outcome.
    pub(super) fn outcome(&self, status: Status) -> Outcome {
        let at_zero = self.at_zero.unwrap_or(1.0);
        Outcome {
            status,
            primal: self.objective,
            dual: self.bound,
            violation: norm(&self.gradient) / if at_zero > 0.0 { at_zero } else { 1.0 },
            iterations: self.products,
            blocks: self.steps,
            kernel_rows: 0,
        }
    }

    /// Takes the sums of all sites.
    pub(super) fn take(&mut self, sums: &[f64]) -> Next {
        match std::mem::replace(&mut self.phase, Phase::Point) {
            Phase::Point => self.point(sums),
            Phase::Product(state) => self.product(state, sums),
            Phase::Along { direction, slope } => self.along(&direction, slope, sums),
        }
    }

    fn point(&mut self, sums: &[f64]) -> Next {
        let width = self.weights.len();
        let (loss, conjugate, of_loss) = (sums[0], sums[1], &sums[2..2 + width]);
        let before = self.objective;
        self.objective = 0.5 * inner(&self.weights, &self.weights) + loss;
        self.bound = self.bound.max(-0.5 * inner(of_loss, of_loss) - conjugate);
        self.gradient = self.weights.iter().zip(of_loss).map(|(w, g)| w + g).collect();
        self.diagonal = sums[2 + width..].iter().map(|square| 1.0 + square).collect();
        let violation = norm(&self.gradient);
        let at_zero = *self.at_zero.get_or_insert(violation);
        if !self.objective.is_finite() || !violation.is_finite() {
            return Next::Done(self.outcome(Status::NumericalTrouble));
        }
        let small = violation <= self.limits.tol * at_zero;
        let gap = self.objective - self.bound;
        if violation == 0.0 || small && gap <= self.limits.gap * self.objective.abs() {
            return Next::Done(self.outcome(Status::Solved));
        }
        let stalled = before - self.objective <= ROUNDING * self.objective.abs();
        self.stalls = if stalled { self.stalls + 1 } else { 0 };
        if self.stalls >= MOST_STALLS {
            return Next::Done(self.outcome(Status::AlmostSolved));
        }
        if self.steps >= self.limits.steps {
            return Next::Done(self.outcome(Status::IterationLimit));
        }
        self.steps += 1;
        let share = if at_zero > 0.0 { violation / at_zero } else { 1.0 };
        let residual: Vec<f64> = self.gradient.iter().map(|g| -g).collect();
        let direction = self.preconditioned(&residual);
        let state = Conjugate {
            step: vec![0.0; width],
            product: inner(&residual, &direction),
            residual,
            direction: direction.clone(),
            target: violation * LOOSEST.min(share.sqrt()),
            iterations: 0,
        };
        self.phase = Phase::Product(state);
        Next::Request(SumRequest::Product(direction), false)
    }

    fn preconditioned(&self, residual: &[f64]) -> Vec<f64> {
        residual.iter().zip(&self.diagonal).map(|(r, d)| r / d).collect()
    }

    fn product(&mut self, mut state: Conjugate, sums: &[f64]) -> Next {
        self.products += 1;
        state.iterations += 1;
        let image: Vec<f64> = sums.iter().zip(&state.direction).map(|(s, d)| s + d).collect();
        // At least ‖d‖², as the Hessian of the penalty is the identity.
        let curvature = inner(&state.direction, &image);
        let length = state.product / curvature;
        add(&mut state.step, length, &state.direction);
        add(&mut state.residual, -length, &image);
        let done = norm(&state.residual) <= state.target || state.iterations >= MOST_PRODUCTS;
        if done || !length.is_finite() {
            let slope = inner(&self.gradient, &state.step);
            let lengths = (0..LENGTHS as i32).map(|k| 0.5_f64.powi(k)).collect();
            self.phase = Phase::Along { direction: state.step.clone(), slope };
            return Next::Request(SumRequest::Along(state.step, lengths), false);
        }
        let solved = self.preconditioned(&state.residual);
        let next = inner(&state.residual, &solved);
        let keep = next / state.product;
        state.product = next;
        state.direction = solved.iter().zip(&state.direction).map(|(s, d)| s + keep * d).collect();
        let direction = state.direction.clone();
        self.phase = Phase::Product(state);
        Next::Request(SumRequest::Product(direction), false)
    }

    fn along(&mut self, direction: &[f64], slope: f64, losses: &[f64]) -> Next {
        let rounding = ROUNDING * self.objective.abs();
        let lengths = (0..losses.len() as i32).map(|k| 0.5_f64.powi(k));
        let chosen = lengths.zip(losses).find(|(length, loss)| {
            let mut there = self.weights.clone();
            add(&mut there, *length, direction);
            let objective = 0.5 * inner(&there, &there) + **loss;
            objective <= self.objective + SUFFICIENT * length * slope + rounding
        });
        match chosen {
            Some((length, _)) => {
                add(&mut self.weights, length, direction);
                Next::Request(SumRequest::Point, true)
            }
            None => Next::Done(self.outcome(Status::AlmostSolved)),
        }
    }
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(a: &[f64]) -> f64 {
    inner(a, a).sqrt()
}

fn add(a: &mut [f64], factor: f64, b: &[f64]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += factor * b);
}
