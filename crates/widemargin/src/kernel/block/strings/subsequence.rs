//! The gap-weighted subsequence kernel of one string with several others (Lodhi et al. 2002).
//!
//! With κ₁(i, j) = 1 where sᵢ = tⱼ, else 0, and D_l(i, j) = Σ λ^(i − a + j − b) κ_l(a, b) over a ≤ i, b ≤ j,
//! κ_{l+1}(i, j) = D_l(i − 1, j − 1) where sᵢ = tⱼ, and K = λ^{2p} Σ κ_p. Sums have only positive terms. They
//! run along the lesser string first, so that they have the same bits whichever string is on the left.

use super::overdue::Overdue;
use super::pairs::{Group, LANES, Value};
use crate::numeric::simd::PlainLoop;

/// One string with the strings of a group.
pub(super) struct Subsequences<'a> {
    pub(super) length: usize,
    pub(super) decay: f64,
    pub(super) left: &'a [f64],
    pub(super) group: &'a Group<'a>,
    pub(super) overdue: &'a Overdue,
    /// Whether the strings of the group are the lesser ones.
    pub(super) swapped: bool,
}

type Lanes = [f64; LANES];

impl PlainLoop for Subsequences<'_> {
    type Output = [Value; LANES];

    #[inline(always)]
    fn run(self) -> Self::Output {
        let sums = if self.swapped { self.sums::<true>() } else { self.sums::<false>() };
        // λ^{2p} may be too small for a number: it is kept as a logarithm.
        let scale = 2.0 * self.length as f64 * self.decay.ln();
        sums.map(|sum| Value { mantissa: sum, log_scale: scale })
    }
}

impl Subsequences<'_> {
    #[inline(always)]
    fn sums<const SWAPPED: bool>(&self) -> Lanes {
        let (levels, places) = (self.length, self.group.places());
        // D and the sums along columns of one row, for each level; the last level is summed without decay.
        let mut sums = vec![[0.0; LANES]; levels * (places + 1)];
        let mut runs = vec![[0.0; LANES]; if SWAPPED { levels * (places + 1) } else { 0 }];
        let mut equal = vec![[0.0; LANES]; places];
        for &symbol in self.left {
            if self.overdue.is_late_after_row(places) {
                break;
            }
            for (equal, others) in equal.iter_mut().zip(self.group.symbols) {
                for lane in 0..LANES {
                    equal[lane] = if others[lane] == symbol { 1.0 } else { 0.0 };
                }
            }
            // From the last level to the first, which is read before it changes.
            for level in (0..levels).rev() {
                let decay = if level + 1 == levels { 1.0 } else { self.decay };
                let (below, own) = sums.split_at_mut(level * (places + 1));
                let below = level.checked_sub(1).map(|l| &below[l * (places + 1)..]);
                let own = &mut own[..=places];
                let mut carried = [0.0; LANES];
                for j in 0..places {
                    let mut term = equal[j];
                    if let Some(below) = below {
                        for lane in 0..LANES {
                            term[lane] *= below[j][lane];
                        }
                    }
                    if SWAPPED {
                        let run = &mut runs[level * (places + 1) + j];
                        for lane in 0..LANES {
                            run[lane] = term[lane] + decay * run[lane];
                            carried[lane] = run[lane] + decay * carried[lane];
                        }
                        own[j + 1] = carried;
                    } else {
                        for lane in 0..LANES {
                            carried[lane] = term[lane] + decay * carried[lane];
                            own[j + 1][lane] = carried[lane] + decay * own[j + 1][lane];
                        }
                    }
                }
            }
        }
        let last = &sums[(levels - 1) * (places + 1)..];
        std::array::from_fn(|lane| last[self.group.lengths[lane]][lane])
    }
}
