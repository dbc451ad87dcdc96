//! Sites and the coordinator as an engine outside of this process sees them: bytes in, bytes out.
//!
//! Every participant makes the same [`DistributedPlan`] its own. A [`RemoteSite`] holds the rows of one place, the
//! [`RemoteCoordinator`] none. An engine brings envelopes to whom they are for, gives what they answer to the
//! others, and calls [`RemoteCoordinator::tick`] when nothing is under way. It may lose envelopes and sites:
//! one that starts again from its own rows calls [`RemoteSite::join`].

mod plan;
#[cfg(test)]
mod tests;

pub use plan::DistributedPlan;

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::coordinator::{Certificate, Coordinator, Ending, Round};
use super::engine::{RoundReports, attend};
use super::local::LocalProblem;
use super::message::{Address, Envelope, Message, decode, encode};
use super::problem::{MachineProblem, fingerprint};
use super::site::{Outbox, Site, Solution};
use super::sums::{SumsCoordinator, SumsSite};
use super::traffic::Traffic;
use super::{Distributed, FinalSums, PATIENCE, Report, close};
use crate::context::Context;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::machine::Specification;
use crate::outcome::Status;

/// One site of a training whose participants are in different processes.
pub struct RemoteSite {
    site: SiteKind,
    address: Address,
    fingerprint: u64,
    traffic: Traffic,
}

enum SiteKind {
    Exchange(Box<Site<MachineProblem>>),
    Sums(Box<SumsSite>),
}

impl RemoteSite {
    /// The site `index` with its rows, numbered from `first` among the rows of all sites.
    ///
    /// # Errors
    /// Rows that were not counted.
    pub fn new(plan: &DistributedPlan, index: usize, data: Dataset, first: u64) -> Result<Self> {
        if index >= plan.sites {
            return Err(Error::parameter("site", format!("less than {}", plan.sites), index));
        }
        let data = plan.census.arranged(data)?;
        let (address, traffic) = (Address::Site(index as u32), Traffic::default());
        if plan.is_linear() {
            let task = plan.linear()?;
            let fingerprint = fingerprint(task.description().as_bytes());
            let site = SiteKind::Sums(Box::new(SumsSite::new(task, data, &plan.census)?));
            return Ok(Self { site, address, fingerprint, traffic });
        }
        let links = plan.distribution.topology.links(plan.sites, plan.seed)?;
        let problem = plan.problem(data)?;
        let (fingerprint, table) = (problem.fingerprint(), problem.duals().table().clone());
        let ids = (first..first + table.rows() as u64).collect();
        let settings = plan.distribution.site_settings();
        let site = Site::new(problem.into(), index, &links, table, ids, settings);
        Ok(Self { site: SiteKind::Exchange(Box::new(site)), address, fingerprint, traffic })
    }

    /// Takes envelopes, in the order in which they came, and answers.
    ///
    /// # Errors
    /// [`Error::Message`] for one that is damaged, of another training, or contradicts what the site
    /// knows; errors of the local solver.
    pub fn receive(&mut self, envelopes: &[Envelope], context: &Context) -> Result<Vec<Envelope>> {
        match &mut self.site {
            SiteKind::Exchange(site) => {
                let inbox =
                    envelopes.iter().map(|envelope| (envelope.from, envelope.bytes.as_slice()));
                let out = attend(site, inbox, self.fingerprint, context)?;
                self.post(out)
            }
            SiteKind::Sums(site) => {
                let (from, to) = (self.address, Address::Coordinator);
                let answer = |envelope: &Envelope| {
                    let bytes = site.receive(&envelope.bytes, self.fingerprint, context)?;
                    self.traffic.count_sums(from, to, bytes.len());
                    Ok(Envelope { from, to, bytes })
                };
                envelopes.iter().map(answer).collect()
            }
        }
    }

    fn post(&mut self, out: Outbox) -> Result<Vec<Envelope>> {
        post(self.address, out, self.fingerprint, &mut self.traffic)
    }

