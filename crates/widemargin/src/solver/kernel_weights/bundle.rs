//! The lowest point of the cuts over a cone that is known along some vectors (Helmberg and Rendl, SIAM J. Optim.
//! 10, 2000).
//!
//! With the matrices Bⱼ of a [cone](super::semidefinite) and orthonormal vectors V, I + Σ zⱼVᵀBⱼV ⪰ 0 holds for
//! all points of the cone: a relaxation that one eigenvector after the other makes tighter, and far tighter than
//! the linear cuts that its vectors would give one by one. The problem
//!
//! ```text
//! minimise θ  subject to  θ ≥ cₖ − dₖ·z,  I + Σ zⱼVᵀBⱼV ⪰ 0,  ‖z‖ ≤ R
//! ```
//!
//! is solved by a barrier method. Its multipliers λₖ ≥ 0, Σλ = 1, and S ⪰ 0 certify
//! θ ≥ Σλₖcₖ − tr S − R‖r‖ with rⱼ = −Σλₖdₖⱼ − ⟨VᵀBⱼV, S⟩, however inaccurate they are.

use crate::context::Context;
use crate::error::Result;
use crate::numeric::algebra::{Cholesky, add, dot, eigen_interruptible};

/// Vectors at most, and how many of them remain when there are more.
const MOST_VECTORS: usize = 72;
const KEPT_VECTORS: usize = 36;

/// A vector whose part beside the others is shorter is one of their combinations.
const DEPENDENT: f64 = 1e-6;

/// Factor on the weight of the barrier.
const REDUCTION: f64 = 0.15;

/// Newton steps for one weight of the barrier.
const MOST_STEPS: usize = 60;

/// Newton decrement at which a point is central.
const CENTRAL: f64 = 1e-7;

/// Corrections of the multipliers, after which nothing but rounding is missing.
const BALANCING_STEPS: usize = 2;

/// Halvings of a step.
const MOST_HALVINGS: usize = 40;

/// The cuts, and the cone along some vectors.
pub(super) struct Bundle {
    radius: f64,
    /// dₖ and cₖ.
    cuts: Vec<(Vec<f64>, f64)>,
    vectors: Vec<Vec<f64>>,
    /// VᵀBⱼV, row by row.
    matrices: Vec<Vec<f64>>,
}

/// A point strictly inside, with what the barrier needs of it.
struct Point {
    z: Vec<f64>,
    height: f64,
    slacks: Vec<f64>,
    factor: Cholesky,
    /// R² − ‖z‖².
    room: f64,
}

/// Multipliers of the cuts, and the matrix S of the cone.
struct Multipliers {
    multipliers: Vec<f64>,
    matrix: Vec<f64>,
}

impl Multipliers {
    fn make_symmetric(&mut self, order: usize) {
        for r in 0..order {
            for c in 0..r {
                let (below, above) = (r * order + c, c * order + r);
                let mean = 0.5 * (self.matrix[below] + self.matrix[above]);
                (self.matrix[below], self.matrix[above]) = (mean, mean);
            }
        }
    }
}

/// The product of two square matrices.
fn product(a: &[f64], b: &[f64], order: usize) -> Vec<f64> {
    let mut product = vec![0.0; order * order];
    for (out, row) in product.chunks_exact_mut(order.max(1)).zip(a.chunks_exact(order.max(1))) {
        row.iter().zip(b.chunks_exact(order)).for_each(|(value, other)| add(out, other, *value));
    }
    product
}

/// The minimum with its certificate.
pub(super) struct BundleMinimum {
    /// z, without the first coordinate of points.
    pub(super) z: Vec<f64>,
    /// Certified lower bound of θ over the cone.
    pub(super) bound: f64,
}

impl Bundle {
    /// No cuts yet in `directions` coordinates; no point of the cone is farther than `radius`.
    pub(super) fn new(directions: usize, radius: f64) -> Self {
        Self {
            radius,
            cuts: Vec::new(),
            vectors: Vec::new(),
            matrices: vec![Vec::new(); directions],
        }
    }

    /// θ ≥ `constant` − `forms` · (z₀, …, z_q) where these sum to 1.
    pub(super) fn add_objective(&mut self, forms: &[f64], constant: f64) {
        let d = forms[1..].iter().map(|form| form - forms[0]).collect();
        self.cuts.push((d, constant - forms[0]));
    }

