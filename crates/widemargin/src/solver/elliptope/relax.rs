//! The relaxation: descent over V, the multiplier of the constraint, more columns where the certificate asks for them.

use super::certificate::{Certificate, certify};
use super::interior::{self, Interior};
use super::problem::{Constraint, Problem};
use super::product::WIDTH;
use super::saddle::{Penalty, Point, normalise};
use super::trust_region::{Limits, Work, descend};
use crate::context::{Context, Event};
use crate::numeric::algebra::{dot, eigen_symmetric};
use crate::numeric::random::Generator;
use crate::outcome::Status;

/// Options of the relaxation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Relative gap between value and bound that ends it.
    pub gap: f64,
    /// Most rounds of descent and multiplier.
    pub rounds: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { gap: 1e-6, rounds: 30 }
    }
}

/// What the relaxation reached.
#[derive(Clone, Debug)]
pub(crate) struct Relaxation {
    /// Least F found at a V that satisfies the constraint; infinite if none was.
    pub value: f64,
    /// A proven lower bound on F, and so on the objective of all labels that satisfy the constraint.
    pub bound: f64,
    /// The unit vectors, N × `width`.
    pub vectors: Vec<f64>,
    /// Their columns.
    pub width: usize,
    /// Solution λ of the inner problem there.
    pub lambda: Vec<f64>,
    /// How it ended.
    pub status: Status,
    /// Rounds of descent and multiplier.
    pub rounds: u64,
    /// Products with the Hessian.
    pub products: u64,
}

fn relative_gap(value: f64, bound: f64) -> f64 {
    if value.is_finite() {
        ((value - bound) / value.abs().max(f64::MIN_POSITIVE)).max(0.0)
    } else {
        f64::INFINITY
    }
}

/// Eigenvalues of VᵀV below this share of the largest belong to columns that are not needed.
const NEGLIGIBLE: f64 = 1e-12;

/// Minimises F; always returns the best that was found, with its proof.
pub(crate) fn relax(problem: &Problem, options: &Options, context: &Context) -> Relaxation {
    Solver::new(problem, options, context).run()
}

/// The first penalty of the constraint's violation, in units of F over the squared limit.
const FIRST_WEIGHT: f64 = 0.1;

/// Accuracy of the last stage, in units of the gap asked for.
const FINEST: f64 = 0.1;

/// Accuracy of the first stage, relative to F.
const FIRST_ACCURACY: f64 = 0.1;

/// What the accuracy is multiplied with after a stage: of few steps, and of more.
const FAST: f64 = 1e-3;
const SLOW: f64 = 0.1;

/// Accuracy from which the sign of a multiplier is believed.
const MULTIPLIER_ACCURACY: f64 = 1e-3;

/// Steps of a stage after which Newton's method is fast.
const FEW_STEPS: u64 = 4;

/// Most trust-region steps of a stage.
const STAGE_STEPS: usize = 200;

/// Most vectors for which an interior point closes what descent leaves open: a step takes some N³ · 20 operations and
/// N² · 100 bytes, sixty steps a minute.
const MOST_INTERIOR: usize = 1024;

/// Most that its end is moved towards the inside of the constraint.
const MOST_MOVED: f64 = 1e-3;

/// How a stage went.
struct Stage {
    steps: u64,
    converged: bool,
}

/// The best point that satisfies the constraint.
struct Best {
    value: f64,
    vectors: Vec<f64>,
    width: usize,
    lambda: Vec<f64>,
}

struct Solver<'a> {
    problem: &'a Problem,
    options: &'a Options,
    context: &'a Context,
    penalty: Penalty,
    point: Point,
    /// Size of F, which accuracies are relative to.
    scale: f64,
    bound: f64,
    best: Option<Best>,
    work: Work,
    rounds: u64,
    /// Whether the constraint was let go once and did not hold.
    taken_back: bool,
}

impl<'a> Solver<'a> {
    fn new(problem: &'a Problem, options: &'a Options, context: &'a Context) -> Self {
        let (n, width) = (problem.size, start_width(problem.vertices));
        let mut generator = Generator::new(context.seed() ^ 0x656c_6c69_7074);
        let mut v: Vec<f64> = (0..problem.vertices * width).map(|_| generator.normal()).collect();
        normalise(&mut v, width);
        let start: Vec<f64> = (0..n).map(|i| 1.0 / problem.gram[i * n + i].max(2.0)).collect();
        let mut penalty = Penalty {
            active: false,
            barrier: 0.1 * start.iter().sum::<f64>() / n as f64,
            multiplier: 0.0,
            weight: 0.0,
            margin: (0.1 * options.gap).min(1e-9),
        };
        let point = Point::new(problem, v, width, &start, penalty, context);
        let scale = point.exact_value(problem, context).abs().max(f64::MIN_POSITIVE);
        let size = match problem.constraint {
            Constraint::Free => 1.0,
            Constraint::Sum { limit } => limit.max(n as f64),
            Constraint::Counted { .. } => n as f64,
        };
        penalty.active = problem.constraint != Constraint::Free;
        penalty.weight = FIRST_WEIGHT * scale / (size * size);
        Self {
            problem,
            options,
            context,
            penalty,
            point,
            scale,
            bound: problem.first_bound(),
            best: None,
            work: Work::default(),
            rounds: 0,
            taken_back: false,
        }
    }

