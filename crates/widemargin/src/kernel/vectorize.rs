//! Compiles a safe computation once per instruction set and runs the best copy.
//!
//! The body of [`Vectorize::run`] must be `#[inline(always)]`, as must everything hot it calls: it
//! is then compiled inside a function that enables the instructions, and the compiler vectorises
//! its loops with them.

#![allow(unsafe_code)] // Calling a function compiled for more instructions than the baseline.

use super::InstructionSet;

/// A computation to be compiled for several instruction sets.
pub trait Vectorize {
    /// What it returns.
    type Output;

    /// Does it; implementations are `#[inline(always)]`.
    fn run(self) -> Self::Output;
}

/// Runs `operation` compiled for `set`, or for the baseline when this processor lacks the set.
#[cfg(target_arch = "x86_64")]
pub fn vectorize<O: Vectorize>(set: InstructionSet, operation: O) -> O::Output {
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
    fn avx512<O: Vectorize>(operation: O) -> O::Output {
        operation.run()
    }
    #[target_feature(enable = "avx2,fma")]
    fn avx2<O: Vectorize>(operation: O) -> O::Output {
        operation.run()
    }
    match set {
        // SAFETY: the processor was asked for the instructions.
        InstructionSet::Avx512 if set.is_available() => unsafe { avx512(operation) },
        // SAFETY: as above.
        InstructionSet::Avx2 if set.is_available() => unsafe { avx2(operation) },
        _ => operation.run(),
    }
}

/// Runs `operation`; other processors have one copy.
#[cfg(not(target_arch = "x86_64"))]
pub fn vectorize<O: Vectorize>(_set: InstructionSet, operation: O) -> O::Output {
    operation.run()
}
