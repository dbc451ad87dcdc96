//! Large-margin chains: sequences of Python's items in, tags out.

use std::sync::Arc;

use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use widemargin::data::{Classes, Dictionary, Label, SequenceBuilder, TaggedSequences};
use widemargin::machine::sequence::{
    ChainAlternation, Labeller, Labelling, PackedChain, TagConstraints,
};
use widemargin::machine::{Body, Model as Trained};
use widemargin::{CancelToken, Context};

use crate::errors::exception;
use crate::machines::Settings;
use crate::model::Model;
use crate::table::Table;
use crate::training::{Name, run_observed, slice};

/// Sequences as Python gives them: all rows of numbers with the length of every sequence, or a list of lists of items.
#[derive(FromPyObject)]
pub(crate) enum Given<'py> {
    Rows(Table<'py>, Vec<usize>),
    Items(Vec<Vec<Bound<'py, PyAny>>>),
}

impl Given<'_> {
    /// The sequences, or the positions collected, their features numbered by `place`.
    fn sequences(
        &self,
        place: &mut dyn FnMut(&str) -> Option<u32>,
    ) -> PyResult<Result<TaggedSequences, SequenceBuilder>> {
        match self {
            Self::Rows(table, lengths) => {
                let rows = table.matrix()?;
                TaggedSequences::new(rows, lengths.clone()).map(Ok).map_err(exception)
            }
            Self::Items(sequences) => {
                let mut builder = SequenceBuilder::default();
                for (s, items) in sequences.iter().enumerate() {
                    if items.is_empty() {
                        return Err(PyValueError::new_err(format!("sequence {s} of X is empty")));
                    }
                    for (k, item) in items.iter().enumerate() {
                        let mut collector = Collector { place: &mut *place, builder: &mut builder };
                        collector.item("", item).map_err(|error| {
                            PyTypeError::new_err(format!("position {k} of sequence {s}: {error}"))
                        })?;
                        builder.end_position();
                    }
                    builder.end_sequence();
                }
                Ok(Err(builder))
            }
        }
    }
}

/// Collects the features of a position.
struct Collector<'a> {
    place: &'a mut dyn FnMut(&str) -> Option<u32>,
    builder: &'a mut SequenceBuilder,
}

impl Collector<'_> {
    /// A dictionary of features, or a list or set of those that are there; `prefix` stands before their names.
    fn item(&mut self, prefix: &str, item: &Bound<'_, PyAny>) -> Result<(), String> {
        let expected = |found: &Bound<'_, PyAny>| {
            format!("expected a dict or a list of strings, found {found:?}")
        };
        if let Ok(features) = item.cast::<PyDict>() {
            for (key, value) in features.iter() {
                let key = key.cast::<PyString>().map_err(|_| {
                    format!("expected names of features that are strings, found {key:?}")
                })?;
                let key = key.to_cow().map_err(|error| error.to_string())?;
                self.feature(prefix, &key, &value)?;
            }
            return Ok(());
        }
        if item.is_instance_of::<PyString>() {
            return Err(expected(item));
        }
        for name in item.try_iter().map_err(|_| expected(item))? {
            let name = name.map_err(|error| error.to_string())?;
            let text = name.cast::<PyString>().map_err(|_| expected(item))?;
            let text = text.to_cow().map_err(|error| error.to_string())?;
            self.add(&format!("{prefix}{text}"), 1.0);
        }
        Ok(())
    }

    fn feature(&mut self, prefix: &str, key: &str, value: &Bound<'_, PyAny>) -> Result<(), String> {
        if let Ok(text) = value.cast::<PyString>() {
            let text = text.to_cow().map_err(|error| error.to_string())?;
            self.add(&format!("{prefix}{key}:{text}"), 1.0);
        } else if value.is_instance_of::<PyBool>()
            || value.is_instance_of::<PyInt>()
            || value.is_instance_of::<PyFloat>()
            || value.hasattr("__float__").unwrap_or(false)
        {
            let number: f64 = value.extract().map_err(|error: PyErr| error.to_string())?;
            self.add(&format!("{prefix}{key}"), number);
        } else {
            self.item(&format!("{prefix}{key}:"), value)?;
        }
        Ok(())
    }

    fn add(&mut self, name: &str, value: f64) {
        if value != 0.0
            && let Some(place) = (self.place)(name)
        {
            self.builder.add(place, value);
        }
    }
}