    fn run(mut self) -> Relaxation {
        let mut status = Status::IterationLimit;
        let mut violation = f64::INFINITY;
        let (mut accuracy, mut reached) = (FIRST_ACCURACY, 10.0 * FIRST_ACCURACY);
        for _ in 0..self.options.rounds {
            let stage = self.stage(accuracy);
            let found = self.certificate(accuracy);
            if relative_gap(self.value(), self.bound) <= self.options.gap {
                status = Status::Solved;
                break;
            }
            if let Some(stop) = self.context.stop_request() {
                status = stop;
                break;
            }
            if let Some(found) = found
                && accuracy < FIRST_ACCURACY
            {
                self.escape(&found);
            }
            if stage.converged {
                self.update_penalty(accuracy, &mut violation);
                let next = accuracy * if stage.steps <= FEW_STEPS { FAST } else { SLOW };
                (reached, accuracy) = (accuracy, next.max(FINEST * self.options.gap));
            } else {
                // Half-way, on a logarithmic scale, from where it was reached.
                accuracy = (accuracy * reached).sqrt();
            }
        }
        if status == Status::IterationLimit && self.problem.vertices <= MOST_INTERIOR {
            self.close();
            if relative_gap(self.value(), self.bound) <= self.options.gap {
                status = Status::Solved;
            }
        }
        self.finish(status)
    }

    /// The bound and the value of an interior point.
    fn close(&mut self) {
        self.penalty.barrier =
            0.5 * FINEST * self.options.gap * self.scale / self.problem.size as f64;
        for end in interior::solve(self.problem, self.options.gap, self.context) {
            self.bound = self.bound.max(end.bound);
            self.take(&end);
            self.rounds += 1;
        }
    }

    /// Takes over an end of the path.
    fn take(&mut self, end: &Interior) {
        let (problem, context) = (self.problem, self.context);
        let (vectors, full, used) = compressed(&end.vectors, problem.vertices);
        let width = used.next_multiple_of(WIDTH);
        let mut v = resized(&vectors, full, used, width);
        let mut share = 0.0;
        // Rounding leaves the end of the path as far outside of the constraint as inside.
        while share < MOST_MOVED {
            problem.move_inside(&mut v, width, share);
            normalise(&mut v, width);
            self.point = Point::new(problem, v.clone(), width, &end.lambda, self.penalty, context);
            if self.point.holds(problem) {
                break;
            }
            share = (8.0 * share).max(1e-3 * self.options.gap);
        }
        self.keep_best();
    }

    /// Descends to a relative accuracy.
    fn stage(&mut self, accuracy: f64) -> Stage {
        let (problem, context) = (self.problem, self.context);
        let root = (problem.vertices as f64).sqrt();
        self.penalty.barrier = 0.5 * accuracy * self.scale / problem.size as f64;
        self.reevaluate();
        let before = self.work.steps;
        let gradient = accuracy * self.scale / root;
        let limits = Limits { gradient, scale: 0.1 * self.scale / root, steps: STAGE_STEPS };
        let point = std::mem::replace(&mut self.point, Point::empty(self.penalty));
        self.point = descend(problem, point, self.penalty, &limits, &mut self.work, context);
        self.rounds += 1;
        self.keep_best();
        let norm = dot(&self.point.gradient, &self.point.gradient).sqrt();
        Stage { steps: self.work.steps - before, converged: norm <= gradient }
    }

    /// Keeps the point where it is the best so far.
    fn keep_best(&mut self) {
        let value = self.point.exact_value(self.problem, self.context);
        self.scale = value.abs().max(f64::MIN_POSITIVE);
        if self.point.holds(self.problem) && value < self.value() {
            let Point { v, width, inner, .. } = &self.point;
            let (vectors, lambda) = (v.clone(), inner.lambda.clone());
            self.best = Some(Best { value, vectors, width: *width, lambda });
        }
    }

