//! The shapes a mixture's covariances may have, and what they are for given scatters.
//!
//! With Σ_k = λ_k D_k A_k D_kᵀ (volume, orientation, shape; Celeux and Govaert, 1995) these are the
//! six models of JHU 685.621, table 1, and the diagonal one. W_k is the scatter of component k, n_k
//! its weight: full W_k/n_k, tied ΣW_k/n, spherical tr W_k/(n_k d), EII tr ΣW_k/(n d), EEV and VEV
//! with the eigenvalues of all W_k in common.

use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::machine::names::names;
use crate::numeric::algebra::{Cholesky, eigen_interruptible, times_transposed, transposed};

/// Rounds of the alternation of VEV.
const ROUNDS: usize = 100;

/// The shape of the covariances of a mixture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Covariance {
    /// Every component has its own (model 4, VVV).
    #[default]
    Full,
    /// All components share one (model 3, EEE).
    Tied,
    /// Every component has its own variances along the axes (VVI).
    Diagonal,
    /// Every component has its own variance, the same in all directions (model 2, VII).
    Spherical,
    /// One variance for all components and directions (model 1, EII).
    EqualSpherical,
    /// Ellipsoids of the same volume and shape that lie differently (model 5, EEV).
    EqualShape,
    /// Ellipsoids of the same shape, with volumes and directions of their own (model 6, VEV).
    VariableVolume,
}

names!(Covariance, "covariance", Full: "full", Tied: "tied", Diagonal: "diag",
       Spherical: "spherical", EqualSpherical: "eii", EqualShape: "eev", VariableVolume: "vev");

impl Covariance {
    /// Numbers a mixture of `components` components in `features` dimensions keeps: a matrix or a
    /// diagonal or a number for each, or one for all.
    pub fn values(self, components: usize, features: usize) -> usize {
        match self {
            Self::Full | Self::EqualShape | Self::VariableVolume => {
                components * features * features
            }
            Self::Tied => features * features,
            Self::Diagonal => components * features,
            Self::Spherical => components,
            Self::EqualSpherical => 1,
        }
    }

    /// Free parameters of the covariances.
    pub fn parameters(self, components: usize, features: usize) -> usize {
        let (g, n) = (components, features);
        match self {
            Self::Full => g * n * (n + 1) / 2,
            Self::Tied => n * (n + 1) / 2,
            Self::Diagonal => g * n,
            Self::Spherical => g,
            Self::EqualSpherical => 1,
            Self::EqualShape => n + g * n * (n - 1) / 2,
            Self::VariableVolume => g + n - 1 + g * n * (n - 1) / 2,
        }
    }

    /// Whether only the diagonals of the scatters are needed.
    pub(super) fn is_diagonal(self) -> bool {
        matches!(self, Self::Diagonal | Self::Spherical | Self::EqualSpherical)
    }

    /// The covariances for the scatters W_k: matrices, or diagonals where those are enough.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the context asks to stop.
    pub(super) fn estimate(
        self,
        scatters: &[f64],
        weights: &[f64],
        features: usize,
        context: &Context,
    ) -> Result<Vec<f64>> {
        let size = if self.is_diagonal() { features } else { features * features };
        let total: f64 = weights.iter().sum();
        let each = || scatters.chunks_exact(size).zip(weights);
        Ok(match self {
            Self::Full | Self::Diagonal => {
                each().flat_map(|(w, n)| w.iter().map(move |v| v / n)).collect()
            }
            Self::Spherical => {
                each().map(|(w, n)| w.iter().sum::<f64>() / (n * features as f64)).collect()
            }
            Self::EqualSpherical => {
                vec![scatters.iter().sum::<f64>() / (total * features as f64)]
            }
            Self::Tied => {
                let sum = |at: usize| each().map(|(w, _)| w[at]).sum::<f64>();
                (0..size).map(|at| sum(at) / total).collect()
            }
            Self::EqualShape | Self::VariableVolume => {
                self.common_shape(scatters, weights, features, total, context)?
            }
        })
    }

