//! The E-step of EM, one pass over the rows: log-densities, responsibilities and the sums the next parameters
//! are made of, while a block of rows is in the cache.
//!
//! Rows stand in blocks, feature by feature, so that every loop runs along rows. Sums are taken
//! around the present means, which loses no digits: W_k = Σ r (x − μ)(x − μ)ᵀ − n_k δδᵀ with δ the
//! step of the mean. Blocks are summed in a fixed order, whatever the number of threads.

use super::covariance::Factor;
use crate::context::Context;
use crate::data::memory;
use crate::error::Result;
use crate::numeric::algebra::add_products;
use crate::numeric::simd::{PlainLoop, exp_of_negative, run_plain};

/// Rows of a block.
pub(super) const ROWS: usize = 256;

/// Rows whose sums are held in registers.
const LANES: usize = 64;

/// Rows whose pairs of sums are.
const PAIR_LANES: usize = 32;

/// Blocks summed by one task.
const TASK_BLOCKS: usize = 16;

/// Multiply-adds between two looks at the context, some milliseconds.
const MOST_UNCHECKED: usize = 1 << 24;

/// Numbers that the sums of tasks waiting to be added may take in all.
const MOST_WAITING: usize = 1 << 24;

/// Which second sums are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Second {
    /// None: the scatter of all rows is known.
    Nothing,
    /// Σ r (x − μ_k)² of every feature.
    Diagonal,
    /// Σ r (x − μ_k)(x − μ_k)ᵀ
    Matrix,
}

impl Second {
    /// Numbers a component.
    fn size(self, features: usize) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Diagonal => features,
            Self::Matrix => features * features,
        }
    }
}

/// Rows in blocks.
pub(super) struct Blocks {
    pub(super) features: usize,
    pub(super) rows: usize,
    /// Block after block, feature after feature, [`ROWS`] values each; zeros at the end.
    values: Vec<f64>,
}

impl Blocks {
    /// As [`new`](Self::new).
    ///
    /// # Errors
    /// [`Error::TooLarge`](crate::Error::TooLarge) when there is no memory for whole blocks.
    pub(super) fn checked(rows: &[f64], features: usize, origin: &[f64]) -> Result<Self> {
        let padded = (rows.len() / features.max(1)).next_multiple_of(ROWS);
        let bytes = 8 * padded as u128 * features as u128;
        memory::check(|| format!("blocks of {ROWS} rows of {features} features"), bytes)?;
        Ok(Self::new(rows, features, origin))
    }

    /// Arranges rows, less `origin`.
    pub(super) fn new(rows: &[f64], features: usize, origin: &[f64]) -> Self {
        let count = rows.len() / features.max(1);
        let blocks = count.div_ceil(ROWS);
        let mut values = vec![0.0; blocks * ROWS * features];
        for (i, row) in rows.chunks_exact(features.max(1)).enumerate() {
            let block = &mut values[i / ROWS * ROWS * features..][..ROWS * features];
            for (j, (value, origin)) in row.iter().zip(origin).enumerate() {
                block[j * ROWS + i % ROWS] = value - origin;
            }
        }
        Self { features, rows: count, values }
    }

    /// Feature `j` of row `i`, from the origin.
    pub(super) fn value(&self, i: usize, j: usize) -> f64 {
        self.values[(i / ROWS * self.features + j) * ROWS + i % ROWS]
    }

    /// Σ x xᵀ, or its diagonal.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) when the context asks to stop.
    pub(super) fn scatter(&self, diagonal: bool, context: &Context) -> Result<Vec<f64>> {
        let features = self.features;
        let mut sums = vec![0.0; if diagonal { features } else { features * features }];
        for block in self.values.chunks_exact((ROWS * features).max(1)) {
            if diagonal {
                context.checkpoint()?;
                for (sum, own) in sums.iter_mut().zip(block.chunks_exact(ROWS)) {
                    *sum += product(own, own);
                }
            } else {
                add_products(&mut sums, features, block, ROWS, context)?;
            }
        }
        Ok(sums)
    }

