//! Forward–backward sums of a chain of hidden states over one sequence.
//!
//! With start probabilities π, transitions A and emission densities b_k(i) at position k,
//!
//! ```text
//! α_k = b_k ∘ (Aᵀ α_{k−1}) / c_k      β_{k−1} = A (b_k ∘ β_k / c_k)      γ_k = α_k ∘ β_k
//! ln p(x) = Σ ln c_k                  ξ(i, j) = Σ α_{k−1}(i) A_ij b_k(j) β_k(j) / c_k
//! ```
//!
//! (Rabiner, 1989), where A may be another matrix at every step, chosen by an input. Densities are divided by the largest of their position. Where that still leaves a
//! sum of 0, or where it is asked for, the same sums are made of logarithms. States stand in
//! vectors of whole lanes, padded with states of probability 0.

use crate::context::Context;
use crate::data::NO_TAG;
use crate::error::Result;
use crate::numeric::simd::{PlainLoop, exp_of_negative};

/// Numbers that are added as one vector.
pub(super) const LANES: usize = 8;

/// What a term of a sum of logarithms takes, in multiply-adds.
const LOGARITHM: usize = 32;

/// Multiply-adds between two looks at the context, some milliseconds.
const MOST_UNCHECKED: usize = 1 << 24;

/// Rows of the sums of pairs that stay in registers.
const PAIR_ROWS: usize = 4;

/// Positions that are passed between two looks at the context, each of so many multiply-adds.
pub(super) fn unchecked_positions(products: usize) -> usize {
    (MOST_UNCHECKED / products.max(1)).max(1)
}

/// States with those that fill the last vector.
pub(super) fn padded(states: usize) -> usize {
    states.next_multiple_of(LANES)
}

/// Start and transition probabilities, row by row in padded vectors.
pub(super) struct Transitions {
    pub(super) states: usize,
    pub(super) width: usize,
    pub(super) start: Vec<f64>,
    /// A and its transpose, one after another for every input.
    pub(super) rows: Vec<f64>,
    columns: Vec<f64>,
}

/// The input that chooses the transition into a position; the only one where there are no inputs.
#[inline(always)]
pub(super) fn input(inputs: &[u32], position: usize) -> usize {
    inputs.get(position).map_or(0, |&input| input as usize)
}

impl Transitions {
    pub(super) fn new(start: &[f64], transition: &[f64]) -> Self {
        let states = start.len();
        let width = padded(states);
        let mut padded_start = start.to_vec();
        padded_start.resize(width, 0.0);
        let size = states * width;
        let count = transition.len() / (states * states);
        let (mut rows, mut columns) = (vec![0.0; count * size], vec![0.0; count * size]);
        let matrices = rows.chunks_mut(size).zip(columns.chunks_mut(size));
        for ((rows, columns), matrix) in matrices.zip(transition.chunks(states * states)) {
            for i in 0..states {
                for j in 0..states {
                    rows[i * width + j] = matrix[i * states + j];
                    columns[j * width + i] = matrix[i * states + j];
                }
            }
        }
        Self { states, width, start: padded_start, rows, columns }
    }

    /// Scores instead of probabilities, for the best path alone: one of every first state, and padded rows.
    pub(super) fn of_scores(mut start: Vec<f64>, rows: Vec<f64>) -> Self {
        let states = start.len();
        let width = padded(states);
        start.resize(width, 0.0);
        Self { states, width, start, rows, columns: Vec::new() }
    }

    /// The matrix of an input.
    #[inline(always)]
    pub(super) fn matrix<'a>(&self, matrices: &'a [f64], input: usize) -> &'a [f64] {
        let size = self.states * self.width;
        &matrices[input * size..][..size]
    }

    /// Multiplies sums over pairs by the transition probabilities.
    pub(super) fn times(&self, pairs: &mut [f64]) {
        pairs.iter_mut().zip(&self.rows).for_each(|(pair, probability)| *pair *= probability);
    }

    /// The same with logarithms.
    pub(super) fn logarithms(&self) -> Self {
        let logs = |list: &[f64]| list.iter().map(|p| p.ln()).collect::<Vec<f64>>();
        Self {
            start: logs(&self.start),
            rows: logs(&self.rows),
            columns: logs(&self.columns),
            ..*self
        }
    }
}

