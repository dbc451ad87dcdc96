//! The coordinator of a linear training: it asks, adds up what comes back, and takes Newton steps.

use super::descent::{Descent, Next};
use super::machine::LinearTask;
use super::{Request, Response, SumRequest};
use crate::error::{Error, Result};
use crate::machine::Model;
use crate::operation::distribute::coordinator::{Ending, Round};
use crate::operation::distribute::message::{Address, Envelope, decode, encode};
use crate::operation::distribute::traffic::Traffic;
use crate::outcome::{Outcome, Status};

/// A request on its way to a site.
type Outgoing = Vec<(Address, Request)>;

/// The state of a training.
pub(in crate::operation::distribute) struct SumsCoordinator {
    task: LinearTask,
    sites: usize,
    patience: Option<u32>,
    descent: Descent,
    function: usize,
    solved: Vec<(Vec<f64>, Outcome)>,
    request: Request,
    responses: Vec<Option<Vec<f64>>>,
    rows: Vec<u64>,
    waited: u32,
    history: Vec<Round>,
    ending: Option<Ending>,
}

impl SumsCoordinator {
    pub(in crate::operation::distribute) fn new(
        task: LinearTask,
        sites: usize,
        patience: Option<u32>,
    ) -> Self {
        let descent = Descent::new(task.width(), task.limits(0));
        let weights = Some(descent.weights.clone());
        let request =
            Request { serial: 0, function: 0, point: 0, weights, what: SumRequest::Point };
        Self {
            task,
            sites,
            patience,
            descent,
            function: 0,
            solved: Vec::new(),
            request,
            responses: vec![None; sites],
            rows: vec![0; sites],
            waited: 0,
            history: Vec::new(),
            ending: None,
        }
    }

    pub(in crate::operation::distribute) fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Questions until now.
    pub(in crate::operation::distribute) fn rounds(&self) -> u32 {
        self.request.serial
    }

    pub(in crate::operation::distribute) fn last_round(&self) -> Option<&Round> {
        self.history.last()
    }

    pub(in crate::operation::distribute) fn stop(&mut self) {
        self.ending = Some(Ending::Stopped);
    }

    /// The first requests.
    ///
    /// # Errors
    /// [`Error::Message`] for what cannot be written, here and below.
    pub(in crate::operation::distribute) fn begin(
        &mut self,
        fingerprint: u64,
        traffic: &mut Traffic,
    ) -> Result<Vec<Envelope>> {
        post(self.request_all(SumRequest::Point, true), fingerprint, traffic)
    }