    /// What it asks its neighbours when it starts again after it lost all but its own rows.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn join(&mut self) -> Result<Vec<Envelope>> {
        match &mut self.site {
            SiteKind::Exchange(site) => {
                let out = site.join();
                self.post(out)
            }
            SiteKind::Sums(_) => Ok(Vec::new()),
        }
    }

    /// What the coordinator needs of it at the end, as bytes; the solution only on request.
    ///
    /// # Errors
    /// [`Error::Message`] for what cannot be written.
    pub fn site_result(&self, wanted: Option<SolutionRequest>) -> Result<Vec<u8>> {
        let site_result = match &self.site {
            SiteKind::Exchange(site) => SiteResult {
                solution: wanted.and_then(|wanted| match wanted.verification {
                    Some((serial, digest)) => site.verified_solution(serial, digest),
                    None => site.solution(),
                }),
                held: site.held(),
                effort: site.effort(),
                traffic: self.traffic,
            },
            SiteKind::Sums(site) => {
                let (held, traffic) = (site.rows(), self.traffic);
                SiteResult { solution: None, held, effort: (0, 0), traffic }
            }
        };
        postcard::to_allocvec(&site_result)
            .map_err(|error| Error::message("a solution that can be written", error))
    }

    /// Its solution with all rows of it, from which [`restore`](Self::restore) goes on; none before it
    /// has one, and none of a linear machine.
    ///
    /// # Errors
    /// [`Error::Message`] for what cannot be written.
    pub fn checkpoint(&self) -> Result<Option<Vec<u8>>> {
        let SiteKind::Exchange(site) = &self.site else { return Ok(None) };
        let Some(solution) = site.solution() else { return Ok(None) };
        let saved = Checkpoint { fingerprint: self.fingerprint, solution };
        let bytes = postcard::to_allocvec(&saved);
        bytes.map(Some).map_err(|error| Error::message("a solution that can be written", error))
    }

    /// Takes the rows and the solution of a checkpoint of any site of the same training.
    ///
    /// # Errors
    /// [`Error::Message`] for anything else.
    pub fn restore(&mut self, checkpoint: &[u8]) -> Result<()> {
        let saved: Checkpoint = postcard::from_bytes(checkpoint)
            .map_err(|error| Error::message("a checkpoint", error))?;
        if saved.fingerprint != self.fingerprint {
            let found = "a checkpoint of another machine, other parameters, classes or features";
            return Err(Error::message("a checkpoint of this training", found));
        }
        match &mut self.site {
            SiteKind::Exchange(site) => site.know(saved.solution),
            SiteKind::Sums(_) => Ok(()),
        }
    }
}

/// Which solution the coordinator asks for at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SolutionRequest {
    /// The site that has it.
    pub site: usize,
    /// Serial number and digest of its verification, after which all sites have it.
    pub verification: Option<(u32, u32)>,
}

/// What a site returns at the end of a training.
#[derive(Serialize, Deserialize)]
struct SiteResult {
    solution: Option<Solution>,
    held: usize,
    effort: (u64, u64),
    traffic: Traffic,
}

#[derive(Serialize, Deserialize)]
struct Checkpoint {
    fingerprint: u64,
    solution: Solution,
}

/// The coordinator of a training whose participants are in different processes.
pub struct RemoteCoordinator {
    coordinator: CoordinatorKind,
    fingerprint: u64,
    sites: usize,
    traffic: Traffic,
    specification: Specification,
    started: Instant,
}

enum CoordinatorKind {
    Exchange(Box<Exchange>),
    Sums(Box<SumsCoordinator>),
}

struct Exchange {
    coordinator: Coordinator,
    problem: MachineProblem,
    links: Vec<Vec<usize>>,
}

impl RemoteCoordinator {
    /// Before the training has started. A site that many [ticks](Self::tick) pass without a reply of counts as
    /// lost.
    ///
    /// # Errors
    /// As [`DistributedPlan::new`].
    pub fn new(plan: &DistributedPlan) -> Result<Self> {
        Self::with_patience(plan, Some(PATIENCE))
    }

