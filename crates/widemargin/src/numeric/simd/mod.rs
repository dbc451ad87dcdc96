//! Vectors of every supported processor behind one trait, and loops compiled once for each.
//!
//! A loop is a [`Task`] whose `run` is generic over a vector [`Family`]; [`dispatch`] calls it from
//! a function compiled with the instructions of the chosen [`InstructionSet`], so that the whole
//! loop is compiled for them. A lane never influences another, so that a result does not depend on
//! where in a vector it was computed.

// Vector loads, stores and instructions that the processor may lack are unsafe by nature.
#![allow(unsafe_code)]

mod accumulate;
mod columns;
mod gather;
mod lanes;
pub(crate) mod math;
mod multiply;
mod plain;
mod portable;
mod real;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use accumulate::accumulate;
pub use columns::accumulate_columns;
pub use gather::{gather, mirror};
pub(crate) use lanes::{Family, Lanes};
pub use multiply::{Weights, multiply};
pub use plain::{PlainLoop, exp_of_negative, run_plain};
pub use real::Real;
pub(crate) use real::Vector;

use super::InstructionSet;

/// A loop to be compiled for every vector family.
pub(crate) trait Task {
    /// What it returns.
    type Output;

    /// The loop; implementations are `#[inline(always)]`.
    ///
    /// # Safety
    /// The processor has the instructions of `F`.
    unsafe fn run<F: Family>(self) -> Self::Output;
}

/// Runs `task` with the vectors of `set`, or with portable ones where the processor lacks them.
pub(crate) fn dispatch<K: Task>(set: InstructionSet, task: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if set.is_available() {
        match set {
            InstructionSet::Portable => {}
            // SAFETY: the set is available, here and in the two cases below.
            InstructionSet::Sse2 => return unsafe { x86::sse2(task) },
            // SAFETY: as above.
            InstructionSet::Avx2 => return unsafe { x86::avx2(task) },
            // SAFETY: as above.
            InstructionSet::Avx512 => return unsafe { x86::avx512(task) },
        }
    }
    let _ = set;
    // SAFETY: portable vectors are plain arrays.
    unsafe { task.run::<portable::Portable>() }
}

#[cfg(test)]
pub(crate) fn available() -> impl Iterator<Item = InstructionSet> {
    InstructionSet::ALL.into_iter().filter(|set| set.is_available())
}
