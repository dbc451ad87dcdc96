//! The two-class machine trained by the Kernel-Adatron.

use std::time::Instant;

use super::definiteness;
use super::fit::{FitInput, Machine};
use super::model::Model;
use super::training::{check_outcome, with_precision};
use super::two_class::{TwoClass, two_classes};
use super::{Precision, SolverOptions};
use crate::context::Context;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, KernelBlocks, KernelRows, RowCaching};
use crate::machine::names::defaults;
use crate::numeric::simd::Real;
use crate::solver::adatron;

/// Sweeps over the rows unless an iteration limit says otherwise.
const SWEEPS: u64 = 10_000;

/// The Kernel-Adatron: a [`Svc`](super::Svc) of two classes whose offset is penalised like a weight,
/// one dual variable at a time. A classic to compare with; `Svc` is many times as fast.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::kernel::Kernel;
/// use widemargin::machine::{KernelAdatron, Machine};
/// use widemargin::Context;
///
/// let rows = Dense::new(4, 1, vec![-2.0, -1.0, 1.0, 2.0])?;
/// let labels = Labels::Int(vec![-1, -1, 1, 1]);
/// let data = Dataset::new(Matrix::DenseF64(rows), labels.clone())?;
/// let context = Context::new();
/// let machine = KernelAdatron { kernel: Kernel::Linear, c: 10.0, ..KernelAdatron::default() };
/// let model = machine.fit(&data, &context)?;
/// assert_eq!(model.predictor(&context)?.predict(data.features())?, labels);
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct KernelAdatron {
    /// Price C of margin errors.
    pub c: f64,
    /// The kernel, to which 1 is added.
    pub kernel: Kernel,
    /// The rate η, between 0 and 2; 1 goes to the best value of every variable.
    pub rate: f64,
    /// Tolerance and number format; `max_iterations` counts sweeps, 10 000 by default.
    pub options: SolverOptions,
}

defaults!(KernelAdatron {
    c: 1.0,
    kernel: Kernel::Gaussian { gamma: 1.0 },
    rate: 1.0,
    options: SolverOptions::default(),
});

impl Machine for KernelAdatron {
    fn fit_with(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        Error::check_positive("c", self.c)?;
        if !(self.rate > 0.0 && self.rate < 2.0) {
            return Err(Error::parameter("rate", "a number between 0 and 2", self.rate));
        }
        self.kernel.validate()?;
        self.options.validate()?;
        input.validate()?;
        input.fit_selected(Some(&self.kernel), |data| {
            with_precision!(self.options.precision, context, T => self.train::<T>(data, context))
        })
    }

    fn kernel(&self) -> Option<&Kernel> {
        Some(&self.kernel)
    }

    fn precision(&self) -> Precision {
        self.options.precision
    }
}

impl KernelAdatron {
    fn train<T: Real>(&self, data: &Dataset, context: &Context) -> Result<Model> {
        let started = Instant::now();
        let classes = two_classes(data, "the Kernel-Adatron")?;
        let sign = |code: &u32| if *code == 0 { 1.0 } else { -1.0 };
        let signs: Vec<f64> = classes.codes.iter().map(sign).collect();
        let upper: Vec<f64> = (0..data.rows()).map(|row| self.c * data.weight(row)).collect();
        let blocks = KernelBlocks::<T>::new(&self.kernel, data.features(), None, context)?;
        let negative = definiteness::warn(&self.kernel, &blocks, context)?;
        let segments = vec![0, data.rows()];
        let rows = KernelRows::new(blocks, segments, RowCaching::All, context.cache_bytes());
        let options = adatron::Options {
            rate: self.rate,
            tol: self.options.tol,
            max_sweeps: self.options.max_iterations.unwrap_or(SWEEPS),
        };
        let view = rows.view(&[0], context);
        let (alpha, outcome) = adatron::solve(&view, &signs, &upper, &options, context);
        rows.blocks().check_values()?;
        check_outcome(&self.kernel, &outcome)?;
        let support: Vec<(usize, f64)> =
            alpha.iter().zip(&signs).map(|(a, y)| a * y).enumerate().collect();
        let model = TwoClass {
            data,
            classes: &classes,
            kernel: &self.kernel,
            precision: Precision::of::<T>(),
            offset: -support.iter().map(|(_, coefficient)| coefficient).sum::<f64>(),
            support,
            outcome,
            started,
            parameters: vec![
                ("c".into(), self.c.into()),
                ("tol".into(), self.options.tol.into()),
                ("rate".into(), self.rate.into()),
            ],
        }
        .model();
        Ok(definiteness::noted(model, negative))
    }
}