    /// Takes a response in bytes.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub(in crate::operation::distribute) fn accept(
        &mut self,
        envelope: &Envelope,
        fingerprint: u64,
        traffic: &mut Traffic,
    ) -> Result<Vec<Envelope>> {
        let out = self.receive(envelope.from, decode(&envelope.bytes, fingerprint)?)?;
        post(out, fingerprint, traffic)
    }

    /// Time has passed: asks again, or gives up.
    pub(in crate::operation::distribute) fn ask_again(
        &mut self,
        fingerprint: u64,
        traffic: &mut Traffic,
    ) -> Result<Vec<Envelope>> {
        post(self.tick(), fingerprint, traffic)
    }

    fn request_all(&mut self, what: SumRequest, moved: bool) -> Outgoing {
        let serial = self.request.serial + 1;
        let point = if moved { serial } else { self.request.point };
        let weights = moved.then(|| self.descent.weights.clone());
        let function = self.function as u32;
        self.request = Request { serial, function, point, weights, what };
        self.responses.fill(None);
        self.waited = 0;
        (0..self.sites).map(|site| (Address::Site(site as u32), self.request.clone())).collect()
    }

    /// The request once more, with the weights, for a site that may have lost them.
    fn again(&self, site: usize) -> (Address, Request) {
        let weights = Some(self.descent.weights.clone());
        (Address::Site(site as u32), Request { weights, ..self.request.clone() })
    }

    /// Takes a response.
    ///
    /// # Errors
    /// [`Error::Message`] for one of another length or from elsewhere.
    fn receive(&mut self, from: Address, response: Response) -> Result<Outgoing> {
        let Address::Site(site) = from else {
            return Err(Error::message("sums of a site", "something from the coordinator"));
        };
        let site = site as usize;
        if site >= self.sites {
            return Err(Error::message(format!("a site below {}", self.sites), site));
        }
        let late = response.serial != self.request.serial || self.responses[site].is_some();
        if late || self.ending.is_some() {
            return Ok(Vec::new());
        }
        self.rows[site] = response.rows;
        let Some(sums) = response.sums else { return Ok(vec![self.again(site)]) };
        let expected = self.descent.expected(&self.request.what);
        if sums.len() != expected {
            return Err(Error::message(format!("{expected} sums"), sums.len()));
        }
        self.responses[site] = Some(sums);
        if self.responses.iter().any(Option::is_none) {
            return Ok(Vec::new());
        }
        let mut total = vec![0.0; expected];
        // In the order of the sites, so that rounding does not depend on who answered first.
        for sums in self.responses.iter().flatten() {
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
        let was_point = self.request.what == SumRequest::Point;
        let next = self.descent.take(&total);
        if was_point {
            let duals = vec![self.descent.bound(); self.sites];
            let none = vec![0; self.sites];
            self.history.push(Round {
                duals,
                held: self.rows.clone(),
                support: none.clone(),
                sent: none,
                steps: vec![self.descent.products(); self.sites],
            });
        }
        Ok(match next {
            Next::Request(what, moved) => self.request_all(what, moved),
            Next::Done(outcome) => self.next_function(outcome),
        })
    }

    fn next_function(&mut self, outcome: Outcome) -> Outgoing {
        self.function += 1;
        let width = self.task.width();
        let function = self.function.min(self.task.functions() - 1);
        let next = Descent::new(width, self.task.limits(function));
        let done = std::mem::replace(&mut self.descent, next);
        self.solved.push((done.weights, outcome));
        if self.function < self.task.functions() {
            return self.request_all(SumRequest::Point, true);
        }
        self.ending = Some(Ending::Verified);
        Vec::new()
    }

    fn tick(&mut self) -> Outgoing {
        if self.ending.is_some() {
            return Vec::new();
        }
        self.waited = self.waited.saturating_add(1);
        let silent: Vec<usize> =
            (0..self.sites).filter(|&site| self.responses[site].is_none()).collect();
        if self.patience.is_some_and(|patience| self.waited > patience) {
            self.ending = Some(Ending::SitesLost(silent));
            return Vec::new();
        }
        silent.into_iter().map(|site| self.again(site)).collect()
    }

    /// The model with the history of its training; `unfinished` is the status of functions that were
    /// not finished.
    ///
    /// # Errors
    /// [`Error::Interrupted`] where a function was not begun.
    pub(in crate::operation::distribute) fn finish(
        mut self,
        unfinished: Status,
        seconds: f64,
    ) -> Result<(Model, Vec<Round>)> {
        if self.solved.len() < self.task.functions() {
            if self.solved.len() + 1 < self.task.functions() || self.history.is_empty() {
                return Err(Error::Interrupted);
            }
            let outcome = self.descent.outcome(unfinished);
            self.solved.push((self.descent.weights, outcome));
        }
        let (weights, outcomes): (Vec<Vec<f64>>, Vec<Outcome>) = self.solved.into_iter().unzip();
        let outcome = outcomes.into_iter().reduce(Outcome::join).ok_or(Error::Interrupted)?;
        Ok((self.task.model(&weights, outcome, seconds)?, self.history))
    }
}

/// The envelopes of requests.
fn post(out: Outgoing, fingerprint: u64, traffic: &mut Traffic) -> Result<Vec<Envelope>> {
    let envelope = |(to, request)| {
        let bytes = encode(&request, fingerprint)?;
        traffic.count_sums(Address::Coordinator, to, bytes.len());
        Ok(Envelope { from: Address::Coordinator, to, bytes })
    };
    out.into_iter().map(envelope).collect()
}
