//! The coordinator: it starts solves of the sites, has the best solution verified and decides the end.
//!
//! It sees objectives and counts, never rows. It runs beside the first site or in the program that
//! started the sites. Like a [site](super::site) it does no input or output and reads no clock; an engine calls
//! [`Coordinator::tick`] when nothing is under way, or after a time in which replies should have come.

use serde::{Deserialize, Serialize};

use super::message::{Address, Message, Progress, Verification};
use super::site::Outbox;
use crate::context::Event;
use crate::error::{Error, Result};

/// When sites solve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Schedule {
    /// All at once, round by round.
    #[default]
    Parallel,
    /// One after the other.
    Sequential,
    /// Whenever a site has new rows.
    Asynchronous,
}

impl std::str::FromStr for Schedule {
    type Err = Error;

    /// Reads `parallel`, `sequential` or `async`.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "parallel" => Ok(Self::Parallel),
            "sequential" => Ok(Self::Sequential),
            "async" => Ok(Self::Asynchronous),
            _ => Err(Error::parameter("schedule", "parallel, sequential or async", text)),
        }
    }
}

/// How a distributed training ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// No row of any site violates the solution: it is the optimum over all rows.
    Verified,
    /// Rows that took part in the solution violate it by more than the tolerance: rounding, or a limit,
    /// stopped the local solver.
    Inaccurate,
    /// Sites that did not reply; their rows were not verified.
    SitesLost(Vec<usize>),
    /// The limit on rounds, the time limit or an interruption came first.
    Stopped,
}

/// What the verification of the final solution found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Certificate {
    /// Rows of other sites that violate the solution by more than the tolerance.
    pub violators: u64,
    /// Largest KKT violation of a row of another site.
    pub largest_violation: f64,
    /// Upper bound on what those rows add to the primal objective.
    pub loss: f64,
    /// Verifications until the end, this one included.
    pub verifications: u32,
}

/// One round, as the coordinator saw it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Round {
    /// Dual objective of every site, summed over functions.
    pub duals: Vec<f64>,
    /// Rows that every site held.
    pub held: Vec<u64>,
    /// Support vectors of every site.
    pub support: Vec<u64>,
    /// Rows that every site had sent before its solution.
    pub sent: Vec<u64>,
    /// Pair steps of the solver that every site had taken: its work, on the same scale on every machine.
    pub steps: Vec<u64>,
}

impl Round {
    /// The report of the round with this number.
    pub(crate) fn event(&self, number: u32) -> Event {
        Event::Round { number, objectives: self.duals.clone(), rows: self.held.clone() }
    }
}

enum Phase {
    Exchange,
    /// `silent` counts ticks since the last message of the elected site.
    Verify {
        elected: usize,
        last: Option<Verification>,
        silent: u32,
    },
    Done(Ending),
}

/// Limits of a coordinator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Rounds, or updates of one site in a sequential training.
    pub(crate) rounds: u32,
    /// Ticks without a reply after which a site counts as lost; `None` where the transport reports lost
    /// sites itself, so that a silent site is only slow.
    pub(crate) patience: Option<u32>,
}

impl Limits {
    fn exceeded_by(self, ticks: u32) -> bool {
        self.patience.is_some_and(|patience| ticks > patience)
    }
}

/// The state of a training.
pub(crate) struct Coordinator {
    schedule: Schedule,
    limits: Limits,
    phase: Phase,
    round: u32,
    /// The site that solves, in a sequential training.
    turn: usize,
    unchanged: usize,
    /// Last report of every site, and whether it is of this round.
    reports: Vec<Option<Progress>>,
    replied: Vec<bool>,
    serial: u32,
    verification: Option<(u32, u32)>,
    waited: u32,
    active: bool,
    history: Vec<Round>,
    certificate: Certificate,
}

impl Coordinator {
    pub(crate) fn new(sites: usize, schedule: Schedule, limits: Limits) -> Self {
        Self {
            schedule,
            limits,
            phase: Phase::Exchange,
            round: 0,
            turn: 0,
            unchanged: 0,
            reports: vec![None; sites],
            replied: vec![false; sites],
            serial: 0,
            verification: None,
            waited: 0,
            active: true,
            history: Vec::new(),
            certificate: Certificate::default(),
        }
    }

