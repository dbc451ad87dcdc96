//! The memory this process may still take, and the refusal of what would not fit in it.
//!
//! On Linux that is the system's `MemAvailable` or, where it is less, what the control group (a container,
//! a batch job) or the limit of the address space (`ulimit -v`) leaves; elsewhere a fixed amount is assumed.

use std::fs;

use crate::error::{Error, Result};

/// Assumed where the system does not report it.
const ASSUMED: u64 = 8 << 30;

/// Bytes that can still be allocated without swapping.
pub(crate) fn available() -> u64 {
    let text = |path: &str| fs::read_to_string(path).ok();
    let system =
        text("/proc/meminfo").and_then(|text| kibibytes(&text, "MemAvailable:")).unwrap_or(ASSUMED);
    let group = [
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ]
    .into_iter()
    .find_map(|(limit, used)| left_in_group(&text(limit)?, &text(used)?));
    let mapped = text("/proc/self/status").and_then(|text| kibibytes(&text, "VmSize:"));
    let address_space = text("/proc/self/limits").and_then(|text| address_space(&text));
    let left = address_space.map(|limit| limit.saturating_sub(mapped.unwrap_or(0)));
    [group, left].into_iter().flatten().fold(system, u64::min)
}

/// Refuses `what` if its `bytes` are more than there are.
///
/// # Errors
/// [`Error::TooLarge`].
pub(crate) fn check(what: impl FnOnce() -> String, bytes: u128) -> Result<()> {
    // Reading the system's files costs microseconds, which small problems need not pay.
    const SMALL: u128 = 1 << 22;
    if bytes <= SMALL {
        return Ok(());
    }
    let limit = u128::from(available());
    if bytes > limit { Err(Error::TooLarge { what: what(), bytes, limit }) } else { Ok(()) }
}

/// The bytes of a line of `/proc/meminfo` or `/proc/self/status`.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The limit of the address space in `/proc/self/limits`; nothing where it is unlimited.
fn address_space(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What a control group leaves; nothing for one without a limit.
fn left_in_group(limit: &str, used: &str) -> Option<u64> {
    let limit: u64 = limit.trim().parse().ok()?;
    Some(limit.saturating_sub(used.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_files_are_understood() {
        let text = "MemTotal:  100 kB\nMemFree: 10 kB\nMemAvailable:   64 kB\n";
        assert_eq!(kibibytes(text, "MemAvailable:"), Some(65_536));
        assert_eq!(kibibytes("MemTotal: 1 kB\n", "MemAvailable:"), None);
        let limits =
            "Limit  Soft  Hard\nMax address space         3072000              unlimited bytes\n";
        assert_eq!(address_space(limits), Some(3_072_000));
        assert_eq!(address_space("Max address space  unlimited  unlimited  bytes\n"), None);
        assert_eq!(left_in_group("1000\n", "400\n"), Some(600));
        assert_eq!(left_in_group("1000\n", "1400\n"), Some(0));
        assert_eq!(left_in_group("max\n", "400\n"), None);
        assert!(available() > 0);
    }

    #[test]
    fn only_what_does_not_fit_is_refused() {
        assert!(check(|| "a table".into(), 1000).is_ok());
        let error = check(|| "a table".into(), u128::MAX).unwrap_err().to_string();
        assert!(error.starts_with("a table needs "), "{error}");
    }
}
