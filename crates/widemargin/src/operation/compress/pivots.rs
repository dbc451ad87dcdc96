//! A pivoted Cholesky factor of a Gram matrix, K ≈ L Lᵀ, whose pivots span the images of all vectors (Downs et al.
//! 2001), column by column, largest remaining diagonal entry first.
//!
//! Candidates are taken in groups: the remainders of their rows, K − LLᵀ, are products that run at the speed of the
//! processor, and those that are used up by others of the group are left out. With r pivots among n vectors that is
//! n r² multiply-adds and n r numbers; the Gram matrix itself is never held.

use super::element::{in_chunks, table_of};
use crate::context::Context;
use crate::data::memory;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, KernelBlocks};
use crate::numeric::algebra::dot;
use crate::numeric::simd::{Weights, multiply};

/// Candidates of a group.
const GROUP: usize = 128;

/// Vectors of one task.
const ROWS: usize = 64;

/// The factor of some vectors.
pub(super) struct PivotedFactor {
    /// Groups of columns of L, each row after row.
    groups: Vec<Group>,
    pivots: Vec<usize>,
    /// What is left of the diagonal; −∞ of pivots.
    rest: Vec<f64>,
    /// What counts as nothing.
    smallest: f64,
}

/// Some columns of L.
struct Group {
    width: usize,
    values: Vec<f64>,
}

impl Group {
    fn row(&self, v: usize) -> &[f64] {
        &self.values[v * self.width..(v + 1) * self.width]
    }
}

impl PivotedFactor {
    /// Pivots until all diagonal entries are at most `tolerance` times the largest, or the context asks to stop.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when there is no memory for the factor.
    pub(super) fn new(
        kernel: &Kernel,
        vectors: &[Vec<f64>],
        tolerance: f64,
        context: &Context,
    ) -> Result<Self> {
        let blocks = KernelBlocks::<f64>::new(kernel, &table_of::<f64>(vectors)?, None, context)?;
        let rest = blocks.diagonal().to_vec();
        let smallest = tolerance * rest.iter().copied().fold(0.0, f64::max);
        let mut factor = Self { groups: Vec::new(), pivots: Vec::new(), rest, smallest };
        loop {
            match factor.add_group(&blocks, context) {
                Ok(true) => {}
                Ok(false) | Err(Error::Interrupted) => return Ok(factor),
                Err(error) => return Err(error),
            }
        }
    }

    /// The pivots, in their order.
    pub(super) fn pivots(&self) -> &[usize] {
        &self.pivots
    }

    /// Vectors that are known to depend on the pivots, ascending.
    pub(super) fn dependent(&self) -> Vec<usize> {
        let depends = |v: &usize| {
            let rest = self.rest[*v];
            rest != f64::NEG_INFINITY && rest <= self.smallest
        };
        (0..self.rest.len()).filter(depends).collect()
    }

    /// Row v of L.
    fn row(&self, v: usize) -> Vec<f64> {
        self.groups.iter().flat_map(|group| group.row(v)).copied().collect()
    }