    /// The first orders.
    pub(crate) fn start(&mut self) -> Outbox {
        self.next_round()
    }

    /// How the training ended, with the elected site and the number of its verification.
    pub(crate) fn ending(&self) -> Option<&Ending> {
        match &self.phase {
            Phase::Done(ending) => Some(ending),
            _ => None,
        }
    }

    /// The site with the best solution.
    pub(crate) fn best(&self) -> usize {
        let dual = |site: usize| self.reports[site].map_or(f64::NEG_INFINITY, |report| report.dual);
        let sites = (0..self.reports.len()).filter(|&site| self.reports[site].is_some());
        sites.reduce(|best, site| if dual(site) > dual(best) { site } else { best }).unwrap_or(0)
    }

    /// Serial number and digest of the last verification that was complete.
    pub(crate) fn verification(&self) -> Option<(u32, u32)> {
        self.verification
    }

    /// Rounds, or updates of one site in a sequential training.
    pub(crate) fn rounds(&self) -> u32 {
        self.round
    }

    /// What the last round looked like.
    pub(crate) fn last_round(&self) -> Option<&Round> {
        self.history.last()
    }

    /// What every round looked like; of an asynchronous training what sites last reported.
    pub(crate) fn into_history(self) -> (Vec<Round>, Certificate) {
        let certificate = Certificate { verifications: self.serial, ..self.certificate };
        (self.history, certificate)
    }

    /// Ends the training early.
    pub(crate) fn stop(&mut self) {
        self.phase = Phase::Done(Ending::Stopped);
    }

    /// Takes a message.
    ///
    /// # Errors
    /// [`Error::Message`] for one that no site sends to a coordinator.
    pub(crate) fn receive(&mut self, from: Address, message: Message) -> Result<Outbox> {
        match (from, message) {
            (Address::Site(site), Message::Solved(report))
                if (site as usize) < self.reports.len() =>
            {
                Ok(self.solved(site as usize, report))
            }
            (Address::Site(site), Message::Checked(found)) => {
                Ok(self.checked(site as usize, found))
            }
            (from, _) => Err(Error::message("a report", format!("something else from {from:?}"))),
        }
    }

    fn solved(&mut self, site: usize, report: Progress) -> Outbox {
        self.reports[site] = Some(report);
        if self.schedule == Schedule::Asynchronous {
            // A site counts its own rounds.
            self.round = self.round.max(report.round);
            self.active |= report.changed;
            self.replied[site] = true;
            self.waited = 0;
            self.record();
            return match self.round > self.limits.rounds {
                true => self.end(Ending::Stopped),
                false => Vec::new(),
            };
        }
        if report.round != self.round || !matches!(self.phase, Phase::Exchange) {
            return Vec::new();
        }
        if !std::mem::replace(&mut self.replied[site], true) {
            self.waited = 0;
            self.unchanged = if report.changed { 0 } else { self.unchanged + 1 };
        }
        if !self.expected().all(|site| self.replied[site]) {
            return Vec::new();
        }
        self.record();
        let quiet = match self.schedule {
            Schedule::Sequential => self.unchanged >= self.reports.len(),
            _ => self.reports.iter().flatten().all(|report| !report.changed),
        };
        if quiet {
            return self.verify();
        }
        self.turn = (self.turn + 1) % self.reports.len();
        self.next_round()
    }

    fn record(&mut self) {
        let of = |f: fn(&Progress) -> f64, none: f64| -> Vec<f64> {
            self.reports.iter().map(|r| r.as_ref().map_or(none, f)).collect()
        };
        let duals = of(|report| report.dual, f64::NEG_INFINITY);
        let counts = |f: fn(&Progress) -> u64| -> Vec<u64> {
            self.reports.iter().map(|r| r.as_ref().map_or(0, f)).collect()
        };
        let (held, support) = (counts(|report| report.held), counts(|report| report.support));
        let (sent, steps) = (counts(|report| report.sent), counts(|report| report.steps));
        self.history.push(Round { duals, held, support, sent, steps });
    }

    /// The sites that solve in this round.
    fn expected(&self) -> std::ops::Range<usize> {
        match self.schedule {
            Schedule::Sequential => self.turn..self.turn + 1,
            _ => 0..self.reports.len(),
        }
    }

