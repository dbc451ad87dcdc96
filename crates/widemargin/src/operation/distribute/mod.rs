//! Training where the rows are: sites exchange support vectors until no row of any site changes the
//! solution, or random working sets take the place of all rows.
//!
//! [`Distribution`] trains sites that hold parts of the rows (Lu, "Kernel Optimization and Distributed
//! Learning Algorithms for Support Vector Machines", 2005, chapter 4, with a verification of the result
//! that the method there lacks); [`Randomized`] trains on weighted random samples (chapter 5). Both end
//! at the optimum over all rows, and the model is an ordinary one.

mod compact;
mod coordinator;
mod engine;
mod local;
mod message;
mod problem;
mod process;
mod randomized;
mod remote;
mod sampling;
mod simulate;
mod site;
mod sums;
mod tcp;
#[cfg(test)]
mod tests;
mod topology;
mod traffic;
mod verify;

pub use coordinator::{Certificate, Ending, Round, Schedule};
pub use message::{Address, Envelope};
pub use process::{TrainingRequest, Transport, agree, train_processes};
pub use randomized::{Randomized, RandomizedFunction, RandomizedResult};
pub use remote::{DistributedPlan, RemoteCoordinator, RemoteSite, SolutionRequest, train_parts};
pub use simulate::{Crash, Faults};
pub use site::RowExchange;
pub use tcp::{TcpHub, TcpMember};
pub use topology::Topology;
pub use traffic::Traffic;

use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use self::coordinator::{Coordinator, Limits};
use self::local::LocalProblem;
use self::message::Point;
use self::problem::MachineProblem;
use self::site::{Site, SiteSettings, Solution};
use crate::context::Context;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::machine::{FitInput, LocalDuals, Machine, MachineKind, Model};
use crate::numeric::random::Generator;
use crate::outcome::{Outcome, Status};

/// Whether sites of this machine send sums to the coordinator, and not support vectors to each other: linear
/// machines whose objective is smooth.
pub fn sends_sums(kind: MachineKind) -> bool {
    use MachineKind::{LinearSvc, LinearSvr, Logistic};
    matches!(kind, LinearSvc | LinearSvr | Logistic)
}

/// Ticks without a reply after which a site counts as lost. Where a third of all messages is lost, a request that
/// takes three of them fails this often with a probability below 1e-6.
const PATIENCE: u32 = 50;

/// How the sites of a training work together.
///
/// ```
/// use widemargin::Context;
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::kernel::Kernel;
/// use widemargin::machine::Svc;
/// use widemargin::operation::distribute::{Distribution, Ending};
///
/// let rows = Matrix::DenseF64(Dense::new(4, 1, vec![-2.0, -1.0, 1.0, 2.0])?);
/// let data = Dataset::new(rows, Labels::Int(vec![0, 0, 1, 1]))?;
/// let svc = Svc { c: 10.0, kernel: Kernel::Linear, ..Svc::default() };
/// // One class at every site: neither could train alone.
/// let parts = [vec![0, 1], vec![2, 3]];
/// let result = Distribution::default().train(&svc, &data, &parts, &Context::new())?;
/// assert_eq!(result.report.ending, Ending::Verified);
/// assert_eq!(result.model.support_rows(), [1, 2]);
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// The links between sites.
    pub topology: Topology,
    /// When sites solve.
    pub schedule: Schedule,
    /// Which rows go with an offer.
    pub exchange: RowExchange,
    /// Whether a site starts from the best point that it knows.
    pub warm_start: bool,
    /// Relative change of a dual objective that counts as none. What it misses, the verification finds.
    pub stop_tolerance: f64,
    /// Limit on rounds, or on updates of one site in a sequential training.
    pub max_rounds: u32,
}

impl Default for Distribution {
    fn default() -> Self {
        Self {
            topology: Topology::Full,
            schedule: Schedule::Parallel,
            exchange: RowExchange::OnDemand,
            warm_start: true,
            stop_tolerance: 1e-6,
            max_rounds: 100_000,
        }
    }
}

/// What a distributed training did.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// How it ended.
    pub ending: Ending,
    /// Sites.
    pub sites: usize,
    /// Directed links between them.
    pub links: usize,
    /// Rounds, or updates of one site in a sequential training.
    pub rounds: u32,
    /// Every round; of an asynchronous training every report.
    pub history: Vec<Round>,
    /// What was sent.
    pub traffic: Traffic,
    /// Most rows that a site held.
    pub largest_site: usize,
    /// What the last verification found.
    pub certificate: Certificate,
}

/// A model with the report of its training.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Distributed {
    /// The model of the rows of all sites.
    pub model: Model,
    /// How it was found.
    pub report: Report,
}

/// Divides rows at random into parts of equal size, up to one row; a part may be empty.
///
/// # Errors
/// [`Error::Parameter`] for no sites.
pub fn split(rows: usize, sites: usize, seed: u64) -> Result<Vec<Vec<usize>>> {
    check_sites(sites)?;
    let mut order: Vec<usize> = (0..rows).collect();
    Generator::new(seed).shuffle(&mut order);
    let mut parts = vec![Vec::new(); sites];
    order.into_iter().enumerate().for_each(|(place, row)| parts[place % sites].push(row));
    parts.iter_mut().for_each(|part| part.sort_unstable());
    Ok(parts)
}