    /// The weights of the pivots that give what `dependent` vectors of these weights give.
    pub(super) fn onto_pivots(&self, dependent: &[usize], weights: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; self.pivots.len()];
        for &d in dependent {
            let row = self.groups.iter().flat_map(|group| group.row(d));
            sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += weights[d] * value);
        }
        // Σ_p c_p L_p = sum, where row p has entries up to its own place.
        for (at, &pivot) in self.pivots.iter().enumerate().rev() {
            let row = self.row(pivot);
            let value = sum[at] / row[at];
            sum[at] = value;
            sum.iter_mut().zip(&row[..at]).for_each(|(sum, entry)| *sum -= value * entry);
        }
        sum
    }

    /// Adds the columns of up to [`GROUP`] pivots; false where there are no more.
    fn add_group(&mut self, blocks: &KernelBlocks<f64>, context: &Context) -> Result<bool> {
        let candidates = self.candidates();
        if candidates.is_empty() {
            return Ok(false);
        }
        let n = self.rest.len();
        let count = candidates.len();
        memory::check(|| format!("a factor of {n} rows"), 2 * 8 * n as u128 * count as u128)?;
        let remainders = self.remainders(blocks, &candidates, context)?;
        let Elimination { chosen, corner, rest } = self.eliminate(&candidates, &remainders);
        let width = chosen.len();
        if width == 0 {
            // Rounding had left them more than there is.
            candidates.iter().zip(rest).for_each(|(&v, rest)| self.rest[v] = rest);
            return Ok(true);
        }
        let mut values = vec![0.0; n * width];
        in_chunks(context, &mut values, ROWS * width, |t, out| {
            for (r, out) in out.chunks_exact_mut(width).enumerate() {
                let row = &remainders[(t * ROWS + r) * count..][..count];
                for (k, &c) in chosen.iter().enumerate() {
                    let own = &corner[k * width..][..=k];
                    out[k] = (row[c] - dot(&out[..k], &own[..k])) / own[k];
                }
            }
            Ok(())
        })?;
        for (rest, row) in self.rest.iter_mut().zip(values.chunks_exact(width)) {
            *rest -= dot(row, row);
        }
        for &c in &chosen {
            self.rest[candidates[c]] = f64::NEG_INFINITY;
            self.pivots.push(candidates[c]);
        }
        self.groups.push(Group { width, values });
        Ok(true)
    }

    /// The vectors with the largest remaining diagonal entries, ascending, the first of equals.
    fn candidates(&self) -> Vec<usize> {
        let mut places: Vec<usize> =
            (0..self.rest.len()).filter(|&v| self.rest[v] > self.smallest).collect();
        let order = |a: &usize, b: &usize| self.rest[*b].total_cmp(&self.rest[*a]).then(a.cmp(b));
        if places.len() > GROUP {
            places.select_nth_unstable_by(GROUP - 1, order);
            places.truncate(GROUP);
        }
        places.sort_unstable();
        places
    }

    /// Columns of K − LLᵀ, row after row.
    fn remainders(
        &self,
        blocks: &KernelBlocks<f64>,
        candidates: &[usize],
        context: &Context,
    ) -> Result<Vec<f64>> {
        let (n, count, set) = (self.rest.len(), candidates.len(), context.instruction_set());
        let columns: Vec<Weights<f64>> = self
            .groups
            .iter()
            .map(|group| {
                let rows = candidates.iter().flat_map(|&v| group.row(v)).map(|value| -value);
                Weights::new(group.width, rows.collect())
            })
            .collect();
        let queries = blocks.gather(candidates);
        let mut values = vec![0.0; n * count];
        in_chunks(context, &mut values, ROWS * count, |t, out| {
            let (first, rows) = (t * ROWS, out.len() / count);
            let mut block = vec![0.0; count * rows];
            blocks.query_block(&queries, 0..count, first..first + rows, &mut block, rows);
            for (r, out) in out.chunks_exact_mut(count).enumerate() {
                out.iter_mut().enumerate().for_each(|(c, out)| *out = block[c * rows + r]);
            }
            for (group, weights) in self.groups.iter().zip(&columns) {
                let width = group.width;
                let left = &group.values[first * width..(first + rows) * width];
                multiply(set, left, width, weights, 0, width, out);
            }
            Ok(())
        })?;
        Ok(values)
    }

    /// Looks for pivots among candidates.
    fn eliminate(&self, candidates: &[usize], remainders: &[f64]) -> Elimination {
        let count = candidates.len();
        let among = |a: usize, b: usize| remainders[candidates[a] * count + b];
        let mut rest: Vec<f64> = (0..count).map(|c| among(c, c)).collect();
        let mut rows: Vec<Vec<f64>> = vec![Vec::new(); count];
        let mut chosen = Vec::new();
        loop {
            let largest = |best: Option<usize>, c: usize| match best {
                Some(b) if rest[c] <= rest[b] || rest[c].is_nan() => Some(b),
                _ => Some(c),
            };
            let Some(pivot) = (0..count).fold(None, largest) else { break };
            if rest[pivot].is_nan() || rest[pivot] <= self.smallest.max(0.0) {
                break;
            }
            let root = rest[pivot].sqrt();
            let own = rows[pivot].clone();
            for (c, row) in rows.iter_mut().enumerate() {
                let entry = (among(c, pivot) - dot(row, &own)) / root;
                row.push(entry);
                rest[c] -= entry * entry;
            }
            rest[pivot] = f64::NEG_INFINITY;
            chosen.push(pivot);
        }
        let width = chosen.len();
        let mut corner = vec![0.0; width * width];
        for (row, &c) in corner.chunks_exact_mut(width.max(1)).zip(&chosen) {
            row.copy_from_slice(&rows[c][..width]);
        }
        Elimination { chosen, corner, rest }
    }
}

