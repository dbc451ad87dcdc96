//! Hidden Markov models.

use std::path::PathBuf;

use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use widemargin::data::{Dense, Label};
use widemargin::machine::sequence::{
    BaumWelch, Emission, EmissionPrior, HiddenMarkov, Hmm as Chain, Observations, Sequences,
    Updates,
};
use widemargin::machine::{Body, Covariance, MachineKind, Model as Trained};
use widemargin::{CancelToken, Context};

use crate::errors::exception;
use crate::machines::{context, limited};
use crate::model::Model;
use crate::table::array2;
use crate::training::{run_observed, slice};

/// A model, its emissions, the shape of its covariances, names of its states and of its features.
type Restored = (Hmm, &'static str, String, Vec<String>, Option<Vec<String>>);

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

/// Sequences as NumPy holds them; the items of a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Given<'py> {
    observed: Observed<'py>,
    lengths: Option<Vec<usize>>,
    /// Whether rows are ln b(x | state) of every state.
    densities: bool,
    inputs: Option<PyReadonlyArray1<'py, u32>>,
    lag: usize,
    /// States that are known, 2³² − 1 elsewhere.
    known: Option<PyReadonlyArray1<'py, u32>>,
}

impl Given<'_> {
    fn sequences(&self) -> PyResult<Sequences> {
        let lengths = self.lengths.clone();
        let mut sequences = match &self.observed {
            Observed::Symbols(symbols) => Sequences::of_symbols(slice(symbols)?.to_vec(), lengths),
            Observed::Rows(rows) => {
                let values = rows.as_slice()?.to_vec();
                let [count, features] = [rows.shape()[0], rows.shape()[1]];
                Dense::new(count, features, values).and_then(|rows| match self.densities {
                    true => Sequences::of_log_densities(rows, lengths),
                    false => Sequences::of_rows(rows, lengths),
                })
            }
        }
        .map_err(exception)?;
        if let Some(inputs) = &self.inputs {
            sequences = sequences.with_inputs(slice(inputs)?, self.lag).map_err(exception)?;
        }
        if let Some(known) = &self.known {
            sequences = sequences.with_known_states(slice(known)?.to_vec()).map_err(exception)?;
        }
        Ok(sequences)
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
        "given" => Emission::Given,
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
    uniform_below: f64,
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
            uniform_below: self.uniform_below,
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
        inputs: usize,
        given: Given<'_>,
        seed: u64,
    ) -> PyResult<Self> {
        let like = emission(kind, vec![0.0; states * size], shape, Vec::new())?;
        let sequences = given.sequences()?;
        let random = py.detach(|| Chain::random_with(states, inputs, &like, &sequences, seed));
        random.map(|chain| Self { chain }).map_err(exception)
    }

    /// Baum–Welch: the model, the history of the log-likelihood, its last value of every start, and how it
    /// ended. `on_event` is called for iterations.
    fn fit<'py>(
        &self,
        py: Python<'py>,
        given: Given<'py>,
        training: Training,
        on_event: Option<Py<PyAny>>,
    ) -> PyResult<(Self, Vec<f64>, Vec<f64>, String)> {
        let sequences = given.sequences()?;
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
        given: Given<'py>,
        smoothing: f64,
        training: Training,
    ) -> PyResult<Self> {
        let (sequences, path) = (given.sequences()?, slice(&path)?.to_vec());
        let (prior, context) = (training.prior(), quiet(training.threads)?);
        let learn =
            || Chain::from_states(&path, &sequences, &self.chain, smoothing, &prior, &context);
        py.detach(learn).map(|chain| Self { chain }).map_err(exception)
    }

    /// ln p(x) of every sequence and the posteriors of all positions.
    fn posteriors<'py>(
        &self,
        py: Python<'py>,
        given: Given<'py>,
        logarithms: bool,
        threads: usize,
    ) -> PyResult<(Vec<f64>, Bound<'py, PyArray2<f64>>)> {
        let sequences = given.sequences()?;
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
        given: Given<'py>,
        threads: usize,
    ) -> PyResult<f64> {
        self.ask(py, given.sequences()?, threads, Chain::log_likelihood)
    }

    /// The most probable path and its ln p.
    fn viterbi<'py>(
        &self,
        py: Python<'py>,
        given: Given<'py>,
        threads: usize,
    ) -> PyResult<(Bound<'py, PyArray1<u32>>, f64)> {
        let found = self.ask(py, given.sequences()?, threads, Chain::viterbi)?;
        Ok((found.0.into_pyarray(py), found.1))
    }

    /// A random sequence, row by row, and its states; with the input that chooses the transition into every position.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<u32>,
        first: Option<usize>,
        seed: u64,
    ) -> PyResult<Sample<'py>> {
        let (chain, length) = (self.chain.clone(), inputs.len());
        let work = move |context: &Context| chain.sample_with(&inputs, first, context);
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

    /// Writes the model to a file, its states named by their numbers.
    fn save(&self, path: PathBuf, symbols: Option<Vec<String>>) -> PyResult<()> {
        let names = (0..self.chain.states() as i64).map(Label::Int).collect();
        let body = HiddenMarkov::new(self.chain.clone(), names).map_err(exception)?;
        let model =
            Trained { feature_names: symbols, ..Trained::new(MachineKind::HiddenMarkov, body) };
        model.save(path).map_err(exception)
    }

    /// What a model file holds: the model, the kind of emissions, the shape of covariances, names of states, names of symbols
    /// or features.
    #[staticmethod]
    fn of_model(model: PyRef<'_, Model>) -> PyResult<Restored> {
        let model = model.shared();
        let Body::HiddenMarkov(body) = &model.body else {
            return Err(PyValueError::new_err("expected a hidden Markov model"));
        };
        let chain = body.hmm().clone();
        let (kind, shape) = match chain.emission() {
            Emission::Categorical { .. } => ("categorical", "diag".to_owned()),
            Emission::Gaussian { shape, .. } => ("gaussian", shape.to_string()),
            _ => ("poisson", "diag".to_owned()),
        };
        let names = body.names().iter().map(ToString::to_string).collect();
        Ok((Self { chain }, kind, shape, names, model.feature_names.clone()))
    }

    /// Free parameters.
    #[getter]
    fn parameters(&self) -> usize {
        self.chain.parameters()
    }
}