/// The memory of one sequence, used again for the next.
#[derive(Default)]
pub(super) struct Lattice {
    /// Densities divided by the largest of each position, and the logarithm of that.
    pub(super) emissions: Vec<f64>,
    pub(super) peaks: Vec<f64>,
    pub(super) alpha: Vec<f64>,
    /// b ∘ β / c of each position.
    weighted: Vec<f64>,
    scales: Vec<f64>,
    /// γ of each position.
    pub(super) posteriors: Vec<f64>,
    /// Σ α_{k−1}(i) b_k(j) β_k(j) / c_k, to be multiplied by A_ij; of logarithms ξ itself.
    pub(super) pairs: Vec<f64>,
    /// The best state before every state.
    pub(super) back: Vec<u32>,
}

impl Lattice {
    /// Rules out every state but the known ones, in logarithms.
    pub(super) fn keep_known(&mut self, known: &[u32], width: usize) {
        for (row, &state) in self.emissions.chunks_exact_mut(width).zip(known) {
            if state == NO_TAG {
                continue;
            }
            for (i, value) in row.iter_mut().enumerate() {
                *value = if i == state as usize { *value } else { f64::NEG_INFINITY };
            }
        }
    }

    /// Memory for a sequence of so many positions.
    pub(super) fn resize(&mut self, length: usize, width: usize) {
        for list in [&mut self.emissions, &mut self.alpha, &mut self.weighted, &mut self.posteriors]
        {
            list.resize(length * width, 0.0);
        }
        self.peaks.resize(length, 0.0);
        self.scales.resize(length, 0.0);
    }
}

/// Replaces logarithms of densities by densities over the largest of each position.
pub(super) struct Exponentials<'a> {
    pub(super) width: usize,
    pub(super) states: usize,
    /// Whether some logarithms may be −∞.
    pub(super) zeros: bool,
    pub(super) lattice: &'a mut Lattice,
}

impl PlainLoop for Exponentials<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let rows = self.lattice.emissions.chunks_exact_mut(self.width);
        for (row, peak) in rows.zip(&mut self.lattice.peaks) {
            let mut largest = f64::NEG_INFINITY;
            for value in &row[..self.states] {
                largest = if *value > largest { *value } else { largest };
            }
            *peak = largest;
            let shift = if largest.is_finite() { largest } else { 0.0 };
            if self.zeros {
                for value in row.iter_mut() {
                    let vanishes = *value == f64::NEG_INFINITY;
                    *value = if vanishes { 0.0 } else { exp_of_negative(*value - shift) };
                }
            } else {
                for value in row.iter_mut() {
                    *value = exp_of_negative(*value - shift);
                }
            }
            row[self.states..].fill(0.0);
        }
    }
}

/// Products of scales stay between this and its inverse, so that one more factor of that range neither overflows
/// nor vanishes.
const LEAST_PRODUCT: f64 = 1e-150;

/// Σ ln c of scales, with one logarithm for many of them.
struct LogSum {
    total: f64,
    product: f64,
}

impl LogSum {
    #[inline(always)]
    fn add(&mut self, scale: f64) {
        let is_moderate = |value: f64| value > LEAST_PRODUCT && value < 1.0 / LEAST_PRODUCT;
        if !is_moderate(scale) {
            self.total += scale.ln();
            return;
        }
        self.product *= scale;
        if !is_moderate(self.product) {
            self.total += self.product.ln();
            self.product = 1.0;
        }
    }
}

/// The scaled sums of a sequence; `None` where a scale is 0, or when the context asks to stop.
pub(super) struct Forward<'a> {
    pub(super) chain: &'a Transitions,
    pub(super) inputs: &'a [u32],
    pub(super) lattice: &'a mut Lattice,
    pub(super) context: &'a Context,
}

impl PlainLoop for Forward<'_> {
    type Output = Option<f64>;

    #[inline(always)]
    fn run(self) -> Option<f64> {
        let Self { chain, inputs, lattice, context } = self;
        let width = chain.width;
        let length = lattice.scales.len();
        let strip = unchecked_positions(chain.states * width);
        let mut logs = LogSum { total: 0.0, product: 1.0 };
        for k in 0..length {
            if k % strip == 0 && context.stop_request().is_some() {
                return None;
            }
            let (before, now) = lattice.alpha.split_at_mut(k * width);
            let now = &mut now[..width];
            let emissions = &lattice.emissions[k * width..][..width];
            if k == 0 {
                now.copy_from_slice(&chain.start);
            } else {
                let rows = chain.matrix(&chain.rows, input(inputs, k));
                product(&before[(k - 1) * width..], rows, chain.states, now);
            }
            let mut sums = [0.0; LANES];
            for (now, b) in now.as_chunks_mut::<LANES>().0.iter_mut().zip(emissions.as_chunks().0) {
                let b: &[f64; LANES] = b;
                for lane in 0..LANES {
                    now[lane] *= b[lane];
                    sums[lane] += now[lane];
                }
            }
            let scale: f64 = sums.iter().sum();
            if !(scale > 0.0 && scale.is_finite()) {
                return None;
            }
            let inverse = 1.0 / scale;
            now.iter_mut().for_each(|value| *value *= inverse);
            lattice.scales[k] = inverse;
            logs.add(scale);
            logs.total += lattice.peaks[k];
        }
        Some(logs.total + logs.product.ln())
    }
}

