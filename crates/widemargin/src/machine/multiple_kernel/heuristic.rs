//! Weights that a rule computes from kernels and labels, without an optimisation of the training objective:
//! what learnt weights are compared with.
//!
//! *Centred alignment* (Cortes, Mohri and Rostamizadeh, JMLR 13, 2012): µᵢ is proportional to
//! ⟨HKᵢH, HTH⟩ / (‖HKᵢH‖ ‖HTH‖), T being the kernel of the labels, and 0 where that is negative. *Margin*
//! (EasyMKL; Aiolli and Donini, Neurocomputing 169, 2015): µᵢ is proportional to γᵀYKᵢYγ at the γ that minimises
//! (1 − λ) γᵀY(ΣK)Yγ + λ‖γ‖², the share of each class being 1. With more than two classes T is 1 for rows of
//! one class and 0 for others, and the margin weights are the mean of those of every class against the rest.

use super::formulation::Formulation;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernel::{KernelBlocks, KernelRows};
use crate::machine::SolverOptions;
use crate::numeric::algebra::{add, dot};
use crate::numeric::simd::Real;
use crate::solver::kernel_weights::WeightRule;
use crate::solver::smo;

/// Left rows of a block.
const CHUNK: usize = 64;

/// Tolerance of the margin problem, whose gradient is of the order of 1.
const MARGIN_TOLERANCE: f64 = 1e-4;

/// The weights that `rule` computes; none for rules that optimise. `factors` make the trace of every
/// kernel of `rows` the number of rows.
///
/// # Errors
/// [`Error::Parameter`] for machines without labels, [`Error::Kernel`] when every weight would be 0,
/// [`Error::Interrupted`] at a request to stop.
pub(super) fn weights<T: Real>(
    rule: WeightRule,
    rows: &mut KernelRows<T>,
    factors: &[f64],
    formulation: &Formulation,
    options: &SolverOptions,
    context: &Context,
) -> Result<Option<Vec<f64>>> {
    let sizes = match rule {
        WeightRule::Alignment => alignments(rows, &formulation.label_vectors()?, context)?,
        WeightRule::Margin(lambda) => {
            let segments: Vec<usize> = (0..formulation.rows.len()).collect();
            let sides = formulation.sides()?;
            margins(lambda, rows, &segments, factors, &sides, options, context)?
        }
        _ => return Ok(None),
    };
    let sizes: Vec<f64> = sizes.iter().map(|size| size.max(0.0)).collect();
    let total: f64 = sizes.iter().sum();
    if !(total.is_finite() && total > 0.0) {
        return Err(Error::Kernel {
            kernel: "combination".into(),
            expected: "a kernel that tells the labels apart".into(),
            found: "weights that are all 0".into(),
        });
    }
    Ok(Some(sizes.iter().map(|size| size / total).collect()))
}

/// The centred alignment of every kernel with Σ ttᵀ over `targets`, up to a common factor.
fn alignments<T: Real>(
    rows: &KernelRows<T>,
    targets: &[Vec<f64>],
    context: &Context,
) -> Result<Vec<f64>> {
    let n = targets.first().map_or(0, Vec::len);
    let centred: Vec<Vec<f64>> = targets
        .iter()
        .map(|target| {
            let mean = target.iter().sum::<f64>() / n as f64;
            target.iter().map(|t| t - mean).collect()
        })
        .collect();
    rows.blocks().terms().iter().map(|term| alignment(term, &centred, n, context)).collect()
}

/// Σ tᵀKt / ‖HKH‖ of one kernel over the first `n` rows, the targets being centred; with
/// ‖HKH‖² = ‖K‖² − (2/n)‖K1‖² + (1ᵀK1)²/n².
fn alignment<T: Real>(
    term: &KernelBlocks<T>,
    targets: &[Vec<f64>],
    n: usize,
    context: &Context,
) -> Result<f64> {
    let (mut squares, mut sums_squared, mut total, mut agreement) = (0.0, 0.0, 0.0, 0.0);
    let mut values = vec![T::ZERO; CHUNK * n];
    for first in (0..n).step_by(CHUNK) {
        context.checkpoint()?;
        let left: Vec<usize> = (first..n.min(first + CHUNK)).collect();
        let mut out: Vec<&mut [T]> = values.chunks_mut(n).take(left.len()).collect();
        term.block(&left, 0..n, &mut out);
        for (&i, row) in left.iter().zip(values.chunks(n)) {
            let row: Vec<f64> = row.iter().map(|value| value.to_f64()).collect();
            let sum: f64 = row.iter().sum();
            squares += dot(&row, &row);
            sums_squared += sum * sum;
            total += sum;
            agreement += targets.iter().map(|t| t[i] * dot(t, &row)).sum::<f64>();
        }
    }
    let n = n as f64;
    let size = (squares - 2.0 / n * sums_squared + total * total / (n * n)).max(0.0).sqrt();
    // A kernel that is constant on the rows says nothing; rounding must not make it say much.
    Ok(if size > 1e-12 * squares.sqrt() { agreement / size } else { 0.0 })
}

/// The shares of the kernels in the squared distance between the classes, the mean over `sides`.
fn margins<T: Real>(
    lambda: f64,
    rows: &mut KernelRows<T>,
    segments: &[usize],
    factors: &[f64],
    sides: &[Vec<bool>],
    options: &SolverOptions,
    context: &Context,
) -> Result<Vec<f64>> {
    let kernels = factors.len() as f64;
    let uniform: Vec<f64> = factors.iter().map(|factor| factor / kernels).collect();
    rows.reweight(&uniform)?;
    let mut shares = vec![0.0; factors.len()];
    for side in sides {
        context.checkpoint()?;
        let view = rows.view(segments, context);
        let problem = margin_problem(lambda, side, kernels);
        let mut own = options.for_problem(side.len());
        own.tol = MARGIN_TOLERANCE;
        let solution = smo::solve(&view, &problem, &own, context);
        let forms = view.term_forms(&solution.beta, 1, context)?;
        let forms: Vec<f64> =
            forms.iter().zip(factors).map(|(form, factor)| form * factor).collect();
        let total: f64 = forms.iter().sum();
        if total > 0.0 {
            add(&mut shares, &forms, 1.0 / total);
        }
    }
    Ok(shares)
}

/// ½ βᵀK̄β + ½ r‖β‖² with β = Yγ and the mean K̄ of the kernels: r = λ / ((1 − λ) p).
fn margin_problem(lambda: f64, side: &[bool], kernels: f64) -> smo::Problem {
    let n = side.len();
    let count = side.iter().filter(|positive| **positive).count();
    let (positive, negative) = (1.0 / count as f64, 1.0 / (n - count) as f64);
    let of = |yes: f64, no: f64| side.iter().map(|s| if *s { yes } else { no }).collect();
    smo::Problem {
        linear: vec![0.0; n],
        lower: of(0.0, -1.0),
        upper: of(1.0, 0.0),
        ridge: Some(vec![lambda / ((1.0 - lambda) * kernels); n]),
        groups: Some(side.iter().map(|s| u8::from(!*s)).collect()),
        start: of(positive, -negative),
        bound_tolerance: 0.0,
        initial_working_set: Vec::new(),
    }
}
