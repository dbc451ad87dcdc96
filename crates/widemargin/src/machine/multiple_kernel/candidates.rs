//! The candidate kernels on all rows given: their traces, their tables, and the warnings about them.

use super::MultipleKernel;
use super::formulation::Formulation;
use crate::context::{Context, Event};
use crate::data::memory;
use crate::error::{Error, Result};
use crate::kernel::{Gram, Kernel, KernelBlocks, KernelRows, Repair, RowCaching, fill_table};
use crate::machine::definiteness::{self, Found, is_semidefinite, matrix_of, spread};
use crate::machine::fit::FitInput;
use crate::machine::specification::Value;
use crate::numeric::algebra::dot;
use crate::numeric::simd::Real;
use crate::solver::kernel_weights::WeightRule;

/// Rows that candidates are compared on.
const SAMPLE: usize = 200;

/// Rows that candidates which may have negative eigenvalues are tested on: all, up to this many.
const TESTED: usize = 2000;

/// Candidates up to which every pair is compared.
const MOST_COMPARED: usize = 64;

/// Centred alignment above which the weights of two candidates are badly determined.
const COLLINEAR: f64 = 0.999_99;

/// The candidates, packed as one weighted sum.
pub(super) struct Candidates<T: Real> {
    /// A segment for every one of the formulation, and one for rows without labels.
    pub(super) rows: KernelRows<T>,
    /// What makes the trace of every candidate the number of rows.
    pub(super) factors: Vec<f64>,
    /// The matrices with that trace, for signed weights alone.
    pub(super) grams: Vec<Gram>,
    /// What the training record says about them.
    pub(super) notes: Vec<(String, Value)>,
}

impl<T: Real> Candidates<T> {
    pub(super) fn new(
        machine: &MultipleKernel,
        input: FitInput<'_>,
        unlabelled: &[usize],
        formulation: &Formulation,
        context: &Context,
    ) -> Result<Self> {
        let kernels = &machine.kernels;
        let mut bounds = vec![0];
        for rows in &formulation.rows {
            bounds.push(bounds[bounds.len() - 1] + rows.len());
        }
        let mut order = formulation.rows.concat();
        if !unlabelled.is_empty() {
            order.extend(unlabelled);
            bounds.push(order.len());
        }
        let sum = Kernel::Sum(kernels.iter().map(|kernel| (1.0, kernel.clone())).collect());
        let mut blocks =
            KernelBlocks::<T>::new(&sum, input.data().features(), Some(&order), context)?;
        let shifts = shifts(machine, &blocks, context)?;
        let factors = factors(&blocks, kernels, &shifts, machine.jitter)?;
        let mut notes = report_properties(&blocks, kernels, &shifts, context)?;
        if machine.jitter > 0.0 {
            notes.push(("jitter".into(), machine.jitter.into()));
        }
        let signed = machine.weights == WeightRule::Signed && kernels.len() > 1;
        let n = order.len();
        let tables = |count: usize, width: usize| n as u128 * n as u128 * (count * width) as u128;
        let mut bytes = tables(blocks.tables(), size_of::<T>());
        if signed {
            // Signed weights keep every matrix in double precision.
            bytes += tables(kernels.len(), size_of::<f64>());
        }
        let fits = bytes <= context.cache_bytes() as u128;
        if signed && !fits {
            let (what, limit) = ("tables of the candidates".into(), context.cache_bytes() as u128);
            return Err(Error::TooLarge { what, bytes, limit });
        }
        let check = |at: usize, values: &[T]| match kernels[at].has_given_values() {
            true => check_symmetric(values, n, at),
            false => Ok(()),
        };
        if fits {
            memory::check(|| "tables of the candidates".into(), bytes)?;
            blocks.tabulate(context, check)?;
        }
        let added: Vec<T> = blocks
            .terms()
            .iter()
            .zip(&shifts)
            .map(|(term, shift)| {
                let trace: f64 = term.diagonal().iter().map(|value| value.to_f64()).sum();
                T::from_f64(shift + machine.jitter * (trace / n as f64 + shift))
            })
            .collect();
        blocks.add_to_diagonals(&added);
        let grams = if signed { grams(&blocks, &factors, context)? } else { Vec::new() };
        let caching = if formulation.rows.len() > 2 { RowCaching::All } else { RowCaching::Off };
        let rows = KernelRows::new(blocks, bounds, caching, context.cache_bytes());
        Ok(Self { rows, factors, grams, notes })
    }
}

