//! Features whose plain products approximate a kernel, so that linear machines approximate kernel machines on
//! any number of rows.
//!
//! K(x, z) = exp(−γ‖x − z‖²) ≈ ⟨φ(x), φ(z)⟩ with random Fourier features (Rahimi and Recht, 2007) or
//! the kernel's values at some of the rows (Nyström's method; Williams and Seeger, 2001).

mod blocks;
mod fourier;
mod list;
mod nystroem;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use blocks::BlockMap;
pub(crate) use blocks::{KernelFeatures, PreparedBlock};
pub use fourier::FourierMap;
use fourier::FourierWeights;
use nystroem::NystroemBlocks;
pub use nystroem::NystroemMap;
pub(crate) use nystroem::inverse_factor;

use crate::context::Context;
use crate::data::{Dense, Matrix, memory};
use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// Rows mapped by one task.
const TASK_ROWS: usize = 256;

/// Which map, and how many features it makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapRule {
    /// Random Fourier features.
    Fourier(usize),
    /// Nyström's method with so many rows.
    Nystroem(usize),
}

impl FromStr for MapRule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts = text.split_once(':').map(|(name, count)| (name, count.parse::<usize>()));
        match parts {
            Some(("rff", Ok(count))) if count > 0 => Ok(Self::Fourier(count)),
            Some(("nystroem", Ok(count))) if count > 0 => Ok(Self::Nystroem(count)),
            _ => Err(Error::parameter("approximate", "rff:NUMBER or nystroem:NUMBER", text)),
        }
    }
}

impl fmt::Display for MapRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fourier(count) => write!(f, "rff:{count}"),
            Self::Nystroem(count) => write!(f, "nystroem:{count}"),
        }
    }
}

impl MapRule {
    /// Learns the map for a Gaussian kernel of parameter `gamma` on a table.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a γ that is not positive, [`Error::Empty`] for an empty table,
    /// [`Error::TooLarge`] when the matrix of a Nyström map does not fit in memory, or an interruption.
    pub fn fit(self, features: &Matrix, gamma: f64, context: &Context) -> Result<FeatureMap> {
        Error::check_positive("gamma", gamma)?;
        features.validate()?;
        Ok(match self {
            Self::Fourier(outputs) => {
                let (inputs, seed) = (features.columns(), context.seed());
                FeatureMap::Fourier(FourierMap { gamma, inputs, outputs, seed })
            }
            Self::Nystroem(count) => {
                let kernel = Kernel::Gaussian { gamma };
                FeatureMap::Nystroem(NystroemMap::fit(features, count, kernel, context)?)
            }
        })
    }
}

/// A map that was learnt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FeatureMap {
    /// Random Fourier features.
    Fourier(FourierMap),
    /// Nyström's method.
    Nystroem(NystroemMap),
    /// Those of several kernels side by side.
    Blocks(BlockMap),
}

impl FeatureMap {
    /// Features it takes.
    pub fn inputs(&self) -> usize {
        match self {
            Self::Fourier(map) => map.inputs,
            Self::Nystroem(map) => map.inputs(),
            Self::Blocks(map) => map.inputs(),
        }
    }

    /// Features it makes.
    pub fn outputs(&self) -> usize {
        match self {
            Self::Fourier(map) => map.outputs,
            Self::Nystroem(map) => map.outputs(),
            Self::Blocks(map) => map.outputs(),
        }
    }

    /// Checks that its parts fit together, as those of a file may not.
    ///
    /// # Errors
    /// [`Error::Model`] saying what does not fit.
    pub(crate) fn validate(&self) -> Result<()> {
        match self {
            Self::Fourier(map) => map.validate(),
            Self::Nystroem(map) => map.validate(),
            Self::Blocks(map) => map.validate(),
        }
    }

    /// The map as JSON.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The map that [`to_text`](Self::to_text) wrote.
    ///
    /// # Errors
    /// [`Error::Model`] when the text is no sound map.
    pub fn from_text(text: &str) -> Result<Self> {
        let map: Self = serde_json::from_str(text)
            .map_err(|error| Error::model(format!("feature map: {error}")))?;
        map.validate().map(|()| map)
    }

