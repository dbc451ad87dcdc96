//! What a computation cost: wall time, processor time and peak memory.

use std::time::Instant;

use cpu_time::ProcessTime;

/// A running measurement.
pub(crate) struct Stopwatch {
    wall: Instant,
    cpu: Option<ProcessTime>,
}

/// Time spent between start and stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsedTime {
    /// Wall time in seconds.
    pub(crate) seconds: f64,
    /// Processor time of all threads in seconds, where the system reports it.
    pub(crate) cpu_seconds: Option<f64>,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self { wall: Instant::now(), cpu: ProcessTime::try_now().ok() }
    }

    pub(crate) fn stop(&self) -> UsedTime {
        UsedTime {
            seconds: self.wall.elapsed().as_secs_f64(),
            cpu_seconds: self
                .cpu
                .and_then(|start| start.try_elapsed().ok())
                .map(|elapsed| elapsed.as_secs_f64()),
        }
    }
}

/// Largest resident memory of this process so far in bytes, where the system reports it.
pub(crate) fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
