//! The function F of the factor V, augmented by the constraint, with its gradient and products with its Hessian.
//!
//! The inner problem has a barrier in the place of its box. By Danskin's theorem the gradient is that of φ(V, λ) at
//! the best λ; the Hessian is φ_VV + φ_Vλ (−φ_λλ)⁻¹ φ_λV, where −φ_λλ = G ∘ UUᵀ + the curvature of the barrier. A
//! product with it takes two products with G.

use super::barrier::{self, Barrier};
use super::box_qp::BoxQp;
use super::problem::{Constraint, Problem};
use super::product::{hadamard_gram, symmetric_product};
use crate::context::Context;
use crate::numeric::algebra::dot;

/// Multiplier and penalty of the constraint, which is kept as an equality: the kink of an inequality stops steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Penalty {
    /// Whether the constraint counts; it does not where it holds of itself.
    pub active: bool,
    /// Weight μ of the barrier.
    pub barrier: f64,
    /// Multiplier t of the augmented Lagrangian.
    pub multiplier: f64,
    /// Weight ρ of the squared violation.
    pub weight: f64,
    /// Share of its limit by which the constraint is tightened, so that a point within rounding satisfies it.
    pub margin: f64,
}

/// Least scale of a vector in the metric of steps.
const LEAST_SCALE: f64 = 0.1;

/// A factor V and what is known there.
pub(super) struct Point {
    pub width: usize,
    /// Unit rows, N × width.
    pub v: Vec<f64>,
    /// Rows u, n × width.
    u: Vec<f64>,
    /// Solution of the inner problem.
    pub inner: Barrier,
    /// G (λ ∘ U).
    images: Vec<f64>,
    /// The augmented Lagrangian.
    pub augmented: f64,
    /// Left side of the constraint minus its limit; not positive where it holds.
    pub excess: f64,
    /// Multiplier of the constraint's gradient here.
    pub slope: f64,
    penalty: Penalty,
    /// Σ wᵢuᵢ.
    sum: Vec<f64>,
    /// Derivatives by v in the surrounding space.
    pub euclidean: Vec<f64>,
    /// Riemannian gradient.
    pub gradient: Vec<f64>,
}

impl Point {
    /// Evaluates at unit rows `v`.
    pub(super) fn new(
        problem: &Problem,
        v: Vec<f64>,
        width: usize,
        start: &[f64],
        penalty: Penalty,
        context: &Context,
    ) -> Self {
        let n = problem.size;
        let mut u = vec![0.0; n * width];
        problem.combine(&v, width, &mut u);
        let mut q = vec![0.0; n * n];
        hadamard_gram(&problem.gram, &u, width, &mut q, context);
        let weights: Vec<f64> = u.chunks_exact(width).map(|u| dot(u, u)).collect();
        let inner = barrier::solve(&q, &weights, start, penalty.barrier, context);
        drop(q);
        let images = scaled_product(problem, &inner.lambda, &u, width, context);
        let sum = problem.balance_sum(&u, width);
        let excess = match problem.constraint {
            Constraint::Free => 0.0,
            Constraint::Sum { limit } => dot(&sum, &sum) - limit * (1.0 - penalty.margin),
            Constraint::Counted { least } => {
                least * (1.0 + penalty.margin) - weights.iter().sum::<f64>()
            }
        };
        let value = inner.value + problem.left_out(&weights);
        let (slope, augmented) = if penalty.active {
            let Penalty { multiplier, weight, .. } = penalty;
            let slope = multiplier + weight * excess;
            (slope, value + (multiplier + 0.5 * weight * excess) * excess)
        } else {
            (0.0, value)
        };
        let mut point = Self {
            width,
            v,
            u,
            inner,
            images,
            augmented,
            excess,
            slope,
            penalty,
            sum,
            euclidean: Vec::new(),
            gradient: Vec::new(),
        };
        point.differentiate(problem);
        point
    }