    /// The rows one after the other, from the origin.
    pub(super) fn rows_again(&self) -> Vec<f64> {
        let features = 0..self.features;
        (0..self.rows).flat_map(|i| features.clone().map(move |j| self.value(i, j))).collect()
    }
}

/// A component as the pass sees it.
#[derive(Clone)]
pub(super) struct Component {
    pub(super) mean: Vec<f64>,
    pub(super) factor: Factor,
    /// ln weight − ½ (d ln 2π + ln |Σ|)
    pub(super) constant: f64,
}

/// Sums over rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    /// Σ ln p(x)
    pub(super) log_likelihood: f64,
    /// n_k = Σ r
    pub(super) weights: Vec<f64>,
    /// Σ r (x − μ_k)
    pub(super) first: Vec<f64>,
    /// Σ r (x − μ_k)(x − μ_k)ᵀ, lower triangle of a full matrix, or its diagonal, or nothing
    pub(super) second: Vec<f64>,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        if self.weights.is_empty() {
            self.clone_from(other);
            return;
        }
        let add = |to: &mut [f64], from: &[f64]| {
            to.iter_mut().zip(from).for_each(|(sum, value)| *sum += value);
        };
        self.log_likelihood += other.log_likelihood;
        add(&mut self.weights, &other.weights);
        add(&mut self.first, &other.first);
        add(&mut self.second, &other.second);
    }
}

/// Where the responsibilities come from.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// The components' densities.
    Densities,
    /// Given, one after the other for every row.
    Given(&'a [f64]),
}

/// One pass.
///
/// # Errors
/// [`Error::Interrupted`](crate::Error::Interrupted) when the context asks to stop.
pub(super) fn pass(
    blocks: &Blocks,
    components: &[Component],
    source: Source<'_>,
    second: Second,
    context: &Context,
) -> Result<Sums> {
    let size = ROWS * blocks.features;
    let task = |(task, values): (usize, &[f64])| {
        context.checkpoint()?;
        let work = Pass { blocks, components, source, second, task, values, context };
        run_plain(context.instruction_set(), work)
    };
    let chunk = (TASK_BLOCKS * size).max(1);
    // The sums of wide rows are large: only so many wait for their turn.
    let numbers = components.len() * (blocks.features + second.size(blocks.features));
    let at_once = (MOST_WAITING / numbers.max(1)).max(context.threads());
    let tasks: Vec<_> = blocks.values.chunks(chunk).enumerate().collect();
    let mut sums = Sums::default();
    for tasks in tasks.chunks(at_once) {
        let parts = context.try_map(tasks.iter().copied(), task)?;
        parts.iter().for_each(|part| sums.add(part));
    }
    Ok(sums)
}

/// ln(weight · density) of every component for the rows of one block, component after component.
///
/// # Errors
/// [`Error::Interrupted`](crate::Error::Interrupted) when the context asks to stop.
pub(super) fn log_joints(
    blocks: &Blocks,
    block: usize,
    components: &[Component],
    context: &Context,
) -> Result<Vec<f64>> {
    struct Densities<'a> {
        values: &'a [f64],
        features: usize,
        components: &'a [Component],
        context: &'a Context,
    }
    impl PlainLoop for Densities<'_> {
        type Output = Result<Vec<f64>>;

        #[inline(always)]
        fn run(self) -> Result<Vec<f64>> {
            let Self { values, features, components, context } = self;
            let mut differences = vec![0.0; features * ROWS];
            let mut all = vec![0.0; components.len() * ROWS];
            for (component, out) in components.iter().zip(all.chunks_exact_mut(ROWS)) {
                densities(values, component, &mut differences, out, context)?;
            }
            Ok(all)
        }
    }
    let (size, features) = (ROWS * blocks.features, blocks.features);
    let values = &blocks.values[block * size..(block + 1) * size];
    run_plain(context.instruction_set(), Densities { values, features, components, context })
}

