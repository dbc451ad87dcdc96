//! How good a classifier is without held-out rows: estimates of its leave-one-out errors.
//!
//! All three are computed from one training. With α the dual variables, ξ the margin errors and f the
//! decision values, row p of a two-class problem counts as an error where
//! ξα (Joachims 2000): `2 αₚ R² + ξₚ ≥ 1`;
//! span bound (Vapnik and Chapelle 2000): `αₚ Sₚ max(D, 1/√C) ≥ 1`, or αₚ at its bound;
//! approximate leave-one-out (the span rule of the same paper): `yₚ f(xₚ) ≤ αₚ Sₚ²`,
//! where R² bounds K(x, x) − K(x, z), D the distance of two images, and Sₚ is the distance of the
//! image of xₚ from the span of the support vectors strictly inside their boxes. A row of several
//! classes is decided by the vote of its two-class problems, each with its estimated sign.

use crate::context::Context;
use crate::data::{ClassOrder, Dataset};
use crate::error::{Error, Result};
use crate::kernel::KernelBlocks;
use crate::machine::names::names;
use crate::machine::{ClassTable, KernelExpansion, Model, PenaltyPath, Scheme};
use crate::numeric::algebra::Cholesky;

/// Share of the mean diagonal added to it, so that repeated rows do no harm.
const JITTER: f64 = 1e-10;

/// An estimate of the leave-one-out error of a classifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Criterion {
    /// Joachims' ξα-estimate, an upper bound on the expected error.
    XiAlpha,
    /// Vapnik and Chapelle's span bound on the leave-one-out error.
    SpanBound,
    /// Vapnik and Chapelle's span rule: leave-one-out with the support vectors as they are.
    ApproximateLeaveOneOut,
}

names!(Criterion, "criterion", XiAlpha: "xi-alpha", SpanBound: "span-bound",
       ApproximateLeaveOneOut: "approximate-loo");

/// The estimated share of rows of `data` that `model`, which `svc` learnt from them, would get wrong
/// without having seen them.
///
/// # Errors
/// [`Error::Model`] for models that do not remember their training rows or have an error-correcting
/// code.
pub fn criterion(
    which: Criterion,
    svc: &dyn PenaltyPath,
    model: &Model,
    data: &Dataset,
    context: &Context,
) -> Result<f64> {
    let unsuited = |message: &str| Error::model(message);
    let Some(table) = &model.classes else { return Err(unsuited("estimates need classes")) };
    if matches!(table.scheme, Scheme::ErrorCorrecting(_)) {
        return Err(unsuited("leave-one-out estimates exist for one-vs-one and one-vs-rest"));
    }
    let Some(body) = model.expansion() else {
        return Err(unsuited("estimates need support vectors"));
    };
    if body.support_rows.len() != body.support.rows() {
        return Err(unsuited("the model does not remember its training rows"));
    }
    let classes = data.labels().classes(ClassOrder::Sorted)?;
    let place = |name: &crate::data::Label| table.names.iter().position(|own| own == name);
    let class_of: Vec<usize> =
        classes.codes.iter().filter_map(|&code| place(&classes.names[code as usize])).collect();
    let predictor = model.predictor(context)?;
    let mut values = predictor.decision_values(data.features())?.into_values();
    let functions = body.functions.len();
    for f in 0..functions {
        let estimate = Function::new(which, svc, body, f, context)?;
        for (row, value) in estimate.flipped(table, &class_of, &values, functions)? {
            values[row * functions + f] = value;
        }
    }
    let values = crate::data::Dense::new(data.rows(), functions, values)?;
    let elected = predictor.class_indices(&values);
    let wrong = elected.iter().zip(&class_of).filter(|(a, b)| a != b).count();
    Ok(wrong as f64 / data.rows().max(1) as f64)
}

/// One two-class problem of a model.
struct Function<'a> {
    which: Criterion,
    svc: &'a dyn PenaltyPath,
    body: &'a KernelExpansion,
    index: usize,
    /// Support vectors with their coefficients.
    support: Vec<(usize, f64)>,
    blocks: KernelBlocks<f64>,
    context: &'a Context,
}

impl<'a> Function<'a> {
    fn new(
        which: Criterion,
        svc: &'a dyn PenaltyPath,
        body: &'a KernelExpansion,
        index: usize,
        context: &'a Context,
    ) -> Result<Self> {
        let parts = body.functions[index].parts.iter();
        let support: Vec<(usize, f64)> = parts
            .flat_map(|part| part.support.clone().zip(part.coefficients.iter().copied()))
            .filter(|(_, coefficient)| *coefficient != 0.0)
            .collect();
        let order: Vec<usize> = support.iter().map(|(s, _)| *s).collect();
        let blocks = KernelBlocks::new(&body.kernel, &body.support, Some(&order), context)?;
        Ok(Self { which, svc, body, index, support, blocks, context })
    }

