//! A training whose sites are processes, each with its own rows: what MPI and TCP have in common.
//!
//! Process 0 counts the rows of all, sends the [`DistributedPlan`] to all, and runs the coordinator beside its own
//! site. A process that is lost ends the training of all with an error; every site can keep a checkpoint
//! from which the next run goes on.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::engine::RoundReports;
use super::message::{Address, Envelope};
use super::remote::{DistributedPlan, RemoteCoordinator, RemoteSite, SolutionRequest};
use super::{Distributed, Distribution};
use crate::context::Context;
use crate::data::write::write_atomically;
use crate::data::{Census, Dataset, Layout};
use crate::error::{Error, Result};
use crate::machine::{Preparation, Specification};

/// Time of silence after which the coordinator asks again; it doubles while the silence lasts, so that
/// sites with long solves do not receive many of them.
const FIRST_TICK: Duration = Duration::from_millis(50);

/// The longest time between two such questions.
const LAST_TICK: Duration = Duration::from_secs(30);

/// Time between two checks for a stop request while nothing comes.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Time in which the others may tell what they have at a time limit or an interruption.
const LAST_MOMENTS: Duration = Duration::from_millis(250);

/// Time between two checkpoints.
const CHECKPOINTS: Duration = Duration::from_secs(if cfg!(test) { 0 } else { 10 });

/// How processes reach each other. Nothing is lost between two of them as long as both live; a process that does not is
/// an error of [`send`](Self::send) or [`receive`](Self::receive), and one that only takes its time is not.
pub trait Transport {
    /// The number of this process.
    fn rank(&self) -> usize;

    /// Number of processes.
    fn size(&self) -> usize;

    /// Sends bytes to another process.
    ///
    /// # Errors
    /// Where that process is lost.
    fn send(&mut self, to: usize, bytes: Vec<u8>) -> Result<()>;

    /// What came next, from whom; nothing if nothing came for this long.
    ///
    /// # Errors
    /// Where a process is lost.
    fn receive(&mut self, wait: Duration) -> Result<Option<(usize, Vec<u8>)>>;
}

/// What is trained, and how; only process 0 has to know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainingRequest {
    /// The machine.
    pub specification: Specification,
    /// How the sites work together.
    pub distribution: Distribution,
    /// The seed of random links and codes.
    pub seed: u64,
    /// How the file of process 0 was read; all others are read in the same way.
    pub preparation: Preparation,
}

