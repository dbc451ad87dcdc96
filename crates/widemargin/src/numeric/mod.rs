//! Numbers: vectors of every instruction set, dense algebra, special functions and random numbers.

mod instruction_set;
pub(crate) mod random;
pub mod simd;

pub use instruction_set::InstructionSet;
