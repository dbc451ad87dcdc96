//! The cone of weights whose sum of matrices is positive semidefinite, in coordinates in which it is round.
//!
//! Around the analytic centre µ₀, where det K(µ) over Σµ = 1 is largest, K(µ₀) = LLᵀ, and an orthonormal basis
//! B₁, …, B_q of the matrices L⁻¹(Kᵢ − K(µ₀))L⁻ᵀ, every K(µ) is L(I + Σ zⱼBⱼ)Lᵀ. All z with ‖z‖ ≤ 1 are in the
//! cone, and no z beyond a [radius](Cone::radius) about the number of rows is (Nesterov and Nemirovskii 1994,
//! 2.1 and 5.2): bounds of z follow from the cone itself, however large the weights. The way from µ₀ to z leaves the
//! cone at 1/−λ_min(Σ zⱼBⱼ), and every eigenvector u of a value below −1 gives a cut 1 + Σ zⱼ uᵀBⱼu ≥ 0.
//!
//! Points are (z₀, z₁, …, z_q) with sum 1, so that a form of K is Σ zⱼ times its forms at µ₀ and at µ₀ + tⱼ, tⱼ
//! the weights of direction j.

use super::{Solved, WeightedDual};
use crate::context::{Context, Event};
use crate::error::{Error, Result};
use crate::kernel::Gram;
use crate::numeric::algebra::{Cholesky, add, dot, eigen_interruptible};

/// Part of the way to the boundary that is gone.
const BOUNDARY_SHARE: f64 = 1.0 - 1e-8;

/// Cuts of one point: those of its smallest eigenvalues.
const MOST_CUTS: usize = 8;

/// Eigenvectors of one point that are handed on.
const NEAREST: usize = 12;

/// Gradient of ln det K at which a point counts as central: below 1 the cone has a radius, at ½ twice the best.
const CENTRAL: f64 = 0.5;

/// Newton steps towards the centre; ten are usual, and without the centre the radius is larger.
const MOST_STEPS: usize = 30;

/// A matrix whose part that the others do not span is a smaller share of it has less than half of its digits
/// left in that part: it counts as a combination of the others.
const DEPENDENT: f64 = 1e-8;

/// A direction of weights: they sum to 0.
struct Direction {
    weights: Vec<f64>,
    /// Bⱼ.
    matrix: Vec<f64>,
}

/// What the way from the centre to a point meets.
pub(super) struct Way {
    pub(super) point: Vec<f64>,
    pub(super) cuts: Vec<Vec<f64>>,
    pub(super) nearest: Vec<Vec<f64>>,
}

/// The matrices seen from the centre.
pub(super) struct Cone<'a> {
    candidates: &'a [Gram],
    centre: Vec<f64>,
    directions: Vec<Direction>,
    radius: f64,
}

impl<'a> Cone<'a> {
    /// Looks for an interior point: equal weights, or the kernel of the largest determinant; goes to the
    /// centre from there.
    ///
    /// # Errors
    /// [`Error::Kernel`] when neither is positive definite, [`Error::Interrupted`] at a request to stop.
    pub(super) fn new(candidates: &'a [Gram], context: &Context) -> Result<Self> {
        let order = candidates[0].order();
        let (mut centre, mut factor) = interior(candidates, context)?;
        let mut directions = directions(candidates, &centre, &factor, context)?;
        for _ in 0..MOST_STEPS {
            let gradient: Vec<f64> = directions.iter().map(|d| trace(&d.matrix, order)).collect();
            if dot(&gradient, &gradient).sqrt() <= CENTRAL {
                break;
            }
            let newton = sum(&directions, &gradient, order);
            let step = longest_rise(&eigen_interruptible(newton, order, context)?.values);
            let mut next = centre.clone();
            for (direction, g) in directions.iter().zip(&gradient) {
                add(&mut next, &direction.weights, step * g);
            }
            let matrix = combined(candidates, &next);
            let Some(next_factor) = Cholesky::interruptible(matrix, order, context)? else { break };
            (centre, factor) = (next, next_factor);
            directions = self::directions(candidates, &centre, &factor, context)?;
        }
        let dependent = candidates.len() - 1 - directions.len();
        if dependent > 0 {
            let message = format!(
                "{dependent} of {} kernels are combinations of the others on the rows given: their weights \
                 are not unique",
                candidates.len()
            );
            context.report(&Event::Warning { message });
        }
        let mut cone = Self { candidates, centre, directions, radius: 0.0 };
        cone.radius = cone.radius(context)?;
        Ok(cone)
    }

