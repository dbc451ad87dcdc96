//! Processes that reach each other through TCP: all connect to process 0, which passes on what is for
//! another one. There is no encryption and no password: it is for networks whose hosts trust each other.
//!
//! Both ends of a connection send an empty packet every few seconds, however long their training computes. A process
//! that ends closes its connection; one whose host vanishes is missed after [`SILENCE`].

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use super::message::MAX_DOCUMENT;
use super::process::Transport;
use crate::context::Context;
use crate::error::{Error, Result};

/// What a connection begins with, the version included.
const HANDSHAKE: [u8; 4] = *b"WMX2";

/// Largest packet: a message and what is around it.
const MOST_BYTES: usize = MAX_DOCUMENT + (1 << 20);

/// Time limit of the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Time between two empty packets.
const BEAT: Duration = Duration::from_millis(if cfg!(test) { 200 } else { 5000 });

/// Time without any byte after which a process counts as lost.
const SILENCE: Duration = Duration::from_secs(if cfg!(test) { 5 } else { 30 });

/// Time of one attempt to connect.
const ATTEMPT: Duration = Duration::from_secs(1);

/// Time between two looks for connections and stop requests.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// An event of a reader thread.
enum Event {
    /// From, content.
    Packet(usize, Vec<u8>),
    Lost(usize),
}

/// One end of a connection, for those that write to it.
type Connection = Arc<Mutex<TcpStream>>;

/// Those of process 0, to processes 1, 2, …
type Connections = Arc<RwLock<Vec<Connection>>>;

/// Process 0, which all others connect to.
pub struct TcpHub {
    connections: Connections,
    size: usize,
    events: Receiver<Event>,
    beats: Vec<Beat>,
}

/// A process that is connected to process 0.
pub struct TcpMember {
    connection: Connection,
    rank: usize,
    size: usize,
    events: Receiver<Event>,
    _beat: Beat,
}

impl TcpHub {
    /// Waits at an address until `size` − 1 processes have connected; they are numbered in that request.
    ///
    /// # Errors
    /// [`Error::Io`] for an address that cannot be used; [`Error::Interrupted`].
    pub fn listen(
        address: impl ToSocketAddrs + ToString,
        size: usize,
        context: &Context,
    ) -> Result<Self> {
        let name = address.to_string();
        let failed = |error| Error::io(&name, error);
        let listener = TcpListener::bind(address).map_err(failed)?;
        Self::accept(&listener, size, context)
    }

    /// The same at a socket that listens already.
    ///
    /// # Errors
    /// As [`listen`](Self::listen).
    pub fn accept(listener: &TcpListener, size: usize, context: &Context) -> Result<Self> {
        super::check_sites(size)?;
        let name = listener.local_addr().map_or_else(|_| "socket".into(), |a| a.to_string());
        let failed = |error| Error::io(&name, error);
        listener.set_nonblocking(true).map_err(failed)?;
        let (sender, events) = channel();
        // Dropped in an error, it ends the connections.
        let mut hub = Self { connections: Connections::default(), size, events, beats: Vec::new() };
        while hub.beats.len() + 1 < size {
            if context.stop_request().is_some() {
                return Err(Error::Interrupted);
            }
            match listener.accept() {
                Ok((stream, _)) => {
                    let rank = hub.beats.len() + 1;
                    // Who does not greet, or goes away at once, is not one of ours.
                    if handshake(&stream, rank, size, context).is_ok() {
                        let reader = stream.try_clone().map_err(failed)?;
                        let connection = Arc::new(Mutex::new(stream));
                        write_to(&hub.connections).push(Arc::clone(&connection));
                        hub.beats.push(Beat::start(connection, 0, rank)?);
                        let (others, sender) = (Arc::clone(&hub.connections), sender.clone());
                        read_from(reader, move |event| match event {
                            Some((_, to, bytes)) if to != 0 => {
                                match pass(&others, rank, to, &bytes) {
                                    Ok(()) => true,
                                    Err(_) => sender.send(Event::Lost(to)).is_ok(),
                                }
                            }
                            Some((_, _, bytes)) => sender.send(Event::Packet(rank, bytes)).is_ok(),
                            None => sender.send(Event::Lost(rank)).is_ok(),
                        })?;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(POLL_INTERVAL),
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(hub)
    }
}

fn write_to(connections: &Connections) -> std::sync::RwLockWriteGuard<'_, Vec<Connection>> {
    connections.write().unwrap_or_else(PoisonError::into_inner)
}

/// Sends a packet to a process, on whatever thread.
fn pass(connections: &Connections, from: usize, to: usize, bytes: &[u8]) -> Result<()> {
    let connection = {
        let connections = connections.read().unwrap_or_else(PoisonError::into_inner);
        connections.get(to.wrapping_sub(1)).map(Arc::clone)
    };
    match connection {
        Some(connection) => write(&connection, from, to, bytes).map_err(|_| lost(to)),
        None => Err(Error::message("a process of this training", to)),
    }
}

/// The handshake with a process that has connected.
fn handshake(
    stream: &TcpStream,
    rank: usize,
    size: usize,
    context: &Context,
) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let mut greeting = [0; 4];
    let mut stream = stream;
    read_in_time(stream, &mut greeting, HANDSHAKE_TIMEOUT, context)?;
    if greeting != HANDSHAKE {
        return Err(ErrorKind::InvalidData.into());
    }
    stream.write_all(&HANDSHAKE)?;
    stream.write_all(&(rank as u32).to_le_bytes())?;
    stream.write_all(&(size as u32).to_le_bytes())?;
    bound(stream)
}

/// Neither reading nor writing waits for ever.
fn bound(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))
}