    /// Packs the map for many rows.
    ///
    /// # Errors
    /// [`Error::Kernel`] when the rows of a Nyström map do not suit the kernel, [`Error::TooLarge`] when
    /// there is no memory for random frequencies of that size, or an interruption.
    pub(crate) fn prepare(&self, context: &Context) -> Result<PreparedMap> {
        Ok(PreparedMap {
            inputs: self.inputs(),
            outputs: self.outputs(),
            factors: match self {
                Self::Fourier(map) => {
                    map.check_memory()?;
                    Factors::Fourier(FourierWeights::new(map, context)?)
                }
                Self::Nystroem(map) => {
                    Factors::Nystroem(Box::new(NystroemBlocks::new(map, context)?))
                }
                Self::Blocks(map) => Factors::Blocks(map.prepare(context)?),
            },
        })
    }

    /// The features of all rows.
    ///
    /// # Errors
    /// [`Error::Length`] when the table does not have the width of the map, or an interruption.
    pub fn transform(&self, features: &Matrix, context: &Context) -> Result<Matrix> {
        let ready = self.prepare(context)?;
        let what = || format!("{} features of {} rows", self.outputs(), features.rows());
        memory::check(what, 4 * features.rows() as u128 * self.outputs() as u128)?;
        let mut values = vec![0.0_f32; features.rows() * self.outputs()];
        let task = |(t, out): (usize, &mut [f32])| {
            context.checkpoint()?;
            let start = t * TASK_ROWS;
            let part = ready.transform(features, start..start + out.len() / self.outputs())?;
            out.copy_from_slice(part.values());
            Ok(())
        };
        let chunk = TASK_ROWS * self.outputs();
        context.try_for_each(values.chunks_mut(chunk).enumerate(), task)?;
        Dense::new(features.rows(), self.outputs(), values).map(Matrix::DenseF32)
    }
}

/// A map with everything it multiplies with.
pub(crate) struct PreparedMap {
    inputs: usize,
    outputs: usize,
    factors: Factors,
}

enum Factors {
    Fourier(FourierWeights),
    Nystroem(Box<NystroemBlocks>),
    Blocks(Vec<PreparedBlock>),
}