/// Most sites of a training in one process.
const MAX_SITES: usize = 4096;

fn check_sites(sites: usize) -> Result<()> {
    match (1..=MAX_SITES).contains(&sites) {
        true => Ok(()),
        false => Err(Error::parameter("sites", format!("1 to {MAX_SITES}"), sites)),
    }
}

/// The dual problems of a machine over the rows that any part names; warns of a kernel that is not positive
/// semidefinite on them.
fn local_duals(
    machine: &dyn Machine,
    data: &Dataset,
    rows: &[usize],
    context: &Context,
) -> Result<LocalDuals> {
    data.features().validate()?;
    let input = FitInput::with_rows(data, rows)?;
    let duals = machine.local_duals(&input).unwrap_or_else(not_at_several_places)?;
    duals.warn_of_kernel(context)?;
    Ok(duals)
}

fn not_at_several_places<T>() -> Result<T> {
    let message = "this machine cannot be trained from rows at several places; \
                   c-svc, epsilon-svr and one-class can";
    Err(Error::model(message))
}

impl Distribution {
    /// Trains `machine` on sites that hold the rows of `data` which `parts` names; a row may be at
    /// several sites. The sites run in this process, on the threads of `context`, and exchange the same
    /// bytes that they would send over a network.
    ///
    /// # Errors
    /// Machines other than C-SVC, ε-SVR and one-class, bad links, and those of a training.
    pub fn train(
        &self,
        machine: &dyn Machine,
        data: &Dataset,
        parts: &[Vec<usize>],
        context: &Context,
    ) -> Result<Distributed> {
        let started = Instant::now();
        let (problem, links) = self.prepare(machine, data, parts, context)?;
        let mut sites: Vec<Site<MachineProblem>> =
            (0..parts.len()).map(|site| self.site(&problem, site, &links, &parts[site])).collect();
        let mut coordinator = self.coordinator(parts.len(), Some(PATIENCE));
        let traffic = engine::run(&mut sites, &mut coordinator, problem.fingerprint(), context)?;
        let sites: Vec<_> = sites.into_iter().map(Some).collect();
        finish(&problem, &links, &sites, coordinator, traffic, started, context)
    }

    /// As [`train`](Self::train), on a network with faults that `seed` decides.
    ///
    /// # Errors
    /// As [`train`](Self::train); [`Error::Model`] where no site is left that has a solution.
    pub fn simulate(
        &self,
        machine: &dyn Machine,
        data: &Dataset,
        parts: &[Vec<usize>],
        faults: &Faults,
        seed: u64,
        context: &Context,
    ) -> Result<Distributed> {
        let started = Instant::now();
        faults.validate(parts.len())?;
        let (problem, links) = self.prepare(machine, data, parts, context)?;
        let mut coordinator = self.coordinator(parts.len(), Some(PATIENCE));
        let new_site = |site: usize| self.site(&problem, site, &links, &parts[site]);
        let fingerprint = problem.fingerprint();
        let (sites, traffic) = simulate::simulate(
            new_site,
            parts.len(),
            &mut coordinator,
            fingerprint,
            faults,
            seed,
            context,
        )?;
        finish(&problem, &links, &sites, coordinator, traffic, started, context)
    }

    /// The problem of all sites together, and their links.
    fn prepare(
        &self,
        machine: &dyn Machine,
        data: &Dataset,
        parts: &[Vec<usize>],
        context: &Context,
    ) -> Result<(Arc<MachineProblem>, Vec<Vec<usize>>)> {
        check_sites(parts.len())?;
        let links = self.topology.links(parts.len(), context.seed())?;
        let mut rows: Vec<usize> = parts.concat();
        rows.sort_unstable();
        rows.dedup();
        let duals = local_duals(machine, data, &rows, context)?;
        Ok((Arc::new(MachineProblem::new(duals)), links))
    }

    fn coordinator(&self, sites: usize, patience: Option<u32>) -> Coordinator {
        let limits = Limits { rounds: self.max_rounds, patience };
        Coordinator::new(sites, self.schedule, limits)
    }

    fn site_settings(&self) -> SiteSettings {
        SiteSettings {
            exchange: self.exchange,
            asynchronous: self.schedule == Schedule::Asynchronous,
            warm_start: self.warm_start,
            stop_tolerance: self.stop_tolerance,
        }
    }

    fn site(
        &self,
        problem: &Arc<MachineProblem>,
        index: usize,
        links: &[Vec<usize>],
        part: &[usize],
    ) -> Site<MachineProblem> {
        let mut rows = part.to_vec();
        rows.sort_unstable();
        rows.dedup();
        let table = problem.duals().table().select_rows(&rows);
        let ids = rows.iter().map(|&row| row as u64).collect();
        Site::new(Arc::clone(problem), index, links, table, ids, self.site_settings())
    }
}

