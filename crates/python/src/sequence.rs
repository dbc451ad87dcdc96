//! Hidden Markov models.

use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use widemargin::data::Dense;
use widemargin::machine::Covariance;
use widemargin::machine::sequence::{
    BaumWelch, Emission, EmissionPrior, Hmm as Chain, Observations, Sequences, Updates,
};
use widemargin::{CancelToken, Context};

use crate::errors::exception;
use crate::machines::{context, limited};
use crate::table::array2;
use crate::training::{run_observed, slice};

/// A sequence row by row and its states.
type Sample<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<u32>>);

/// A hidden Markov model; immutable.
#[pyclass(frozen, module = "widemargin._core")]
pub(crate) struct Hmm {
    chain: Chain,
}

/// Observations as NumPy holds them: symbols or rows.
#[derive(FromPyObject)]
pub(crate) enum Observed<'py> {
    Symbols(PyReadonlyArray1<'py, u32>),
    Rows(PyReadonlyArray2<'py, f64>),
}

impl Observed<'_> {
    fn sequences(&self, lengths: Option<Vec<usize>>) -> PyResult<Sequences> {
        match self {
            Self::Symbols(symbols) => Sequences::of_symbols(slice(symbols)?.to_vec(), lengths),
            Self::Rows(rows) => {
                let values = rows.as_slice()?.to_vec();
                let [count, features] = [rows.shape()[0], rows.shape()[1]];
                Dense::new(count, features, values)
                    .and_then(|rows| Sequences::of_rows(rows, lengths))
            }
        }
        .map_err(exception)
    }
}

/// Emissions of a kind by name.
fn emission(
    kind: &str,
    values: Vec<f64>,
    shape: &str,
    covariances: Vec<f64>,
) -> PyResult<Emission> {
    Ok(match kind {
        "categorical" => Emission::Categorical { probabilities: values },
        "poisson" => Emission::Poisson { rates: values },
        "gaussian" => {
            let shape: Covariance = shape.parse().map_err(exception)?;
            Emission::Gaussian { means: values, shape, covariances }
        }
        other => return Err(PyValueError::new_err(format!("unknown emissions '{other}'"))),
    })
}

/// How Baum–Welch is to run; the items of a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Training {
    iterations: usize,
    tol: f64,
    starts: usize,
    /// Start, transition, emission, covariance.
    updates: (bool, bool, bool, bool),
    /// As `updates`.
    redrawn: (bool, bool, bool, bool),
    start_count: f64,
    transition_count: f64,
    count: f64,
    mean: f64,
    mean_weight: f64,
    covariance: f64,
    covariance_weight: f64,
    rate: f64,
    rate_weight: f64,
    logarithms: bool,
    seed: u64,
    threads: usize,
    max_seconds: Option<f64>,
}

impl Training {
    fn prior(&self) -> EmissionPrior {
        EmissionPrior {
            count: self.count,
            mean: self.mean,
            mean_weight: self.mean_weight,
            covariance: self.covariance,
            covariance_weight: self.covariance_weight,
            rate: self.rate,
            rate_weight: self.rate_weight,
            ..EmissionPrior::default()
        }
    }

    fn trainer(&self) -> BaumWelch {
        let updates = |(start, transition, emission, covariance)| Updates {
            start,
            transition,
            emission,
            covariance,
        };
        BaumWelch {
            iterations: self.iterations,
            tol: self.tol,
            starts: self.starts,
            updates: updates(self.updates),
            redrawn: updates(self.redrawn),
            start_count: self.start_count,
            transition_count: self.transition_count,
            prior: self.prior(),
            logarithms: self.logarithms,
        }
    }
}

/// Positions times squared states from which on a computation takes so long that signals have to be handled.
const LONG: usize = 1 << 24;

impl Hmm {
    /// What the model says of sequences.
    fn ask<R: Send + 'static>(
        &self,
        py: Python<'_>,
        sequences: Sequences,
        threads: usize,
        work: impl FnOnce(&Chain, &Sequences, &Context) -> widemargin::Result<R> + Send + 'static,
    ) -> PyResult<R> {
        let states = self.chain.states();
        if sequences.positions().saturating_mul(states * states) < LONG {
            let context = quiet(threads)?;
            return py.detach(|| work(&self.chain, &sequences, &context)).map_err(exception);
        }
        let chain = self.chain.clone();
        let work = move |context: &Context| work(&chain, &sequences, context);
        beside(py, quiet(threads)?, work)
    }
}

/// Runs `work` beside the interpreter, which handles signals meanwhile.
fn beside<R: Send + 'static>(
    py: Python<'_>,
    context: Context,
    work: impl FnOnce(&Context) -> widemargin::Result<R> + Send + 'static,
) -> PyResult<R> {
    let cancel = CancelToken::new();
    let context = context.with_cancel_token(cancel.clone());
    run_observed(py, context, cancel, None, work).map(|(found, _)| found)
}

fn quiet(threads: usize) -> PyResult<Context> {
    context(threads, 0, CancelToken::new())
}

#[pymethods]
impl Hmm {
    #[new]
    fn new(
        start: Vec<f64>,
        transition: Vec<f64>,
        kind: &str,
        values: Vec<f64>,
        shape: &str,
        covariances: Vec<f64>,
    ) -> PyResult<Self> {
        let emission = emission(kind, values, shape, covariances)?;
        Chain::new(start, transition, emission).map(|chain| Self { chain }).map_err(exception)
    }

