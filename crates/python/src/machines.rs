//! Parameters as Python holds them, made into the library's machines.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use widemargin::data::{Label, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{
    AllInOne, Bias, CalibrationMethod, ClassWeights, Epochs, Gamma, KernelDefaults,
    KernelExpression, LinearOptions, LinearSvc, LinearSvr, Loss, Machine, Model, MulticlassSvc,
    NuSvc, NuSvr, OneClass, OnlineLearner, OnlineSvc, Precision, Scheme, SolverOptions, Svc, Svdd,
    Svr, error_correcting_code,
};
use widemargin::{CancelToken, Context};

use crate::errors::exception;

/// Everything an estimator says about how to train; the items of a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings {
    machine: String,
    c: f64,
    nu: f64,
    epsilon: f64,
    squared_loss: bool,
    kernel: String,
    gamma: GammaSetting,
    coef0: f64,
    degree: u32,
    tol: f64,
    shrinking: bool,
    max_iterations: Option<u64>,
    single_precision: bool,
    scheme: String,
    calibration: Option<String>,
    seed: u64,
    cache_megabytes: f64,
    threads: usize,
    max_seconds: Option<f64>,
    bias: bool,
    online: Option<Online>,
    linear: Option<Linear>,
}

/// What linear machines need beside that.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Linear {
    loss: String,
    penalty: String,
    solver: String,
    multiclass: String,
    /// Value of the appended feature.
    intercept: Option<f64>,
    /// Factor on C for every class.
    class_weights: Vec<f64>,
}

/// What online training needs beside that.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Online {
    epochs: Option<usize>,
    strategy: String,
    budget: Option<usize>,
    shuffle: bool,
}

/// A name or a number for the kernel width.
#[derive(FromPyObject)]
pub(crate) enum GammaSetting {
    Rule(String),
    Value(f64),
}

impl GammaSetting {
    /// The rule it stands for.
    pub(crate) fn rule(&self) -> PyResult<Gamma> {
        match self {
            Self::Rule(name) => name.parse().map_err(exception),
            Self::Value(gamma) => Ok(Gamma::Value(*gamma)),
        }
    }
}

impl Settings {
    /// The kernel, its parameters resolved on the table it will be trained on.
    pub(crate) fn kernel(&self, features: &Matrix) -> PyResult<Kernel> {
        let gamma = self.gamma.rule()?;
        let defaults = KernelDefaults { gamma, coef0: self.coef0, degree: self.degree };
        KernelExpression::parse(&self.kernel, defaults)
            .and_then(|expression| expression.resolve(features))
            .map_err(exception)
    }

    /// The machine for these classes.
    pub(crate) fn machine(&self, kernel: Kernel, classes: &[Label]) -> PyResult<Box<dyn Machine>> {
        match &self.linear {
            Some(linear) => self.linear(linear, classes),
            None => self.kernel_machine(kernel, classes.len(), ClassWeights::Uniform),
        }
    }

    /// The kernel machine for so many classes, with factors on C by class.
    pub(crate) fn kernel_machine(
        &self,
        kernel: Kernel,
        classes: usize,
        class_weights: ClassWeights,
    ) -> PyResult<Box<dyn Machine>> {
        let loss = if self.squared_loss { Loss::SquaredHinge } else { Loss::Hinge };
        let precision = if self.single_precision { Precision::F32 } else { Precision::F64 };
        let options = SolverOptions {
            tol: self.tol,
            precision,
            shrinking: self.shrinking,
            max_iterations: self.max_iterations,
        };
        let (c, nu, epsilon) = (self.c, self.nu, self.epsilon);
        Ok(match self.machine.as_str() {
            "c-svc" => {
                let scheme = self.scheme(classes)?;
                Box::new(Svc { c, kernel, loss, class_weights, scheme, options, ..Svc::default() })
            }
            "nu-svc" => {
                let scheme = self.scheme(classes)?;
                Box::new(NuSvc { nu, kernel, class_weights, scheme, options, ..NuSvc::default() })
            }
            "epsilon-svr" => Box::new(Svr { c, epsilon, loss, kernel, options }),
            "nu-svr" => Box::new(NuSvr { c, nu, kernel, options }),
            "one-class" => Box::new(OneClass { nu, kernel, options }),
            "svdd" => Box::new(Svdd { nu, kernel, options }),
            other => {
                let machine: AllInOne = other.parse().map_err(exception)?;
                match self.online {
                    Some(_) => Box::new(self.online(machine, kernel)?),
                    None => Box::new(MulticlassSvc {
                        machine,
                        c,
                        kernel,
                        bias: self.bias,
                        class_weights,
                        options,
                        ..MulticlassSvc::default()
                    }),
                }
            }
        })
    }

