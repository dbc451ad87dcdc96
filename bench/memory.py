"""Peak memory of this process."""

from pathlib import Path


def peak_memory_mb() -> float:
    """Largest resident memory so far; unlike getrusage's, not that of the process that forked us."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return float("nan")
