//! The local alignment kernel of one string with several others: Σ over local alignments of exp(β score)
//! (Saigo, Vert, Ueda and Akutsu 2004).
//!
//! With M(i, j) the sum over alignments that end with sᵢ beside tⱼ, X those that end with a gap in t after
//! it, and Y those that end with a gap in s, where t's gap comes before s's so that none is counted twice:
//!
//! ```text
//! M(i, j) = exp(β score(sᵢ, tⱼ)) (1 + X(i − 1, j − 1) + Y(i − 1, j − 1) + M(i − 1, j − 1))
//! X(i, j) = exp(−β open) M(i − 1, j) + exp(−β extend) X(i − 1, j)
//! Y(i, j) = exp(−β open) (M(i, j − 1) + X(i, j − 1)) + exp(−β extend) Y(i, j − 1)
//! K = 1 + Σ M(i, j)
//! ```
//!
//! s is always the lesser string, so that values have the same bits whichever is on the left. Numbers grow
//! like exp(β reward) to the power of the length: they are scaled by powers of two as they grow.

use super::overdue::Overdue;
use super::pairs::{Group, LANES, Value};
use crate::numeric::simd::PlainLoop;

/// Sums above this are scaled down, by this factor.
const RESCALE_FACTOR: f64 = 1.606_938_044_258_990_3e60; // 2²⁰⁰
const LOG_LARGE: f64 = 200.0 * std::f64::consts::LN_2;

/// One string with the strings of a group.
pub(super) struct Alignments<'a> {
    /// exp(β reward)
    pub(super) reward: f64,
    /// exp(β penalty)
    pub(super) penalty: f64,
    /// exp(−β open)
    pub(super) open: f64,
    /// exp(−β extend)
    pub(super) extend: f64,
    pub(super) left: &'a [f64],
    pub(super) group: &'a Group<'a>,
    pub(super) overdue: &'a Overdue,
    /// Whether the strings of the group are the lesser ones.
    pub(super) swapped: bool,
}

type Lanes = [f64; LANES];

/// Divides all sums of a lane by [`RESCALE_FACTOR`].
#[cold]
fn divide(row: &mut [Cell], lane: usize) {
    for Cell { matched, down, along, total, column } in row {
        for values in [matched, down, along, total, column] {
            values[lane] /= RESCALE_FACTOR;
        }
    }
}

/// The sums that end at one place of the row above.
#[derive(Clone, Copy)]
struct Cell {
    matched: Lanes,
    /// X, or Y where strings are swapped: a gap along the columns of the table.
    down: Lanes,
    /// Y, or X where strings are swapped.
    along: Lanes,
    /// Σ M over all rows so far and the columns before, and Σ M over the rows of this column.
    total: Lanes,
    column: Lanes,
}

const EMPTY: Cell = Cell {
    matched: [0.0; LANES],
    down: [0.0; LANES],
    along: [0.0; LANES],
    total: [0.0; LANES],
    column: [0.0; LANES],
};

impl PlainLoop for Alignments<'_> {
    type Output = [Value; LANES];

    #[inline(always)]
    fn run(self) -> Self::Output {
        if self.swapped { self.values::<true>() } else { self.values::<false>() }
    }
}

impl Alignments<'_> {
    #[inline(always)]
    fn values<const SWAPPED: bool>(&self) -> [Value; LANES] {
        let places = self.group.places();
        let mut row = vec![EMPTY; places + 1];
        let mut one = [1.0; LANES];
        let mut scales = [0.0; LANES];
        for &symbol in self.left {
            if self.overdue.is_late_after_row(places) {
                break;
            }
            self.next_row::<SWAPPED>(symbol, &one, &mut row);
            for lane in 0..LANES {
                while row[places].total[lane] > RESCALE_FACTOR {
                    one[lane] /= RESCALE_FACTOR;
                    scales[lane] += LOG_LARGE;
                    divide(&mut row, lane);
                }
            }
        }
        std::array::from_fn(|lane| {
            let total = row[self.group.lengths[lane]].total[lane];
            Value { mantissa: one[lane] + total, log_scale: scales[lane] }
        })
    }

    #[inline(always)]
    fn next_row<const SWAPPED: bool>(&self, symbol: f64, one: &Lanes, row: &mut [Cell]) {
        // The cell above on the left, and the new one on the left.
        let (mut corner, mut left) = (EMPTY, EMPTY);
        let mut run = [0.0; LANES];
        for (others, cell) in self.group.symbols.iter().zip(&mut row[1..]) {
            let above = *cell;
            let (first, second) =
                if SWAPPED { (&corner.along, &corner.down) } else { (&corner.down, &corner.along) };
            for k in 0..LANES {
                let factor = if others[k] == symbol { self.reward } else { self.penalty };
                // Symbols beyond the end of a string are 0.
                let factor = if others[k] == 0.0 { 0.0 } else { factor };
                cell.matched[k] = factor * (one[k] + first[k] + second[k] + corner.matched[k]);
            }
            let (mut above_open, mut left_open) = (above.matched, left.matched);
            for k in 0..LANES {
                if SWAPPED {
                    above_open[k] += above.along[k];
                } else {
                    left_open[k] += left.down[k];
                }
            }
            for k in 0..LANES {
                cell.down[k] = self.open * above_open[k] + self.extend * above.down[k];
                cell.along[k] = self.open * left_open[k] + self.extend * left.along[k];
            }
            for k in 0..LANES {
                if SWAPPED {
                    cell.column[k] = cell.matched[k] + above.column[k];
                    cell.total[k] = cell.column[k] + left.total[k];
                } else {
                    run[k] += cell.matched[k];
                    cell.total[k] = run[k] + above.total[k];
                }
            }
            (corner, left) = (above, *cell);
        }
    }
}