    /// Adds vectors; `times(j, v)` is Bⱼv.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) at a request to stop.
    pub(super) fn add_vectors(
        &mut self,
        vectors: &[Vec<f64>],
        times: impl Fn(usize, &[f64]) -> Vec<f64>,
        context: &Context,
    ) -> Result<()> {
        let before = self.vectors.len();
        for vector in vectors {
            let mut own = vector.clone();
            for _ in 0..2 {
                for other in &self.vectors {
                    let part = dot(&own, other);
                    add(&mut own, other, -part);
                }
            }
            let length = dot(&own, &own).sqrt();
            if length > DEPENDENT {
                own.iter_mut().for_each(|value| *value /= length);
                self.vectors.push(own);
            }
        }
        let k = self.vectors.len();
        for (j, matrix) in self.matrices.iter_mut().enumerate() {
            let mut wider = vec![0.0; k * k];
            for r in 0..before {
                wider[r * k..r * k + before].copy_from_slice(&matrix[r * before..(r + 1) * before]);
            }
            for r in before..k {
                context.checkpoint()?;
                let image = times(j, &self.vectors[r]);
                for c in 0..=r {
                    let value = dot(&self.vectors[c], &image);
                    (wider[r * k + c], wider[c * k + r]) = (value, value);
                }
            }
            *matrix = wider;
        }
        Ok(())
    }

    /// The minimum up to `accuracy` in θ.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) at a request to stop.
    pub(super) fn lowest(&mut self, accuracy: f64, context: &Context) -> Result<BundleMinimum> {
        let highest = self.cuts.iter().fold(f64::NEG_INFINITY, |most, (_, c)| most.max(*c));
        let scale = self.cuts.iter().fold(accuracy, |most, (_, c)| most.max(c.abs()));
        let q = self.matrices.len();
        let mut found = BundleMinimum { z: vec![0.0; q], bound: f64::NEG_INFINITY };
        let Some(mut point) = self.at(vec![0.0; q], highest + scale, context) else {
            return Ok(found);
        };
        let parameters = (self.cuts.len() + self.vectors.len() + 2) as f64;
        let mut weight = scale;
        loop {
            for _ in 0..MOST_STEPS {
                context.checkpoint()?;
                let Some((next, decrement)) = self.newton(&point, weight, context) else { break };
                point = next;
                if decrement <= CENTRAL {
                    break;
                }
            }
            let bound = self.bound(&point, weight, context);
            if bound > found.bound {
                found = BundleMinimum { z: point.z.clone(), bound };
            }
            if weight * parameters <= accuracy {
                break;
            }
            weight = (weight * REDUCTION).max(0.999 * accuracy / parameters);
        }
        found.z.clone_from(&point.z);
        self.forget(&point, context)?;
        Ok(found)
    }

    /// The point, unless it is outside.
    fn at(&self, z: Vec<f64>, height: f64, context: &Context) -> Option<Point> {
        let slacks: Vec<f64> = self.cuts.iter().map(|(d, c)| height - c + dot(d, &z)).collect();
        let room = self.radius * self.radius - dot(&z, &z);
        if !(room > 0.0 && slacks.iter().all(|slack| *slack > 0.0)) {
            return None;
        }
        let factor = Cholesky::new(self.matrix(&z), self.vectors.len(), context)?;
        Some(Point { z, height, slacks, factor, room })
    }

    /// I + Σ zⱼVᵀBⱼV.
    fn matrix(&self, z: &[f64]) -> Vec<f64> {
        let k = self.vectors.len();
        let mut sum = vec![0.0; k * k];
        (0..k).for_each(|i| sum[i * k + i] = 1.0);
        self.matrices.iter().zip(z).for_each(|(matrix, z)| add(&mut sum, matrix, *z));
        sum
    }

    /// θ / weight − Σ ln slack − ln det − ln(R² − ‖z‖²).
    fn barrier(point: &Point, weight: f64) -> f64 {
        let slacks: f64 = point.slacks.iter().map(|slack| slack.ln()).sum();
        point.height / weight - slacks - point.factor.log_determinant() - point.room.ln()
    }

    /// M⁻¹VᵀBⱼV of every j, row by row.
    fn solved(&self, point: &Point) -> Vec<Vec<f64>> {
        let k = self.vectors.len();
        // Rows of the symmetric matrix are its columns, and so the transpose is what is solved for.
        let of = |matrix: &Vec<f64>| {
            let mut columns = matrix.clone();
            columns.chunks_exact_mut(k.max(1)).for_each(|column| point.factor.solve(column));
            columns
        };
        self.matrices.iter().map(of).collect()
    }