/// Rows of a matrix of the features that are passed between two looks at the context.
fn strip(features: usize) -> usize {
    (MOST_UNCHECKED / (ROWS * features).max(1)).max(1)
}

struct Pass<'a> {
    blocks: &'a Blocks,
    components: &'a [Component],
    source: Source<'a>,
    second: Second,
    task: usize,
    values: &'a [f64],
    context: &'a Context,
}

impl PlainLoop for Pass<'_> {
    type Output = Result<Sums>;

    #[inline(always)]
    fn run(self) -> Result<Sums> {
        let (features, count) = (self.blocks.features, self.components.len());
        let size = self.second.size(features);
        let mut sums = Sums {
            log_likelihood: 0.0,
            weights: vec![0.0; count],
            first: vec![0.0; count * features],
            second: vec![0.0; count * size],
        };
        let mut differences = vec![0.0; features * ROWS];
        let mut shares = vec![0.0; count * ROWS];
        for (at, values) in self.values.chunks_exact(ROWS * features).enumerate() {
            let first = (self.task * TASK_BLOCKS + at) * ROWS;
            let rows = ROWS.min(self.blocks.rows - first);
            match self.source {
                Source::Densities => {
                    for (component, out) in
                        self.components.iter().zip(shares.chunks_exact_mut(ROWS))
                    {
                        densities(values, component, &mut differences, out, self.context)?;
                    }
                    sums.log_likelihood += normalise(&mut shares, count, rows);
                }
                Source::Given(given) => {
                    for (k, out) in shares.chunks_exact_mut(ROWS).enumerate() {
                        for r in 0..rows {
                            out[r] = given[(first + r) * count + k];
                        }
                        out[rows..].fill(0.0);
                    }
                }
            }
            for (k, component) in self.components.iter().enumerate() {
                let shares = &shares[k * ROWS..(k + 1) * ROWS];
                let weight = sum(shares);
                if weight == 0.0 {
                    continue;
                }
                sums.weights[k] += weight;
                let first = &mut sums.first[k * features..(k + 1) * features];
                let second = &mut sums.second[k * size..(k + 1) * size];
                match self.second {
                    Second::Nothing => {
                        for (i, own) in values.chunks_exact(ROWS).enumerate() {
                            first[i] += product(shares, own) - weight * component.mean[i];
                        }
                    }
                    Second::Diagonal => {
                        for (i, own) in values.chunks_exact(ROWS).enumerate() {
                            let (one, two) = moments(shares, own, component.mean[i]);
                            first[i] += one;
                            second[i] += two;
                        }
                    }
                    Second::Matrix => {
                        differ(values, &component.mean, &mut differences);
                        matrix(shares, &differences, first, second, self.context)?;
                    }
                }
            }
        }
        Ok(sums)
    }
}

/// x − μ of a block.
#[inline(always)]
fn differ(values: &[f64], mean: &[f64], out: &mut [f64]) {
    for ((values, out), &mean) in
        values.chunks_exact(ROWS).zip(out.chunks_exact_mut(ROWS)).zip(mean)
    {
        for r in 0..ROWS {
            out[r] = values[r] - mean;
        }
    }
}

/// ln(weight · density) of one component for the rows of a block.
#[inline(always)]
fn densities(
    values: &[f64],
    component: &Component,
    differences: &mut [f64],
    out: &mut [f64],
    context: &Context,
) -> Result<()> {
    let features = component.mean.len();
    if component.factor.lower.is_empty() {
        for start in (0..ROWS).step_by(LANES) {
            let mut squares = [0.0; LANES];
            for i in 0..features {
                let (mean, scale) = (component.mean[i], component.factor.scales[i]);
                let row = &values[i * ROWS + start..][..LANES];
                for r in 0..LANES {
                    let value = scale * (row[r] - mean);
                    squares[r] += value * value;
                }
            }
            for r in 0..LANES {
                out[start + r] = component.constant - 0.5 * squares[r];
            }
        }
        return Ok(());
    }
    differ(values, &component.mean, differences);
    let strip = strip(features);
    for start in (0..ROWS).step_by(LANES) {
        let mut squares = [0.0; LANES];
        for first in (0..features).step_by(strip) {
            context.checkpoint()?;
            for i in first..(first + strip).min(features) {
                let mut value = [0.0; LANES];
                let factors = &component.factor.lower[i * features..][..=i];
                for (j, &factor) in factors.iter().enumerate() {
                    let row = &differences[j * ROWS + start..][..LANES];
                    for r in 0..LANES {
                        value[r] += factor * row[r];
                    }
                }
                for r in 0..LANES {
                    squares[r] += value[r] * value[r];
                }
            }
        }
        for r in 0..LANES {
            out[start + r] = component.constant - 0.5 * squares[r];
        }
    }
    Ok(())
}

