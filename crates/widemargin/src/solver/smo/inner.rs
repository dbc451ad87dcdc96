//! Second-order SMO on a working set that fits the processor's cache.
//!
//! Every step takes i with the largest −f among the variables that can rise, then j with the
//! largest guaranteed decrease (fⱼ − fᵢ)² / (Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ) among those that can fall (WSS 2 of
//! Fan, Chen and Lin, 2005), and moves the pair to the minimum inside its box.

use crate::kernel::{Real, Vectorize};

/// Curvature below which a pair counts as flat (LIBSVM's τ).
const FLAT: f64 = 1e-12;

/// Lanes of the hand-blocked loops; the compiler turns each into one or two vectors.
const LANES: usize = 8;

/// A sub-problem in compact form. All arrays have `padded(q)` entries, those beyond q being
/// variables that can neither rise nor fall.
pub(super) struct Inner<'a, T> {
    /// Entries of the matrix among the working set, one padded row each; filled on demand.
    pub(super) matrix: &'a mut [T],
    /// Whether the row of a variable is in `matrix`.
    pub(super) filled: &'a mut [bool],
    /// Fills the row of a working-set position.
    pub(super) fill: &'a mut dyn FnMut(usize, &mut [T]),
    pub(super) beta: &'a mut [f64],
    pub(super) gradient: &'a mut [f64],
    pub(super) lower: &'a [f64],
    pub(super) upper: &'a [f64],
    pub(super) diagonal: &'a [f64],
    pub(super) ridge: &'a [f64],
    /// 0 where a variable of the group can rise, −∞ elsewhere; one run of `padded(q)` per group.
    pub(super) rise: &'a mut [f64],
    /// 0 where a variable of the group can fall, −∞ elsewhere.
    pub(super) fall: &'a mut [f64],
    pub(super) groups: &'a [u8],
    pub(super) group_count: usize,
    /// Violation at which to stop.
    pub(super) tol: f64,
    pub(super) max_steps: u64,
}

/// Array length for `q` variables.
pub(super) fn padded(q: usize) -> usize {
    q.next_multiple_of(2 * LANES)
}

/// The largest of `LANES` running maxima and where it was met, ties to the lowest position.
#[inline(always)]
fn best_lane(value: &[f64; LANES], at: &[u32; LANES]) -> (f64, usize) {
    let (mut best, mut position) = (f64::NEG_INFINITY, usize::MAX);
    for l in 0..LANES {
        let candidate = at[l] as usize * LANES + l;
        if value[l] > best || (value[l] == best && candidate < position) {
            (best, position) = (value[l], candidate);
        }
    }
    (best, position)
}