    /// No point at all, to stand in while another is made of this one.
    pub(super) fn empty(penalty: Penalty) -> Self {
        let inner = Barrier { lambda: Vec::new(), value: 0.0, factor: None };
        let none = Vec::new;
        Self {
            width: 0,
            v: none(),
            u: none(),
            inner,
            images: none(),
            augmented: 0.0,
            excess: 0.0,
            slope: 0.0,
            penalty,
            sum: none(),
            euclidean: none(),
            gradient: none(),
        }
    }

    /// An upper bound on F without the barrier, to rounding the value itself.
    pub(super) fn exact_value(&self, problem: &Problem, context: &Context) -> f64 {
        let (n, width) = (problem.size, self.width);
        let mut q = vec![0.0; n * n];
        hadamard_gram(&problem.gram, &self.u, width, &mut q, context);
        let weights: Vec<f64> = self.u.chunks_exact(width).map(|u| dot(u, u)).collect();
        let exact = BoxQp::solve(&q, &weights, &self.inner.lambda, context);
        exact.value + exact.gap + problem.left_out(&weights)
    }

    /// Whether the constraint, without its margin, is satisfied.
    pub(super) fn holds(&self, problem: &Problem) -> bool {
        match problem.constraint {
            Constraint::Free => true,
            // Without an interior there is no point that satisfies it to the last digit.
            Constraint::Sum { limit } => {
                let scale = if limit > 0.0 { limit } else { problem.size as f64 };
                self.excess <= self.penalty.margin * scale
            }
            Constraint::Counted { least } => self.excess <= self.penalty.margin * least,
        }
    }

    fn differentiate(&mut self, problem: &Problem) {
        let width = self.width;
        let lengths = problem.length_factor(self.slope);
        let mut by_u = vec![0.0; self.u.len()];
        for (i, out) in by_u.chunks_exact_mut(width).enumerate() {
            let lambda = self.inner.lambda[i];
            let (u, image) = (&self.u[i * width..][..width], &self.images[i * width..][..width]);
            for k in 0..width {
                out[k] = 2.0 * (lambda + lengths) * u[k] - lambda * image[k];
            }
            if let Constraint::Sum { .. } = problem.constraint {
                for k in 0..width {
                    out[k] += 2.0 * self.slope * problem.balance[i] * self.sum[k];
                }
            }
        }
        self.euclidean = vec![0.0; self.v.len()];
        problem.scatter(&by_u, width, &mut self.euclidean);
        self.gradient = self.euclidean.clone();
        project(&self.v, width, &mut self.gradient);
    }