    fn next_round(&mut self) -> Outbox {
        if self.round >= self.limits.rounds {
            return self.end(Ending::Stopped);
        }
        self.phase = Phase::Exchange;
        self.round += 1;
        self.waited = 0;
        let expected = self.expected();
        expected.clone().for_each(|site| self.replied[site] = false);
        self.orders(expected)
    }

    fn orders(&self, sites: impl Iterator<Item = usize>) -> Outbox {
        let order = Message::Solve { round: self.round };
        sites.map(|site| (Address::Site(site as u32), order.clone())).collect()
    }

    fn verify(&mut self) -> Outbox {
        self.elect(self.best())
    }

    fn elect(&mut self, elected: usize) -> Outbox {
        self.serial += 1;
        self.waited = 0;
        self.phase = Phase::Verify { elected, last: None, silent: 0 };
        vec![(Address::Site(elected as u32), Message::Elect { serial: self.serial })]
    }

    fn checked(&mut self, site: usize, found: Verification) -> Outbox {
        let Phase::Verify { elected, last, silent } = &mut self.phase else { return Vec::new() };
        if site != *elected || found.serial != self.serial {
            return Vec::new();
        }
        let elected = *elected;
        if last.as_ref().is_none_or(|last| last.missing.len() > found.missing.len()) {
            self.waited = 0;
        }
        *silent = 0;
        *last = Some(found.clone());
        if !found.missing.is_empty() {
            return Vec::new();
        }
        self.verification = Some((found.serial, found.digest));
        self.certificate = Certificate {
            violators: found.violators,
            largest_violation: found.largest,
            loss: found.loss,
            verifications: self.serial,
        };
        if found.violators == 0 {
            return self.end(Ending::Verified);
        }
        if found.gained == 0 {
            return self.end(Ending::Inaccurate);
        }
        self.unchanged = 0;
        self.turn = elected;
        self.active = true;
        match self.schedule {
            // The elected site has new rows and solves without a request.
            Schedule::Asynchronous => {
                self.phase = Phase::Exchange;
                Vec::new()
            }
            _ => self.next_round(),
        }
    }

    fn end(&mut self, ending: Ending) -> Outbox {
        self.phase = Phase::Done(ending);
        Vec::new()
    }

    /// Time has passed, or nothing is under way: asks again, or goes on without.
    pub(crate) fn tick(&mut self) -> Outbox {
        self.waited = self.waited.saturating_add(1);
        let limits = self.limits;
        let impatient = limits.exceeded_by(self.waited);
        match &mut self.phase {
            Phase::Done(_) => Vec::new(),
            // Where nothing is lost, who is silent is busy.
            Phase::Verify { .. } if limits.patience.is_none() => Vec::new(),
            Phase::Exchange => self.ask_again(impatient),
            Phase::Verify { elected, last, silent } => {
                *silent = silent.saturating_add(1);
                let (elected, lost) = (*elected, limits.exceeded_by(*silent));
                match last {
                    Some(found) if impatient && !lost => {
                        let missing = found.missing.iter().map(|&site| site as usize).collect();
                        self.end(Ending::SitesLost(missing))
                    }
                    // The elected site itself is lost: another one may do.
                    _ if lost => {
                        self.reports[elected] = None;
                        match self.reports.iter().any(Option::is_some) {
                            true => self.verify(),
                            false => self.end(Ending::SitesLost(vec![elected])),
                        }
                    }
                    _ => {
                        let again = Message::Elect { serial: self.serial };
                        vec![(Address::Site(elected as u32), again)]
                    }
                }
            }
        }
    }

    /// Asks sites again that did not report; if all have, an asynchronous training that was quiet since
    /// the last tick is verified.
    fn ask_again(&mut self, impatient: bool) -> Outbox {
        let silent: Vec<usize> = self.expected().filter(|&site| !self.replied[site]).collect();
        if silent.is_empty() {
            return match std::mem::take(&mut self.active) {
                true => Vec::new(),
                false => self.verify(),
            };
        }
        if impatient {
            return self.end(Ending::SitesLost(silent));
        }
        if self.limits.patience.is_none() {
            return Vec::new();
        }
        let round = if self.schedule == Schedule::Asynchronous { 1 } else { self.round };
        let order = Message::Solve { round };
        silent.iter().map(|&site| (Address::Site(site as u32), order.clone())).collect()
    }
}