    /// As [`new`](Self::new), with another limit on ticks, or none.
    pub(super) fn with_patience(plan: &DistributedPlan, patience: Option<u32>) -> Result<Self> {
        let (coordinator, fingerprint) = if plan.is_linear() {
            let task = plan.linear()?;
            let fingerprint = fingerprint(task.description().as_bytes());
            let coordinator = SumsCoordinator::new(task, plan.sites, patience);
            (CoordinatorKind::Sums(Box::new(coordinator)), fingerprint)
        } else {
            let problem = plan.problem(plan.census.no_rows()?)?;
            let fingerprint = problem.fingerprint();
            let coordinator = plan.distribution.coordinator(plan.sites, patience);
            let links = plan.distribution.topology.links(plan.sites, plan.seed)?;
            let exchange = Exchange { coordinator, problem, links };
            (CoordinatorKind::Exchange(Box::new(exchange)), fingerprint)
        };
        Ok(Self {
            coordinator,
            fingerprint,
            sites: plan.sites,
            traffic: Traffic::default(),
            specification: plan.specification.clone(),
            started: Instant::now(),
        })
    }

    /// The first orders.
    ///
    /// # Errors
    /// [`Error::Message`] for what cannot be written.
    pub fn start(&mut self) -> Result<Vec<Envelope>> {
        match &mut self.coordinator {
            CoordinatorKind::Exchange(exchange) => {
                let out = exchange.coordinator.start();
                post(Address::Coordinator, out, self.fingerprint, &mut self.traffic)
            }
            CoordinatorKind::Sums(sums) => sums.begin(self.fingerprint, &mut self.traffic),
        }
    }

    /// Takes an envelope and answers.
    ///
    /// # Errors
    /// [`Error::Message`] for one that is damaged, of another training, or that no site sends to a
    /// coordinator.
    pub fn receive(&mut self, envelope: &Envelope) -> Result<Vec<Envelope>> {
        match &mut self.coordinator {
            CoordinatorKind::Exchange(exchange) => {
                let message: Message = decode(&envelope.bytes, self.fingerprint)?;
                let out = exchange.coordinator.receive(envelope.from, message)?;
                post(Address::Coordinator, out, self.fingerprint, &mut self.traffic)
            }
            CoordinatorKind::Sums(sums) => {
                sums.accept(envelope, self.fingerprint, &mut self.traffic)
            }
        }
    }

    /// Nothing is under way, or replies should have come by now: asks again, or goes on without.
    ///
    /// # Errors
    /// [`Error::Message`] for what cannot be written.
    pub fn tick(&mut self) -> Result<Vec<Envelope>> {
        match &mut self.coordinator {
            CoordinatorKind::Exchange(exchange) => {
                let out = exchange.coordinator.tick();
                post(Address::Coordinator, out, self.fingerprint, &mut self.traffic)
            }
            CoordinatorKind::Sums(sums) => sums.ask_again(self.fingerprint, &mut self.traffic),
        }
    }

    /// Ends the training early.
    pub fn stop(&mut self) {
        match &mut self.coordinator {
            CoordinatorKind::Exchange(exchange) => exchange.coordinator.stop(),
            CoordinatorKind::Sums(sums) => sums.stop(),
        }
    }

    /// How the training ended, if it has.
    pub fn ending(&self) -> Option<&Ending> {
        match &self.coordinator {
            CoordinatorKind::Exchange(exchange) => exchange.coordinator.ending(),
            CoordinatorKind::Sums(sums) => sums.ending(),
        }
    }

    /// Rounds until now.
    pub fn rounds(&self) -> u32 {
        match &self.coordinator {
            CoordinatorKind::Exchange(exchange) => exchange.coordinator.rounds(),
            CoordinatorKind::Sums(sums) => sums.rounds(),
        }
    }

    /// What the last round looked like.
    pub fn last_round(&self) -> Option<&Round> {
        match &self.coordinator {
            CoordinatorKind::Exchange(exchange) => exchange.coordinator.last_round(),
            CoordinatorKind::Sums(sums) => sums.last_round(),
        }
    }

    /// The solution that [`finish`](Self::finish) needs.
    pub fn wanted(&self) -> SolutionRequest {
        let CoordinatorKind::Exchange(exchange) = &self.coordinator else {
            return SolutionRequest { site: 0, verification: None };
        };
        let verification = match exchange.coordinator.ending() {
            Some(Ending::Verified | Ending::Inaccurate) => exchange.coordinator.verification(),
            _ => None,
        };
        SolutionRequest { site: exchange.coordinator.best(), verification }
    }