/// Sums over the sites of a training that has ended.
#[derive(Default)]
struct FinalSums {
    solution: Option<Solution>,
    largest_site: usize,
    /// Pair steps and working sets.
    effort: (u64, u64),
    traffic: Traffic,
}

impl FinalSums {
    fn add(&mut self, held: usize, effort: (u64, u64), traffic: Traffic) {
        self.largest_site = self.largest_site.max(held);
        self.effort = (self.effort.0 + effort.0, self.effort.1 + effort.1);
        self.traffic = self.traffic.and(traffic);
    }
}

/// Model and report of a training that has ended; sites that are lost are `None`.
fn finish(
    problem: &MachineProblem,
    links: &[Vec<usize>],
    sites: &[Option<Site<MachineProblem>>],
    coordinator: Coordinator,
    traffic: Traffic,
    started: Instant,
    context: &Context,
) -> Result<Distributed> {
    let alive = || sites.iter().flatten();
    let solution = match (coordinator.ending(), coordinator.verification()) {
        (Some(Ending::Verified | Ending::Inaccurate), Some((serial, digest))) => {
            alive().find_map(|site| site.verified_solution(serial, digest))
        }
        _ => {
            let solved = alive().filter(|site| site.solution().is_some());
            let best = solved.reduce(|a, b| if b.dual() > a.dual() { b } else { a });
            best.and_then(Site::solution)
        }
    };
    let mut totals = FinalSums { solution, traffic, ..FinalSums::default() };
    alive().for_each(|site| totals.add(site.held(), site.effort(), Traffic::default()));
    close(problem, links, totals, coordinator, started, context)
}

/// Model and report of a training that has ended.
fn close(
    problem: &MachineProblem,
    links: &[Vec<usize>],
    totals: FinalSums,
    coordinator: Coordinator,
    started: Instant,
    context: &Context,
) -> Result<Distributed> {
    let ending = coordinator.ending().cloned().unwrap_or(Ending::Stopped);
    let solution = totals.solution.ok_or_else(|| match ending {
        Ending::Stopped => Error::Interrupted,
        _ => Error::model("no site is left that has a solution"),
    })?;
    let rounds = coordinator.rounds();
    let (history, certificate) = coordinator.into_history();
    let mut outcome = outcome(&solution.points, &ending, certificate, problem, context);
    (outcome.iterations, outcome.blocks) = totals.effort;
    let report = Report {
        ending,
        sites: links.len(),
        links: links.iter().map(Vec::len).sum(),
        rounds,
        history,
        traffic: totals.traffic,
        largest_site: totals.largest_site,
        certificate,
    };
    let model = model(problem, &solution, outcome, started)?;
    Ok(Distributed { model, report })
}

/// What is known of a solution after its verification.
fn outcome(
    points: &[Point],
    ending: &Ending,
    certificate: Certificate,
    problem: &MachineProblem,
    context: &Context,
) -> Outcome {
    let (held, other) = (
        points.iter().map(|point| point.violation).fold(0.0, f64::max),
        certificate.largest_violation,
    );
    let solved = points.iter().map(|point| point.status).max().unwrap_or(Status::Solved);
    let status = match ending {
        Ending::Verified => solved,
        // As for a training at one place: up to ten times the tolerance.
        Ending::Inaccurate if other <= 10.0 * problem.tolerance() => {
            solved.max(Status::AlmostSolved)
        }
        Ending::Inaccurate => solved.max(Status::NumericalTrouble),
        _ => context.stop_request().unwrap_or(Status::IterationLimit),
    };
    let verified = matches!(ending, Ending::Verified | Ending::Inaccurate);
    Outcome {
        status,
        primal: points.iter().map(|point| point.primal).sum::<f64>()
            + if verified { certificate.loss } else { 0.0 },
        dual: points.iter().map(|point| point.dual).sum(),
        // Gradients of rows that took part lie within `held` of each other with the offset between
        // them, and those of the others within `other` of the offset.
        violation: if verified { (held + other).max(2.0 * other) } else { f64::MAX },
        iterations: 0,
        blocks: 0,
        kernel_rows: 0,
    }
}

/// The model of a solution.
fn model(
    problem: &MachineProblem,
    solution: &Solution,
    outcome: Outcome,
    started: Instant,
) -> Result<Model> {
    solution.check(problem.functions())?;
    let mut support = problem.empty();
    problem.append(&mut support, &solution.rows)?;
    let ids: Vec<u64> = solution.rows.iter().map(|row| row.id).collect();
    // Rows of a solution are in the order of their ids.
    let place = |id: u64| ids.partition_point(|&other| other < id);
    let functions: Vec<Vec<(usize, f64)>> = solution
        .points
        .iter()
        .map(|point| point.coefficients.iter().map(|&(id, value)| (place(id), value)).collect())
        .collect();
    let functions =
        functions.iter().zip(&solution.points).map(|(c, point)| (c.as_slice(), point.offset));
    let rows: Vec<usize> = ids.iter().map(|&id| id as usize).collect();
    let seconds = started.elapsed().as_secs_f64();
    problem.duals().model(&support, functions.collect(), Some(&rows), outcome, seconds)
}
