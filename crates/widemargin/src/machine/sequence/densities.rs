//! Densities of a sequence under all states at once, and the sums over posteriors that a maximisation needs.

use super::emission::Emission;
use super::lattice::padded;
use super::observations::Run;
use crate::machine::Covariance;
use crate::numeric::simd::PlainLoop;

/// Densities of all states at once, in padded vectors.
pub(super) enum Densities {
    /// Probabilities of the states, symbol by symbol, and their logarithms.
    Table {
        plain: Vec<f64>,
        logarithms: Vec<f64>,
    },
    Counts {
        logs: Vec<f64>,
        constants: Vec<f64>,
    },
    Normal {
        full: bool,
        means: Vec<f64>,
        factors: Vec<f64>,
        constants: Vec<f64>,
    },
    /// The observations themselves.
    Given,
}

impl Densities {
    /// Whether they come as probabilities instead of logarithms.
    pub(super) fn are_plain(&self) -> bool {
        matches!(self, Self::Table { .. })
    }

    /// Whether they may be 0.
    pub(super) fn may_vanish(&self) -> bool {
        matches!(self, Self::Table { .. } | Self::Given)
    }
}

/// Fills a lattice with the densities of a run, or their logarithms.
pub(super) struct Fill<'a> {
    pub(super) densities: &'a Densities,
    pub(super) run: Run<'a>,
    /// Whether probabilities of symbols are wanted as logarithms.
    pub(super) logarithms: bool,
    pub(super) width: usize,
    pub(super) out: &'a mut [f64],
}

impl PlainLoop for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let width = self.width;
        match (self.densities, self.run) {
            (Densities::Table { plain, logarithms }, Run::Symbols(symbols)) => {
                let table = if self.logarithms { logarithms } else { plain };
                let missing = (table.len() / width - 1) as u32;
                for (out, &symbol) in self.out.chunks_exact_mut(width).zip(symbols) {
                    let place = symbol.min(missing) as usize * width;
                    out.copy_from_slice(&table[place..][..width]);
                }
            }
            (Densities::Given, Run::Rows { values, size, .. }) => {
                for (out, row) in self.out.chunks_exact_mut(width).zip(values.chunks_exact(size)) {
                    out.fill(f64::NEG_INFINITY);
                    out[..size].copy_from_slice(row);
                }
            }
            (Densities::Counts { logs, constants }, Run::Rows { values, size, factorials, .. }) => {
                let rows = values.chunks_exact(size).zip(factorials);
                for (out, (row, factorials)) in self.out.chunks_exact_mut(width).zip(rows) {
                    for (out, constant) in out.iter_mut().zip(constants) {
                        *out = constant - factorials;
                    }
                    for (value, logs) in row.iter().zip(logs.chunks_exact(width)) {
                        for (out, log) in out.iter_mut().zip(logs) {
                            *out += value * log;
                        }
                    }
                }
            }
            (
                Densities::Normal { full, means, factors, constants },
                Run::Rows { values, size, .. },
            ) => {
                let mut far = vec![0.0; size * width];
                let mut sum = vec![0.0; width];
                for (out, row) in self.out.chunks_exact_mut(width).zip(values.chunks_exact(size)) {
                    out.copy_from_slice(constants);
                    let centres = means.chunks_exact(width);
                    for ((far, mean), x) in far.chunks_exact_mut(width).zip(centres).zip(row) {
                        for (far, mean) in far.iter_mut().zip(mean) {
                            *far = x - mean;
                        }
                    }
                    if *full {
                        add_triangles(&far, factors, &mut sum, out);
                    } else {
                        let rows = far.chunks_exact(width).zip(factors.chunks_exact(width));
                        for (far, factor) in rows {
                            for ((out, far), factor) in out.iter_mut().zip(far).zip(factor) {
                                let scaled = far * factor;
                                *out -= 0.5 * (scaled * scaled);
                            }
                        }
                    }
                }
            }
            _ => {}
        }
        let Run::Rows { missing, .. } = self.run else { return };
        for (out, _) in self.out.chunks_exact_mut(width).zip(missing).filter(|(_, is)| **is) {
            // Every state explains nothing equally well.
            out.fill(0.0);
        }
    }
}

/// Takes ½‖L⁻¹(x − μ)‖² of every state from `out`.
#[inline(always)]
fn add_triangles(far: &[f64], factors: &[f64], sum: &mut [f64], out: &mut [f64]) {
    let width = out.len();
    let mut factors = factors.chunks_exact(width);
    for d in 0..far.len() / width {
        sum.fill(0.0);
        for (far, factor) in far.chunks_exact(width).take(d + 1).zip(&mut factors) {
            for ((sum, far), factor) in sum.iter_mut().zip(far).zip(factor) {
                *sum += far * factor;
            }
        }
        for (out, sum) in out.iter_mut().zip(sum.iter()) {
            *out -= 0.5 * (sum * sum);
        }
    }
}