    /// The point after a Newton step, and the decrement before it; none where rounding stops progress.
    fn newton(&self, point: &Point, weight: f64, context: &Context) -> Option<(Point, f64)> {
        let (q, k) = (self.matrices.len(), self.vectors.len());
        let order = q + 1;
        let solved = self.solved(point);
        let (mut gradient, mut hessian) = (vec![0.0; order], vec![0.0; order * order]);
        gradient[q] = 1.0 / weight;
        for ((d, _), slack) in self.cuts.iter().zip(&point.slacks) {
            let mut own = d.clone();
            own.push(1.0);
            add(&mut gradient, &own, -1.0 / slack);
            for i in 0..order {
                add(&mut hessian[i * order..(i + 1) * order], &own, own[i] / (slack * slack));
            }
        }
        for i in 0..q {
            gradient[i] -= (0..k).map(|r| solved[i][r * k + r]).sum::<f64>();
            gradient[i] += 2.0 * point.z[i] / point.room;
            for j in 0..=i {
                // tr(M⁻¹Cᵢ M⁻¹Cⱼ), the second factor transposed.
                let mut value: f64 = (0..k)
                    .map(|r| {
                        (0..k).map(|c| solved[i][r * k + c] * solved[j][c * k + r]).sum::<f64>()
                    })
                    .sum();
                value += 4.0 * point.z[i] * point.z[j] / (point.room * point.room);
                value += if i == j { 2.0 / point.room } else { 0.0 };
                hessian[i * order + j] += value;
                if i != j {
                    hessian[j * order + i] += value;
                }
            }
        }
        // Rows and columns of length 1 are less sensitive to rounding.
        let units: Vec<f64> = (0..order).map(|i| hessian[i * order + i].sqrt().recip()).collect();
        for i in 0..order {
            (0..order).for_each(|j| hessian[i * order + j] *= units[i] * units[j]);
            hessian[i * order + i] += 4.0 * f64::EPSILON;
        }
        let factor = Cholesky::new(hessian, order, context)?;
        let mut step: Vec<f64> = gradient.iter().zip(&units).map(|(g, u)| -g * u).collect();
        factor.solve(&mut step);
        step.iter_mut().zip(&units).for_each(|(s, unit)| *s *= unit);
        let slope = dot(&gradient, &step);
        if slope.is_nan() || slope >= 0.0 {
            return None;
        }
        let now = Self::barrier(point, weight);
        let mut length = 1.0;
        for _ in 0..MOST_HALVINGS {
            let z = point.z.iter().zip(&step).map(|(z, s)| z + length * s).collect();
            if let Some(next) = self.at(z, point.height + length * step[q], context) {
                // Close to the minimum the values are all the same up to rounding.
                if slope > -1e-6 || Self::barrier(&next, weight) <= now + 0.1 * length * slope {
                    return Some((next, (-slope).sqrt()));
                }
            }
            length *= 0.5;
        }
        None
    }

    /// The bound that the multipliers of a point certify, of which rounding is taken out: slacks are differences
    /// of numbers that are far larger.
    fn bound(&self, point: &Point, weight: f64, context: &Context) -> f64 {
        let k = self.vectors.len();
        let multipliers = point.slacks.iter().map(|slack| weight / slack).collect();
        let mut matrix = vec![0.0; k * k];
        for (i, row) in matrix.chunks_exact_mut(k.max(1)).enumerate() {
            row[i] = weight;
            point.factor.solve(row);
        }
        let mut found = Multipliers { multipliers, matrix };
        found.make_symmetric(k);
        let mut best = self.certified(&found, context);
        for _ in 0..BALANCING_STEPS {
            if !self.balance(&mut found, context) {
                break;
            }
            best = best.max(self.certified(&found, context));
        }
        best
    }

    /// −Σλₖdₖ − ⟨VᵀBⱼV, S⟩ for every j, and 1 − Σλ.
    fn residual(&self, found: &Multipliers) -> Vec<f64> {
        let mut residual: Vec<f64> =
            self.matrices.iter().map(|matrix| -dot(matrix, &found.matrix)).collect();
        for ((d, _), multiplier) in self.cuts.iter().zip(&found.multipliers) {
            add(&mut residual, d, -multiplier);
        }
        residual.push(1.0 - found.multipliers.iter().sum::<f64>());
        residual
    }