/// What was found among candidates.
struct Elimination {
    /// Those that are pivots, in their order.
    chosen: Vec<usize>,
    /// The lower triangle of their factor, row after row.
    corner: Vec<f64>,
    /// What is left of the diagonal entry of every candidate.
    rest: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::random::Generator;

    fn vectors(n: usize, seed: u64) -> Vec<Vec<f64>> {
        let mut generator = Generator::new(seed);
        (0..n).map(|_| (0..3).map(|_| generator.unit()).collect()).collect()
    }

    #[test]
    fn every_column_is_reproduced_and_copies_depend_on_their_originals() {
        let (kernel, n) = (Kernel::Laplacian { gamma: 2.0 }, 2 * GROUP + 40);
        let mut all = vectors(n, 1);
        for copy in 0..30 {
            all.push(all[7 * copy].clone());
        }
        for threads in [1, 3] {
            let context = Context::new().with_threads(threads).unwrap();
            let factor = PivotedFactor::new(&kernel, &all, 1e-11, &context).unwrap();
            assert_eq!(factor.pivots().len(), n);
            assert_eq!(factor.dependent().len(), 30);
            let blocks =
                KernelBlocks::<f64>::new(&kernel, &table_of::<f64>(&all).unwrap(), None, &context)
                    .unwrap();
            let mut row = vec![0.0; all.len()];
            for v in (0..all.len()).step_by(13) {
                blocks.block(&[v], 0..all.len(), &mut [&mut row]);
                let own = factor.row(v);
                for (w, value) in row.iter().enumerate() {
                    assert!((dot(&own, &factor.row(w)) - value).abs() < 1e-9, "{v} {w}");
                }
            }
        }
    }

    #[test]
    fn a_quadratic_kernel_has_as_many_pivots_as_its_feature_space_dimensions() {
        let kernel = Kernel::Polynomial { gamma: 1.0, coef0: 1.0, degree: 2 };
        let all = vectors(300, 2);
        let factor = PivotedFactor::new(&kernel, &all, 1e-11, &Context::new()).unwrap();
        assert_eq!((factor.pivots().len(), factor.dependent().len()), (10, 290));
        // Σ_d Φ(x_d) by the pivots.
        let dependent = factor.dependent();
        let weights: Vec<f64> = (0..300).map(|v| (v as f64).sin()).collect();
        let moved = factor.onto_pivots(&dependent, &weights);
        let value = |x: &[f64], z: &[f64]| (dot(x, z) + 1.0).powi(2);
        for z in &all[..20] {
            let before: f64 = dependent.iter().map(|&d| weights[d] * value(&all[d], z)).sum();
            let pivots = factor.pivots().iter().zip(&moved);
            let after: f64 = pivots.map(|(&p, weight)| weight * value(&all[p], z)).sum();
            assert!((before - after).abs() < 1e-7 * (1.0 + before.abs()), "{before} {after}");
        }
    }

    #[test]
    fn a_factor_that_is_stopped_claims_nothing_that_it_does_not_know() {
        let kernel = Kernel::Gaussian { gamma: 1.0 };
        let all = vectors(200, 3);
        let context = Context::new().with_time_limit(std::time::Duration::ZERO);
        let factor = PivotedFactor::new(&kernel, &all, 1e-11, &context).unwrap();
        assert!(factor.pivots().is_empty() && factor.dependent().is_empty());
    }
}