/// Sums over positions weighted by posteriors, in padded vectors of states.
#[derive(Clone, Debug)]
pub(super) struct Sums {
    pub(super) size: usize,
    pub(super) full: bool,
    pub(super) weights: Vec<f64>,
    /// Of symbols, or of every feature.
    pub(super) first: Vec<f64>,
    /// Of squares, or of products of two features.
    pub(super) second: Vec<f64>,
    /// What was taken from every row before, for the digits of variances.
    pub(super) shift: Vec<f64>,
}

impl Sums {
    pub(super) fn new(emission: &Emission, states: usize, shift: &[f64]) -> Self {
        let width = padded(states);
        let size = if *emission == Emission::Given { 0 } else { emission.size(states) };
        let (full, second) = match emission {
            Emission::Gaussian { shape: Covariance::Full | Covariance::Tied, .. } => {
                (true, size * (size + 1) / 2)
            }
            Emission::Gaussian { .. } => (false, size),
            _ => (false, 0),
        };
        Self {
            size,
            full,
            weights: vec![0.0; width],
            // One more for positions where nothing was observed.
            first: vec![0.0; (size + 1) * width],
            second: vec![0.0; second * width],
            shift: match emission {
                Emission::Gaussian { .. } => shift.to_vec(),
                _ => vec![0.0; size],
            },
        }
    }

    /// Whether squares of the observations stayed within double precision.
    pub(super) fn is_finite(&self) -> bool {
        [&self.weights, &self.first, &self.second]
            .into_iter()
            .all(|list| list.iter().all(|value| value.is_finite()))
    }

    /// Adds other sums.
    pub(super) fn join(&mut self, other: &Self) {
        let lists = [
            (&mut self.weights, &other.weights),
            (&mut self.first, &other.first),
            (&mut self.second, &other.second),
        ];
        for (own, other) in lists {
            own.iter_mut().zip(other).for_each(|(own, other)| *own += other);
        }
    }
}

/// Adds the posteriors of a run to sums.
pub(super) struct Accumulate<'a> {
    pub(super) sums: &'a mut Sums,
    pub(super) run: Run<'a>,
    pub(super) width: usize,
    pub(super) posteriors: &'a [f64],
}

impl PlainLoop for Accumulate<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { sums, run, width, posteriors } = self;
        let missing = if let Run::Rows { missing, .. } = run { missing } else { &[] };
        let is_missing = |k: usize| missing.get(k).copied().unwrap_or(false);
        for (k, posterior) in posteriors.chunks_exact(width).enumerate() {
            if is_missing(k) {
                continue;
            }
            for (sum, posterior) in sums.weights.iter_mut().zip(posterior) {
                *sum += posterior;
            }
        }
        match run {
            Run::Symbols(symbols) => {
                let last = sums.size as u32;
                for (posterior, &symbol) in posteriors.chunks_exact(width).zip(symbols) {
                    let row = &mut sums.first[symbol.min(last) as usize * width..][..width];
                    for (sum, posterior) in row.iter_mut().zip(posterior) {
                        *sum += posterior;
                    }
                }
            }
            // Of given densities nothing is learnt.
            Run::Rows { .. } if sums.size == 0 => {}
            Run::Rows { values, size, .. } => {
                let mut scaled = vec![0.0; width];
                let mut centred = vec![0.0; size];
                let rows = posteriors.chunks_exact(width).zip(values.chunks_exact(size));
                for (k, (posterior, row)) in rows.enumerate() {
                    if is_missing(k) {
                        continue;
                    }
                    for ((centred, x), shift) in centred.iter_mut().zip(row).zip(&sums.shift) {
                        *centred = x - shift;
                    }
                    let mut second = sums.second.chunks_exact_mut(width);
                    let features = sums.first.chunks_exact_mut(width).take(size);
                    for (d, first) in features.enumerate() {
                        for ((first, scaled), p) in first.iter_mut().zip(&mut scaled).zip(posterior)
                        {
                            *scaled = p * centred[d];
                            *first += *scaled;
                        }
                        let partners = if sums.full { &centred[..=d] } else { &centred[d..=d] };
                        for (x, second) in partners.iter().zip(&mut second) {
                            for (second, scaled) in second.iter_mut().zip(&scaled) {
                                *second += x * scaled;
                            }
                        }
                    }
                }
            }
        }
    }
}
