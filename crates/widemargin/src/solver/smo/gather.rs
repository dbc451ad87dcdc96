//! The matrix of a working set, cut out of long rows as far as it is needed.
//!
//! Successive working sets have most variables in common, so most entries are copied from the matrix
//! of the one before, which is in the processor's cache, instead of the long rows, which are not.

use super::inner::{InnerRows, RowSource, padded};
use crate::kernel::{MatrixRows, Row};
use crate::numeric::simd::Real;

/// The working set before, and the rows of its matrix that were needed.
pub(super) struct LastWorkingSet<T: Real> {
    pub(super) set: Vec<u32>,
    pub(super) rows: InnerRows<T>,
}

impl<T: Real> Default for LastWorkingSet<T> {
    fn default() -> Self {
        Self { set: Vec::new(), rows: Vec::new() }
    }
}

/// Rows cut down to a working set.
pub(super) struct Gathered<'a, R: MatrixRows> {
    rows: &'a R,
    fetched: &'a [Row<R::Value>],
    set: &'a [u32],
    earlier: &'a LastWorkingSet<R::Value>,
    /// Position of each variable in the working set before, if it was there.
    earlier_positions: Vec<Option<u32>>,
    /// Positions (now, before) of the variables in both sets.
    stayed: Vec<(u32, u32)>,
    /// Positions of the variables that are new, by piece of the long rows.
    joined: Vec<Vec<u32>>,
}

impl<'a, R: MatrixRows> Gathered<'a, R> {
    /// Rows of the variables `set`, ascending, whose long rows are `fetched`.
    pub(super) fn new(
        rows: &'a R,
        fetched: &'a [Row<R::Value>],
        set: &'a [u32],
        earlier: &'a LastWorkingSet<R::Value>,
    ) -> Self {
        let before = |v: u32| earlier.set.binary_search(&v).ok().map(|p| p as u32);
        let earlier_positions: Vec<Option<u32>> = set.iter().map(|&v| before(v)).collect();
        let mut stayed = Vec::new();
        let mut joined = vec![Vec::new(); rows.pieces().len() - 1];
        for (w, (&v, position)) in set.iter().zip(&earlier_positions).enumerate() {
            match position {
                Some(position) => stayed.push((w as u32, *position)),
                None => {
                    let piece = rows.pieces().partition_point(|&start| start <= v as usize) - 1;
                    joined[piece].push(w as u32);
                }
            }
        }
        Self { rows, fetched, set, earlier, earlier_positions, stayed, joined }
    }
}

impl<T: Real, R: MatrixRows<Value = T>> RowSource<T> for Gathered<'_, R> {
    fn fill(&mut self, v: usize, rows: &mut InnerRows<T>) {
        let mut out = self.rows.buffers(1, padded(self.set.len())).remove(0);
        let before = self.earlier_positions[v].and_then(|p| self.earlier.rows[p as usize].as_ref());
        let pieces = self.rows.pieces();
        match before {
            Some(before) => {
                for &(now, earlier) in &self.stayed {
                    out[now as usize] = before[earlier as usize];
                }
                for ((part, joined), &start) in self.fetched[v].iter().zip(&self.joined).zip(pieces)
                {
                    for &w in joined {
                        out[w as usize] = part[self.set[w as usize] as usize - start];
                    }
                }
            }
            None => {
                let mut w = 0;
                for (part, piece) in self.fetched[v].iter().zip(pieces.windows(2)) {
                    let end = w + self.set[w..].partition_point(|&v| (v as usize) < piece[1]);
                    for (o, &v) in out[w..end].iter_mut().zip(&self.set[w..end]) {
                        *o = part[v as usize - piece[0]];
                    }
                    w = end;
                }
            }
        }
        out[self.set.len()..].fill(T::ZERO);
        rows[v] = Some(out);
    }
}