/// Adds Σ r d and the lower triangle of Σ r d dᵀ.
#[inline(always)]
fn matrix(
    shares: &[f64],
    differences: &[f64],
    first: &mut [f64],
    second: &mut [f64],
    context: &Context,
) -> Result<()> {
    let features = first.len();
    let strip = strip(features);
    let mut weighted = [0.0; ROWS];
    for start in (0..features).step_by(strip) {
        context.checkpoint()?;
        for i in start..(start + strip).min(features) {
            let own = &differences[i * ROWS..(i + 1) * ROWS];
            for r in 0..ROWS {
                weighted[r] = shares[r] * own[r];
            }
            first[i] += sum(&weighted);
            for j in 0..=i {
                second[i * features + j] += product(&weighted, &differences[j * ROWS..][..ROWS]);
            }
        }
    }
    Ok(())
}

/// Σ r (x − μ) and Σ r (x − μ)².
#[inline(always)]
fn moments(shares: &[f64], values: &[f64], mean: f64) -> (f64, f64) {
    let (mut first, mut second) = ([0.0; PAIR_LANES], [0.0; PAIR_LANES]);
    for (shares, values) in
        shares.as_chunks::<PAIR_LANES>().0.iter().zip(values.as_chunks::<PAIR_LANES>().0)
    {
        for r in 0..PAIR_LANES {
            let difference = values[r] - mean;
            let weighted = shares[r] * difference;
            first[r] += weighted;
            second[r] += weighted * difference;
        }
    }
    (total(&first), total(&second))
}

/// Turns log-joints of a block into responsibilities, 0 beyond the first `rows` rows; returns
/// Σ ln p(x).
#[inline(always)]
fn normalise(shares: &mut [f64], count: usize, rows: usize) -> f64 {
    let mut total = 0.0;
    let mut largest = [f64::NEG_INFINITY; ROWS];
    for row in shares.chunks_exact(ROWS) {
        for r in 0..ROWS {
            largest[r] = if row[r] > largest[r] { row[r] } else { largest[r] };
        }
    }
    let mut sums = [0.0; ROWS];
    for row in shares.chunks_exact_mut(ROWS).take(count) {
        for r in 0..ROWS {
            row[r] = exp_of_negative(row[r] - largest[r]);
            sums[r] += row[r];
        }
    }
    for r in 0..rows {
        total += largest[r] + sums[r].ln();
        sums[r] = 1.0 / sums[r];
    }
    for row in shares.chunks_exact_mut(ROWS) {
        for r in 0..ROWS {
            row[r] *= sums[r];
        }
        row[rows..].fill(0.0);
    }
    total
}

/// The sum of lanes, eight at a time.
#[inline(always)]
fn total(lanes: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    for lanes in lanes.as_chunks::<8>().0 {
        for r in 0..8 {
            sums[r] += lanes[r];
        }
    }
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + e) + (b + f)) + ((c + g) + (d + h))
}

#[inline(always)]
fn sum(values: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    for chunk in values.as_chunks::<LANES>().0 {
        for r in 0..LANES {
            sums[r] += chunk[r];
        }
    }
    total(&sums)
}

#[inline(always)]
fn product(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    for (x, y) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
        for r in 0..LANES {
            sums[r] += x[r] * y[r];
        }
    }
    total(&sums)
}