    /// The model and the report, from what the sites that are left gave
    /// ([`RemoteSite::site_result`]).
    ///
    /// # Errors
    /// [`Error::Message`] for other bytes, [`Error::Model`] where no site had a solution.
    pub fn finish(self, site_results: &[Vec<u8>], context: &Context) -> Result<Distributed> {
        let mut totals = FinalSums { traffic: self.traffic, ..FinalSums::default() };
        for bytes in site_results {
            let site_result: SiteResult = postcard::from_bytes(bytes)
                .map_err(|error| Error::message("what a site leaves", error))?;
            totals.add(site_result.held, site_result.effort, site_result.traffic);
            totals.solution = totals.solution.or(site_result.solution);
        }
        let mut result = match self.coordinator {
            CoordinatorKind::Exchange(exchange) => {
                let Exchange { coordinator, problem, links } = *exchange;
                close(&problem, &links, totals, coordinator, self.started, context)?
            }
            CoordinatorKind::Sums(sums) => {
                let (ending, rounds) = (sums.ending().cloned(), sums.rounds());
                let unfinished = context.stop_request().unwrap_or(Status::IterationLimit);
                let seconds = self.started.elapsed().as_secs_f64();
                let (model, history) = sums.finish(unfinished, seconds)?;
                let report = Report {
                    ending: ending.unwrap_or(Ending::Stopped),
                    sites: self.sites,
                    links: 2 * (self.sites - 1),
                    rounds,
                    history,
                    traffic: totals.traffic,
                    largest_site: totals.largest_site,
                    certificate: Certificate::default(),
                };
                Distributed { model, report }
            }
        };
        self.specification.record(&mut result.model);
        Ok(result)
    }
}

/// Trains on sites in this process, as on those of an engine: one for each part of the rows.
///
/// # Errors
/// As [`RemoteSite::new`] and [`RemoteSite::receive`].
pub fn train_parts(
    plan: &DistributedPlan,
    parts: Vec<Dataset>,
    context: &Context,
) -> Result<Distributed> {
    if parts.len() != plan.sites {
        return Err(Error::length("parts", plan.sites, parts.len()));
    }
    let (mut sites, mut first) = (Vec::new(), 0);
    for (index, part) in parts.into_iter().enumerate() {
        let rows = part.rows() as u64;
        sites.push(RemoteSite::new(plan, index, part, first)?);
        first += rows;
    }
    let mut coordinator = RemoteCoordinator::new(plan)?;
    let mut under_way = coordinator.start()?;
    let mut rounds = RoundReports::default();
    while coordinator.ending().is_none() {
        if context.stop_request().is_some() {
            coordinator.stop();
            break;
        }
        rounds.report(coordinator.rounds(), coordinator.last_round(), context);
        let (reports, to_sites): (Vec<Envelope>, Vec<Envelope>) =
            under_way.into_iter().partition(|envelope| envelope.to == Address::Coordinator);
        under_way = Vec::new();
        if to_sites.is_empty() {
            if reports.is_empty() {
                under_way = coordinator.tick()?;
            }
            for envelope in &reports {
                under_way.extend(coordinator.receive(envelope)?);
            }
            continue;
        }
        let mut inboxes: Vec<Vec<Envelope>> = vec![Vec::new(); sites.len()];
        for envelope in to_sites {
            if let Address::Site(to) = envelope.to {
                inboxes[to as usize].push(envelope);
            }
        }
        let work = |(site, inbox): (&mut RemoteSite, Vec<Envelope>)| site.receive(&inbox, context);
        under_way = reports;
        for replies in context.map(sites.iter_mut().zip(inboxes), work) {
            under_way.extend(replies?);
        }
    }
    let wanted = coordinator.wanted();
    let site_results =
        sites.iter().map(|site| site.site_result(Some(wanted))).collect::<Result<Vec<_>>>()?;
    coordinator.finish(&site_results, context)
}

/// The envelopes of messages.
fn post(
    from: Address,
    out: Outbox,
    fingerprint: u64,
    traffic: &mut Traffic,
) -> Result<Vec<Envelope>> {
    let envelope = |(to, message)| {
        let bytes = encode(&message, fingerprint)?;
        traffic.count(from, to, &message, bytes.len());
        Ok(Envelope { from, to, bytes })
    };
    out.into_iter().map(envelope).collect()
}