    /// A random model of so many states for emissions of that kind, with `size` features or symbols.
    #[staticmethod]
    fn random(
        py: Python<'_>,
        states: usize,
        kind: &str,
        size: usize,
        shape: &str,
        observed: Observed<'_>,
        lengths: Option<Vec<usize>>,
        seed: u64,
    ) -> PyResult<Self> {
        let like = emission(kind, vec![0.0; states * size], shape, Vec::new())?;
        let sequences = observed.sequences(lengths)?;
        let random = py.detach(|| Chain::random(states, &like, &sequences, seed));
        random.map(|chain| Self { chain }).map_err(exception)
    }

    /// Baum–Welch: the model, the history of the log-likelihood, its last value of every start, and how it
    /// ended. `on_event` is called for iterations.
    fn fit<'py>(
        &self,
        py: Python<'py>,
        observed: Observed<'py>,
        lengths: Option<Vec<usize>>,
        training: Training,
        on_event: Option<Py<PyAny>>,
    ) -> PyResult<(Self, Vec<f64>, Vec<f64>, String)> {
        let sequences = observed.sequences(lengths)?;
        let (first, trainer) = (self.chain.clone(), training.trainer());
        let cancel = CancelToken::new();
        let context = context(training.threads, training.seed, cancel.clone())?;
        let context = limited(context, training.max_seconds);
        let work = move |context: &Context| trainer.fit(&first, &sequences, context);
        let (fit, _) = run_observed(py, context, cancel, on_event, work)?;
        Ok((Self { chain: fit.hmm }, fit.history, fit.starts, fit.status.to_string()))
    }

    /// The model of sequences whose states are known.
    fn fit_states<'py>(
        &self,
        py: Python<'py>,
        path: PyReadonlyArray1<'py, u32>,
        observed: Observed<'py>,
        lengths: Option<Vec<usize>>,
        smoothing: f64,
        training: Training,
    ) -> PyResult<Self> {
        let (sequences, path) = (observed.sequences(lengths)?, slice(&path)?.to_vec());
        let (prior, context) = (training.prior(), quiet(training.threads)?);
        let learn =
            || Chain::from_states(&path, &sequences, &self.chain, smoothing, &prior, &context);
        py.detach(learn).map(|chain| Self { chain }).map_err(exception)
    }

    /// ln p(x) of every sequence and the posteriors of all positions.
    fn posteriors<'py>(
        &self,
        py: Python<'py>,
        observed: Observed<'py>,
        lengths: Option<Vec<usize>>,
        logarithms: bool,
        threads: usize,
    ) -> PyResult<(Vec<f64>, Bound<'py, PyArray2<f64>>)> {
        let sequences = observed.sequences(lengths)?;
        let found = self.ask(py, sequences, threads, move |chain, sequences, context| {
            chain.posteriors(sequences, logarithms, context)
        })?;
        let shape = [found.states.rows(), found.states.columns()];
        Ok((found.log_likelihoods, array2(py, found.states.values().to_vec(), shape)?))
    }

    /// ln p(x) of all sequences together.
    fn log_likelihood<'py>(
        &self,
        py: Python<'py>,
        observed: Observed<'py>,
        lengths: Option<Vec<usize>>,
        threads: usize,
    ) -> PyResult<f64> {
        self.ask(py, observed.sequences(lengths)?, threads, Chain::log_likelihood)
    }

    /// The most probable path and its ln p.
    fn viterbi<'py>(
        &self,
        py: Python<'py>,
        observed: Observed<'py>,
        lengths: Option<Vec<usize>>,
        threads: usize,
    ) -> PyResult<(Bound<'py, PyArray1<u32>>, f64)> {
        let found = self.ask(py, observed.sequences(lengths)?, threads, Chain::viterbi)?;
        Ok((found.0.into_pyarray(py), found.1))
    }

    /// A random sequence, row by row, and its states.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        length: usize,
        first: Option<usize>,
        seed: u64,
    ) -> PyResult<Sample<'py>> {
        let chain = self.chain.clone();
        let work = move |context: &Context| chain.sample(length, first, context);
        let found = beside(py, Context::new().with_seed(seed), work)?;
        let (values, width) = match found.0 {
            Observations::Symbols(symbols) => (symbols.into_iter().map(f64::from).collect(), 1),
            Observations::Rows { values, features } => (values, features),
            _ => return Err(PyValueError::new_err("unknown observations")),
        };
        Ok((array2(py, values, [length, width])?, found.1.into_pyarray(py)))
    }

    /// Start and transition probabilities, emissions and covariances, each as one list.
    fn parts(&self) -> (Vec<f64>, Vec<f64>, Vec<f64>, Vec<f64>) {
        let (values, covariances) = match self.chain.emission() {
            Emission::Categorical { probabilities } => (probabilities.clone(), Vec::new()),
            Emission::Gaussian { means, covariances, .. } => (means.clone(), covariances.clone()),
            Emission::Poisson { rates } => (rates.clone(), Vec::new()),
            _ => (Vec::new(), Vec::new()),
        };
        (self.chain.start().to_vec(), self.chain.transition().to_vec(), values, covariances)
    }

    /// Free parameters.
    #[getter]
    fn parameters(&self) -> usize {
        self.chain.parameters()
    }
}