impl PreparedMap {
    /// The features of some rows.
    ///
    /// # Errors
    /// [`Error::Length`] when the table does not have the width of the map.
    pub(crate) fn transform(&self, features: &Matrix, rows: Range<usize>) -> Result<Dense<f32>> {
        if features.columns() != self.inputs {
            return Err(Error::length("features", self.inputs, features.columns()));
        }
        let mut sums = vec![0.0; rows.len() * self.outputs];
        let count = rows.len();
        match &self.factors {
            Factors::Fourier(weights) => weights.add(features, rows, &mut sums),
            Factors::Nystroem(blocks) => blocks.add(features, rows, &mut sums)?,
            Factors::Blocks(blocks) => return blocks::transform(blocks, features, rows),
        }
        Dense::new(count, self.outputs, sums.into_iter().map(|v| v as f32).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::CancelToken;
    use crate::data::Layout;
    use crate::kernel::Gram;

    fn table(rows: usize) -> Matrix {
        let value =
            |i: usize| if i.is_multiple_of(3) { 0.0 } else { (i * 7919 % 1013) as f64 / 1013.0 };
        Matrix::DenseF64(Dense::new(rows, 6, (0..rows * 6).map(value).collect()).unwrap())
    }

    fn gaussian(table: &Matrix, i: usize, j: usize, gamma: f64) -> f64 {
        let (mut a, mut b) = (vec![0.0; 6], vec![0.0; 6]);
        table.copy_row(i, &mut a);
        table.copy_row(j, &mut b);
        (-gamma * a.iter().zip(&b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).exp()
    }

    #[test]
    fn learning_and_mapping_stop_when_asked() {
        let (table, stopped) = (table(60), Context::new());
        let token = CancelToken::new();
        let context = stopped.with_cancel_token(token.clone());
        let rules = [MapRule::Fourier(40), MapRule::Nystroem(20)];
        let maps = rules.map(|rule| rule.fit(&table, 0.7, &context).unwrap());
        token.cancel();
        for map in maps {
            let refused = map.transform(&table, &context);
            assert!(matches!(refused, Err(Error::Interrupted)), "{refused:?}");
        }
        let refused = MapRule::Nystroem(20).fit(&table, 0.7, &context);
        assert!(matches!(refused, Err(Error::Interrupted)), "{refused:?}");
    }

    #[test]
    fn a_nystroem_map_of_more_rows_than_memory_holds_pairs_of_is_refused() {
        let rows = 1 << 20;
        let column = Dense::new(rows, 1, (0..rows).map(|i| i as f32).collect()).unwrap();
        let rule = MapRule::Nystroem(rows);
        let error = rule.fit(&Matrix::DenseF32(column), 1.0, &Context::new()).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    }

    #[test]
    fn products_approximate_the_kernel() {
        let (table, gamma, context) = (table(60), 0.7, Context::new());
        // Fourier features err by about 1/√count, all rows as landmarks not at all.
        for (rule, error) in [(MapRule::Fourier(20_000), 0.03), (MapRule::Nystroem(60), 2e-3)] {
            let map = rule.fit(&table, gamma, &context).unwrap();
            map.validate().unwrap();
            for layout in [Layout::Dense, Layout::Sparse] {
                let rows = table.clone().into_layout(layout);
                let Matrix::DenseF32(mapped) = map.transform(&rows, &context).unwrap() else {
                    panic!("dense features")
                };
                for (i, j) in (0..60).flat_map(|i| (0..60).map(move |j| (i, j))) {
                    let product: f64 = (mapped.row(i).iter().zip(mapped.row(j)))
                        .map(|(a, b)| f64::from(*a) * f64::from(*b))
                        .sum();
                    let exact = gaussian(&table, i, j, gamma);
                    assert!((product - exact).abs() < error, "{rule} {i} {j}: {product} {exact}");
                }
            }
        }
    }

    #[test]
    fn blocks_have_the_products_of_their_kernels() {
        let (table, context) = (table(60), Context::new());
        let view = |kernel| Kernel::View { columns: vec![0..2, 3..5], kernel: Box::new(kernel) };
        let kernels = [
            view(Kernel::Linear),
            Kernel::Polynomial { gamma: 0.5, coef0: 1.0, degree: 2 },
            view(Kernel::Gaussian { gamma: 0.7 }),
            Kernel::Laplacian { gamma: 0.7 },
        ];
        let block = |(at, kernel): (usize, &Kernel)| {
            MapRule::Nystroem(60).fit_kernel(&table, kernel, at, &context).unwrap()
        };
        let blocks: Vec<KernelFeatures> = kernels.iter().enumerate().map(block).collect();
        let ends: Vec<usize> = blocks.iter().map(KernelFeatures::outputs).collect();
        assert_eq!(ends[0], 4, "a linear kernel is its columns");
        let map = FeatureMap::Blocks(BlockMap::new(6, blocks));
        map.validate().unwrap();
        assert_eq!(FeatureMap::from_text(&map.to_text()).unwrap(), map);
        for layout in [Layout::Dense, Layout::Sparse] {
            let rows = table.clone().into_layout(layout);
            let Matrix::DenseF32(mapped) = map.transform(&rows, &context).unwrap() else {
                panic!("dense features")
            };
            let mut start = 0;
            for (kernel, width) in kernels.iter().zip(&ends) {
                let exact = Gram::of(kernel, &table, &context).unwrap();
                let own = |i: usize| &mapped.row(i)[start..start + width];
                for (i, j) in (0..60).flat_map(|i| (0..60).map(move |j| (i, j))) {
                    let pairs = own(i).iter().zip(own(j));
                    let product: f64 = pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                    let expected = exact.row(i)[j];
                    assert!(
                        (product - expected).abs() < 2e-3,
                        "{kernel} {i} {j}: {product} {expected}"
                    );
                }
                start += width;
            }
        }
    }

    #[test]
    fn maps_survive_being_written() {
        let (table, context) = (table(20), Context::new().with_seed(3));
        for rule in ["rff:50", "nystroem:10"] {
            let map = rule.parse::<MapRule>().unwrap().fit(&table, 0.5, &context).unwrap();
            assert_eq!(FeatureMap::from_text(&map.to_text()).unwrap(), map);
        }
        // Files of before have the γ of a Gaussian kernel in the place of a kernel.
        let map = MapRule::Nystroem(10).fit(&table, 0.5, &context).unwrap();
        let older = map.to_text().replace(r#""kernel":{"rbf":{"gamma":0.5}}"#, r#""gamma":0.5"#);
        assert!(older.contains("gamma") && !older.contains("kernel"), "{older}");
        assert_eq!(FeatureMap::from_text(&older).unwrap(), map);
        assert!("rff:0".parse::<MapRule>().is_err());
        assert!("fft:10".parse::<MapRule>().is_err());
    }
}