    /// A number that no ‖z‖ in the cone is above. With g the traces of the Bⱼ and ‖g‖ = ε < 1, eigenvalues of
    /// I + Σ zⱼBⱼ that are not negative have squares of the sum at most (n + gᵀz)², so that
    /// (1 − ε²)‖z‖² ≤ n² − n + 2(n − 1)ε‖z‖. Otherwise, from tr K = tr K(µ₀): ‖K − K(µ₀)‖ ≤ √2 tr K, and L⁻¹ makes
    /// it at most 1/λ_min(K(µ₀)) times as large.
    fn radius(&self, context: &Context) -> Result<f64> {
        let order = self.candidates[0].order();
        let n = order as f64;
        let squares = self.directions.iter().map(|d| trace(&d.matrix, order).powi(2));
        let epsilon = squares.sum::<f64>().sqrt();
        if epsilon < 1.0 {
            let (a, b, c) = (1.0 - epsilon * epsilon, (n - 1.0) * epsilon, n * n - n);
            return Ok((b + (b * b + a * c).sqrt()) / a);
        }
        let traces = self.candidates.iter().zip(&self.centre).map(|(k, w)| w * k.trace());
        let smallest = self.smallest_eigenvalue(&self.centre, context)?;
        Ok(2.0_f64.sqrt() * traces.sum::<f64>() / smallest.max(f64::MIN_POSITIVE))
    }

    /// The centre as a point.
    pub(super) fn inside(&self) -> Vec<f64> {
        let mut point = vec![0.0; self.directions.len() + 1];
        point[0] = 1.0;
        point
    }

    /// Bounds of points that follow from the cone.
    pub(super) fn ranges(&self) -> (Vec<f64>, Vec<f64>) {
        let q = self.directions.len();
        let (mut low, mut high) = (vec![-self.radius; q + 1], vec![self.radius; q + 1]);
        (low[0], high[0]) =
            (1.0 - (q as f64).sqrt() * self.radius, 1.0 + (q as f64).sqrt() * self.radius);
        (low, high)
    }

    /// The weights of a point.
    pub(super) fn weights(&self, point: &[f64]) -> Vec<f64> {
        let mut weights = self.centre.clone();
        for (direction, z) in self.directions.iter().zip(&point[1..]) {
            add(&mut weights, &direction.weights, *z);
        }
        weights
    }

    /// Number of directions.
    pub(super) fn directions(&self) -> usize {
        self.directions.len()
    }

    /// A number that no ‖z‖ in the cone is above.
    pub(super) fn most(&self) -> f64 {
        self.radius
    }

    /// Bⱼv.
    pub(super) fn times(&self, j: usize, vector: &[f64]) -> Vec<f64> {
        let rows = self.directions[j].matrix.chunks_exact(vector.len());
        rows.map(|row| dot(row, vector)).collect()
    }

