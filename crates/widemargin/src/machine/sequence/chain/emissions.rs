//! What positions contribute to the score of a chain: weights of sparse features, or kernel values.

use std::ops::Range;

use super::super::lattice::LANES;
use crate::data::{Csr, Matrix};
use crate::kernel::Gram;
use crate::numeric::InstructionSet;
use crate::numeric::simd::{PlainLoop, run_plain};

/// A feature space of positions, and weights of every tag in it.
pub(super) trait Emissions: Sync {
    /// Weights of all tags; rows of tags are padded to `width`.
    type Weights: Send + Sync;

    /// All weights 0.
    fn zero(&self, width: usize) -> Self::Weights;

    /// ⟨w(u), φ(xₖ)⟩ for all tags u and the positions of a run, row by row.
    fn scores(
        &self,
        positions: Range<usize>,
        weights: &Self::Weights,
        width: usize,
        out: &mut [f64],
    );

    /// ⟨w(u) − w(v), φ(xₖ)⟩.
    fn difference(
        &self,
        position: usize,
        tags: [u32; 2],
        weights: &Self::Weights,
        width: usize,
    ) -> f64;

    /// ⟨φ(xₖ), φ(xₗ)⟩.
    fn product(&self, left: usize, right: usize) -> f64;

    /// w(u) ← w(u) + factor · φ(xₖ), w(v) ← w(v) − factor · φ(xₖ).
    fn add(
        &self,
        position: usize,
        tags: [u32; 2],
        factor: f64,
        weights: &mut Self::Weights,
        width: usize,
    );

    /// Σ ‖w(u)‖².
    fn squared_norm(&self, weights: &Self::Weights) -> f64;
}

/// The rows themselves; weights stand feature after feature.
pub(super) struct LinearEmissions {
    rows: Csr<f64>,
    set: InstructionSet,
}

impl LinearEmissions {
    pub(super) fn new(rows: &Matrix, set: InstructionSet) -> Self {
        Self { rows: sparse(rows), set }
    }

    pub(super) fn features(&self) -> usize {
        self.rows.columns()
    }
}

/// A table as sparse rows.
pub(in crate::machine::sequence) fn sparse(rows: &Matrix) -> Csr<f64> {
    if let Matrix::SparseF64(rows) = rows {
        return rows.clone();
    }
    let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..rows.rows() {
        rows.for_each_nonzero(i, |column, value| {
            indices.push(column as u32);
            values.push(value);
        });
        starts.push(indices.len());
    }
    Csr::from_ascending(rows.columns(), starts, indices, values)
}

impl Emissions for LinearEmissions {
    type Weights = Vec<f64>;

    fn zero(&self, width: usize) -> Vec<f64> {
        vec![0.0; self.rows.columns() * width]
    }

    fn scores(&self, positions: Range<usize>, weights: &Vec<f64>, width: usize, out: &mut [f64]) {
        run_plain(self.set, WeightSums { rows: &self.rows, positions, weights, width, out });
    }

    fn difference(&self, position: usize, tags: [u32; 2], weights: &Vec<f64>, width: usize) -> f64 {
        let (indices, values) = self.rows.row(position);
        let [u, v] = tags.map(|tag| tag as usize);
        let term = |(feature, value): (&u32, &f64)| {
            let row = &weights[*feature as usize * width..][..width];
            value * (row[u] - row[v])
        };
        indices.iter().zip(values).map(term).sum()
    }

    fn product(&self, left: usize, right: usize) -> f64 {
        let ((a, x), (b, y)) = (self.rows.row(left), self.rows.row(right));
        let (mut i, mut j, mut sum) = (0, 0, 0.0);
        while i < a.len() && j < b.len() {
            match a[i].cmp(&b[j]) {
                std::cmp::Ordering::Less => i += 1,
                std::cmp::Ordering::Greater => j += 1,
                std::cmp::Ordering::Equal => {
                    sum += x[i] * y[j];
                    i += 1;
                    j += 1;
                }
            }
        }
        sum
    }