/// A message between processes.
#[derive(Serialize, Deserialize)]
enum Packet {
    /// Process 0 to all: what is going to be trained.
    TrainingRequest(Vec<u8>),
    /// To process 0: the counts of a site.
    Counted(Vec<u8>),
    /// Process 0 to all: the plan, the number of the first row of the receiver, and the digest of the
    /// counts of all sites in their order.
    Plan(Vec<u8>, u64, u32),
    /// At the end of a training: the result of a site.
    SiteResult(Vec<u8>),
    /// Process 0 to all: which solution is wanted.
    End(RequestedSolution),
    /// A process gives up, and why.
    Failed(String),
    Done,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct RequestedSolution(usize, Option<(u32, u32)>);

/// First byte of an envelope; all other packets begin with another one.
const ENVELOPE_TAG: u8 = 0;
const PACKET_TAG: u8 = 1;

fn pack(packet: &Packet) -> Result<Vec<u8>> {
    postcard::to_extend(packet, vec![PACKET_TAG])
        .map_err(|error| Error::message("a packet that can be written", error))
}

fn wrap(envelope: &Envelope) -> Vec<u8> {
    let number = |address| match address {
        Address::Coordinator => u32::MAX,
        Address::Site(site) => site,
    };
    let mut bytes = vec![ENVELOPE_TAG];
    bytes.extend(number(envelope.from).to_le_bytes());
    bytes.extend(number(envelope.to).to_le_bytes());
    bytes.extend_from_slice(&envelope.bytes);
    bytes
}

enum Received {
    Envelope(Envelope),
    Packet(Packet),
}

fn unpack(bytes: &[u8]) -> Result<Received> {
    match bytes.split_first() {
        Some((&ENVELOPE_TAG, rest)) if rest.len() >= 8 => {
            let address = |at: usize| {
                let number = u32::from_le_bytes([0, 1, 2, 3].map(|i| rest[at + i]));
                if number == u32::MAX { Address::Coordinator } else { Address::Site(number) }
            };
            let bytes = rest[8..].to_vec();
            Ok(Received::Envelope(Envelope { from: address(0), to: address(4), bytes }))
        }
        Some((&PACKET_TAG, rest)) => postcard::from_bytes(rest)
            .map(Received::Packet)
            .map_err(|error| Error::message("a packet of a training", error)),
        _ => Err(Error::message("a packet of a training", "something else")),
    }
}

/// The training request of process 0, sent to all others.
///
/// # Errors
/// Where a process is lost or there is no request.
pub fn agree(
    transport: &mut impl Transport,
    request: Option<TrainingRequest>,
    context: &Context,
) -> Result<TrainingRequest> {
    if transport.rank() == 0 {
        let request = request.ok_or_else(|| Error::model("process 0 has no request"))?;
        let words = serde_json::to_vec(&request)
            .map_err(|error| Error::message("a training request that can be written", error))?;
        let packet = pack(&Packet::TrainingRequest(words))?;
        (1..transport.size()).try_for_each(|to| transport.send(to, packet.clone()))?;
        return Ok(request);
    }
    match next(transport, context)? {
        (_, Received::Packet(Packet::TrainingRequest(words))) => serde_json::from_slice(&words)
            .map_err(|error| Error::message("the request of process 0", error)),
        _ => Err(Error::message("the request of process 0", "something else")),
    }
}

/// The next packet, however long it takes.
fn next(transport: &mut impl Transport, context: &Context) -> Result<(usize, Received)> {
    loop {
        if let Some((from, bytes)) = transport.receive(POLL_INTERVAL)? {
            return match unpack(&bytes)? {
                Received::Packet(Packet::Failed(why)) => Err(failed(from, &why)),
                other => Ok((from, other)),
            };
        }
        if context.stop_request().is_some() {
            return Err(Error::Interrupted);
        }
    }
}

fn failed(from: usize, why: &str) -> Error {
    Error::model(format!("process {from} gave up: {why}"))
}

/// Trains on the rows of all processes; the result is that of process 0 alone. With a folder every process
/// keeps a checkpoint there while it trains, and starts from the one that it finds.
///
/// # Errors
/// Where a process is lost or gives up, and those of a training.
pub fn train_processes(
    transport: &mut impl Transport,
    request: &TrainingRequest,
    data: Dataset,
    checkpoints: Option<&Path>,
    context: &Context,
) -> Result<Option<Distributed>> {
    let result = train(transport, request, data, checkpoints, context);
    if let Err(error) = &result {
        // Others would wait for this process; a lost process cannot be reached.
        let packet = pack(&Packet::Failed(error.to_string()))?;
        for to in (0..transport.size()).filter(|&to| to != transport.rank()).collect::<Vec<_>>() {
            let _ = transport.send(to, packet.clone());
        }
    }
    result
}

fn train(
    transport: &mut impl Transport,
    request: &TrainingRequest,
    data: Dataset,
    checkpoints: Option<&Path>,
    context: &Context,
) -> Result<Option<Distributed>> {
    let has_classes = request.specification.kind().is_classifier();
    let data = match request.preparation.index_base {
        // The text of one site may end at a smaller feature than that of another.
        Some(_) => {
            let features = data.features().clone().into_layout(Layout::Sparse);
            data.with_features(features)?
        }
        None => data,
    };
    let own = Census::of(&data, has_classes)?;
    let (plan, first, digest) = planned(transport, request, own, context)?;
    let mut site = RemoteSite::new(&plan, transport.rank(), data, first)?;
    let mut checkpoint = match checkpoints {
        Some(folder) => Some(Checkpoints::open(folder, transport.rank(), digest, &mut site)?),
        None => None,
    };
    let mut hub = match transport.rank() {
        // The transport tells who is lost; who is silent solves.
        0 => Some(RemoteCoordinator::with_patience(&plan, None)?),
        _ => None,
    };
    let mut run = Run { transport: &mut *transport, site: &mut site, inbox: Vec::new() };
    let wanted = match &mut hub {
        Some(coordinator) => run.lead(coordinator, checkpoint.as_mut(), context)?,
        None => run.follow(checkpoint.as_mut(), context)?,
    };
    let wanted_here = wanted.0 == transport.rank();
    let result = match hub {
        Some(coordinator) => {
            let stopped = context.stop_request().is_some();
            tell_all(transport, &Packet::End(wanted), stopped)?;
            let mut site_results = match stopped {
                true => site_results_in_time(transport),
                false => all_site_results(transport, context)?,
            };
            // Where the others solve for longer, the solution of this process has to do.
            let verification = if wanted_here { wanted.1 } else { None };
            let own = SolutionRequest { site: 0, verification };
            site_results.push(site.site_result((wanted_here || stopped).then_some(own))?);
            tell_all(transport, &Packet::Done, stopped)?;
            Some(coordinator.finish(&site_results, context)?)
        }
        None => {
            let own = SolutionRequest { site: wanted.0, verification: wanted.1 };
            let left = site.site_result(wanted_here.then_some(own))?;
            // Process 0 may have ended without it, and says so.
            let _ = transport.send(0, pack(&Packet::SiteResult(left))?);
            while !matches!(next(transport, context)?.1, Received::Packet(Packet::Done)) {}
            None
        }
    };
    if let Some(mut checkpoint) = checkpoint {
        // Without a verification the training was broken off.
        match wanted.1 {
            Some(_) => checkpoint.remove()?,
            None => checkpoint.write(&site)?,
        }
    }
    Ok(result)
}

/// What the other processes leave, as process 0 hears it.
fn all_site_results(transport: &mut impl Transport, context: &Context) -> Result<Vec<Vec<u8>>> {
    let mut site_results = Vec::new();
    while site_results.len() + 1 < transport.size() {
        if let (_, Received::Packet(Packet::SiteResult(bytes))) = next(transport, context)? {
            site_results.push(bytes);
        }
    }
    Ok(site_results)
}

/// As [`all_site_results`], of those that answer at once.
fn site_results_in_time(transport: &mut impl Transport) -> Vec<Vec<u8>> {
    let (started, mut site_results) = (Instant::now(), Vec::new());
    while site_results.len() + 1 < transport.size() {
        let left = LAST_MOMENTS.saturating_sub(started.elapsed());
        let Ok(Some((_, bytes))) = transport.receive(left) else { break };
        if let Ok(Received::Packet(Packet::SiteResult(bytes))) = unpack(&bytes) {
            site_results.push(bytes);
        }
    }
    site_results
}

/// Sends a packet to all other processes; after a training that was stopped, missing processes are no error.
fn tell_all(transport: &mut impl Transport, packet: &Packet, stopped: bool) -> Result<()> {
    let bytes = pack(packet)?;
    for to in 1..transport.size() {
        match transport.send(to, bytes.clone()) {
            Err(error) if !stopped => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The plan of process 0, the number of the first row of this process, and a digest of the rows of
/// all sites in their order.
fn planned(
    transport: &mut impl Transport,
    request: &TrainingRequest,
    own: Census,
    context: &Context,
) -> Result<(DistributedPlan, u64, u32)> {
    if transport.rank() != 0 {
        transport.send(0, pack(&Packet::Counted(own.to_bytes()?))?)?;
        return match next(transport, context)?.1 {
            Received::Packet(Packet::Plan(bytes, first, digest)) => {
                Ok((DistributedPlan::from_bytes(&bytes)?, first, digest))
            }
            _ => Err(Error::message("the plan of process 0", "something else")),
        };
    }
    let mut counts: Vec<Option<Census>> = vec![None; transport.size()];
    counts[0] = Some(own);
    while counts.iter().any(Option::is_none) {
        if let (from, Received::Packet(Packet::Counted(census))) = next(transport, context)? {
            counts[from] = Some(Census::from_bytes(&census)?);
        }
    }
    let (mut all, mut firsts, mut words) = (None::<Census>, Vec::new(), Vec::new());
    for census in counts.into_iter().flatten() {
        words.extend(census.to_bytes()?);
        firsts.push(all.as_ref().map_or(0, |before| before.rows() as u64));
        all = Some(match all {
            Some(before) => before.joined(census)?,
            None => census,
        });
    }
    let census = all.ok_or(Error::Empty { what: "process" })?;
    let TrainingRequest { specification, distribution, seed, .. } = request.clone();
    let plan = DistributedPlan::new(specification, census, distribution, transport.size(), seed)?;
    let (bytes, digest) = (plan.to_bytes()?, crc32fast::hash(&words));
    for (to, first) in firsts.iter().enumerate().skip(1) {
        transport.send(to, pack(&Packet::Plan(bytes.clone(), *first, digest))?)?;
    }
    Ok((plan, 0, digest))
}

/// A process in the middle of a training.
struct Run<'a, P> {
    transport: &'a mut P,
    site: &'a mut RemoteSite,
    /// For the site of this process.
    inbox: Vec<Envelope>,
}

impl<P: Transport> Run<'_, P> {
    /// Sends envelopes, those to the coordinator through process 0; what is for this process itself comes
    /// back.
    fn deliver(&mut self, envelopes: Vec<Envelope>) -> Result<Vec<Envelope>> {
        let rank = self.transport.rank();
        let mut here = Vec::new();
        for envelope in envelopes {
            let to = match envelope.to {
                Address::Coordinator => 0,
                Address::Site(site) => site as usize,
            };
            if to >= self.transport.size() {
                return Err(Error::message(format!("a site below {}", self.transport.size()), to));
            }
            if to != rank {
                self.transport.send(to, wrap(&envelope))?;
            } else if envelope.to == Address::Coordinator {
                here.push(envelope);
            } else {
                self.inbox.push(envelope);
            }
        }
        Ok(here)
    }

    /// Everything that has come, waiting for the first for a while; the end, if it came.
    fn gather(&mut self, wait: Duration) -> Result<(Vec<Envelope>, Option<RequestedSolution>)> {
        let (mut reports, mut wait) = (Vec::new(), wait);
        while let Some((from, bytes)) = self.transport.receive(wait)? {
            match unpack(&bytes)? {
                Received::Envelope(envelope) if envelope.to == Address::Coordinator => {
                    reports.push(envelope);
                }
                Received::Envelope(envelope) => self.inbox.push(envelope),
                Received::Packet(Packet::End(wanted)) => return Ok((reports, Some(wanted))),
                Received::Packet(Packet::Failed(why)) => return Err(failed(from, &why)),
                Received::Packet(_) => {}
            }
            wait = Duration::ZERO;
        }
        Ok((reports, None))
    }

    /// Lets the site answer what has come; reports to a coordinator in this process.
    fn work(&mut self, context: &Context) -> Result<Vec<Envelope>> {
        let inbox = std::mem::take(&mut self.inbox);
        let replies = self.site.receive(&inbox, context)?;
        self.deliver(replies)
    }

    fn follow(
        &mut self,
        mut checkpoint: Option<&mut Checkpoints>,
        context: &Context,
    ) -> Result<RequestedSolution> {
        loop {
            let wait = if self.inbox.is_empty() { POLL_INTERVAL } else { Duration::ZERO };
            if let (_, Some(wanted)) = self.gather(wait)? {
                return Ok(wanted);
            }
            if context.stop_request().is_some() {
                return Err(Error::Interrupted);
            }
            if !self.inbox.is_empty() {
                self.work(context)?;
                if let Some(checkpoint) = &mut checkpoint {
                    checkpoint.keep(self.site)?;
                }
            }
        }
    }

    fn lead(
        &mut self,
        coordinator: &mut RemoteCoordinator,
        mut checkpoint: Option<&mut Checkpoints>,
        context: &Context,
    ) -> Result<RequestedSolution> {
        let (mut tick, mut heard) = (FIRST_TICK, Instant::now());
        let orders = coordinator.start()?;
        let mut reports = self.deliver(orders)?;
        let mut rounds = RoundReports::default();
        while coordinator.ending().is_none() {
            if context.stop_request().is_some() {
                coordinator.stop();
                break;
            }
            rounds.report(coordinator.rounds(), coordinator.last_round(), context);
            let busy = !self.inbox.is_empty() || !reports.is_empty();
            let (more, _) = self.gather(if busy { Duration::ZERO } else { FIRST_TICK })?;
            reports.extend(more);
            if busy || !reports.is_empty() || !self.inbox.is_empty() {
                (tick, heard) = (FIRST_TICK, Instant::now());
            } else if heard.elapsed() >= tick {
                (tick, heard) = ((2 * tick).min(LAST_TICK), Instant::now());
                let orders = coordinator.tick()?;
                reports.extend(self.deliver(orders)?);
            }
            // Orders reach the others before the site of this process solves.
            for report in std::mem::take(&mut reports) {
                let orders = coordinator.receive(&report)?;
                reports.extend(self.deliver(orders)?);
            }
            if !self.inbox.is_empty() && coordinator.ending().is_none() {
                let own = self.work(context)?;
                reports.extend(own);
                if let Some(checkpoint) = &mut checkpoint {
                    checkpoint.keep(self.site)?;
                }
            }
        }
        let wanted = coordinator.wanted();
        Ok(RequestedSolution(wanted.site, wanted.verification))
    }
}

/// The checkpoint file of a process.
struct Checkpoints {
    path: PathBuf,
    /// Of the rows of all sites: rows are numbered in the order of the sites.
    digest: [u8; 4],
    kept: Instant,
}

impl Checkpoints {
    /// Restores what an earlier run kept.
    fn open(folder: &Path, rank: usize, digest: u32, site: &mut RemoteSite) -> Result<Self> {
        let digest = digest.to_le_bytes();
        fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
        let path = folder.join(format!("site-{rank}.checkpoint"));
        match fs::read(&path) {
            Ok(bytes) => site.restore(content(&bytes, digest, &path)?)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(path, error)),
        }
        // The first solution is kept at once.
        let kept = Instant::now().checked_sub(CHECKPOINTS).unwrap_or_else(Instant::now);
        Ok(Self { path, digest, kept })
    }

    /// Replaces the file, if it is old.
    fn keep(&mut self, site: &RemoteSite) -> Result<()> {
        if self.kept.elapsed() < CHECKPOINTS { Ok(()) } else { self.write(site) }
    }

    /// Replaces the file.
    fn write(&mut self, site: &RemoteSite) -> Result<()> {
        if let Some(bytes) = site.checkpoint()? {
            let sum = crc32fast::hash(&bytes).to_le_bytes();
            write_atomically(&self.path, |out| {
                [&self.digest[..], &sum, &bytes]
                    .into_iter()
                    .try_for_each(|part| out.write_all(part))
            })?;
            self.kept = Instant::now();
        }
        Ok(())
    }

    fn remove(self) -> Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(self.path, error)),
            _ => Ok(()),
        }
    }
}