/// Posteriors, and sums over pairs if they are wanted, after [`Forward`]; unfinished when the context asks to stop.
pub(super) struct Backward<'a> {
    pub(super) chain: &'a Transitions,
    pub(super) inputs: &'a [u32],
    pub(super) lattice: &'a mut Lattice,
    pub(super) pairs: bool,
    pub(super) context: &'a Context,
}

impl PlainLoop for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { chain, inputs, lattice, pairs, context } = self;
        let width = chain.width;
        let length = lattice.scales.len();
        let strip = unchecked_positions(chain.states * width);
        let last = (length - 1) * width;
        lattice.posteriors[last..].copy_from_slice(&lattice.alpha[last..]);
        lattice.weighted[last..].fill(1.0);
        for k in (0..length).rev() {
            if k % strip == 0 && context.stop_request().is_some() {
                return;
            }
            // `weighted` holds β_k until it is b ∘ β / c.
            let (before, now) = lattice.weighted.split_at_mut(k * width);
            let now = &mut now[..width];
            let emissions = &lattice.emissions[k * width..][..width];
            let scale = lattice.scales[k];
            for (now, b) in now.iter_mut().zip(emissions) {
                *now *= b * scale;
            }
            if k > 0 {
                let beta = &mut before[(k - 1) * width..];
                let columns = chain.matrix(&chain.columns, input(inputs, k));
                product(now, columns, chain.states, beta);
                let alpha = &lattice.alpha[(k - 1) * width..][..width];
                let posteriors = &mut lattice.posteriors[(k - 1) * width..][..width];
                for ((posterior, alpha), beta) in posteriors.iter_mut().zip(alpha).zip(beta) {
                    *posterior = alpha * *beta;
                }
            }
        }
        if pairs {
            lattice.pairs.clear();
            lattice.pairs.resize(chain.rows.len(), 0.0);
            let (alpha, weighted) = (&lattice.alpha[..last], &lattice.weighted[width..]);
            if !inputs.is_empty() {
                for (at, inputs) in inputs[1..].chunks(strip).enumerate() {
                    if context.stop_request().is_some() {
                        return;
                    }
                    let part = at * strip * width..(at * strip + inputs.len()) * width;
                    let (alpha, weighted) = (&alpha[part.clone()], &weighted[part]);
                    add_driven_pairs(chain, alpha, weighted, inputs, &mut lattice.pairs);
                }
                return;
            }
            for first in (0..chain.states).step_by(PAIR_ROWS) {
                if context.stop_request().is_some() {
                    return;
                }
                for block in (0..width).step_by(LANES) {
                    add_pairs(alpha, weighted, width, [first, block], &mut lattice.pairs);
                }
            }
        }
    }
}

/// Mᵀv of padded rows M. Even and odd rows are added apart, so that one sum does not wait for the other.
#[inline(always)]
fn product(vector: &[f64], matrix: &[f64], states: usize, out: &mut [f64]) {
    let blocks = out.len() / LANES;
    let rows = matrix.as_chunks::<LANES>().0;
    let vector = &vector[..states];
    for (block, out) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let (mut even, mut odd) = ([0.0; LANES], [0.0; LANES]);
        let mut column = rows[block..].iter().step_by(blocks);
        for pair in vector.chunks(2) {
            if let Some(row) = column.next() {
                for lane in 0..LANES {
                    even[lane] += pair[0] * row[lane];
                }
            }
            if let (Some(value), Some(row)) = (pair.get(1), column.next()) {
                for lane in 0..LANES {
                    odd[lane] += value * row[lane];
                }
            }
        }
        for lane in 0..LANES {
            out[lane] = even[lane] + odd[lane];
        }
    }
}

