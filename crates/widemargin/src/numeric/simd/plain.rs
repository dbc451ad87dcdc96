//! Plain loops compiled for the processor at hand: no intrinsics, the compiler makes the vectors.

use super::{InstructionSet, Task, VectorFamily, dispatch};

/// A computation in safe, plain code that gains from wide vectors.
///
/// Implementations mark `run` and what it calls in its loops `#[inline(always)]`, so that the code
/// is compiled once for every instruction set. Nothing is contracted or reordered, so that the
/// result has the same bits for each of them.
pub(crate) trait PlainLoop {
    /// What it returns.
    type Output;

    /// The computation.
    fn run(self) -> Self::Output;
}

/// Runs `work` compiled for the instructions of `set`.
pub(crate) fn run_plain<L: PlainLoop>(set: InstructionSet, work: L) -> L::Output {
    dispatch(set, Compiled(work))
}

struct Compiled<L>(L);

impl<L: PlainLoop> Task for Compiled<L> {
    type Output = L::Output;

    #[inline(always)]
    unsafe fn run<F: VectorFamily>(self) -> L::Output {
        self.0.run()
    }
}

/// exp(x) for x ≤ 0, without branches, so that loops over it become vectors: 2ⁿ times the Taylor series
/// of what is left; 0 where that is below the smallest normal number.
#[inline(always)]
pub(crate) fn exp_of_negative(x: f64) -> f64 {
    const LOG_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LOG_LOW: f64 = 1.908_214_929_270_587_7e-10;
    // Adding 1.5 · 2⁵² rounds to a whole number, which then stands in the lowest bits.
    const ROUNDER: f64 = 6_755_399_441_055_744.0;
    let inside = if x < -708.0 { -708.0 } else { x };
    let shifted = inside * std::f64::consts::LOG2_E + ROUNDER;
    let whole = shifted - ROUNDER;
    let rest = (inside - whole * LOG_HIGH) - whole * LOG_LOW;
    let mut sum = 1.0 / 6_227_020_800.0;
    for factorial in [
        479_001_600.0,
        39_916_800.0,
        3_628_800.0,
        362_880.0,
        40_320.0,
        5_040.0,
        720.0,
        120.0,
        24.0,
        6.0,
        2.0,
        1.0,
        1.0,
    ] {
        sum = sum * rest + 1.0 / factorial;
    }
    let power = f64::from_bits((shifted.to_bits().wrapping_add(1023)) << 52);
    if x < -708.0 { 0.0 } else { sum * power }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_close_to_those_of_the_library() {
        assert_eq!(exp_of_negative(0.0), 1.0);
        assert_eq!((exp_of_negative(-709.0), exp_of_negative(f64::NEG_INFINITY)), (0.0, 0.0));
        assert!(exp_of_negative(f64::NAN).is_nan());
        for k in 0..=708_000_u32 {
            let x = -f64::from(k) * 1e-3;
            let (exact, own) = (x.exp(), exp_of_negative(x));
            assert!((own - exact).abs() <= 4.0 * f64::EPSILON * exact, "{x:e}: {own:e}, {exact:e}");
        }
    }
}
