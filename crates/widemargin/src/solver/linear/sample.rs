//! Some rows of a table in the place of all, for a first guess of the weights.

use crate::kernel::LinearRows;
use crate::random::Generator;

/// One in so many rows stands for all.
pub(super) const STRIDE: usize = 8;

/// What is asked of a guess.
pub(super) const COARSE: f64 = 1e-2;

/// Rows of a sample for every weight that it determines.
const ROWS_PER_WEIGHT: usize = 10;

/// Whether a sample of the rows determines the weights well.
pub(super) fn is_worthwhile(rows: usize, width: usize) -> bool {
    rows >= STRIDE * ROWS_PER_WEIGHT * width
}

/// A row at random out of every [`STRIDE`].
pub(super) fn pick(rows: usize, seed: u64) -> Vec<u32> {
    let mut generator = Generator::new(seed);
    let pick = |start: usize| {
        let room = STRIDE.min(rows - start);
        (start + generator.bits() as usize % room) as u32
    };
    (0..rows).step_by(STRIDE).map(pick).collect()
}

/// One row out of every [`STRIDE`].
pub(super) struct Sample<'a, R> {
    rows: &'a R,
    picked: Vec<u32>,
}

impl<'a, R: LinearRows> Sample<'a, R> {
    pub(super) fn new(rows: &'a R, seed: u64) -> Self {
        Self { rows, picked: pick(rows.rows(), seed) }
    }

    /// The entries of a list that belong to the rows of the sample.
    pub(super) fn of(&self, list: &[f64]) -> Vec<f64> {
        self.picked.iter().map(|&i| list[i as usize]).collect()
    }
}

impl<R: LinearRows> LinearRows for Sample<'_, R> {
    fn rows(&self) -> usize {
        self.picked.len()
    }

    fn width(&self) -> usize {
        self.rows.width()
    }

    fn nonzeros(&self) -> usize {
        self.rows.nonzeros() / STRIDE
    }

    #[inline(always)]
    fn dot(&self, i: usize, weights: &[f64]) -> f64 {
        self.rows.dot(self.picked[i] as usize, weights)
    }

    #[inline(always)]
    fn add(&self, i: usize, factor: f64, weights: &mut [f64]) {
        self.rows.add(self.picked[i] as usize, factor, weights);
    }

    #[inline(always)]
    fn prefetch(&self, i: usize) {
        if let Some(&row) = self.picked.get(i) {
            self.rows.prefetch(row as usize);
        }
    }

    #[inline(always)]
    fn visit(&self, i: usize, visit: impl FnMut(usize, f64)) {
        self.rows.visit(self.picked[i] as usize, visit);
    }
}
