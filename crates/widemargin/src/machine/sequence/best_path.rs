//! The best path of a chain of hidden states over one sequence (Viterbi, 1967): with scores v of paths to states,
//! v_k(j) = b_k(j) + max over i of v_{k−1}(i) + A_ij.

use super::lattice::{LANES, Lattice, Transitions, input, unchecked_positions};
use crate::context::Context;
use crate::numeric::simd::PlainLoop;

/// The most probable path by logarithms of the chain and of the densities in `emissions`, the smaller
/// state where two are equal; unfinished when the context asks to stop.
pub(super) struct BestPath<'a> {
    pub(super) chain: &'a Transitions,
    pub(super) inputs: &'a [u32],
    pub(super) lattice: &'a mut Lattice,
    pub(super) back: &'a mut Vec<u32>,
    pub(super) path: &'a mut [u32],
    /// Who may ask to stop.
    pub(super) context: Option<&'a Context>,
}

/// The best of some states before, for the states of one vector.
#[derive(Clone, Copy)]
struct Best {
    score: [f64; LANES],
    from: [i64; LANES],
}

impl Best {
    #[inline(always)]
    fn of(value: f64, row: &[f64; LANES], state: usize) -> Self {
        Self { score: row.map(|pair| value + pair), from: [state as i64; LANES] }
    }

    /// The better of two; the first, whose states are smaller, where they are equal.
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        let mut best = self;
        for lane in 0..LANES {
            let better = other.score[lane] > self.score[lane];
            best.score[lane] = if better { other.score[lane] } else { self.score[lane] };
            best.from[lane] = if better { other.from[lane] } else { self.from[lane] };
        }
        best
    }
}

/// States before that are compared in pairs first, so that comparisons wait less for each other.
const GROUP: usize = 4;

impl PlainLoop for BestPath<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let Self { chain, inputs, lattice, back, path, context } = self;
        let (states, width, length) = (chain.states, chain.width, path.len());
        back.clear();
        back.resize(length * width, 0);
        let strip = unchecked_positions(states * width);
        for k in 0..length {
            if k % strip == 0 && context.and_then(Context::stop_request).is_some() {
                return f64::NAN;
            }
            let (before, now) = lattice.alpha.split_at_mut(k * width);
            let now = &mut now[..width];
            let emissions = &lattice.emissions[k * width..][..width];
            if k == 0 {
                for ((now, start), b) in now.iter_mut().zip(&chain.start).zip(emissions) {
                    *now = start + b;
                }
                continue;
            }
            let before = &before[(k - 1) * width..][..states];
            let back = &mut back[k * width..][..width];
            let rows = chain.matrix(&chain.rows, input(inputs, k));
            let blocks = width / LANES;
            let rows = rows.as_chunks::<LANES>().0;
            for block in 0..blocks {
                let best = best_before(before, &rows[block..], blocks);
                let place = block * LANES;
                for lane in 0..LANES {
                    now[place + lane] = best.score[lane] + emissions[place + lane];
                    back[place + lane] = best.from[lane] as u32;
                }
            }
        }
        let last = &lattice.alpha[(length - 1) * width..][..states];
        let mut state = 0;
        for (i, value) in last.iter().enumerate() {
            state = if *value > last[state] { i } else { state };
        }
        let total = last[state];
        for k in (0..length).rev() {
            path[k] = state as u32;
            state = back[k * width + state] as usize;
        }
        total
    }
}

/// The best state before each of a vector; its rows of scores are `blocks` apart.
#[inline(always)]
fn best_before(before: &[f64], rows: &[[f64; LANES]], blocks: usize) -> Best {
    let mut best = Best { score: [f64::NEG_INFINITY; LANES], from: [0; LANES] };
    let (groups, rest) = before.as_chunks::<GROUP>();
    for (g, values) in groups.iter().enumerate() {
        let first = g * GROUP;
        let own = |i: usize| Best::of(values[i], &rows[(first + i) * blocks], first + i);
        best = best.or(own(0).or(own(1)).or(own(2).or(own(3))));
    }
    let first = groups.len() * GROUP;
    for (i, value) in rest.iter().enumerate() {
        best = best.or(Best::of(*value, &rows[(first + i) * blocks], first + i));
    }
    best
}
