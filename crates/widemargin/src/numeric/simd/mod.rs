//! Vectors of every supported processor behind one trait, and loops compiled once for each.
//!
//! A loop is a `Task` whose `run` is generic over a vector `VectorFamily`; `dispatch` calls it from
//! a function compiled with the instructions of the chosen `InstructionSet`, so that the whole
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
#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable;
mod real;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use accumulate::accumulate;
pub(crate) use columns::accumulate_columns;
pub(crate) use gather::{gather, mirror};
pub(crate) use lanes::{Lanes, VectorFamily};
pub(crate) use multiply::{Weights, multiply};
pub(crate) use plain::{PlainLoop, exp_of_negative, run_plain};
pub(crate) use real::Real;
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
    unsafe fn run<F: VectorFamily>(self) -> Self::Output;
}

/// Runs `task` with the vectors of `set`, or with portable ones where the processor lacks them.
///
/// Every x86-64 processor has SSE2 and portable code is compiled to it, so that there it is not
/// compiled a second time, except for the unit tests.
pub(crate) fn dispatch<K: Task>(set: InstructionSet, task: K) -> K::Output {
    match set {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the set is available.
        InstructionSet::Avx512 if set.is_available() => unsafe { x86::avx512(task) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the set is available.
        InstructionSet::Avx2 if set.is_available() => unsafe { x86::avx2(task) },
        #[cfg(all(target_arch = "x86_64", test))]
        // SAFETY: every x86-64 processor has SSE2.
        InstructionSet::Sse2 => unsafe { x86::sse2(task) },
        #[cfg(all(target_arch = "x86_64", not(test)))]
        // SAFETY: as above.
        _ => unsafe { x86::sse2(task) },
        #[cfg(any(test, not(target_arch = "x86_64")))]
        // SAFETY: portable vectors are plain arrays.
        _ => unsafe { task.run::<portable::Portable>() },
    }
}

#[cfg(test)]
pub(crate) fn available() -> impl Iterator<Item = InstructionSet> {
    InstructionSet::ALL.into_iter().filter(|set| set.is_available())
}
