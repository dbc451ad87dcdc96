//! Sites and the coordinator of a training that Python's engines run: bytes in, bytes out.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use widemargin::data::{Census, Dataset, Labels};
use widemargin::operation::distribute::{
    Address, DistributedPlan, Distribution, Ending, Envelope, RemoteCoordinator, RemoteSite,
    Report, SolutionRequest,
};
use widemargin::{CancelToken, Context};

use crate::errors::exception;
use crate::machines::{Settings, limited};
use crate::model::Model;
use crate::outcome::set_fields;
use crate::table::Table;
use crate::training::{Name, Targets, class_labels, names_in_labels, slice, target_names};

/// Sender, receiver (−1 for the coordinator) and content of a message.
type Message<'py> = (i64, i64, Bound<'py, PyBytes>);

/// What is asked for at the end: a site, and the verification of its solution.
type RequestedVerification = (usize, Option<(u32, u32)>);

fn address(number: i64) -> Address {
    u32::try_from(number).map_or(Address::Coordinator, Address::Site)
}

fn number(address: Address) -> i64 {
    match address {
        Address::Coordinator => -1,
        Address::Site(site) => i64::from(site),
    }
}

fn envelopes(messages: Vec<Message<'_>>) -> Vec<Envelope> {
    let envelope = |(from, to, bytes): Message<'_>| {
        let bytes = bytes.as_bytes().to_vec();
        Envelope { from: address(from), to: address(to), bytes }
    };
    messages.into_iter().map(envelope).collect()
}

fn messages(py: Python<'_>, envelopes: Vec<Envelope>) -> Vec<Message<'_>> {
    let message = |envelope: Envelope| {
        (number(envelope.from), number(envelope.to), PyBytes::new(py, &envelope.bytes))
    };
    envelopes.into_iter().map(message).collect()
}

/// The rows of one place.
fn part(
    features: &Table<'_>,
    targets: Option<Targets<'_>>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
) -> PyResult<Dataset> {
    let labels = match targets {
        None => Labels::None,
        Some(Targets::Numbers(values)) => Labels::Real(slice(&values)?.to_vec()),
        Some(Targets::Classes(codes, names)) => class_labels(slice(&codes)?, &target_names(names))?,
    };
    let data = Dataset::new(features.matrix()?, labels).map_err(exception)?;
    match weights {
        Some(weights) => data.with_weights(slice(&weights)?.to_vec()).map_err(exception),
        None => Ok(data),
    }
}

/// Counts and moments of the rows of one place, as bytes.
#[pyfunction]
#[pyo3(signature = (features, targets=None, weights=None))]
pub(crate) fn census<'py>(
    py: Python<'py>,
    features: Table<'py>,
    targets: Option<Targets<'py>>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let has_classes = matches!(targets, Some(Targets::Classes(..)));
    let data = part(&features, targets, weights)?;
    let census = py.detach(|| Census::of(&data, has_classes)).map_err(exception)?;
    Ok(PyBytes::new(py, &census.to_bytes().map_err(exception)?))
}

/// What all participants of a training have to know, from the counts of all places.
#[pyfunction]
pub(crate) fn training_plan<'py>(
    py: Python<'py>,
    settings: Settings,
    classes: Vec<Name>,
    censuses: Vec<Vec<u8>>,
    topology: &str,
    schedule: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let classes = names_in_labels(target_names(classes));
    let distribution = Distribution {
        topology: topology.parse().map_err(exception)?,
        schedule: schedule.parse().map_err(exception)?,
        ..Distribution::default()
    };
    let sites = censuses.len();
    let mut all: Option<Census> = None;
    for census in &censuses {
        let census = Census::from_bytes(census).map_err(exception)?;
        all = Some(match all {
            Some(before) => before.joined(census).map_err(exception)?,
            None => census,
        });
    }
    let census = all.ok_or_else(|| PyRuntimeError::new_err("expected at least one place"))?;
    let specification = settings.specification(&classes)?;
    let plan = DistributedPlan::new(specification, census, distribution, sites, settings.seed());
    let plan = plan.and_then(|plan| plan.to_bytes()).map_err(exception)?;
    Ok(PyBytes::new(py, &plan))
}

fn open<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One site with its rows.
#[pyclass(frozen, module = "widemargin._core")]
pub(crate) struct Site {
    site: Mutex<RemoteSite>,
    context: Context,
}

#[pymethods]
impl Site {
    /// The site of a plan with its number and the number of its first row among those of all sites.
    #[new]
    #[pyo3(signature = (plan, place, features, targets, weights, threads, cache_megabytes))]
    fn new<'py>(
        py: Python<'py>,
        plan: &[u8],
        place: (usize, u64),
        features: Table<'py>,
        targets: Option<Targets<'py>>,
        weights: Option<PyReadonlyArray1<'py, f64>>,
        threads: usize,
        cache_megabytes: f64,
    ) -> PyResult<Self> {
        let context = Context::new().with_threads(threads).map_err(exception)?;
        let context = context.with_cache_bytes((cache_megabytes * f64::from(1 << 20)) as usize);
        let data = part(&features, targets, weights)?;
        let site = py.detach(|| {
            let plan = DistributedPlan::from_bytes(plan)?;
            RemoteSite::new(&plan, place.0, data, place.1)
        });
        Ok(Self { site: Mutex::new(site.map_err(exception)?), context })
    }

    /// Takes messages and answers; solves for at most so many seconds.
    #[pyo3(signature = (incoming, seconds=None))]
    fn receive<'py>(
        &self,
        py: Python<'py>,
        incoming: Vec<Message<'py>>,
        seconds: Option<f64>,
    ) -> PyResult<Vec<Message<'py>>> {
        let envelopes = envelopes(incoming);
        let out = py.detach(|| {
            let context = limited(self.context.clone(), seconds);
            open(&self.site).receive(&envelopes, &context)
        });
        Ok(messages(py, out.map_err(exception)?))
    }

    /// What it asks its neighbours when it starts again.
    fn join<'py>(&self, py: Python<'py>) -> PyResult<Vec<Message<'py>>> {
        Ok(messages(py, open(&self.site).join().map_err(exception)?))
    }

    /// What the coordinator needs at the end.
    #[pyo3(signature = (wanted=None))]
    fn site_result<'py>(
        &self,
        py: Python<'py>,
        wanted: Option<RequestedVerification>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let wanted = wanted.map(|(site, verification)| SolutionRequest { site, verification });
        let result = py.detach(|| open(&self.site).site_result(wanted)).map_err(exception)?;
        Ok(PyBytes::new(py, &result))
    }
}