    /// The next multiplier. A constraint that would have to be pushed against is let go, and taken back for good where
    /// it does not hold of itself.
    fn update_penalty(&mut self, accuracy: f64, violation: &mut f64) {
        if !self.penalty.active {
            let violated = self.problem.constraint != Constraint::Free && self.point.excess > 0.0;
            self.penalty.active = violated;
            self.taken_back |= violated;
            return;
        }
        let excess = self.point.excess.abs();
        self.penalty.multiplier = self.point.slope;
        if self.point.slope < 0.0 && accuracy <= MULTIPLIER_ACCURACY && !self.taken_back {
            self.penalty.active = false;
            self.penalty.multiplier = 0.0;
        } else if excess > 0.1 * *violation {
            self.penalty.weight *= 8.0;
        }
        *violation = excess.min(*violation);
    }

    fn value(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |best| best.value)
    }

    fn reevaluate(&mut self) {
        let point = std::mem::replace(&mut self.point, Point::empty(self.penalty));
        let (problem, context) = (self.problem, self.context);
        self.point =
            Point::new(problem, point.v, point.width, &point.inner.lambda, self.penalty, context);
    }

    /// A bound at the current point, if there was time for one.
    fn certificate(&mut self, accuracy: f64) -> Option<Certificate> {
        let slack =
            0.2 * accuracy.max(self.options.gap) * self.scale / self.problem.vertices as f64;
        let found = certify(self.problem, &self.point, slack, self.context).ok()?;
        self.bound = self.bound.max(found.bound);
        let (iteration, objective) = (self.rounds as usize, self.bound);
        let violation = relative_gap(self.value(), self.bound);
        self.context.report(&Event::Iteration {
            iteration,
            violation,
            objective,
            active: self.point.width,
        });
        Some(found)
    }

    /// Adds columns along directions of negative curvature, in the place of columns that are not needed.
    fn escape(&mut self, found: &Certificate) {
        let (mut v, mut width, used) = compressed(&self.point.v, self.point.width);
        let needed = (used + found.directions.len()).div_ceil(WIDTH) * WIDTH;
        if needed != width {
            v = resized(&v, width, used, needed);
            width = needed;
        }
        normalise(&mut v, width);
        let (problem, context) = (self.problem, self.context);
        let lambda = self.point.inner.lambda.clone();
        let mut length = 0.5 * (problem.vertices as f64).sqrt();
        let before = self.point.augmented;
        while !found.directions.is_empty() && length > 1e-6 {
            let mut moved = v.clone();
            for (k, direction) in found.directions.iter().enumerate() {
                let rows = moved.chunks_exact_mut(width).zip(direction);
                rows.for_each(|(row, value)| row[used + k] = length * value);
            }
            normalise(&mut moved, width);
            let next = Point::new(problem, moved, width, &lambda, self.penalty, context);
            if next.augmented < before || context.stop_request().is_some() {
                self.point = next;
                return;
            }
            length *= 0.5;
        }
        self.point = Point::new(problem, v, width, &lambda, self.penalty, context);
    }

    fn finish(self, status: Status) -> Relaxation {
        let Best { value, vectors, width, lambda } = self.best.unwrap_or(Best {
            value: f64::INFINITY,
            vectors: self.point.v,
            width: self.point.width,
            lambda: self.point.inner.lambda,
        });
        Relaxation {
            value,
            bound: self.bound,
            vectors,
            width,
            lambda,
            status,
            rounds: self.rounds,
            products: self.work.products,
        }
    }
}

/// Columns to begin with: optimal ranks are about the logarithm of the number of vectors, and twice as many
/// columns leave few local minima.
fn start_width(vertices: usize) -> usize {
    if vertices < 128 { WIDTH } else { 2 * WIDTH }
}

/// The first `keep` columns of V, and columns of zeros up to `needed`.
fn resized(v: &[f64], width: usize, keep: usize, needed: usize) -> Vec<f64> {
    let keep = keep.min(width);
    let rows = v.chunks_exact(width);
    rows.flat_map(|row| (0..needed).map(move |k| if k < keep { row[k] } else { 0.0 })).collect()
}

/// V in its principal axes, and the number of columns that matter.
fn compressed(v: &[f64], width: usize) -> (Vec<f64>, usize, usize) {
    let mut gram = vec![0.0; width * width];
    for row in v.chunks_exact(width) {
        for (i, a) in row.iter().enumerate() {
            row.iter().enumerate().for_each(|(j, b)| gram[i * width + j] += a * b);
        }
    }
    let eigen = eigen_symmetric(gram, width, &Context::new());
    let largest = eigen.values.first().copied().unwrap_or(0.0);
    let used = eigen.values.iter().filter(|value| **value > NEGLIGIBLE * largest).count();
    let rotated = v.chunks_exact(width).flat_map(|row| {
        (0..width)
            .map(|k| eigen.vector(k).iter().zip(row).map(|(e, x)| e * x).sum())
            .collect::<Vec<f64>>()
    });
    (rotated.collect(), width, used)
}
