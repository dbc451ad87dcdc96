//! What merging costs, estimated for a whole row of similarities at once.
//!
//! With lengths a and b of the images, their share t = 4ab/(a+b)² and similarity C the cost of a merge
//! is 8h²q²r(q, t) with h = ab/(a+b) and q = 1 − √C, where r falls from 1 at q = 0 to between ⅛ and
//! ½. 1/r is fitted by 1 + c₁q + (c₂ + c₃t)q², 8 % off on average: enough to choose partners, which
//! are then priced exactly.

use crate::numeric::InstructionSet;
use crate::numeric::simd::{PlainLoop, run_plain};

/// c₁, c₂ and c₃.
const FIT: [f32; 3] = [-0.4774, 8.2969, -6.7761];

/// Partners that a vector remembers.
const MOST_PARTNERS: usize = 6;

/// Values scanned together.
const LANES: usize = 16;

/// The estimated cost of merging images of lengths `a` and `b` and cosine `similarity`.
#[inline(always)]
fn estimate(a: f32, b: f32, similarity: f32) -> f32 {
    let q = 1.0 - similarity.clamp(0.0, 1.0).sqrt();
    let (sum, product, square) = (a + b, a * b, q * q);
    let inverse =
        sum * sum * (1.0 + FIT[0] * q + FIT[1] * square) + 4.0 * FIT[2] * product * square;
    8.0 * product * product * square / inverse
}

/// The best partners of a vector among those of longer images, cheapest first.
///
/// Beside it stands a bound: no vector outside the list costs less.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Partners {
    count: usize,
    list: [(f32, u32); MOST_PARTNERS],
}

impl Partners {
    /// Costs and numbers of the partners.
    pub(super) fn list(&self) -> &[(f32, u32)] {
        &self.list[..self.count]
    }

    /// Remembers a partner if it is good enough.
    #[inline(always)]
    pub(super) fn offer(&mut self, bound: &mut f32, cost: f32, partner: u32) {
        if cost < *bound {
            self.insert(bound, cost, partner);
        }
    }

    fn insert(&mut self, bound: &mut f32, cost: f32, partner: u32) {
        let mut entry = (cost, partner);
        for place in &mut self.list[..self.count] {
            if entry < *place {
                std::mem::swap(place, &mut entry);
            }
        }
        if self.count < MOST_PARTNERS {
            self.list[self.count] = entry;
            self.count += 1;
        } else {
            *bound = entry.0;
        }
    }

    /// Leaves out partners that `place` does not know any more and renumbers the others.
    pub(super) fn renumber(&mut self, place: impl Fn(u32) -> Option<u32>) {
        let old = *self;
        self.count = 0;
        for &(cost, partner) in old.list() {
            if let Some(partner) = place(partner) {
                self.list[self.count] = (cost, partner);
                self.count += 1;
            }
        }
    }

    /// Leaves out partners above the bound.
    pub(super) fn cut(&mut self, bound: f32) {
        self.count = self.list().partition_point(|&(cost, _)| cost <= bound);
    }
}

/// One row of similarities.
pub(super) struct Row<'a> {
    /// Length of the row's image.
    pub(super) length: f32,
    /// Number of the row.
    pub(super) number: u32,
    /// Similarities with the columns.
    pub(super) similarities: &'a [f32],
    /// Lengths of the columns' images.
    pub(super) lengths: &'a [f32],
    /// Number of the first column.
    pub(super) first: u32,
    /// Columns, from 0, that are skipped.
    pub(super) hidden: std::ops::Range<usize>,
    /// The row's partners among the columns of longer images.
    pub(super) partners: (&'a mut f32, &'a mut Partners),
    /// Bounds and partners of the columns, if the row is to be offered to those of shorter images.
    pub(super) offered: Option<(&'a mut [f32], &'a mut [Partners])>,
    /// Room for two rows.
    pub(super) scratch: [&'a mut [f32]; 2],
}

impl PlainLoop for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let n = self.similarities.len();
        let [longer, shorter] = self.scratch;
        let (lengths, longer, shorter) = (&self.lengths[..n], &mut longer[..n], &mut shorter[..n]);
        for i in 0..n {
            let cost = estimate(self.length, lengths[i], self.similarities[i]);
            let number = self.first + i as u32;
            let is_longer =
                (lengths[i] > self.length) | ((lengths[i] == self.length) & (number > self.number));
            longer[i] = if is_longer { cost } else { f32::INFINITY };
            shorter[i] = if is_longer { f32::INFINITY } else { cost };
        }
        longer[self.hidden.clone()].fill(f32::INFINITY);
        shorter[self.hidden].fill(f32::INFINITY);
        let (bound, partners) = self.partners;
        *bound = bound.min(estimated_bound(longer));
        for (chunk, first) in longer.chunks(LANES).zip((self.first..).step_by(LANES)) {
            if chunk.iter().fold(false, |hit, &cost| hit | (cost < *bound)) {
                for (&cost, column) in chunk.iter().zip(first..) {
                    partners.offer(bound, cost, column);
                }
            }
        }
        let Some((bounds, columns)) = self.offered else { return };
        let all =
            shorter.chunks(LANES).zip(bounds.chunks_mut(LANES)).zip(columns.chunks_mut(LANES));
        for ((costs, bounds), columns) in all {
            let pairs = costs.iter().zip(&*bounds);
            if pairs.fold(false, |hit, (cost, bound)| hit | (cost < bound)) {
                for ((&cost, bound), column) in costs.iter().zip(bounds).zip(columns) {
                    column.offer(bound, cost, self.number);
                }
            }
        }
    }
}

/// A number that at least [`MOST_PARTNERS`] costs do not exceed, by the least of every lane.
#[inline(always)]
fn estimated_bound(costs: &[f32]) -> f32 {
    let mut lanes = [f32::INFINITY; LANES];
    let (chunks, _) = costs.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = if chunk[lane] < lanes[lane] { chunk[lane] } else { lanes[lane] };
        }
    }
    lanes.sort_unstable_by(f32::total_cmp);
    lanes[MOST_PARTNERS].next_up()
}

/// Offers the columns to a row, and the row to the columns.
pub(super) fn scan_block(set: InstructionSet, row: Row<'_>) {
    run_plain(set, row);
}

#[cfg(test)]
mod tests {
    use super::super::gaussian::merge;
    use super::estimate;

    #[test]
    fn the_estimate_is_near_the_cost() {
        let (mut squares, mut count, mut worst) = (0.0, 0.0, 0.0_f64);
        for i in 1..50 {
            for j in 1..100 {
                let (m, kernel) = (0.5 + 0.499 * f64::from(i) / 50.0, f64::from(j) / 100.0);
                let exact = merge(m, 1.0 - m, kernel).cost;
                let found = f64::from(estimate(m as f32, (1.0 - m) as f32, kernel as f32));
                let off = found / exact - 1.0;
                squares += off * off;
                count += 1.0;
                worst = worst.max(off.abs());
            }
        }
        assert!((squares / count).sqrt() < 0.1 && worst < 0.4, "{} {worst}", squares / count);
    }
}