    /// The linear machine.
    fn linear(&self, linear: &Linear, classes: &[Label]) -> PyResult<Box<dyn Machine>> {
        let options = LinearOptions {
            tol: Some(self.tol),
            precision: if self.single_precision { Precision::F32 } else { Precision::F64 },
            shrinking: self.shrinking,
            max_iterations: self.max_iterations,
            ..LinearOptions::default()
        };
        let bias = linear.intercept.map_or(Bias::None, Bias::Appended);
        let (c, solver) = (self.c, linear.solver.parse().map_err(exception)?);
        if self.machine == "linear-svr" {
            let (epsilon, squared) = (self.epsilon, self.squared_loss);
            return Ok(Box::new(LinearSvr { c, epsilon, squared, bias, solver, options }));
        }
        let factors = classes.iter().cloned().zip(linear.class_weights.iter().copied());
        Ok(Box::new(LinearSvc {
            c,
            loss: linear.loss.parse().map_err(exception)?,
            penalty: linear.penalty.parse().map_err(exception)?,
            multiclass: linear.multiclass.parse().map_err(exception)?,
            bias,
            solver,
            class_weights: ClassWeights::Given(factors.collect()),
            options,
            ..LinearSvc::default()
        }))
    }

    /// The all-in-one machine trained online.
    fn online(&self, machine: AllInOne, kernel: Kernel) -> PyResult<OnlineSvc> {
        let mut svc =
            OnlineSvc { machine, c: self.c, kernel, tol: self.tol, ..OnlineSvc::default() };
        if let Some(online) = &self.online {
            svc.epochs = online.epochs.map_or(Epochs::UntilOptimal, Epochs::Times);
            svc.strategy = online.strategy.parse().map_err(exception)?;
            svc.budget = online.budget;
            svc.shuffle = online.shuffle;
        }
        Ok(svc)
    }

    /// A learner for a stream of the given classes, its kernel resolved on the first rows.
    pub(crate) fn learner(
        &self,
        features: &Matrix,
        classes: Vec<Label>,
    ) -> PyResult<OnlineLearner> {
        let machine: AllInOne = self.machine.parse().map_err(exception)?;
        let svc = self.online(machine, self.kernel(features)?)?;
        let context = self.context(CancelToken::new())?;
        OnlineSvc { classes: Some(classes), ..svc }.learner(&context).map_err(exception)
    }

    /// A learner that goes on where a model ended, with its kernel.
    pub(crate) fn resumed_learner(
        &self,
        model: &Model,
        classes: Vec<Label>,
    ) -> PyResult<OnlineLearner> {
        let machine: AllInOne = self.machine.parse().map_err(exception)?;
        let kernel = model.kernel().cloned().unwrap_or(Kernel::Linear);
        let svc = self.online(machine, kernel)?;
        let context = self.context(CancelToken::new())?;
        OnlineSvc { classes: Some(classes), ..svc }.resume(model, &context).map_err(exception)
    }

    /// Two classes need no reduction, whatever the scheme.
    fn scheme(&self, classes: usize) -> PyResult<Scheme> {
        match self.scheme.as_str() {
            _ if classes <= 2 => Ok(Scheme::OneVsOne),
            "ovo" => Ok(Scheme::OneVsOne),
            "ovr" => Ok(Scheme::OneVsRest),
            "dag" => Ok(Scheme::Dag),
            "ecoc" => Ok(Scheme::ErrorCorrecting(error_correcting_code(classes, self.seed))),
            other => Err(PyValueError::new_err(format!("unknown scheme '{other}'"))),
        }
    }

    /// How probabilities are to be learnt, if at all.
    pub(crate) fn calibration(&self) -> PyResult<Option<CalibrationMethod>> {
        match self.calibration.as_deref() {
            None => Ok(None),
            Some("sigmoid") => Ok(Some(CalibrationMethod::Sigmoid)),
            Some("isotonic") => Ok(Some(CalibrationMethod::Isotonic)),
            Some(other) => Err(PyValueError::new_err(format!("unknown calibration '{other}'"))),
        }
    }

    /// Threads, memory, seed and limits, without an observer.
    pub(crate) fn context(&self, cancel: CancelToken) -> PyResult<Context> {
        let bytes = (self.cache_megabytes * f64::from(1 << 20)) as usize;
        let mut context = context(self.threads, self.seed, cancel)?.with_cache_bytes(bytes);
        // A limit too long for the clock is none.
        if let Some(limit) = self.max_seconds.and_then(|s| Duration::try_from_secs_f64(s).ok()) {
            context = context.with_time_limit(limit);
        }
        Ok(context)
    }
}

/// Threads and seed of a computation that `cancel` can stop.
pub(crate) fn context(threads: usize, seed: u64, cancel: CancelToken) -> PyResult<Context> {
    let context = Context::new().with_threads(threads).map_err(exception)?;
    Ok(context.with_seed(seed).with_cancel_token(cancel))
}

/// Checks that a kernel expression can be read.
///
/// Raises ``ValueError`` saying what was expected where.
#[pyfunction]
pub(crate) fn check_kernel(text: &str) -> PyResult<()> {
    KernelExpression::parse(text, KernelDefaults::default()).map(|_| ()).map_err(exception)
}
