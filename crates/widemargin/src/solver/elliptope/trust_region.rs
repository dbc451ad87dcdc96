//! Riemannian trust-region steps on products of spheres, by truncated conjugate gradients (Absil, Baker and
//! Gallivan 2007; the steps end as Steihaug's do).

use super::problem::Problem;
use super::saddle::{Penalty, Point, normalise};
use crate::context::Context;
use crate::numeric::algebra::{add, dot};

/// Most products with the Hessian for one step.
const MAX_PRODUCTS: usize = 400;

/// Share of the predicted decrease from which a step is taken.
const ACCEPTED: f64 = 0.05;

/// What a descent is allowed.
pub(super) struct Limits {
    /// Norm of the gradient that ends it.
    pub gradient: f64,
    /// Norm of the gradient below which steps are computed ever more accurately.
    pub scale: f64,
    /// Most steps.
    pub steps: usize,
}

/// What a descent took.
#[derive(Clone, Copy, Default)]
pub(super) struct Work {
    pub steps: u64,
    pub products: u64,
}

/// Descends from `point` until the gradient is small, no step helps, or the context asks to stop.
pub(super) fn descend(
    problem: &Problem,
    mut point: Point,
    penalty: Penalty,
    limits: &Limits,
    work: &mut Work,
    context: &Context,
) -> Point {
    let largest = (problem.vertices as f64).sqrt();
    let mut radius = largest / 8.0;
    for _ in 0..limits.steps {
        let norm = dot(&point.gradient, &point.gradient).sqrt();
        if norm <= limits.gradient || context.stop_request().is_some() {
            break;
        }
        let step = truncated_newton(problem, &point, radius, limits, work, context);
        work.steps += 1;
        let mut v = point.v.clone();
        add(&mut v, &step.direction, 1.0);
        normalise(&mut v, point.width);
        let width = point.width;
        let next = Point::new(problem, v, width, &point.inner.lambda, penalty, context);
        // Near the end differences of the values are rounding: both sides get the same small number.
        let rounding = 1e3 * f64::EPSILON * point.augmented.abs().max(f64::MIN_POSITIVE);
        let ratio = (point.augmented - next.augmented + rounding) / (step.decrease + rounding);
        if ratio < 0.25 {
            radius = 0.25 * radius.min(step.length);
        } else if ratio > 0.75 && step.at_boundary {
            radius = (2.0 * radius).min(largest);
        }
        if ratio > ACCEPTED {
            point = next;
        }
        if radius < 1e-13 * largest {
            break;
        }
    }
    point
}

struct Step {
    direction: Vec<f64>,
    /// Decrease of the quadratic model.
    decrease: f64,
    /// Its length in the metric of the radius.
    length: f64,
    at_boundary: bool,
}

/// Minimises the quadratic model within the radius, approximately.
fn truncated_newton(
    problem: &Problem,
    point: &Point,
    radius: f64,
    limits: &Limits,
    work: &mut Work,
    context: &Context,
) -> Step {
    let metric = point.row_scales(problem);
    let width = point.width;
    let scaled = |x: &[f64]| -> Vec<f64> {
        let rows = x.chunks_exact(width).zip(&metric);
        rows.flat_map(|(row, scale)| row.iter().map(move |value| value / scale)).collect()
    };
    let product_in_metric = |a: &[f64], b: &[f64]| -> f64 {
        let rows = a.chunks_exact(width).zip(b.chunks_exact(width)).zip(&metric);
        rows.map(|((a, b), scale)| scale * dot(a, b)).sum()
    };
    let mut direction = vec![0.0; point.v.len()];
    let mut image = vec![0.0; point.v.len()];
    let mut residual = point.gradient.clone();
    let mut conditioned = scaled(&residual);
    let mut search: Vec<f64> = conditioned.iter().map(|r| -r).collect();
    let norm = dot(&residual, &residual).sqrt();
    let mut squared = dot(&residual, &conditioned);
    let target = (norm * (norm / limits.scale).clamp(1e-6, 0.1)).max(0.3 * limits.gradient);
    let mut at_boundary = false;
    for _ in 0..MAX_PRODUCTS {
        if context.stop_request().is_some() {
            break;
        }
        let product = point.hessian_product(problem, &search, context);
        work.products += 1;
        let curvature = dot(&search, &product);
        let dd = product_in_metric(&direction, &direction);
        let ds = product_in_metric(&direction, &search);
        let ss = product_in_metric(&search, &search);
        let length = squared / curvature;
        let outside = dd + 2.0 * length * ds + length * length * ss >= radius * radius;
        if curvature <= 0.0 || outside {
            let to_boundary = (-ds + (ds * ds + ss * (radius * radius - dd)).max(0.0).sqrt()) / ss;
            add(&mut direction, &search, to_boundary);
            add(&mut image, &product, to_boundary);
            at_boundary = true;
            break;
        }
        add(&mut direction, &search, length);
        add(&mut image, &product, length);
        add(&mut residual, &product, length);
        if dot(&residual, &residual).sqrt() <= target {
            break;
        }
        conditioned = scaled(&residual);
        let next = dot(&residual, &conditioned);
        let factor = next / squared;
        squared = next;
        search.iter_mut().zip(&conditioned).for_each(|(s, r)| *s = factor * *s - r);
    }
    let decrease = -dot(&direction, &point.gradient) - 0.5 * dot(&direction, &image);
    let length = product_in_metric(&direction, &direction).sqrt();
    Step { direction, decrease, length, at_boundary }
}