    /// Changes multipliers by λₖ²(dₖ·y + y₀) and S Σ yⱼVᵀBⱼV S so that nothing is missing, which is least in
    /// relation to what they are; false where that cannot be computed.
    fn balance(&self, found: &mut Multipliers, context: &Context) -> bool {
        let (q, k) = (self.matrices.len(), self.vectors.len());
        let order = q + 1;
        // CⱼS, the transpose of which is SCⱼ.
        let images: Vec<Vec<f64>> =
            self.matrices.iter().map(|matrix| product(matrix, &found.matrix, k)).collect();
        let mut equations = vec![0.0; order * order];
        for ((d, _), multiplier) in self.cuts.iter().zip(&found.multipliers) {
            let mut own = d.clone();
            own.push(1.0);
            for i in 0..order {
                let factor = multiplier * multiplier * own[i];
                add(&mut equations[i * order..(i + 1) * order], &own, factor);
            }
        }
        for i in 0..q {
            for j in 0..q {
                // tr(CᵢS CⱼS).
                let value = (0..k)
                    .flat_map(|r| (0..k).map(move |c| (r * k + c, c * k + r)))
                    .map(|(rc, cr)| images[i][rc] * images[j][cr]);
                equations[i * order + j] += value.sum::<f64>();
            }
        }
        let units: Vec<f64> = (0..order).map(|i| equations[i * order + i].sqrt().recip()).collect();
        if units.iter().any(|unit| !unit.is_finite()) {
            return false;
        }
        for i in 0..order {
            (0..order).for_each(|j| equations[i * order + j] *= units[i] * units[j]);
            equations[i * order + i] += 4.0 * f64::EPSILON;
        }
        let Some(factor) = Cholesky::new(equations, order, context) else { return false };
        let mut y: Vec<f64> = self.residual(found).iter().zip(&units).map(|(r, u)| r * u).collect();
        factor.solve(&mut y);
        y.iter_mut().zip(&units).for_each(|(y, unit)| *y *= unit);
        for ((d, _), multiplier) in self.cuts.iter().zip(&mut found.multipliers) {
            let change = *multiplier * *multiplier * (dot(d, &y[..q]) + y[q]);
            *multiplier = (*multiplier + change).max(0.0);
        }
        let mut sum = vec![0.0; k * k];
        images.iter().zip(&y).for_each(|(image, y)| add(&mut sum, image, *y));
        let change = product(&found.matrix, &sum, k);
        add(&mut found.matrix, &change, 1.0);
        found.make_symmetric(k);
        true
    }

    /// The bound of any multipliers: nothing where they are not those of a bound.
    fn certified(&self, found: &Multipliers, context: &Context) -> f64 {
        let k = self.vectors.len();
        let total: f64 = found.multipliers.iter().sum();
        let definite = k == 0 || Cholesky::new(found.matrix.clone(), k, context).is_some();
        if !(definite && total > 0.0 && total.is_finite()) {
            return f64::NEG_INFINITY;
        }
        let residual = self.residual(found);
        let missing = &residual[..self.matrices.len()];
        let cuts = self.cuts.iter().zip(&found.multipliers);
        let constant: f64 = cuts.map(|((_, c), multiplier)| c * multiplier).sum();
        let trace: f64 = (0..k).map(|i| found.matrix[i * k + i]).sum();
        (constant - trace - self.radius * dot(missing, missing).sqrt()) / total
    }