    /// The Riemannian Hessian times a tangent vector.
    pub(super) fn hessian_product(
        &self,
        problem: &Problem,
        direction: &[f64],
        context: &Context,
    ) -> Vec<f64> {
        let (n, width) = (problem.size, self.width);
        let mut e = vec![0.0; n * width];
        problem.combine(direction, width, &mut e);
        let lambda = &self.inner.lambda;
        let turned = scaled_product(problem, lambda, &e, width, context);
        let rows = |table: &'_ [f64], i: usize| -> std::ops::Range<usize> {
            debug_assert!(table.len() == n * width);
            i * width..(i + 1) * width
        };
        let along = |a: &[f64], b: &[f64], i: usize| dot(&a[rows(a, i)], &b[rows(b, i)]);
        let mut response = vec![0.0; n];
        if let Some(factor) = &self.inner.factor {
            let change = |i: usize| {
                2.0 * along(&self.u, &e, i)
                    - along(&e, &self.images, i)
                    - along(&self.u, &turned, i)
            };
            response = (0..n).map(change).collect();
            factor.solve(&mut response);
        }
        let answered = scaled_product(problem, &response, &self.u, width, context);
        let lengths = problem.length_factor(self.slope);
        let mut by_u = vec![0.0; n * width];
        for i in 0..n {
            for k in rows(&e, i) {
                by_u[k] = 2.0 * (lambda[i] + lengths) * e[k]
                    - lambda[i] * (turned[k] + answered[k])
                    + response[i] * (2.0 * self.u[k] - self.images[k]);
            }
        }
        self.add_constraint(problem, &e, &mut by_u);
        let mut out = vec![0.0; self.v.len()];
        problem.scatter(&by_u, width, &mut out);
        for (i, out) in out.chunks_exact_mut(width).enumerate() {
            let place = i * width..(i + 1) * width;
            let curvature = dot(&self.v[place.clone()], &self.euclidean[place.clone()]);
            out.iter_mut().zip(&direction[place]).for_each(|(out, d)| *out -= curvature * d);
        }
        project(&self.v, width, &mut out);
        out
    }

    /// The scale of the second derivatives by every vector: its multiplier λ, relative to their mean. Vectors of
    /// rows without one may move freely, but not infinitely so.
    pub(super) fn row_scales(&self, problem: &Problem) -> Vec<f64> {
        let mut scales = vec![0.0; problem.vertices];
        for (i, lambda) in self.inner.lambda.iter().enumerate() {
            scales[0] += problem.anchor[i].powi(2) * lambda;
            scales[problem.vertex[i]] += problem.own[i].powi(2) * lambda;
        }
        let mean = scales.iter().sum::<f64>() / scales.len() as f64;
        if mean.is_nan() || mean <= 0.0 {
            return vec![1.0; scales.len()];
        }
        scales.iter().map(|scale| (scale / mean).max(LEAST_SCALE)).collect()
    }

    /// The second derivatives of the constraint and of its squared violation.
    fn add_constraint(&self, problem: &Problem, e: &[f64], by_u: &mut [f64]) {
        let width = self.width;
        let weight = if self.penalty.active { self.penalty.weight } else { 0.0 };
        match problem.constraint {
            Constraint::Free => {}
            Constraint::Counted { .. } => {
                let change = 4.0 * weight * dot(&self.u, e);
                by_u.iter_mut().zip(&self.u).for_each(|(out, u)| *out += change * u);
            }
            Constraint::Sum { .. } => {
                let total = problem.balance_sum(e, width);
                let change = 2.0 * dot(&self.sum, &total);
                let each = total.iter().zip(&self.sum);
                let row: Vec<f64> =
                    each.map(|(t, s)| 2.0 * self.slope * t + 2.0 * weight * change * s).collect();
                for (out, balance) in by_u.chunks_exact_mut(width).zip(&problem.balance) {
                    out.iter_mut().zip(&row).for_each(|(out, r)| *out += balance * r);
                }
            }
        }
    }
}

/// G (factors ∘ rows).
fn scaled_product(
    problem: &Problem,
    factors: &[f64],
    rows: &[f64],
    width: usize,
    context: &Context,
) -> Vec<f64> {
    let mut scaled = rows.to_vec();
    for (row, factor) in scaled.chunks_exact_mut(width).zip(factors) {
        row.iter_mut().for_each(|value| *value *= factor);
    }
    let mut out = vec![0.0; rows.len()];
    symmetric_product(&problem.gram, &scaled, width, &mut out, context);
    out
}

/// Makes every row of `x` orthogonal to the unit row of `v`.
pub(super) fn project(v: &[f64], width: usize, x: &mut [f64]) {
    for (x, v) in x.chunks_exact_mut(width).zip(v.chunks_exact(width)) {
        let along = dot(x, v);
        x.iter_mut().zip(v).for_each(|(x, v)| *x -= along * v);
    }
}

/// Scales every row to length 1; rows of zeros become the first axis.
pub(super) fn normalise(v: &mut [f64], width: usize) {
    for row in v.chunks_exact_mut(width) {
        let norm = dot(row, row).sqrt();
        if norm > 0.0 {
            row.iter_mut().for_each(|value| *value /= norm);
        } else {
            row[0] = 1.0;
        }
    }
}