    /// The last point of the cone on the way from the centre to `target`, the cuts that `target` violates, and
    /// the eigenvectors along which it is nearest to the boundary or farthest beyond it.
    pub(super) fn towards(&self, target: &[f64], context: &Context) -> Result<Way> {
        let order = self.candidates[0].order();
        let eigen =
            eigen_interruptible(sum(&self.directions, &target[1..], order), order, context)?;
        let smallest = eigen.values.last().copied().unwrap_or(0.0);
        let nearest = (0..order).rev().take(NEAREST).map(|e| eigen.vector(e).to_vec()).collect();
        if smallest >= -1.0 {
            return Ok(Way { point: target.to_vec(), cuts: Vec::new(), nearest });
        }
        let step = BOUNDARY_SHARE / -smallest;
        let mut point: Vec<f64> = target.iter().map(|z| step * z).collect();
        point[0] = 1.0 - point[1..].iter().sum::<f64>();
        let outside = (0..order).rev().take_while(|&e| eigen.values[e] < -1.0).take(MOST_CUTS);
        let cuts = outside.map(|e| {
            let vector = eigen.vector(e);
            let forms = self.directions.iter().map(|d| 1.0 + form(&d.matrix, vector));
            std::iter::once(1.0).chain(forms).collect()
        });
        Ok(Way { point, cuts: cuts.collect(), nearest })
    }

    /// λ_min(K(µ)).
    pub(super) fn smallest_eigenvalue(&self, weights: &[f64], context: &Context) -> Result<f64> {
        let order = self.candidates[0].order();
        let eigen = eigen_interruptible(combined(self.candidates, weights), order, context)?;
        Ok(eigen.values.last().copied().unwrap_or(0.0))
    }
}

/// A training problem over the points of a cone.
pub(super) struct InCone<'a> {
    pub(super) dual: &'a mut dyn WeightedDual,
    pub(super) cone: &'a Cone<'a>,
    /// Forms of the kernels themselves at the last solution.
    pub(super) forms: Vec<f64>,
    /// Those at the solution kept.
    pub(super) kept: Vec<f64>,
}

impl WeightedDual for InCone<'_> {
    fn solve(&mut self, point: &[f64], gap: f64) -> Result<Solved> {
        let mut solved = self.dual.solve(&self.cone.weights(point), gap)?;
        let central = dot(&self.cone.centre, &solved.forms);
        let others = self.cone.directions.iter().map(|d| central + dot(&d.weights, &solved.forms));
        let forms = std::iter::once(central).chain(others).collect();
        self.forms = std::mem::replace(&mut solved.forms, forms);
        Ok(solved)
    }

    fn keep(&mut self) {
        self.kept.clone_from(&self.forms);
        self.dual.keep();
    }

    fn restore(&mut self, point: &[f64]) -> Result<()> {
        self.forms.clone_from(&self.kept);
        self.dual.restore(&self.cone.weights(point))
    }
}

/// Weights of a positive definite combination, and its factor.
fn interior(candidates: &[Gram], context: &Context) -> Result<(Vec<f64>, Cholesky)> {
    let kernels = candidates.len();
    let order = candidates[0].order();
    let of =
        |weights: &[f64]| Cholesky::interruptible(combined(candidates, weights), order, context);
    let uniform = vec![1.0 / kernels as f64; kernels];
    if let Some(factor) = of(&uniform)? {
        return Ok((uniform, factor));
    }
    let mut found: Option<(Vec<f64>, Cholesky)> = None;
    for i in 0..kernels {
        let single: Vec<f64> = (0..kernels).map(|j| f64::from(u8::from(i == j))).collect();
        let Some(factor) = of(&single)? else { continue };
        let best = found.as_ref().map_or(f64::NEG_INFINITY, |(_, f)| f.log_determinant());
        if factor.log_determinant() > best {
            found = Some((single, factor));
        }
    }
    found.ok_or_else(|| Error::Kernel {
        kernel: "combination".into(),
        expected: "candidates with a positive definite combination; add jitter".into(),
        found: "neither equal weights nor a single candidate has one".into(),
    })
}

