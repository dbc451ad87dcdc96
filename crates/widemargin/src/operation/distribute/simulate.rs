//! Sites on a bad network, all of it decided by a seed: messages are lost, repeated, damaged, delayed and
//! overtake each other; sites crash, lose all but their own rows, and come back or do not.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::coordinator::Coordinator;
use super::local::LocalProblem;
use super::message::{Address, Message, decode, encode};
use super::site::{Outbox, Site};
use super::traffic::Traffic;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::numeric::random::Generator;

/// How bad the network is.
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    /// Share of messages that are lost.
    pub loss: f64,
    /// Share that arrives twice.
    pub duplication: f64,
    /// Share in which a bit is changed.
    pub damage: f64,
    /// Longest time on the way; a message takes at least 1, and later ones may overtake it.
    pub latency: u64,
    /// Time after which the coordinator asks again.
    pub timeout: u64,
    /// Sites that fail.
    pub crashes: Vec<Crash>,
}

/// A site that loses all but its own rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    /// Which one, from 0.
    pub site: usize,
    /// When.
    pub time: u64,
    /// When it is back, if ever.
    pub back: Option<u64>,
}

impl Default for Faults {
    /// A network without faults, on which all messages take equally long.
    fn default() -> Self {
        Self {
            loss: 0.0,
            duplication: 0.0,
            damage: 0.0,
            latency: 1,
            timeout: 10,
            crashes: Vec::new(),
        }
    }
}

impl Faults {
    /// Checks that shares are shares, times are positive and sites exist.
    pub(super) fn validate(&self, sites: usize) -> Result<()> {
        let shares =
            [("loss", self.loss), ("duplication", self.duplication), ("damage", self.damage)];
        for (name, share) in shares {
            if !(0.0..=1.0).contains(&share) {
                return Err(Error::parameter(name, "0 to 1", share));
            }
        }
        let longest = 1 << 32;
        for (name, time) in [("latency", self.latency), ("timeout", self.timeout)] {
            if !(1..=longest).contains(&time) {
                return Err(Error::parameter(name, format!("1 to {longest}"), time));
            }
        }
        match self.crashes.iter().find(|crash| crash.site >= sites) {
            Some(crash) => {
                let expected = format!("sites 0 to {}", sites.max(1) - 1);
                Err(Error::parameter("crashes", expected, crash.site))
            }
            None => Ok(()),
        }
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Deliver { from: Address, to: Address, bytes: Vec<u8> },
    Crash(usize),
    Return(usize),
    Tick,
}

struct Simulation<'a> {
    faults: &'a Faults,
    generator: Generator,
    fingerprint: u64,
    /// By time, then in the order in which they were planned.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    planned: u64,
    traffic: Traffic,
}

impl Simulation<'_> {
    fn plan(&mut self, time: u64, event: Event) {
        self.planned += 1;
        self.events.push(Reverse((time, self.planned, event)));
    }

    fn post(&mut self, now: u64, from: Address, out: Outbox) -> Result<()> {
        for (to, message) in out {
            let bytes = encode(&message, self.fingerprint)?;
            self.traffic.count(from, to, &message, bytes.len());
            if self.generator.unit() < self.faults.loss {
                continue;
            }
            let copies = 1 + u32::from(self.generator.unit() < self.faults.duplication);
            for _ in 0..copies {
                let mut bytes = bytes.clone();
                if self.generator.unit() < self.faults.damage {
                    let place = self.generator.below(bytes.len());
                    bytes[place] ^= 1 << self.generator.below(8);
                }
                let late = self.generator.below(self.faults.latency as usize) as u64;
                self.plan(now + 1 + late, Event::Deliver { from, to, bytes });
            }
        }
        Ok(())
    }
}

/// Runs until the coordinator ends the training. `new_site` makes a site with its own rows.
///
/// # Errors
/// Those of the local solver.
pub(crate) fn simulate<P: LocalProblem>(
    new_site: impl Fn(usize) -> Site<P>,
    sites: usize,
    coordinator: &mut Coordinator,
    fingerprint: u64,
    faults: &Faults,
    seed: u64,
    context: &Context,
) -> Result<(Vec<Option<Site<P>>>, Traffic)> {
    let mut all: Vec<Option<Site<P>>> = (0..sites).map(|site| Some(new_site(site))).collect();
    let mut simulation = Simulation {
        faults,
        generator: Generator::new(seed),
        fingerprint,
        events: BinaryHeap::new(),
        planned: 0,
        traffic: Traffic::default(),
    };
    simulation.plan(faults.timeout, Event::Tick);
    for crash in &faults.crashes {
        simulation.plan(crash.time, Event::Crash(crash.site));
        if let Some(back) = crash.back {
            simulation.plan(back, Event::Return(crash.site));
        }
    }
    let out = coordinator.start();
    simulation.post(0, Address::Coordinator, out)?;
    while let Some(Reverse((now, _, event))) = simulation.events.pop() {
        if context.stop_request().is_some() {
            coordinator.stop();
        }
        if coordinator.ending().is_some() {
            break;
        }
        match event {
            Event::Tick => {
                let out = coordinator.tick();
                simulation.post(now, Address::Coordinator, out)?;
                simulation.plan(now + faults.timeout, Event::Tick);
            }
            Event::Crash(site) => all[site] = None,
            Event::Return(site) => {
                let mut back = new_site(site);
                let out = back.join();
                all[site] = Some(back);
                simulation.post(now, Address::Site(site as u32), out)?;
            }
            Event::Deliver { from, to, bytes } => {
                // What is damaged is dropped, as if it were lost.
                let Ok(message) = decode::<Message>(&bytes, fingerprint) else { continue };
                let out = match to {
                    Address::Coordinator => coordinator.receive(from, message)?,
                    Address::Site(index) => {
                        let Some(site) = &mut all[index as usize] else { continue };
                        let mut out = site.receive(from, message, context)?;
                        out.extend(site.requests());
                        out.extend(site.idle(context)?);
                        site.count_sent(&out);
                        out
                    }
                };
                simulation.post(now, to, out)?;
            }
        }
    }
    Ok((all, simulation.traffic))
}