/// The matrices of the candidates, scaled by `factors`.
fn grams<T: Real>(
    blocks: &KernelBlocks<T>,
    factors: &[f64],
    context: &Context,
) -> Result<Vec<Gram>> {
    let n = blocks.len();
    let mut values = Vec::new();
    let scaled = |(term, factor): (&KernelBlocks<T>, &f64)| {
        fill_table(term, n, &mut values, context)?;
        Gram::new(n, values.iter().map(|value| value.to_f64() * factor).collect())
    };
    blocks.terms().iter().zip(factors).map(scaled).collect()
}

/// The name of a candidate in messages.
fn named(kernels: &[Kernel], at: usize) -> String {
    format!("{} ({})", at + 1, kernels[at])
}

/// What is added to the diagonal of every candidate that is not positive semidefinite on all rows, so that it
/// is; nothing unless that was asked for.
fn shifts<T: Real>(
    machine: &MultipleKernel,
    blocks: &KernelBlocks<T>,
    context: &Context,
) -> Result<Vec<f64>> {
    let kernels = &machine.kernels;
    let Some(repair) = machine.repair else { return Ok(vec![0.0; kernels.len()]) };
    let n = blocks.len();
    let bytes = 16 * n as u128 * n as u128;
    let of = |(at, term): (usize, &KernelBlocks<T>)| {
        if kernels[at].is_semidefinite() {
            return Ok(0.0);
        }
        if bytes > context.cache_bytes() as u128 {
            let (what, limit) = ("a table to repair".into(), context.cache_bytes() as u128);
            return Err(Error::TooLarge { what, bytes, limit });
        }
        memory::check(|| "a table to repair".into(), bytes)?;
        let mut values = Vec::new();
        fill_table(term, n, &mut values, context)?;
        term.check_values()?;
        check_symmetric(&values, n, at)?;
        let values = values.iter().map(|value| value.to_f64()).collect();
        let found = symmetric(n, values)?.definiteness(context)?;
        match (is_semidefinite::<T>(found, n), repair) {
            (true, _) => Ok(0.0),
            (false, Repair::Shift) => {
                let message = format!(
                    "kernel {} is not positive semidefinite: its smallest eigenvalue {:.3e} was taken from \
                     its diagonal",
                    named(kernels, at),
                    found.smallest
                );
                context.report(&Event::Warning { message });
                Ok(-found.smallest)
            }
            (false, _) => Err(Error::Kernel {
                kernel: named(kernels, at),
                expected: "a positive semidefinite matrix".into(),
                found: format!("the eigenvalue {:.3e}", found.smallest),
            }),
        }
    };
    blocks.terms().iter().enumerate().map(of).collect()
}

/// The centred matrix, of length 1; zeros where it is constant.
fn direction(mut gram: Gram) -> Vec<f64> {
    gram.centre();
    let size = dot(gram.values(), gram.values()).sqrt();
    gram.values().iter().map(|value| if size > 0.0 { value / size } else { 0.0 }).collect()
}

/// A table that is symmetric up to rounding.
fn symmetric(n: usize, mut values: Vec<f64>) -> Result<Gram> {
    for i in 0..n {
        for j in 0..i {
            let mean = 0.5 * (values[i * n + j] + values[j * n + i]);
            (values[i * n + j], values[j * n + i]) = (mean, mean);
        }
    }
    Gram::new(n, values)
}

