//! Numbers: vectors of every instruction set, dense algebra, special functions, random numbers and
//! independent tasks on threads.

pub(crate) mod algebra;
mod instruction_set;
pub(crate) mod parallel;
pub(crate) mod random;
pub(crate) mod simd;
pub(crate) mod spacing;
pub(crate) mod special;

pub use instruction_set::InstructionSet;