/// What a checkpoint file holds besides the digest of the rows and the checksum.
fn content<'a>(bytes: &'a [u8], digest: [u8; 4], path: &Path) -> Result<&'a [u8]> {
    let Some(rest) = bytes.strip_prefix(&digest) else {
        let expected = "the same rows at the same sites, connected in the same order";
        return Err(Error::message(expected, format!("{} of others", path.display())));
    };
    match rest.split_first_chunk::<4>() {
        Some((sum, content)) if *sum == crc32fast::hash(content).to_le_bytes() => Ok(content),
        _ => Err(Error::message("an undamaged checkpoint", format!("{}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread::spawn;

    use super::super::tcp::{TcpHub, TcpMember};
    use super::super::{Ending, split};
    use super::*;
    use crate::data::read::{ReadOptions, read};
    use crate::machine::MachineKind;
    use crate::outcome::Status;

    #[test]
    fn at_its_time_limit_process_0_keeps_what_it_has_without_those_that_still_solve() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/iris.csv");
        let data = read(path, &ReadOptions::new()).unwrap().dataset;
        let parts = split(data.rows(), 2, 3).unwrap();
        let own = data.select_rows(&parts[0]);
        let theirs = Census::of(&data.select_rows(&parts[1]), true).unwrap();
        for kind in [MachineKind::CSvc, MachineKind::Logistic] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let census = theirs.clone();
            // Takes part until the training begins, and is busy for so long that it never answers.
            let busy = spawn(move || {
                let context = Context::new();
                let mut member =
                    TcpMember::connect(address, Duration::from_secs(5), &context).unwrap();
                agree(&mut member, None, &context).unwrap();
                let counted = pack(&Packet::Counted(census.to_bytes().unwrap())).unwrap();
                member.send(0, counted).unwrap();
                while !matches!(
                    next(&mut member, &context),
                    Ok((_, Received::Packet(Packet::Done)))
                ) {}
            });
            let request = TrainingRequest {
                specification: Specification::new(kind),
                distribution: Distribution::default(),
                seed: 1,
                preparation: Preparation::default(),
            };
            let mut hub = TcpHub::accept(&listener, 2, &Context::new()).unwrap();
            let request = agree(&mut hub, Some(request), &Context::new()).unwrap();
            let context = Context::new().with_time_limit(Duration::from_secs(1));
            let started = Instant::now();
            let result = train_processes(&mut hub, &request, own.clone(), None, &context);
            let seconds = started.elapsed().as_secs_f64();
            busy.join().unwrap();
            assert!(seconds < 5.0, "{seconds}");
            match result {
                Ok(Some(found)) => {
                    assert_eq!(found.report.ending, Ending::Stopped);
                    let status = found.model.training.as_ref().unwrap().outcome.status;
                    assert_eq!(status, Status::TimeLimit);
                    let right =
                        found.model.predictor(&Context::new()).unwrap().predict(own.features());
                    assert_eq!(right.unwrap().len(), own.rows());
                }
                // Linear machines have no sum of all without the other site.
                other => assert!(kind == MachineKind::Logistic && other.is_err(), "{kind}"),
            }
        }
    }

    #[test]
    fn a_checkpoint_of_other_rows_or_damaged_is_refused() {
        let digest = [1, 2, 3, 4];
        let sum = crc32fast::hash(b"content").to_le_bytes();
        let whole = [&digest[..], &sum, b"content"].concat();
        let path = Path::new("site-0.checkpoint");
        assert_eq!(content(&whole, digest, path).unwrap(), b"content");
        let other = content(&whole, [0; 4], path).unwrap_err().to_string();
        assert!(other.contains("the same rows"), "{other}");
        for at in 4..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            let error = content(&damaged, digest, path).unwrap_err().to_string();
            assert!(error.contains("undamaged checkpoint"), "{at}: {error}");
        }
        assert!(content(&whole[..6], digest, path).is_err());
    }
}