/// Adds Σ_k α_k(i) u_k(j) for some rows i and the columns of a vector.
#[inline(always)]
fn add_pairs(
    alpha: &[f64],
    weighted: &[f64],
    width: usize,
    [first, block]: [usize; 2],
    pairs: &mut [f64],
) {
    let mut sums = [[0.0; LANES]; PAIR_ROWS];
    for (alpha, weighted) in alpha.chunks_exact(width).zip(weighted.chunks_exact(width)) {
        let factors: &[f64; PAIR_ROWS] = alpha[first..].first_chunk().unwrap_or(&[0.0; PAIR_ROWS]);
        let row: &[f64; LANES] = weighted[block..].first_chunk().unwrap_or(&[0.0; LANES]);
        for (sums, factor) in sums.iter_mut().zip(factors) {
            for lane in 0..LANES {
                sums[lane] += factor * row[lane];
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        if let Some(row) = pairs.get_mut((first + r) * width + block..) {
            for (sum, value) in row.iter_mut().zip(sums) {
                *sum += value;
            }
        }
    }
}

/// Adds α_{k−1}(i) u_k(j) to the sums of the input that chose the transition into k, for some k.
#[inline(always)]
fn add_driven_pairs(
    chain: &Transitions,
    alpha: &[f64],
    weighted: &[f64],
    inputs: &[u32],
    pairs: &mut [f64],
) {
    let (width, size) = (chain.width, chain.states * chain.width);
    let steps = alpha.chunks_exact(width).zip(weighted.chunks_exact(width));
    for (k, (alpha, weighted)) in steps.enumerate() {
        let sums = &mut pairs[input(inputs, k) * size..][..size];
        for (sums, factor) in sums.chunks_exact_mut(width).zip(alpha) {
            for (sum, value) in sums.iter_mut().zip(weighted) {
                *sum += factor * value;
            }
        }
    }
}

/// The sums of a sequence by logarithms of `chain` and of the densities in `emissions`: ln p(x).
/// Posteriors are written, and ξ if `pairs`.
///
/// # Errors
/// [`Error::Interrupted`](crate::Error::Interrupted) when the context asks to stop.
pub(super) fn logarithmic(
    chain: &Transitions,
    inputs: &[u32],
    lattice: &mut Lattice,
    pairs: bool,
    context: &Context,
) -> Result<f64> {
    let strip = unchecked_positions(LOGARITHM * chain.states * chain.width);
    let (states, width, length) = (chain.states, chain.width, lattice.peaks.len());
    let mut terms = vec![0.0; states];
    let b = |lattice: &Lattice, k: usize, j: usize| lattice.emissions[k * width + j];
    for k in 0..length {
        if k % strip == 0 {
            context.checkpoint()?;
        }
        let rows = chain.matrix(&chain.rows, input(inputs, k));
        for j in 0..states {
            let before = if k == 0 {
                chain.start[j]
            } else {
                for (i, term) in terms.iter_mut().enumerate() {
                    *term = lattice.alpha[(k - 1) * width + i] + rows[i * width + j];
                }
                log_sum(&terms)
            };
            lattice.alpha[k * width + j] = before + b(lattice, k, j);
        }
    }
    let last = (length - 1) * width;
    let total = log_sum(&lattice.alpha[last..][..states]);
    if pairs {
        lattice.pairs.clear();
        lattice.pairs.resize(chain.rows.len(), 0.0);
    }
    lattice.weighted[last..].fill(0.0);
    lattice.posteriors.fill(0.0);
    for k in (0..length).rev() {
        if k % strip == 0 {
            context.checkpoint()?;
        }
        for i in 0..states {
            let beta = lattice.weighted[k * width + i];
            let posterior = lattice.alpha[k * width + i] + beta - total;
            lattice.posteriors[k * width + i] =
                if posterior.is_nan() { 0.0 } else { posterior.exp() };
        }
        if k == 0 {
            break;
        }
        let (rows, place) = {
            let input = input(inputs, k);
            (chain.matrix(&chain.rows, input), input * states * width)
        };
        for i in 0..states {
            for (j, term) in terms.iter_mut().enumerate() {
                *term = rows[i * width + j]
                    + lattice.emissions[k * width + j]
                    + lattice.weighted[k * width + j];
            }
            lattice.weighted[(k - 1) * width + i] = log_sum(&terms);
            let alpha = lattice.alpha[(k - 1) * width + i] - total;
            if pairs && alpha.is_finite() {
                for (j, term) in terms.iter().enumerate() {
                    lattice.pairs[place + i * width + j] += (alpha + term).exp();
                }
            }
        }
    }
    Ok(total)
}

/// ln Σ exp of a list.
fn log_sum(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + values.iter().map(|value| (value - largest).exp()).sum::<f64>().ln()
}