/// A thread that sends empty packets until this is dropped or the connection has ended.
struct Beat(#[expect(dead_code, reason = "its end is the message")] Sender<()>);

impl Beat {
    fn start(connection: Connection, from: usize, to: usize) -> Result<Self> {
        let (sender, end) = channel();
        let beat = move || {
            while matches!(end.recv_timeout(BEAT), Err(RecvTimeoutError::Timeout))
                && write(&connection, from, to, &[]).is_ok()
            {}
        };
        on_a_thread(beat)?;
        Ok(Self(sender))
    }
}

fn on_a_thread(work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = thread::Builder::new().name("widemargin-tcp".into()).spawn(work);
    thread.map(|_| ()).map_err(|error| Error::io("a thread for a connection", error))
}

/// Fills `bytes` within a time, unless the training is to stop.
fn read_in_time(
    mut stream: &TcpStream,
    bytes: &mut [u8],
    patience: Duration,
    context: &Context,
) -> std::io::Result<()> {
    let (started, mut found) = (Instant::now(), 0);
    stream.set_read_timeout(Some(POLL_INTERVAL))?;
    while found < bytes.len() {
        match stream.read(&mut bytes[found..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(more) => found += more,
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                if started.elapsed() >= patience || context.stop_request().is_some() {
                    return Err(ErrorKind::TimedOut.into());
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Connects to the first of the addresses that answers, in little more than [`ATTEMPT`].
fn attempt(address: &impl ToSocketAddrs, context: &Context) -> std::io::Result<TcpStream> {
    let mut failed = ErrorKind::AddrNotAvailable.into();
    for address in address.to_socket_addrs()? {
        let time = context.time_left().map_or(ATTEMPT, |left| left.clamp(POLL_INTERVAL, ATTEMPT));
        match TcpStream::connect_timeout(&address, time) {
            Ok(connection) => return Ok(connection),
            Err(error) => failed = error,
        }
        if context.stop_request().is_some() {
            break;
        }
    }
    Err(failed)
}

impl TcpMember {
    /// Connects to process 0, trying for so long.
    ///
    /// # Errors
    /// [`Error::Io`] where nobody listens or answers there, [`Error::Message`] where somebody else does;
    /// [`Error::Interrupted`].
    pub fn connect(
        address: impl ToSocketAddrs + ToString,
        patience: Duration,
        context: &Context,
    ) -> Result<Self> {
        let name = address.to_string();
        let failed = |error| Error::io(&name, error);
        let started = Instant::now();
        let mut connection = loop {
            match attempt(&address, context) {
                Ok(connection) => break connection,
                Err(error) if started.elapsed() >= patience => return Err(failed(error)),
                Err(_) if context.stop_request().is_some() => return Err(Error::Interrupted),
                Err(_) => thread::sleep(POLL_INTERVAL),
            }
        };
        connection.set_nodelay(true).map_err(failed)?;
        connection.write_all(&HANDSHAKE).map_err(failed)?;
        let mut reply = [0; 12];
        let left = patience.saturating_sub(started.elapsed()).max(HANDSHAKE_TIMEOUT);
        match read_in_time(&connection, &mut reply, left, context) {
            Err(_) if context.stop_request().is_some() => return Err(Error::Interrupted),
            other => other.map_err(failed)?,
        }
        if reply[..4] != HANDSHAKE {
            let found = format!("something else at {name}");
            return Err(Error::message("process 0 of a training of this version", found));
        }
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| reply[at + i])) as usize;
        bound(&connection).map_err(failed)?;
        let (sender, events) = channel();
        read_from(connection.try_clone().map_err(failed)?, move |event| {
            sender.send(event.map_or(Event::Lost(0), |(from, _, b)| Event::Packet(from, b))).is_ok()
        })?;
        let (rank, connection) = (word(4), Arc::new(Mutex::new(connection)));
        let beat = Beat::start(Arc::clone(&connection), rank, 0)?;
        Ok(Self { connection, rank, size: word(8), events, _beat: beat })
    }
}

/// Reads packets (from, to, content) on a thread of its own and hands them to `deliver`, which returns whether to
/// go on; the end of the connection is `None`. Empty packets are left out.
fn read_from(
    mut stream: TcpStream,
    deliver: impl Fn(Option<(usize, usize, Vec<u8>)>) -> bool + Send + 'static,
) -> Result<()> {
    on_a_thread(move || {
        loop {
            let packet = packet(&mut stream);
            if packet.as_ref().is_some_and(|(_, _, bytes)| bytes.is_empty()) {
                continue;
            }
            let ended = packet.is_none();
            if !deliver(packet) || ended {
                return;
            }
        }
    })
}

/// The next packet of a connection; none where it ends, is silent for too long or sends what is no packet.
fn packet(stream: &mut TcpStream) -> Option<(usize, usize, Vec<u8>)> {
    let mut head = [0; 12];
    stream.read_exact(&mut head).ok()?;
    let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| head[at + i])) as usize;
    let length = word(8);
    if length > MOST_BYTES {
        return None;
    }
    // Memory grows with what comes, not with what was announced.
    let mut bytes = Vec::new();
    let found = Read::take(stream, length as u64).read_to_end(&mut bytes).ok()?;
    (found == length).then_some((word(0), word(4), bytes))
}

fn write(connection: &Connection, from: usize, to: usize, bytes: &[u8]) -> std::io::Result<()> {
    let mut stream = connection.lock().unwrap_or_else(PoisonError::into_inner);
    let mut head = Vec::with_capacity(12);
    for word in [from, to, bytes.len()] {
        head.extend((word as u32).to_le_bytes());
    }
    stream.write_all(&head)?;
    stream.write_all(bytes)
}

fn lost(rank: usize) -> Error {
    Error::model(format!("process {rank} is lost: its connection ended or is silent"))
}

/// What came within a time, and from whom.
fn within(events: &Receiver<Event>, wait: Duration) -> Result<Option<(usize, Vec<u8>)>> {
    match events.recv_timeout(wait) {
        Ok(Event::Packet(from, bytes)) => Ok(Some((from, bytes))),
        Ok(Event::Lost(rank)) => Err(lost(rank)),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
    }
}

// Readers hold the connections too, and would keep them open.

impl Drop for TcpHub {
    fn drop(&mut self) {
        write_to(&self.connections).iter().for_each(end);
    }
}

impl Drop for TcpMember {
    fn drop(&mut self) {
        end(&self.connection);
    }
}

fn end(connection: &Connection) {
    let stream = connection.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = stream.shutdown(Shutdown::Both);
}

impl Transport for TcpHub {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        self.size
    }

    fn send(&mut self, to: usize, bytes: Vec<u8>) -> Result<()> {
        pass(&self.connections, 0, to, &bytes)
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<(usize, Vec<u8>)>> {
        within(&self.events, wait)
    }
}

impl Transport for TcpMember {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn send(&mut self, to: usize, bytes: Vec<u8>) -> Result<()> {
        write(&self.connection, self.rank, to, &bytes).map_err(|_| lost(0))
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<(usize, Vec<u8>)>> {
        within(&self.events, wait)
    }
}

#[cfg(test)]
mod tests {
    use super::super::process::{TrainingRequest, agree, train_processes};
    use super::super::{Distributed, Distribution, Ending, Schedule, Topology, split};
    use super::*;
    use crate::data::Dataset;
    use crate::data::read::{ReadOptions, read};
    use crate::machine::{MachineKind, Specification};
    use std::net::SocketAddr;
    use std::path::Path;
    use std::thread::{JoinHandle, spawn};

    fn parts(sites: usize) -> Vec<Dataset> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/iris.csv");
        let data = read(path, &ReadOptions::new()).unwrap().dataset;
        let parts = split(data.rows(), sites, 3).unwrap();
        parts.iter().map(|rows| data.select_rows(rows)).collect()
    }

    fn request(kind: MachineKind, topology: Topology, schedule: Schedule) -> TrainingRequest {
        let mut specification = Specification::new(kind);
        for (name, text) in [("tol", "1e-7"), ("precision", "f64")] {
            specification.parse(name, text).unwrap();
        }
        if kind == MachineKind::Logistic {
            specification.parse("solver", "newton").unwrap();
        }
        let distribution = Distribution { topology, schedule, ..Distribution::default() };
        let preparation = crate::machine::Preparation::default();
        TrainingRequest { specification, distribution, seed: 1, preparation }
    }

    type Ended = Result<Option<Distributed>>;

    /// A transport whose process is gone after so many packets.
    struct Mortal(TcpMember, usize);

    impl Transport for Mortal {
        fn rank(&self) -> usize {
            self.0.rank()
        }

        fn size(&self) -> usize {
            self.0.size()
        }

        fn send(&mut self, to: usize, bytes: Vec<u8>) -> Result<()> {
            if self.1 == 0 {
                end(&self.0.connection);
                return Err(Error::Interrupted);
            }
            self.1 -= 1;
            self.0.send(to, bytes)
        }

        fn receive(&mut self, wait: Duration) -> Result<Option<(usize, Vec<u8>)>> {
            self.0.receive(wait)
        }
    }

    fn member(address: SocketAddr, data: Dataset, folder: Option<&Path>) -> JoinHandle<Ended> {
        mortal(address, data, folder, usize::MAX)
    }

    fn mortal(
        address: SocketAddr,
        data: Dataset,
        folder: Option<&Path>,
        packets: usize,
    ) -> JoinHandle<Ended> {
        let folder = folder.map(Path::to_path_buf);
        spawn(move || {
            let context = Context::new();
            let member = TcpMember::connect(address, Duration::from_secs(5), &context)?;
            let mut transport = Mortal(member, packets);
            let request = agree(&mut transport, None, &context)?;
            train_processes(&mut transport, &request, data, folder.as_deref(), &context)
        })
    }

    fn hub(
        listener: TcpListener,
        request: TrainingRequest,
        size: usize,
        data: Dataset,
        folder: Option<&Path>,
    ) -> JoinHandle<Ended> {
        let folder = folder.map(Path::to_path_buf);
        spawn(move || {
            let context = Context::new();
            let mut transport = TcpHub::accept(&listener, size, &context)?;
            let request = agree(&mut transport, Some(request), &context)?;
            train_processes(&mut transport, &request, data, folder.as_deref(), &context)
        })
    }

    #[test]
    fn three_processes_end_where_one_place_does() {
        let parts = parts(3);
        let whole = parts[1..].iter().fold(parts[0].clone(), |a, b| a.stacked(b).unwrap());
        let cases = [
            (MachineKind::CSvc, Topology::Full, Schedule::Parallel),
            (MachineKind::CSvc, Topology::Ring, Schedule::Sequential),
            (MachineKind::CSvc, Topology::Tree, Schedule::Asynchronous),
            (MachineKind::Logistic, Topology::Full, Schedule::Parallel),
        ];
        for (kind, topology, schedule) in cases {
            let request = request(kind, topology, schedule);
            let machine = request.specification.build(&whole, 1).unwrap();
            let best = machine.fit(&whole, &Context::new()).unwrap().training.unwrap().outcome;
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let members: Vec<_> =
                parts[1..].iter().map(|part| member(address, part.clone(), None)).collect();
            let result = hub(listener, request, 3, parts[0].clone(), None).join().unwrap();
            let result = result.unwrap().unwrap();
            for member in members {
                assert_eq!(member.join().unwrap().unwrap(), None);
            }
            assert_eq!(result.report.ending, Ending::Verified);
            let found = result.model.training.unwrap().outcome.primal;
            let difference = (found - best.primal).abs();
            assert!(difference <= 1e-5 * best.primal.abs(), "{kind} {found} {best:?}");
        }
    }

    /// A training of three processes whose third one is gone after so many packets: what process 0 and the others
    /// ended with.
    fn run(parts: &[Dataset], packets: usize, folder: &Path) -> (Ended, [Ended; 2]) {
        let request = request(MachineKind::CSvc, Topology::Full, Schedule::Parallel);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let first = hub(listener, request, 3, parts[0].clone(), Some(folder));
        let mut connected = Vec::new();
        for (site, packets) in [(1, usize::MAX), (2, packets)] {
            connected.push(mortal(address, parts[site].clone(), Some(folder), packets));
            // Rows are numbered in the order of the connections.
            thread::sleep(Duration::from_millis(300));
        }
        let mut others = connected.into_iter().map(|member| member.join().unwrap());
        let others = [others.next().unwrap(), others.next().unwrap()];
        (first.join().unwrap(), others)
    }

    #[test]
    fn a_lost_process_ends_the_training_of_all_and_the_next_one_goes_on() {
        let mut parts = parts(3);
        let (fresh, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let whole = run(&parts, usize::MAX, fresh.path()).0.unwrap().unwrap();
        // The third one counts its rows, exchanges some of them, and is gone.
        let started = Instant::now();
        let (first, [second, third]) = run(&parts, 12, folder.path());
        let why = first.unwrap_err().to_string();
        assert!(why.contains("process 2 is lost"), "{why}");
        let why = second.unwrap_err().to_string();
        assert!(why.contains("gave up") || why.contains("is lost"), "{why}");
        third.unwrap_err();
        assert!(started.elapsed() < Duration::from_secs(10));
        let kept = || std::fs::read_dir(folder.path()).unwrap().count();
        assert!(kept() > 0);
        // What was kept is not for other rows.
        parts.swap(1, 2);
        let why = run(&parts, usize::MAX, folder.path()).0.unwrap_err().to_string();
        assert!(why.contains("the same rows at the same sites"), "{why}");
        parts.swap(1, 2);
        let (next, others) = run(&parts, usize::MAX, folder.path());
        let next = next.unwrap().unwrap();
        assert!(others.iter().all(|other| matches!(other, Ok(None))), "{others:?}");
        assert_eq!(next.report.ending, Ending::Verified);
        let [found, expected] =
            [&next, &whole].map(|run| run.model.training.as_ref().unwrap().outcome.primal);
        assert!((found - expected).abs() <= 1e-5 * expected, "{found} {expected}");
        assert_eq!(kept(), 0);
    }

    #[test]
    fn who_computes_is_not_lost_and_whose_host_vanishes_is() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let busy = spawn(move || {
            TcpMember::connect(address, Duration::from_secs(5), &Context::new()).map(
                |mut member| {
                    thread::sleep(SILENCE + Duration::from_secs(1));
                    member.send(0, vec![7]).map(|()| member)
                },
            )
        });
        let mut hub = TcpHub::accept(&listener, 2, &Context::new()).unwrap();
        assert_eq!(hub.receive(2 * SILENCE).unwrap(), Some((1, vec![7])));
        let mut member = busy.join().unwrap().unwrap().unwrap();
        hub.send(1, vec![8]).unwrap();
        assert_eq!(member.receive(SILENCE).unwrap(), Some((0, vec![8])));

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut vanished = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        vanished.write_all(&HANDSHAKE).unwrap();
        let mut hub = TcpHub::accept(&listener, 2, &Context::new()).unwrap();
        let why = hub.receive(4 * SILENCE).unwrap_err().to_string();
        assert!(why.contains("process 1 is lost"), "{why}");
    }

    #[test]
    fn who_does_not_answer_is_waited_for_until_the_time_limit() {
        // The system accepts connections for who listens; nobody greets.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let limited = || Context::new().with_time_limit(Duration::from_millis(300));
        let started = Instant::now();
        let member = TcpMember::connect(address, Duration::from_secs(60), &limited());
        assert!(matches!(member, Err(Error::Interrupted)));
        // Nor does a silent stranger keep process 0.
        let stranger = TcpStream::connect(address).unwrap();
        let hub = TcpHub::accept(&listener, 2, &limited());
        assert!(matches!(hub, Err(Error::Interrupted)));
        drop(stranger);
        assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    }

    #[test]
    fn who_speaks_otherwise_is_not_let_in() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut stranger = TcpStream::connect(address).unwrap();
        stranger.write_all(b"GET / HTTP/1.1").unwrap();
        let friend = spawn(move || {
            TcpMember::connect(address, Duration::from_secs(5), &Context::new()).map(|m| m.rank())
        });
        let hub = TcpHub::accept(&listener, 2, &Context::new()).unwrap();
        assert_eq!(hub.size(), 2);
        assert_eq!(friend.join().unwrap().unwrap(), 1);
        let context = Context::new();
        let error = TcpMember::connect("127.0.0.1:1", Duration::ZERO, &context).err().unwrap();
        assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
    }
}
