//! Random Fourier features: φ(x) = √(2/D) cos(⟨ωᵢ, x⟩ + bᵢ), ωᵢ normal with variance 2γ and bᵢ uniform
//! (Rahimi and Recht, 2007). The frequencies are those of the seed and are not kept.

use std::f64::consts::TAU;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::data::{Matrix, memory};
use crate::error::{Error, Result};
use crate::numeric::InstructionSet;
use crate::numeric::random::Generator;
use crate::numeric::simd::{PlainLoop, Weights, multiply, run_plain};

/// Random Fourier features of a seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FourierMap {
    /// γ of the Gaussian kernel.
    pub gamma: f64,
    /// Features it takes.
    pub inputs: usize,
    /// Features it makes.
    pub outputs: usize,
    /// Seed of the frequencies.
    pub seed: u64,
}

/// Most frequencies, inputs times outputs, that a file may ask for.
const MOST_FREQUENCIES: usize = 1 << 32;

impl FourierMap {
    pub(super) fn validate(&self) -> Result<()> {
        let size = self.inputs.checked_mul(self.outputs).filter(|size| *size <= MOST_FREQUENCIES);
        if self.gamma.is_finite() && self.gamma > 0.0 && size.is_some_and(|size| size > 0) {
            Ok(())
        } else {
            Err(Error::model(format!(
                "expected random features with a positive gamma and size, found {} x {} with \
                     gamma {}",
                self.inputs, self.outputs, self.gamma
            )))
        }
    }
}

impl FourierMap {
    /// Checks that there is memory for the frequencies, laid out in both ways and on their way between.
    pub(super) fn check_memory(&self) -> Result<()> {
        let Self { inputs, outputs, .. } = self;
        let bytes = 3 * 4 * *inputs as u128 * *outputs as u128;
        memory::check(|| format!("{outputs} random features of {inputs} features"), bytes)
    }
}

/// Two independent normal numbers (Box and Muller, 1958).
fn normal_pair(generator: &mut Generator) -> [f64; 2] {
    let unit = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let radius = (-2.0 * unit(generator.bits()).ln()).sqrt();
    let angle = TAU * unit(generator.bits());
    [radius * angle.cos(), radius * angle.sin()]
}

/// Frequencies drawn between two checks of the time.
const DRAWN_AT_ONCE: usize = 1 << 16;

/// The frequencies, in turns, laid out for dense and for sparse rows.
pub(super) struct FourierWeights {
    outputs: usize,
    /// Input after input.
    frequencies: Vec<f32>,
    stacked: Weights<f32>,
    phases: Vec<f64>,
    set: InstructionSet,
}

impl FourierWeights {
    pub(super) fn new(map: &FourierMap, context: &Context) -> Result<Self> {
        let mut generator = Generator::new(map.seed);
        let scale = (2.0 * map.gamma).sqrt() / TAU;
        let total = map.inputs * map.outputs;
        let mut frequencies = Vec::with_capacity(total + 1);
        while frequencies.len() < total {
            if frequencies.len().is_multiple_of(DRAWN_AT_ONCE) {
                context.checkpoint()?;
            }
            frequencies.extend(normal_pair(&mut generator).map(|v| (scale * v) as f32));
        }
        frequencies.truncate(total);
        let phase = |bits: u64| (bits >> 11) as f64 / (1_u64 << 53) as f64;
        let phases = (0..map.outputs).map(|_| phase(generator.bits())).collect();
        let mut by_output = vec![0.0; total];
        for (j, row) in frequencies.chunks_exact(map.outputs).enumerate() {
            for (output, value) in row.iter().enumerate() {
                by_output[output * map.inputs + j] = *value;
            }
        }
        let stacked = Weights::new(map.inputs, by_output);
        let set = context.instruction_set();
        Ok(Self { outputs: map.outputs, frequencies, stacked, phases, set })
    }

    /// Writes the features of rows into `out`, which is 0.
    pub(super) fn add(&self, features: &Matrix, rows: Range<usize>, out: &mut [f64]) {
        if features.is_sparse() {
            for (row, out) in rows.zip(out.chunks_exact_mut(self.outputs)) {
                features.for_each_nonzero(row, |j, value| {
                    let own = &self.frequencies[j * self.outputs..(j + 1) * self.outputs];
                    out.iter_mut().zip(own).for_each(|(sum, w)| *sum += value * f64::from(*w));
                });
                run_plain(self.set, CosineFeatures { values: out, phases: &self.phases });
            }
            return;
        }
        let columns = features.columns();
        let mut block = vec![0.0_f32; rows.len() * columns];
        for (row, block) in rows.zip(block.chunks_exact_mut(columns)) {
            features.for_each_nonzero(row, |j, value| block[j] = value as f32);
        }
        multiply(self.set, &block, columns, &self.stacked, 0, columns, out);
        for out in out.chunks_exact_mut(self.outputs) {
            run_plain(self.set, CosineFeatures { values: out, phases: &self.phases });
        }
    }
}

/// √(2/D) cos(2π(value + phase)) in place.
struct CosineFeatures<'a> {
    values: &'a mut [f64],
    phases: &'a [f64],
}

impl PlainLoop for CosineFeatures<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let scale = (2.0 / self.values.len() as f64).sqrt();
        for (value, phase) in self.values.iter_mut().zip(self.phases) {
            *value = scale * cosine_of_turns(*value + phase);
        }
    }
}

/// cos(2πt) to 1e-7: the sine series of what is left of a quarter turn.
#[inline(always)]
fn cosine_of_turns(turns: f64) -> f64 {
    // Adding and taking away this number rounds to the nearest whole one.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let rest = (turns - ((turns + ROUND) - ROUND)).abs();
    let x = TAU * (0.25 - rest);
    let square = x * x;
    let series = -1.0 / 39_916_800.0;
    let series = 1.0 / 362_880.0 + square * series;
    let series = -1.0 / 5040.0 + square * series;
    let series = 1.0 / 120.0 + square * series;
    let series = -1.0 / 6.0 + square * series;
    x + x * square * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waves_are_cosines() {
        for i in -2000..2000 {
            let turns = f64::from(i) * 0.0137;
            assert!((cosine_of_turns(turns) - (TAU * turns).cos()).abs() < 1e-7, "{turns}");
        }
    }
}