/// Number of rows over trace, changes of the diagonal included.
fn factors<T: Real>(
    blocks: &KernelBlocks<T>,
    kernels: &[Kernel],
    shifts: &[f64],
    jitter: f64,
) -> Result<Vec<f64>> {
    let n = blocks.len() as f64;
    let of = |(at, term): (usize, &KernelBlocks<T>)| {
        let trace: f64 = term.diagonal().iter().map(|value| value.to_f64()).sum();
        let trace = trace + n * shifts[at];
        match trace > 0.0 && trace.is_finite() {
            true => Ok(n / (trace * (1.0 + jitter))),
            false => Err(Error::Kernel {
                kernel: named(kernels, at),
                expected: "a positive trace over the rows given".into(),
                found: trace.to_string(),
            }),
        }
    };
    blocks.terms().iter().enumerate().map(of).collect()
}

/// Fails when a table of the user is not symmetric.
fn check_symmetric<T: Real>(values: &[T], n: usize, at: usize) -> Result<()> {
    /// Difference, as a share of the largest value, that is taken for rounding.
    const ASYMMETRY: f64 = 1e-5;
    let largest = values.iter().fold(0.0_f64, |most, value| most.max(value.to_f64().abs()));
    for i in 0..n {
        for j in 0..i {
            let (below, above) = (values[i * n + j].to_f64(), values[j * n + i].to_f64());
            if (below - above).abs() > ASYMMETRY * largest {
                let (i, j) = (i + 1, j + 1);
                return Err(Error::Kernel {
                    kernel: format!("{} (precomputed)", at + 1),
                    expected: "a symmetric table".into(),
                    found: format!("{below} for rows {i} and {j} and {above} for rows {j} and {i}"),
                });
            }
        }
    }
    Ok(())
}

/// Warns about candidates that are nearly multiples of each other, on a sample of the rows, and about those with
/// negative eigenvalues that were not repaired, on all rows or many; returns what the training record says about
/// them.
fn report_properties<T: Real>(
    blocks: &KernelBlocks<T>,
    kernels: &[Kernel],
    shifts: &[f64],
    context: &Context,
) -> Result<Vec<(String, Value)>> {
    let (mut notes, mut indefinite) = (Vec::new(), Vec::new());
    if shifts.iter().any(|shift| *shift > 0.0) {
        notes.push(("diagonal-shifts".to_owned(), shifts.to_vec().into()));
    }
    let n = blocks.len();
    let (sample, tested) = (spread(n, SAMPLE), spread(n, TESTED));
    let compared = kernels.len() <= MOST_COMPARED;
    let mut centred: Vec<(usize, Vec<f64>)> = Vec::new();
    for (at, term) in blocks.terms().iter().enumerate() {
        if !kernels[at].is_semidefinite() && shifts[at] == 0.0 {
            // A table that is not symmetric is refused with a message of its own.
            if let Found::Negative(smallest) = definiteness::test(term, &tested, context)? {
                let name = named(kernels, at);
                let message = format!(
                    "kernel {name} is not positive semidefinite: its matrix over {} rows has the eigenvalue {smallest:.3e}",
                    tested.len()
                );
                context.report(&Event::Warning { message });
                indefinite.push(named(kernels, at));
            }
        }
        if !compared {
            continue;
        }
        let Ok(gram) = matrix_of(term, &sample) else { continue };
        centred.push((at, direction(gram)));
    }
    if !indefinite.is_empty() {
        notes.push(("indefinite-kernels".into(), indefinite.join(", ").into()));
    }
    if !compared {
        return Ok(notes);
    }
    let mut pairs = Vec::new();
    for (k, (i, left)) in centred.iter().enumerate() {
        for (j, right) in &centred[..k] {
            if dot(left, right) > COLLINEAR {
                pairs.push(format!("{} and {}", named(kernels, *j), named(kernels, *i)));
            }
        }
    }
    if !pairs.is_empty() {
        let message = format!(
            "kernels that are nearly multiples of each other: {}; their weights are badly determined, the \
             predictions are not",
            pairs.join(", ")
        );
        context.report(&Event::Warning { message });
        notes.push(("collinear-kernels".into(), pairs.join(", ").into()));
    }
    Ok(notes)
}