/// Tags that are never first, and pairs that are never neighbours.
type Forbidden = (Vec<Name>, Vec<(Name, Name)>);

/// Tags of a sequence and their score.
type Tagged = (Vec<u32>, f64);

fn constraints((first, pairs): Forbidden) -> TagConstraints {
    TagConstraints::Forbidden {
        first: first.into_iter().map(Name::label).collect(),
        pairs: pairs.into_iter().map(|(a, b)| (a.label(), b.label())).collect(),
    }
}

/// The sequences, named features numbered in the order of their appearance.
fn collected(given: &Given<'_>) -> PyResult<TaggedSequences> {
    let mut dictionary = Dictionary::new();
    match given.sequences(&mut |name| dictionary.place(name))? {
        Ok(data) => Ok(data),
        Err(builder) => builder
            .finish(dictionary.len())
            .and_then(|data| data.with_feature_names(dictionary.into_names()))
            .map_err(exception),
    }
}

/// Trains a chain; codes that stand for no name are positions without a tag. Returns the model and the warnings.
#[pyfunction]
#[pyo3(signature = (settings, given, codes, names, forbidden=None, weights=None, on_event=None))]
#[expect(clippy::too_many_arguments, reason = "they are the keyword arguments of Python")]
pub(crate) fn fit_chain<'py>(
    py: Python<'py>,
    settings: Settings,
    given: Given<'py>,
    codes: PyReadonlyArray1<'py, u32>,
    names: Vec<Name>,
    forbidden: Option<Forbidden>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    on_event: Option<Py<PyAny>>,
) -> PyResult<(Model, Vec<String>)> {
    let mut data = collected(&given)?;
    let specification = settings.specification(&[])?;
    let mut machine = specification.chain_svc(data.rows()).map_err(exception)?;
    if let Some(forbidden) = forbidden {
        machine.constraints = constraints(forbidden);
    }
    let names: Vec<Label> = names.into_iter().map(Name::label).collect();
    let codes = slice(&codes)?.to_vec();
    data = data.with_classes(Classes { names, codes }).map_err(exception)?;
    if let Some(weights) = weights {
        data = data.with_weights(slice(&weights)?.to_vec()).map_err(exception)?;
    }
    let cancel = CancelToken::new();
    let context = settings.context(cancel.clone())?;
    let work = move |context: &Context| machine.fit(&data, context);
    let (mut model, warnings) = run_observed(py, context, cancel, on_event, work)?;
    specification.record(&mut model);
    Ok((Model::new(model), warnings))
}

/// What an alternation found: the model, a tag for every position, the objectives, and how it ended.
type Alternated = (Model, Vec<u32>, Vec<f64>, String);

/// Trains and tags in turn, from the given codes on.
#[pyfunction]
#[pyo3(signature = (settings, given, start, count, rounds, on_event=None))]
pub(crate) fn alternate_chain<'py>(
    py: Python<'py>,
    settings: Settings,
    given: Given<'py>,
    start: PyReadonlyArray1<'py, u32>,
    count: usize,
    rounds: usize,
    on_event: Option<Py<PyAny>>,
) -> PyResult<Alternated> {
    let data = collected(&given)?;
    let specification = settings.specification(&[])?;
    let machine = specification.chain_svc(data.rows()).map_err(exception)?;
    let machine = ChainAlternation { machine, rounds };
    let start = slice(&start)?.to_vec();
    let cancel = CancelToken::new();
    let context = settings.context(cancel.clone())?;
    let work = move |context: &Context| machine.fit(&data, &start, count, context);
    let (mut fit, _) = run_observed(py, context, cancel, on_event, work)?;
    specification.record(&mut fit.model);
    Ok((Model::new(fit.model), fit.tags, fit.objectives, fit.status.to_string()))
}

