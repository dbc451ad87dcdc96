//! Sites in one process: all messages arrive, in order, and the same input gives the same messages on any
//! number of threads.
//!
//! Sites with messages work in parallel, each on its messages in the order of their senders. Messages
//! between sites are delivered before the coordinator sees reports, so that a parallel training is made
//! of synchronous rounds.

use super::coordinator::{Coordinator, Round};
use super::local::LocalProblem;
use super::message::{Address, Envelope, Message, decode, encode};
use super::site::{Outbox, Site};
use super::traffic::Traffic;
use crate::context::Context;
use crate::error::Result;

/// Delivers messages until the coordinator ends the training.
///
/// # Errors
/// Those of the sites.
pub(crate) fn run<P: LocalProblem>(
    sites: &mut [Site<P>],
    coordinator: &mut Coordinator,
    fingerprint: u64,
    context: &Context,
) -> Result<Traffic> {
    let mut network = Network { fingerprint, traffic: Traffic::default(), envelopes: Vec::new() };
    let mut rounds = RoundReports::default();
    network.post(Address::Coordinator, coordinator.start())?;
    while coordinator.ending().is_none() {
        if context.stop_request().is_some() {
            coordinator.stop();
            break;
        }
        let to_sites = network.take(|to| to != Address::Coordinator);
        if !to_sites.is_empty() {
            for (index, out) in
                deliver(sites, to_sites, fingerprint, context)?.into_iter().enumerate()
            {
                network.post(Address::Site(index as u32), out)?;
            }
            continue;
        }
        let reports = network.take(|to| to == Address::Coordinator);
        if reports.is_empty() {
            let out = coordinator.tick();
            network.post(Address::Coordinator, out)?;
        }
        for envelope in reports {
            let message = decode(&envelope.bytes, fingerprint)?;
            let out = coordinator.receive(envelope.from, message)?;
            network.post(Address::Coordinator, out)?;
        }
        rounds.report(coordinator.rounds(), coordinator.last_round(), context);
    }
    Ok(network.traffic)
}

/// Reports every round once.
#[derive(Default)]
pub(crate) struct RoundReports {
    last: u32,
}

impl RoundReports {
    pub(crate) fn report(&mut self, number: u32, round: Option<&Round>, context: &Context) {
        if let Some(round) = round.filter(|_| number != self.last) {
            self.last = number;
            context.report(&round.event(number));
        }
    }
}

/// Gives every site its messages, and a moment for itself.
fn deliver<P: LocalProblem>(
    sites: &mut [Site<P>],
    envelopes: Vec<Envelope>,
    fingerprint: u64,
    context: &Context,
) -> Result<Vec<Outbox>> {
    let mut inboxes: Vec<Vec<Envelope>> = sites.iter().map(|_| Vec::new()).collect();
    for envelope in envelopes {
        if let Address::Site(site) = envelope.to {
            inboxes[site as usize].push(envelope);
        }
    }
    let work = |(site, inbox): (&mut Site<P>, Vec<Envelope>)| -> Result<Outbox> {
        let inbox = inbox.iter().map(|envelope| (envelope.from, envelope.bytes.as_slice()));
        attend(site, inbox, fingerprint, context)
    };
    context.map(sites.iter_mut().zip(inboxes), work).into_iter().collect()
}

/// Gives a site its messages, and a moment for itself if there were any.
///
/// # Errors
/// Those of the site.
pub(crate) fn attend<'a, P: LocalProblem>(
    site: &mut Site<P>,
    inbox: impl ExactSizeIterator<Item = (Address, &'a [u8])>,
    fingerprint: u64,
    context: &Context,
) -> Result<Outbox> {
    if inbox.len() == 0 {
        return Ok(Vec::new());
    }
    let mut out = Vec::new();
    for (from, bytes) in inbox {
        out.extend(site.receive(from, decode(bytes, fingerprint)?, context)?);
    }
    out.extend(site.requests());
    // Rows that were asked for come before the next solution.
    let waits = out.iter().any(|(_, message)| matches!(message, Message::Want { .. }));
    if !waits {
        out.extend(site.idle(context)?);
    }
    site.count_sent(&out);
    Ok(out)
}

struct Network {
    fingerprint: u64,
    traffic: Traffic,
    envelopes: Vec<Envelope>,
}

impl Network {
    fn post(&mut self, from: Address, out: Outbox) -> Result<()> {
        for (to, message) in out {
            let bytes = encode(&message, self.fingerprint)?;
            self.traffic.count(from, to, &message, bytes.len());
            self.envelopes.push(Envelope { from, to, bytes });
        }
        Ok(())
    }

    fn take(&mut self, wanted: impl Fn(Address) -> bool) -> Vec<Envelope> {
        let (taken, left) = std::mem::take(&mut self.envelopes)
            .into_iter()
            .partition(|envelope| wanted(envelope.to));
        self.envelopes = left;
        taken
    }
}
