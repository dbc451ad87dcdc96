//! The within-class scatter S_W = Σ P_C S_C, shrunk where it has to be.
//!
//! Ledoit and Wolf's shrinkage ("A well-conditioned estimator for large-dimensional covariance
//! matrices", 2004) is that of scikit-learn: of each class, on standardised features.

use std::fmt;
use std::str::FromStr;

use super::super::rows::{check_number, means, warn};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::numeric::algebra::{Cholesky, add_products, dot};

/// Rows whose products are added at a time.
const BLOCK_ROWS: usize = 256;

/// How much of the mean variance replaces a class's own covariance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Shrinkage {
    /// None, unless the scatter is singular.
    #[default]
    None,
    /// What Ledoit and Wolf's formula says for each class.
    Auto,
    /// This share, from 0 to 1.
    Share(f64),
}

impl FromStr for Shrinkage {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match (text, text.parse::<f64>()) {
            ("none", _) => Ok(Self::None),
            ("auto", _) => Ok(Self::Auto),
            (_, Ok(share)) if (0.0..=1.0).contains(&share) => Ok(Self::Share(share)),
            _ => Err(Error::parameter("shrinkage", "none, auto or a share from 0 to 1", text)),
        }
    }
}

impl fmt::Display for Shrinkage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Auto => f.write_str("auto"),
            Self::Share(share) => write!(f, "{share}"),
        }
    }
}

impl Shrinkage {
    pub(super) fn validate(self) -> Result<()> {
        match self {
            Self::Share(share) if share > 1.0 => {
                Err(Error::parameter("shrinkage", "a share from 0 to 1", share))
            }
            Self::Share(share) => check_number("shrinkage", share, 0.0),
            _ => Ok(()),
        }
    }

    /// The maximum-likelihood covariance of rows around their mean, shrunk.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the context asks to stop.
    pub(super) fn covariance(
        self,
        rows: &[&[f64]],
        columns: usize,
        context: &Context,
    ) -> Result<Vec<f64>> {
        let mean = means(rows.iter().copied(), columns);
        let mut centred: Vec<Vec<f64>> =
            (0..columns).map(|j| rows.iter().map(|row| row[j] - mean[j]).collect()).collect();
        let count = rows.len().max(1) as f64;
        let mut scales = vec![1.0; columns];
        if self == Self::Auto {
            for (scale, column) in scales.iter_mut().zip(&mut centred) {
                let deviation = (dot(column, column) / count).sqrt();
                if deviation > 0.0 {
                    *scale = deviation;
                    column.iter_mut().for_each(|value| *value /= deviation);
                }
            }
        }
        let mut covariance = vec![0.0; columns * columns];
        for start in (0..rows.len()).step_by(BLOCK_ROWS) {
            let end = (start + BLOCK_ROWS).min(rows.len());
            let block: Vec<f64> =
                centred.iter().flat_map(|column| &column[start..end]).copied().collect();
            add_products(&mut covariance, columns, &block, end - start, context)?;
        }
        for i in 0..columns {
            for j in 0..=i {
                let value = covariance[i * columns + j] / count;
                covariance[i * columns + j] = value;
                covariance[j * columns + i] = value;
            }
        }
        let share = match self {
            Self::None => 0.0,
            Self::Share(share) => share,
            Self::Auto => ledoit_wolf(&centred, &covariance, count),
        };
        if share > 0.0 {
            let level = trace(&covariance, columns) / columns as f64;
            covariance.iter_mut().for_each(|value| *value *= 1.0 - share);
            (0..columns).for_each(|i| covariance[i * columns + i] += share * level);
        }
        for i in 0..columns {
            for j in 0..columns {
                covariance[i * columns + j] *= scales[i] * scales[j];
            }
        }
        Ok(covariance)
    }
}

/// The share of Ledoit and Wolf for centred columns.
fn ledoit_wolf(columns: &[Vec<f64>], covariance: &[f64], count: f64) -> f64 {
    let width = columns.len();
    if width == 1 {
        return 0.0;
    }
    let features = width as f64;
    let total = trace(covariance, width);
    let level = total / features;
    let squares: f64 = covariance.iter().map(|value| value * value).sum();
    let rows = columns[0].len();
    let fourth: f64 = (0..rows)
        .map(|i| columns.iter().map(|column| column[i] * column[i]).sum::<f64>().powi(2))
        .sum();
    let beta = (fourth / count - squares) / (features * count);
    let delta = (squares - 2.0 * level * total + features * level * level) / features;
    let beta = beta.min(delta);
    if beta == 0.0 { 0.0 } else { beta / delta }
}

pub(super) fn trace(matrix: &[f64], order: usize) -> f64 {
    (0..order).map(|i| matrix[i * order + i]).sum()
}

/// The factor of a scatter matrix; a singular one gets a growing share of its mean variance on the
/// diagonal, and the share is reported.
pub(super) fn factor(scatter: &[f64], order: usize, context: &Context) -> Result<(Cholesky, f64)> {
    if let Some(factor) = Cholesky::interruptible(scatter.to_vec(), order, context)? {
        return Ok((factor, 0.0));
    }
    let level = trace(scatter, order) / order as f64;
    if level <= 0.0 {
        warn(context, "no class has any scatter: the nearest class mean decides");
        let mut unit = vec![0.0; order * order];
        (0..order).for_each(|i| unit[i * order + i] = 1.0);
        let factor = Cholesky::new(unit, order, context).ok_or_else(not_factored)?;
        return Ok((factor, 1.0));
    }
    let mut share = 1e-8;
    while share < 1.0 {
        let mut shrunk = scatter.to_vec();
        (0..order).for_each(|i| shrunk[i * order + i] += share * level);
        if let Some(factor) = Cholesky::interruptible(shrunk, order, context)? {
            warn(
                context,
                format!(
                    "the within-class scatter is singular (constant or dependent features, or too \
                     few rows): {share:e} of the mean variance was added to its diagonal"
                ),
            );
            return Ok((factor, share));
        }
        share *= 10.0;
    }
    Err(not_factored())
}

fn not_factored() -> Error {
    Error::model("the within-class scatter could not be factored")
}