    /// The rows whose decision value changes its sign, with the value they then have.
    fn flipped(
        &self,
        table: &ClassTable,
        class_of: &[usize],
        values: &[f64],
        functions: usize,
    ) -> Result<Vec<(usize, f64)>> {
        let value = |s: usize| values[self.body.support_rows[s] * functions + self.index];
        let sign = |s: usize| {
            let class = class_of[self.body.support_rows[s]];
            side(table, self.index, class).unwrap_or(1.0)
        };
        let margins: Vec<f64> = self.support.iter().map(|&(s, _)| sign(s) * value(s)).collect();
        let spans = match self.which {
            Criterion::XiAlpha => vec![0.0; margins.len()],
            _ => self.squared_spans(&margins)?,
        };
        let (radius, diameter) = self.extent();
        let mut flipped = Vec::new();
        for (i, &(s, coefficient)) in self.support.iter().enumerate() {
            let (alpha, margin) = (coefficient.abs(), margins[i]);
            let without = match self.which {
                Criterion::XiAlpha => 1.0 - 2.0 * alpha * radius - (1.0 - margin).max(0.0),
                Criterion::SpanBound if margin < self.edge() => -1.0,
                Criterion::SpanBound => {
                    1.0 - alpha * spans[i].sqrt() * diameter.max(1.0 / self.svc.penalty().sqrt())
                }
                Criterion::ApproximateLeaveOneOut => margin - alpha * spans[i],
            };
            if without <= 0.0 {
                let row = self.body.support_rows[s];
                flipped.push((row, sign(s) * without.min(-f64::MIN_POSITIVE)));
            }
        }
        Ok(flipped)
    }

    /// Margin below which a support vector is at its bound.
    fn edge(&self) -> f64 {
        1.0 - 2.0 * self.svc.tolerance()
    }

    /// Bounds on K(x, x) − K(x, z) and on the distance of two images.
    fn extent(&self) -> (f64, f64) {
        let largest = self.blocks.diagonal().iter().copied().fold(0.0, f64::max);
        let all: Vec<usize> = (0..self.blocks.len()).collect();
        let mut smallest = f64::INFINITY;
        let mut row = vec![0.0; self.blocks.len()];
        for &i in &all {
            self.blocks.block(&[i], 0..self.blocks.len(), &mut [&mut row]);
            smallest = row.iter().copied().fold(smallest, f64::min);
        }
        let radius = largest - smallest.min(largest);
        (radius, (2.0 * radius).sqrt())
    }

    /// Sₚ² of every support vector, given y f of each.
    fn squared_spans(&self, margins: &[f64]) -> Result<Vec<f64>> {
        let n = self.support.len();
        let edge = self.edge();
        let free: Vec<usize> = (0..n).filter(|&i| margins[i] >= edge).collect();
        let m = free.len();
        let diagonal = self.blocks.diagonal();
        let mut row = vec![0.0; n];
        let mut matrix = vec![0.0; m * m];
        for (out, &i) in matrix.chunks_exact_mut(m.max(1)).zip(&free) {
            self.context.checkpoint()?;
            self.blocks.block(&[i], 0..n, &mut [&mut row]);
            for (place, &j) in out.iter_mut().zip(&free) {
                *place = row[j];
            }
        }
        let jitter = JITTER * diagonal.iter().sum::<f64>() / n.max(1) as f64;
        for i in 0..m {
            matrix[i * m + i] += jitter;
        }
        if m == 0 {
            return Ok(diagonal.to_vec());
        }
        let Some(cholesky) = Cholesky::interruptible(matrix, m, self.context)? else {
            return Ok(diagonal.to_vec());
        };
        let mut ones = vec![1.0; m];
        cholesky.solve(&mut ones);
        let total: f64 = ones.iter().sum();
        let lower = cholesky.inverse_lower(self.context)?;
        let mut inverse = vec![0.0; m];
        for row in lower.chunks_exact(m) {
            for (sum, entry) in inverse.iter_mut().zip(row) {
                *sum += entry * entry;
            }
        }
        let mut spans = vec![0.0; n];
        for (k, &i) in free.iter().enumerate() {
            spans[i] = 1.0 / (inverse[k] - ones[k] * ones[k] / total);
        }
        for i in (0..n).filter(|i| margins[*i] < edge) {
            self.context.checkpoint()?;
            self.blocks.block(&[i], 0..n, &mut [&mut row]);
            let mut half: Vec<f64> = free.iter().map(|&j| row[j]).collect();
            let sum: f64 = half.iter().zip(&ones).map(|(k, w)| k * w).sum();
            cholesky.solve_lower(&mut half);
            let known: f64 = half.iter().map(|v| v * v).sum();
            spans[i] = diagonal[i] - known + (sum - 1.0).powi(2) / total;
        }
        let sound = |span: f64| if span.is_finite() { span.max(0.0) } else { 0.0 };
        Ok(spans.into_iter().map(sound).collect())
    }
}

/// The sign that rows of a class have in function `f`, if they take part.
fn side(table: &ClassTable, f: usize, class: usize) -> Option<f64> {
    let classes = table.names.len();
    match table.scheme {
        Scheme::OneVsRest => Some(if f == class { 1.0 } else { -1.0 }),
        _ => {
            let mut pairs = (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j)));
            match pairs.nth(f)? {
                (positive, _) if positive == class => Some(1.0),
                (_, negative) if negative == class => Some(-1.0),
                _ => None,
            }
        }
    }
}