/// The coordinator, which holds no rows.
#[pyclass(frozen, module = "widemargin._core")]
pub(crate) struct Coordinator {
    /// `None` once it has finished.
    state: Mutex<Option<RemoteCoordinator>>,
}

impl Coordinator {
    fn with<R>(&self, work: impl FnOnce(&mut RemoteCoordinator) -> R) -> PyResult<R> {
        let mut state = open(&self.state);
        let coordinator =
            state.as_mut().ok_or_else(|| PyRuntimeError::new_err("this training has finished"))?;
        Ok(work(coordinator))
    }
}

#[pymethods]
impl Coordinator {
    #[new]
    fn new(plan: &[u8]) -> PyResult<Self> {
        let plan = DistributedPlan::from_bytes(plan).map_err(exception)?;
        let coordinator = RemoteCoordinator::new(&plan).map_err(exception)?;
        Ok(Self { state: Mutex::new(Some(coordinator)) })
    }

    /// The first orders.
    fn start<'py>(&self, py: Python<'py>) -> PyResult<Vec<Message<'py>>> {
        Ok(messages(py, self.with(RemoteCoordinator::start)?.map_err(exception)?))
    }

    /// Takes messages and answers.
    fn receive<'py>(
        &self,
        py: Python<'py>,
        incoming: Vec<Message<'py>>,
    ) -> PyResult<Vec<Message<'py>>> {
        let mut out = Vec::new();
        for envelope in envelopes(incoming) {
            out.extend(self.with(|c| c.receive(&envelope))?.map_err(exception)?);
        }
        Ok(messages(py, out))
    }

    /// Nothing is under way: asks again, or goes on without.
    fn tick<'py>(&self, py: Python<'py>) -> PyResult<Vec<Message<'py>>> {
        Ok(messages(py, self.with(RemoteCoordinator::tick)?.map_err(exception)?))
    }

    /// Ends the training early.
    fn stop(&self) -> PyResult<()> {
        self.with(RemoteCoordinator::stop)
    }

    /// Whether the training has ended.
    #[getter]
    fn has_ended(&self) -> PyResult<bool> {
        self.with(|c| c.ending().is_some())
    }

    /// The number of the last round, with the objective and the rows of every site.
    #[getter]
    fn last_round(&self) -> PyResult<(u32, Vec<f64>, Vec<u64>)> {
        self.with(|c| {
            let last = c.last_round().cloned();
            let (duals, held) = last.map_or_else(Default::default, |r| (r.duals, r.held));
            (c.rounds(), duals, held)
        })
    }

    /// Which solution is asked for at the end.
    #[getter]
    fn wanted(&self) -> PyResult<RequestedVerification> {
        self.with(|c| (c.wanted().site, c.wanted().verification))
    }

    /// The model and the report, from what the sites gave.
    fn finish<'py>(
        &self,
        py: Python<'py>,
        site_results: Vec<Vec<u8>>,
    ) -> PyResult<(Model, Bound<'py, PyDict>)> {
        let coordinator = open(&self.state)
            .take()
            .ok_or_else(|| PyRuntimeError::new_err("this training has finished"))?;
        let context = Context::new().with_cancel_token(CancelToken::new());
        let result =
            py.detach(|| coordinator.finish(&site_results, &context)).map_err(exception)?;
        Ok((Model::new(result.model), report(py, &result.report)?))
    }
}

fn report<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let (traffic, certificate) = (&report.traffic, &report.certificate);
    let items = PyDict::new(py);
    let ending = match &report.ending {
        Ending::Verified => "verified",
        Ending::Inaccurate => "inaccurate",
        Ending::SitesLost(_) => "sites lost",
        _ => "stopped",
    };
    items.set_item("ending", ending)?;
    let lost =
        if let Ending::SitesLost(sites) = &report.ending { sites.clone() } else { Vec::new() };
    items.set_item("lost", lost)?;
    set_fields!(items, report, [sites, links, rounds, largest_site]);
    set_fields!(items, traffic, [vectors, bytes, verification_vectors, verification_bytes]);
    set_fields!(items, traffic, [control_bytes]);
    set_fields!(items, certificate, [verifications, violators, largest_violation]);
    let objectives: Vec<_> = report.history.iter().map(|round| round.duals.clone()).collect();
    let held: Vec<_> = report.history.iter().map(|round| round.held.clone()).collect();
    items.set_item("objectives", objectives)?;
    items.set_item("held", held)?;
    Ok(items)
}
