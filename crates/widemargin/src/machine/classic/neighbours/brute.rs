//! k-nearest neighbours by products with all rows in single precision, then exact distances.
//!
//! A product of m non-zero terms is off by at most (m + 3) u ‖x‖‖z‖, u being half the machine's
//! epsilon, and half a squared norm by u ‖z‖²; every row whose approximate distance is within twice
//! their sum of the k-th smallest can be among the k nearest, and no other. Those are measured in
//! double precision.

use std::ops::Range;

use super::super::distances::{Distances, ExactDistances};
use crate::context::Context;
use crate::data::Matrix;
use crate::error::Result;
use crate::numeric::simd::Real;

/// Rows whose products are held at a time.
const BLOCK: usize = 512;

/// Queries served by one block.
const QUERIES: usize = 256;

/// Values scanned together: most are no candidates.
const SCAN_WIDTH: usize = 16;

/// Rows packed for products, and the rows themselves.
pub(crate) struct Brute<T: Real> {
    distances: Distances<T>,
    /// ‖z‖² / 2 in the precision of the products.
    halves: Vec<T>,
    longest: f64,
    rows: Matrix,
}

/// Candidates of one query: half of (‖x − z‖² − ‖x‖²) and the row.
struct Candidates<T> {
    found: Vec<(T, u32)>,
    /// Values above are of no interest.
    limit: T,
    room: usize,
}

impl<T: Real> Brute<T> {
    pub(super) fn new(rows: &Matrix, context: &Context) -> Result<Self> {
        let distances = Distances::<T>::new(rows, context)?;
        let mut halves: Vec<T> =
            distances.norms().iter().map(|norm| T::from_f64(0.5 * norm)).collect();
        halves.resize(halves.len().next_multiple_of(SCAN_WIDTH), T::MAX);
        let longest = distances.norms().iter().fold(0.0_f64, |most, norm| most.max(*norm)).sqrt();
        Ok(Self { distances, halves, longest, rows: rows.clone() })
    }

    /// The k nearest rows of every query and their squared distances, nearest first, the lower row
    /// first among equals.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) when the context asks to stop.
    pub(super) fn nearest(
        &self,
        queries: &Matrix,
        range: Range<usize>,
        k: usize,
        context: &Context,
        mut visit: impl FnMut(usize, &[(f64, usize)]),
    ) -> Result<()> {
        let epsilon = if size_of::<T>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let mut block = vec![T::ZERO; QUERIES * BLOCK];
        let mut distances = ExactDistances::new(queries, &self.rows);
        for start in range.clone().step_by(QUERIES) {
            let part = start..(start + QUERIES).min(range.end);
            let measured = self.distances.measure(queries, part.clone())?;
            let slack: Vec<T> = measured
                .norms
                .iter()
                .zip(&measured.terms)
                .map(|(norm, &terms)| {
                    let product = (terms as f64 + 3.0) * norm.sqrt() * self.longest;
                    T::from_f64(epsilon * (product + self.longest * self.longest))
                })
                .collect();
            let empty = || Candidates { found: Vec::new(), limit: T::MAX, room: 2 * k + 64 };
            let mut candidates: Vec<Candidates<T>> = part.clone().map(|_| empty()).collect();
            for first in (0..self.distances.len()).step_by(BLOCK) {
                context.checkpoint()?;
                let columns = first..(first + BLOCK).min(self.distances.len());
                self.distances.products(&measured, columns.clone(), &mut block, BLOCK);
                let halves = &self.halves[first..columns.end.next_multiple_of(SCAN_WIDTH)];
                for (i, candidates) in candidates.iter_mut().enumerate() {
                    let products = &mut block[i * BLOCK..][..halves.len()];
                    candidates.look(products, halves, first, columns.len(), k, slack[i]);
                }
            }
            for (i, candidates) in part.zip(&mut candidates) {
                candidates.shrink(k, slack[i - start]);
                let places = || candidates.found.iter().map(|&(_, z)| z as usize);
                let mut exact: Vec<(f64, usize)> =
                    distances.squared(i, places()).into_iter().zip(places()).collect();
                exact.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                exact.truncate(k);
                visit(i, &exact);
            }
        }
        Ok(())
    }
}

impl<T: Real> Candidates<T> {
    /// Takes those of a run of rows that can be among the k nearest.
    fn look(
        &mut self,
        products: &mut [T],
        halves: &[T],
        first: usize,
        count: usize,
        k: usize,
        slack: T,
    ) {
        for (at, (values, halves)) in
            products.chunks_exact_mut(SCAN_WIDTH).zip(halves.chunks_exact(SCAN_WIDTH)).enumerate()
        {
            let mut smallest = T::MAX;
            for (value, &half) in values.iter_mut().zip(halves) {
                *value = half - *value;
                smallest = if *value < smallest { *value } else { smallest };
            }
            if smallest > self.limit {
                continue;
            }
            for (lane, &value) in values.iter().enumerate() {
                let place = at * SCAN_WIDTH + lane;
                if value <= self.limit && place < count {
                    self.found.push((value, (first + place) as u32));
                    if self.found.len() >= self.room {
                        self.shrink(k, slack);
                        self.room = (2 * self.found.len()).max(2 * k + 64);
                    }
                }
            }
        }
    }

    /// Forgets rows that cannot be among the k nearest.
    fn shrink(&mut self, k: usize, slack: T) {
        if self.found.len() <= k {
            return;
        }
        let order = |a: &(T, u32), b: &(T, u32)| a.0.to_f64().total_cmp(&b.0.to_f64());
        let (_, kth, _) = self.found.select_nth_unstable_by(k - 1, order);
        self.limit = kth.0 + slack;
        let limit = self.limit;
        self.found.retain(|(value, _)| *value <= limit);
    }
}