/// The orthonormal directions around weights, with LLᵀ = K(`centre`): Gram and Schmidt with the largest part
/// that is left first.
fn directions(
    candidates: &[Gram],
    centre: &[f64],
    factor: &Cholesky,
    context: &Context,
) -> Result<Vec<Direction>> {
    let order = candidates[0].order();
    let mut left = Vec::with_capacity(candidates.len());
    for (i, candidate) in candidates.iter().enumerate() {
        context.checkpoint()?;
        let mut matrix = reduced(candidate, factor, context)?;
        let size = dot(&matrix, &matrix).sqrt();
        (0..order).for_each(|r| matrix[r * order + r] -= 1.0);
        let mut weights: Vec<f64> = centre.iter().map(|w| -w).collect();
        weights[i] += 1.0;
        left.push((size, Direction { weights, matrix }));
    }
    let mut found: Vec<Direction> = Vec::new();
    loop {
        context.checkpoint()?;
        let share = |(size, d): &(f64, Direction)| dot(&d.matrix, &d.matrix).sqrt() / size;
        let shares: Vec<f64> = left.iter().map(share).collect();
        let Some(most) = (0..left.len()).max_by(|&a, &b| shares[a].total_cmp(&shares[b])) else {
            break;
        };
        if shares[most] <= DEPENDENT || found.len() + 1 == candidates.len() {
            break;
        }
        let (_, mut next) = left.swap_remove(most);
        // Once more, because what is left of it may be rounding of the others.
        found.iter().for_each(|other| next.remove(other));
        let length = dot(&next.matrix, &next.matrix).sqrt();
        next.matrix.iter_mut().chain(&mut next.weights).for_each(|value| *value /= length);
        left.iter_mut().for_each(|(_, other)| other.remove(&next));
        found.push(next);
    }
    Ok(found)
}

impl Direction {
    /// Makes it orthogonal to a direction of length 1.
    fn remove(&mut self, unit: &Self) {
        let part = dot(&self.matrix, &unit.matrix);
        add(&mut self.matrix, &unit.matrix, -part);
        add(&mut self.weights, &unit.weights, -part);
    }
}

/// Where Σ ln(1 + s dᵢ) is largest, by bisection of its derivative; the derivative at 0 is positive.
fn longest_rise(values: &[f64]) -> f64 {
    let slope = |s: f64| values.iter().map(|d| d / (1.0 + s * d)).sum::<f64>();
    let smallest = values.last().copied().unwrap_or(0.0);
    let (mut low, mut high) = (0.0, 1.0_f64);
    if smallest < 0.0 {
        high = BOUNDARY_SHARE / -smallest;
    } else {
        while slope(high) > 0.0 && high < 1e9 {
            high *= 2.0;
        }
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if slope(middle) > 0.0 { low = middle } else { high = middle }
    }
    low
}

fn trace(matrix: &[f64], order: usize) -> f64 {
    (0..order).map(|i| matrix[i * order + i]).sum()
}

/// Σ zⱼBⱼ.
fn sum(directions: &[Direction], factors: &[f64], order: usize) -> Vec<f64> {
    let mut sum = vec![0.0; order * order];
    for (direction, factor) in directions.iter().zip(factors) {
        add(&mut sum, &direction.matrix, *factor);
    }
    sum
}

/// Σ µᵢKᵢ.
fn combined(candidates: &[Gram], weights: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; candidates[0].values().len()];
    for (candidate, weight) in candidates.iter().zip(weights) {
        add(&mut sum, candidate.values(), *weight);
    }
    sum
}

/// L⁻¹KL⁻ᵀ.
///
/// # Errors
/// `Error::Interrupted` when the context asks to stop.
fn reduced(candidate: &Gram, factor: &Cholesky, context: &Context) -> Result<Vec<f64>> {
    let order = candidate.order();
    let mut rows = candidate.values().to_vec();
    for _ in 0..2 {
        context.try_for_each(rows.chunks_exact_mut(order), |row| {
            context.checkpoint()?;
            factor.solve_lower(row);
            Ok(())
        })?;
        for i in 0..order {
            for j in 0..i {
                rows.swap(i * order + j, j * order + i);
            }
        }
    }
    Ok(rows)
}

/// vᵀAv.
fn form(matrix: &[f64], vector: &[f64]) -> f64 {
    let rows = matrix.chunks_exact(vector.len()).zip(vector);
    rows.map(|(row, v)| v * dot(row, vector)).sum()
}