impl<T: Real> Inner<'_, T> {
    #[inline(always)]
    fn ensure_row(&mut self, v: usize) {
        if !self.filled[v] {
            let width = self.gradient.len();
            (self.fill)(v, &mut self.matrix[v * width..(v + 1) * width]);
            self.filled[v] = true;
        }
    }

    #[inline(always)]
    fn set_bounds(&mut self, v: usize) {
        let at = if self.group_count == 1 { 0 } else { usize::from(self.groups[v]) }
            * self.gradient.len()
            + v;
        self.rise[at] = if self.beta[v] < self.upper[v] { 0.0 } else { f64::NEG_INFINITY };
        self.fall[at] = if self.beta[v] > self.lower[v] { 0.0 } else { f64::NEG_INFINITY };
    }

    /// max of −f over variables of `group` that can rise, where, and max of f over those that can
    /// fall.
    #[inline(always)]
    fn scan(&self, group: usize) -> (f64, usize, f64) {
        let width = self.gradient.len();
        let rise = &self.rise[group * width..][..width];
        let fall = &self.fall[group * width..][..width];
        let mut up = [f64::NEG_INFINITY; LANES];
        let mut at = [0_u32; LANES];
        let mut down = [f64::NEG_INFINITY; LANES];
        let chunks = self.gradient.chunks_exact(LANES).zip(rise.chunks_exact(LANES));
        for (c, ((f, r), d)) in chunks.zip(fall.chunks_exact(LANES)).enumerate() {
            for l in 0..LANES {
                let value = r[l] - f[l];
                let better = value > up[l];
                up[l] = if better { value } else { up[l] };
                at[l] = if better { c as u32 } else { at[l] };
                let value = d[l] + f[l];
                down[l] = if value > down[l] { value } else { down[l] };
            }
        }
        let (best, position) = best_lane(&up, &at);
        (best, position, down.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    }

    /// The partner j of i with the largest (fⱼ − fᵢ)² / curvature; its position.
    #[inline(always)]
    fn partner(&self, i: usize, group: usize) -> Option<usize> {
        let width = self.gradient.len();
        let fall = &self.fall[group * width..][..width];
        let row = &self.matrix[i * width..(i + 1) * width];
        let (fi, di) = (self.gradient[i], self.diagonal[i]);
        // Gains are compared as fractions, b²/a > B²/A ⇔ b² A > B² a, which needs no division.
        let mut square = [0.0; LANES];
        let mut curvature = [1.0; LANES];
        let mut at = [u32::MAX; LANES];
        let chunks = self.gradient.chunks_exact(LANES).zip(fall.chunks_exact(LANES));
        let chunks = chunks.zip(self.diagonal.chunks_exact(LANES)).zip(row.chunks_exact(LANES));
        for (c, (((f, d), diagonal), k)) in chunks.enumerate() {
            for l in 0..LANES {
                let a = (di + diagonal[l] - 2.0 * k[l].to_f64()).max(FLAT);
                let b = (f[l] + d[l] - fi).max(0.0);
                let s = b * b;
                let better = s * curvature[l] > square[l] * a;
                square[l] = if better { s } else { square[l] };
                curvature[l] = if better { a } else { curvature[l] };
                at[l] = if better { c as u32 } else { at[l] };
            }
        }
        let (mut best, mut position) = (0.0, None);
        for l in 0..LANES {
            if at[l] == u32::MAX {
                continue;
            }
            let gain = square[l] / curvature[l];
            let candidate = at[l] as usize * LANES + l;
            if gain > best || (gain == best && position.is_some_and(|p| candidate < p)) {
                (best, position) = (gain, Some(candidate));
            }
        }
        position
    }

    /// Moves i up and j down to the pair's minimum.
    #[inline(always)]
    fn step(&mut self, i: usize, j: usize) {
        let width = self.gradient.len();
        let kij = self.matrix[i * width + j].to_f64();
        let curvature = (self.diagonal[i] + self.diagonal[j] - 2.0 * kij).max(FLAT);
        let wanted = (self.gradient[j] - self.gradient[i]) / curvature;
        let (room_i, room_j) = (self.upper[i] - self.beta[i], self.beta[j] - self.lower[j]);
        let t = wanted.min(room_i).min(room_j);
        self.beta[i] = if t >= room_i { self.upper[i] } else { self.beta[i] + t };
        self.beta[j] = if t >= room_j { self.lower[j] } else { self.beta[j] - t };
        let (row_i, row_j) =
            (&self.matrix[i * width..][..width], &self.matrix[j * width..][..width]);
        for ((f, a), b) in self.gradient.iter_mut().zip(row_i).zip(row_j) {
            *f += t * (a.to_f64() - b.to_f64());
        }
        self.gradient[i] += t * self.ridge[i];
        self.gradient[j] -= t * self.ridge[j];
        self.set_bounds(i);
        self.set_bounds(j);
    }
}

impl<T: Real> Vectorize for Inner<'_, T> {
    /// Steps taken.
    type Output = u64;

    #[inline(always)]
    fn run(mut self) -> u64 {
        let mut steps = 0;
        loop {
            let (mut violation, mut i, mut group) = (f64::NEG_INFINITY, 0, 0);
            for g in 0..self.group_count {
                let (up, position, down) = self.scan(g);
                if up + down > violation {
                    (violation, i, group) = (up + down, position, g);
                }
            }
            if violation <= self.tol || steps >= self.max_steps {
                return steps;
            }
            self.ensure_row(i);
            let Some(j) = self.partner(i, group) else {
                return steps;
            };
            self.ensure_row(j);
            self.step(i, j);
            steps += 1;
        }
    }
}