    /// EEV and VEV: the eigenvectors of each scatter with eigenvalues in common up to a volume.
    fn common_shape(
        self,
        scatters: &[f64],
        weights: &[f64],
        features: usize,
        total: f64,
        context: &Context,
    ) -> Result<Vec<f64>> {
        let dimension = features as f64;
        let eigens: Vec<_> = scatters
            .chunks_exact(features * features)
            .map(|w| eigen_interruptible(w.to_vec(), features, context))
            .collect::<Result<_>>()?;
        // Eigenvalues far below the largest are rounding, and a shape in common would blow them up.
        let largest = eigens.iter().fold(0.0_f64, |most, eigen| most.max(eigen.values[0]));
        let smallest = (1e-10 * largest).max(f64::MIN_POSITIVE.sqrt());
        let omega = |k: usize, i: usize| eigens[k].values[i].max(smallest);
        let normalised = |sums: Vec<f64>| -> (Vec<f64>, f64) {
            let mean = sums.iter().map(|v| v.ln()).sum::<f64>() / dimension;
            (sums.iter().map(|v| v / mean.exp()).collect(), mean.exp())
        };
        let sum = |volumes: &[f64]| -> Vec<f64> {
            (0..features)
                .map(|i| (0..weights.len()).map(|k| omega(k, i) / volumes[k]).sum())
                .collect()
        };
        let (mut shape, level) = normalised(sum(&vec![1.0; weights.len()]));
        let mut volumes = vec![level / total; weights.len()];
        if self == Self::VariableVolume {
            for _ in 0..ROUNDS {
                let before = volumes.clone();
                for k in 0..weights.len() {
                    let scaled: f64 = (0..features).map(|i| omega(k, i) / shape[i]).sum();
                    volumes[k] = scaled / (dimension * weights[k]);
                }
                shape = normalised(sum(&volumes)).0;
                let change = |(a, b): (&f64, &f64)| ((a - b) / b).abs();
                if volumes.iter().zip(&before).map(change).fold(0.0, f64::max) < 1e-12 {
                    break;
                }
            }
        }
        let mut values = Vec::with_capacity(scatters.len());
        for (eigen, volume) in eigens.iter().zip(&volumes) {
            // λ D A Dᵀ from the columns of D √(λA).
            let mut roots = eigen.vectors.clone();
            for (vector, share) in roots.chunks_exact_mut(features).zip(&shape) {
                let root = (volume * share).sqrt();
                vector.iter_mut().for_each(|value| *value *= root);
            }
            let roots = transposed(&roots, features, features);
            values.extend(times_transposed(&roots, &roots, features, context)?);
        }
        Ok(values)
    }

    /// What densities need of the covariances of every component.
    ///
    /// # Errors
    /// [`Error::Model`] when one is not positive definite, [`Error::Interrupted`] when the context asks to stop.
    pub(super) fn factors(
        self,
        covariances: &[f64],
        components: usize,
        features: usize,
        context: &Context,
    ) -> Result<Vec<Factor>> {
        let singular = |k: usize| {
            Error::model(format!(
                "the covariance of component {} is singular; raise the variance floor or take \
                 fewer components",
                k + 1
            ))
        };
        let scales = |k: usize, variances: &[f64]| {
            if !variances.iter().all(|v| v.is_finite() && *v > 0.0) {
                return Err(singular(k));
            }
            let log_determinant = variances.iter().map(|v| v.ln()).sum();
            let scales = variances.iter().map(|v| 1.0 / v.sqrt()).collect();
            Ok(Factor { lower: Vec::new(), scales, log_determinant })
        };
        let lower = |k: usize, matrix: &[f64]| {
            let factor = Cholesky::interruptible(matrix.to_vec(), features, context)?
                .ok_or_else(|| singular(k))?;
            let log_determinant = factor.log_determinant();
            let lower = factor.inverse_lower(context)?;
            Ok(Factor { lower, scales: Vec::new(), log_determinant })
        };
        let square = features * features;
        let factor = |k: usize| match self {
            Self::Full | Self::Tied | Self::EqualShape | Self::VariableVolume => {
                lower(k, &covariances[k * square..(k + 1) * square])
            }
            Self::Diagonal => scales(k, &covariances[k * features..(k + 1) * features]),
            Self::Spherical => scales(k, &vec![covariances[k]; features]),
            Self::EqualSpherical => scales(k, &vec![covariances[0]; features]),
        };
        match self {
            Self::Tied => Ok(vec![factor(0)?; components]),
            _ => (0..components).map(factor).collect(),
        }
    }
}

/// (x − μ)ᵀΣ⁻¹(x − μ) = ‖lower (x − μ)‖², or with scales instead of a matrix.
#[derive(Clone)]
pub(super) struct Factor {
    /// L⁻¹ of Σ = L Lᵀ; empty for diagonal covariances.
    pub(super) lower: Vec<f64>,
    /// 1 / σ along every axis; empty for others.
    pub(super) scales: Vec<f64>,
    /// ln |Σ|
    pub(super) log_determinant: f64,
}
