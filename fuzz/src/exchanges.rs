//! What must hold for any bytes whatsoever that a participant of a training at several sites gets: no panic, no
//! runaway allocation, and what is refused leaves a participant that goes on.
//!
//! The function is a fuzz target and is also run on the committed corpus by
//! `crates/widemargin/tests/fuzz_corpus.rs`.

use std::time::Duration;

use widemargin::Context;
use widemargin::data::{Census, Dataset, Dense, Labels, Matrix};
use widemargin::machine::{MachineKind, Specification};
use widemargin::operation::distribute::{
    Address, DistributedPlan, Distribution, Envelope, RemoteCoordinator, RemoteSite,
};

/// Rows of every site.
const ROWS: usize = 8;

/// A training of two sites.
struct Training {
    plan: DistributedPlan,
    parts: [Dataset; 2],
}

impl Training {
    fn new(kind: MachineKind) -> Self {
        let part = |site: usize| {
            let value = |i: usize| ((i * 7919 + site) % 101) as f64 / 101.0;
            let features = (0..2 * ROWS).map(value).collect();
            let features = Matrix::DenseF64(Dense::new(ROWS, 2, features).expect("two columns"));
            let labels = Labels::Int((0..ROWS as i64).map(|i| i % 2).collect());
            Dataset::new(features, labels).expect("one label a row")
        };
        let parts = [part(0), part(1)];
        let counts = parts.each_ref().map(|part| Census::of(part, true).expect("finite rows"));
        let [first, second] = counts;
        let census = first.joined(second).expect("the same columns");
        let specification = Specification::new(kind);
        let plan = DistributedPlan::new(specification, census, Distribution::default(), 2, 1);
        Self { plan: plan.expect("a machine for several sites"), parts }
    }

    fn site(&self, index: usize) -> RemoteSite {
        let first = (index * ROWS) as u64;
        RemoteSite::new(&self.plan, index, self.parts[index].clone(), first).expect("its rows")
    }

    /// The coordinator and what it begins with.
    fn coordinator(&self) -> (RemoteCoordinator, Vec<Envelope>) {
        let mut coordinator = RemoteCoordinator::new(&self.plan).expect("a plan");
        let begun = coordinator.start().expect("requests to solve");
        (coordinator, begun)
    }
}

/// A document in the frame of the messages of a training, with the checksum that lets it through.
fn frame(other: &[u8], document: &[u8]) -> Vec<u8> {
    let mut bytes = other[..11].to_vec();
    bytes.extend_from_slice(&crc32fast::hash(document).to_le_bytes());
    bytes.extend_from_slice(&(document.len() as u32).to_le_bytes());
    bytes.extend_from_slice(document);
    bytes
}

/// A message, a checkpoint or what a site leaves: the first byte chooses the machine and who gets it.
pub(crate) fn exchange(bytes: &[u8]) {
    let Some((choice, document)) = bytes.split_first() else { return };
    let kinds = [MachineKind::CSvc, MachineKind::LinearSvc];
    let training = Training::new(kinds[usize::from(choice & 1)]);
    let context = Context::new().with_time_limit(Duration::from_secs(2));
    let (mut coordinator, begun) = training.coordinator();
    let from = Address::Site(1);
    match (choice >> 1) % 5 {
        0 => {
            let mut site = training.site(0);
            let bytes = frame(&begun[0].bytes, document);
            let from = if choice & 128 == 0 { from } else { Address::Coordinator };
            let _ = site.receive(&[Envelope { from, to: Address::Site(0), bytes }], &context);
            // What it took must not disturb it later.
            let own: Vec<Envelope> =
                begun.into_iter().filter(|envelope| envelope.to == Address::Site(0)).collect();
            let _ = site.receive(&own, &context);
            let _ = site.checkpoint();
            let _ = site.site_result(None);
        }
        1 => {
            let bytes = frame(&begun[0].bytes, document);
            let _ = coordinator.receive(&Envelope { from, to: Address::Coordinator, bytes });
            let _ = coordinator.tick();
        }
        2 => {
            let mut site = training.site(0);
            let _ = site.restore(document);
            let _ = site.receive(&begun, &context);
        }
        3 => {
            let bytes = document.to_vec();
            let _ = coordinator.receive(&Envelope { from, to: Address::Coordinator, bytes });
            let site_results =
                [document.to_vec(), training.site(1).site_result(None).expect("no solution")];
            coordinator.stop();
            let _ = coordinator.finish(&site_results, &context);
        }
        _ => {
            let _ = DistributedPlan::from_bytes(document);
            let _ = Census::from_bytes(document);
        }
    }
}

/// Seeds: everything that the participants of both trainings say to each other until they are done.
#[cfg(test)]
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (machine, kind) in [MachineKind::CSvc, MachineKind::LinearSvc].into_iter().enumerate() {
        let training = Training::new(kind);
        let mut add = |receiver: u8, document: &[u8]| {
            let seed = [&[machine as u8 | receiver << 1], document].concat();
            if !seeds.contains(&seed) {
                seeds.push(seed);
            }
        };
        let context = Context::new();
        let mut sites = [training.site(0), training.site(1)];
        let (mut coordinator, mut under_way) = training.coordinator();
        while coordinator.ending().is_none() {
            if under_way.is_empty() {
                under_way = coordinator.tick().expect("a request");
            }
            for envelope in std::mem::take(&mut under_way) {
                let to_coordinator = envelope.to == Address::Coordinator;
                add(u8::from(to_coordinator), &envelope.bytes[19..]);
                under_way.extend(match envelope.to {
                    Address::Coordinator => coordinator.receive(&envelope).expect("an answer"),
                    Address::Site(to) => {
                        sites[to as usize].receive(&[envelope], &context).expect("an answer")
                    }
                });
            }
        }
        let wanted = coordinator.wanted();
        if let Some(checkpoint) = sites[0].checkpoint().expect("a solution") {
            add(2, &checkpoint);
        }
        add(3, &sites[wanted.site].site_result(Some(wanted)).expect("a solution"));
        add(4, &training.plan.to_bytes().expect("a plan"));
        add(4, &training.plan.census().to_bytes().expect("counts"));
    }
    seeds
}