/// A trained chain made ready to label.
#[pyclass(frozen, module = "widemargin._core")]
pub(crate) struct Chain {
    model: Arc<Trained>,
    packed: PackedChain,
    dictionary: Dictionary,
}

impl Chain {
    fn with_labeller<R: Send>(
        &self,
        py: Python<'_>,
        given: &Given<'_>,
        threads: usize,
        ask: impl FnOnce(&Labeller<'_>, &TaggedSequences) -> widemargin::Result<R> + Send,
    ) -> PyResult<R> {
        let data = match given.sequences(&mut |name| self.dictionary.find(name))? {
            Ok(data) => data,
            Err(builder) => builder.finish(self.dictionary.len()).map_err(exception)?,
        };
        let Body::Chain(chain) = &self.model.body else { return Err(not_a_chain()) };
        let result = py.detach(|| {
            let context = Context::new().with_threads(threads)?;
            ask(&chain.labeller_with(&self.packed, &context), &data)
        });
        result.map_err(exception)
    }
}

fn not_a_chain() -> PyErr {
    PyValueError::new_err("expected the model of a chain")
}

#[pymethods]
impl Chain {
    #[new]
    fn new(model: PyRef<'_, Model>) -> PyResult<Self> {
        let model = model.shared();
        let Body::Chain(chain) = &model.body else { return Err(not_a_chain()) };
        let packed = chain.pack().map_err(exception)?;
        let names = model.feature_names.as_deref().unwrap_or_default();
        let dictionary = Dictionary::closed(names);
        Ok(Self { model, packed, dictionary })
    }

    /// The best tags of every sequence, as codes, and their score.
    fn label(&self, py: Python<'_>, given: Given<'_>, threads: usize) -> PyResult<Vec<Tagged>> {
        let found =
            self.with_labeller(py, &given, threads, |labeller, data| labeller.label(data))?;
        Ok(found.into_iter().map(parts).collect())
    }

    /// The n best labellings of every sequence.
    fn n_best(
        &self,
        py: Python<'_>,
        given: Given<'_>,
        n: usize,
        threads: usize,
    ) -> PyResult<Vec<Vec<Tagged>>> {
        let found =
            self.with_labeller(py, &given, threads, |labeller, data| labeller.n_best(data, n))?;
        Ok(found.into_iter().map(|list| list.into_iter().map(parts).collect()).collect())
    }

    /// The tags.
    #[getter]
    fn tags<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let Body::Chain(chain) = &self.model.body else { return Err(not_a_chain()) };
        chain.tags.iter().map(|tag| label_to_python(py, tag)).collect()
    }

    /// Score of every pair of tags, row by row.
    #[getter]
    fn pairs(&self) -> PyResult<Vec<f64>> {
        let Body::Chain(chain) = &self.model.body else { return Err(not_a_chain()) };
        Ok(chain.pairs.clone())
    }

    /// Whether no sequence begins with a tag, for every tag.
    #[getter]
    fn first_forbidden(&self) -> PyResult<Vec<bool>> {
        let Body::Chain(chain) = &self.model.body else { return Err(not_a_chain()) };
        Ok(chain.first_forbidden.clone())
    }
}

fn label_to_python<'py>(py: Python<'py>, label: &Label) -> PyResult<Bound<'py, PyAny>> {
    Ok(match label {
        Label::Int(value) => value.into_pyobject(py)?.into_any(),
        Label::Real(value) => value.into_pyobject(py)?.into_any(),
        Label::Text(value) => value.into_pyobject(py)?.into_any(),
    })
}

fn parts(labelling: Labelling) -> Tagged {
    (labelling.tags, labelling.score)
}