    fn add(
        &self,
        position: usize,
        tags: [u32; 2],
        factor: f64,
        weights: &mut Vec<f64>,
        width: usize,
    ) {
        let (indices, values) = self.rows.row(position);
        let [u, v] = tags.map(|tag| tag as usize);
        for (feature, value) in indices.iter().zip(values) {
            let row = &mut weights[*feature as usize * width..][..width];
            row[u] += factor * value;
            row[v] -= factor * value;
        }
    }

    fn squared_norm(&self, weights: &Vec<f64>) -> f64 {
        weights.iter().map(|w| w * w).sum()
    }
}

/// Sums of weights for all tags of neighbouring positions.
pub(super) struct WeightSums<'a> {
    pub(super) rows: &'a Csr<f64>,
    pub(super) positions: Range<usize>,
    pub(super) weights: &'a [f64],
    pub(super) width: usize,
    pub(super) out: &'a mut [f64],
}

impl PlainLoop for WeightSums<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { rows, positions, weights, width, out } = self;
        for (k, out) in positions.zip(out.chunks_exact_mut(width)) {
            let row = rows.row(k);
            let mut first = 0;
            while first < width {
                let group = match (width - first) / LANES {
                    1 => add_rows::<1>(row, &weights[first..], width, &mut out[first..]),
                    2 => add_rows::<2>(row, &weights[first..], width, &mut out[first..]),
                    3 => add_rows::<3>(row, &weights[first..], width, &mut out[first..]),
                    _ => add_rows::<4>(row, &weights[first..], width, &mut out[first..]),
                };
                first += group;
            }
        }
    }
}

/// Writes the sums of `N` vectors of tags; returns how many tags those are.
#[inline(always)]
fn add_rows<const N: usize>(
    (indices, values): (&[u32], &[f64]),
    weights: &[f64],
    width: usize,
    out: &mut [f64],
) -> usize {
    let mut sums = [[0.0; LANES]; N];
    for (&feature, &value) in indices.iter().zip(values) {
        let row = &weights[feature as usize * width..][..N * LANES];
        for (sums, row) in sums.iter_mut().zip(row.as_chunks::<LANES>().0) {
            for lane in 0..LANES {
                sums[lane] += value * row[lane];
            }
        }
    }
    out[..N * LANES].copy_from_slice(sums.as_flattened());
    N * LANES
}

/// Kernel values between all positions: w(u) = Σₖ c(k, u) φ(xₖ).
pub(super) struct KernelEmissions {
    gram: Gram,
}

/// Coefficients and the scores they give, position by position.
pub(super) struct Expansion {
    pub(super) coefficients: Vec<f64>,
    scores: Vec<f64>,
}

impl KernelEmissions {
    pub(super) fn new(gram: Gram) -> Self {
        Self { gram }
    }
}

impl Emissions for KernelEmissions {
    type Weights = Expansion;

    fn zero(&self, width: usize) -> Expansion {
        let size = self.gram.order() * width;
        Expansion { coefficients: vec![0.0; size], scores: vec![0.0; size] }
    }

    fn scores(&self, positions: Range<usize>, weights: &Expansion, width: usize, out: &mut [f64]) {
        out.copy_from_slice(&weights.scores[positions.start * width..positions.end * width]);
    }

    fn difference(
        &self,
        position: usize,
        tags: [u32; 2],
        weights: &Expansion,
        width: usize,
    ) -> f64 {
        let row = &weights.scores[position * width..][..width];
        row[tags[0] as usize] - row[tags[1] as usize]
    }

    fn product(&self, left: usize, right: usize) -> f64 {
        self.gram.row(left)[right]
    }

    fn add(
        &self,
        position: usize,
        tags: [u32; 2],
        factor: f64,
        weights: &mut Expansion,
        width: usize,
    ) {
        let [u, v] = tags.map(|tag| tag as usize);
        let own = &mut weights.coefficients[position * width..][..width];
        own[u] += factor;
        own[v] -= factor;
        let rows = weights.scores.chunks_exact_mut(width);
        for (row, value) in rows.zip(self.gram.row(position)) {
            row[u] += factor * value;
            row[v] -= factor * value;
        }
    }

    fn squared_norm(&self, weights: &Expansion) -> f64 {
        weights.coefficients.iter().zip(&weights.scores).map(|(c, s)| c * s).sum()
    }
}
