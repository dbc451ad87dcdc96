//! Plain loops compiled for the processor at hand: no intrinsics, the compiler makes the vectors.

use super::{Family, InstructionSet, Task, dispatch};

/// A computation in safe, plain code that gains from wide vectors.
///
/// Implementations mark `run` and what it calls in its loops `#[inline(always)]`, so that the code
/// is compiled once for every instruction set. Nothing is contracted or reordered, so that the
/// result has the same bits for each of them.
pub trait PlainLoop {
    /// What it returns.
    type Output;

    /// The computation.
    fn run(self) -> Self::Output;
}

/// Runs `work` compiled for the instructions of `set`.
pub fn run_plain<L: PlainLoop>(set: InstructionSet, work: L) -> L::Output {
    dispatch(set, Compiled(work))
}

struct Compiled<L>(L);

impl<L: PlainLoop> Task for Compiled<L> {
    type Output = L::Output;

    #[inline(always)]
    unsafe fn run<F: Family>(self) -> L::Output {
        self.0.run()
    }
}