    /// Keeps combinations of the vectors along which the cone is nearest, where there are too many.
    fn forget(&mut self, point: &Point, context: &Context) -> Result<()> {
        let k = self.vectors.len();
        if k <= MOST_VECTORS {
            return Ok(());
        }
        let eigen = eigen_interruptible(self.matrix(&point.z), k, context)?;
        let kept: Vec<Vec<f64>> = (k - KEPT_VECTORS..k).map(|e| eigen.vector(e).to_vec()).collect();
        let combined = |weights: &Vec<f64>| {
            let mut sum = vec![0.0; self.vectors[0].len()];
            self.vectors.iter().zip(weights).for_each(|(v, w)| add(&mut sum, v, *w));
            sum
        };
        let vectors = kept.iter().map(combined).collect();
        for matrix in &mut self.matrices {
            let image = |w: &Vec<f64>| -> Vec<f64> {
                matrix.chunks_exact(k).map(|row| dot(row, w)).collect()
            };
            let images: Vec<Vec<f64>> = kept.iter().map(image).collect();
            *matrix = kept.iter().flat_map(|a| images.iter().map(|b| dot(a, b))).collect();
        }
        self.vectors = vectors;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::random::Generator;

    /// max d·z over I + zB ⪰ 0 in one coordinate ends where an eigenvalue of zB is −1.
    #[test]
    fn the_bound_is_the_optimum_once_the_deciding_vectors_are_there() {
        let context = Context::new();
        let n = 12;
        // Eigenvectors are the coordinates; eigenvalues −2, −1, 0, … on them.
        let values: Vec<f64> = (0..n).map(|i| i as f64 - 2.0).collect();
        let times = |_: usize, v: &[f64]| -> Vec<f64> {
            v.iter().zip(&values).map(|(a, b)| a * b).collect()
        };
        let unit = |i: usize| (0..n).map(|j| f64::from(u8::from(i == j))).collect::<Vec<f64>>();
        let mut bundle = Bundle::new(1, 100.0);
        // θ ≥ 3 − z, and z at most ½ by the first vector; without it at most 1, and without both 100.
        bundle.add_objective(&[0.0, 1.0], 3.0);
        for (vector, expected) in [(None, 3.0 - 100.0), (Some(1), 2.0), (Some(0), 2.5)] {
            let vectors: Vec<Vec<f64>> = vector.map(unit).into_iter().collect();
            bundle.add_vectors(&vectors, times, &context).unwrap();
            let found = bundle.lowest(1e-6, &context).unwrap();
            assert!(found.bound <= expected + 1e-12, "{} {expected}", found.bound);
            assert!(found.bound >= expected - 1e-5, "{} {expected}", found.bound);
        }
    }

    /// Random cones of three coordinates: the bound never exceeds what any point of the cone has, also after
    /// vectors were forgotten, and equals the value of its own point when all vectors are there.
    #[test]
    fn bounds_hold_for_points_of_the_cone() {
        let context = Context::new();
        let mut generator = Generator::new(3);
        let n = 40;
        let symmetric = |generator: &mut Generator| {
            let mut matrix: Vec<f64> = (0..n * n).map(|_| generator.normal()).collect();
            for i in 0..n {
                for j in 0..i {
                    matrix[i * n + j] = matrix[j * n + i];
                }
            }
            let size = dot(&matrix, &matrix).sqrt();
            matrix.iter_mut().for_each(|value| *value /= size);
            matrix
        };
        for _ in 0..2 {
            let matrices: Vec<Vec<f64>> = (0..3).map(|_| symmetric(&mut generator)).collect();
            let times = |j: usize, v: &[f64]| -> Vec<f64> {
                matrices[j].chunks_exact(n).map(|row| dot(row, v)).collect()
            };
            let mut bundle = Bundle::new(3, n as f64);
            let mut cuts = Vec::new();
            for _ in 0..4 {
                let forms: Vec<f64> = (0..4).map(|_| generator.normal()).collect();
                bundle.add_objective(&forms, 5.0);
                cuts.push(forms);
            }
            let value = |z: &[f64]| {
                let of = |forms: &Vec<f64>| {
                    let first = 1.0 - z.iter().sum::<f64>();
                    5.0 - forms[0] * first - dot(&forms[1..], z)
                };
                cuts.iter().map(of).fold(f64::NEG_INFINITY, f64::max)
            };
            let basis: Vec<Vec<f64>> =
                (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
            let mut last = f64::NEG_INFINITY;
            for part in basis.chunks(10) {
                bundle.add_vectors(part, times, &context).unwrap();
                let found = bundle.lowest(1e-7, &context).unwrap();
                assert!(found.bound >= last - 1e-6, "more vectors, a better bound");
                last = found.bound;
            }
            let found = bundle.lowest(1e-7, &context).unwrap();
            assert!((value(&found.z) - found.bound).abs() <= 1e-6, "the whole cone");
            for _ in 0..30 {
                let mut z: Vec<f64> = (0..3).map(|_| generator.normal()).collect();
                let mut matrix = vec![0.0; n * n];
                matrices.iter().zip(&z).for_each(|(m, z)| add(&mut matrix, m, *z));
                let eigen = eigen_interruptible(matrix, n, &context).unwrap();
                let smallest = eigen.values.last().unwrap();
                z.iter_mut().for_each(|z| *z /= -smallest);
                assert!(value(&z) >= found.bound - 1e-9);
            }
        }
    }
}
