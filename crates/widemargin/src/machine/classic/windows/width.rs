//! How wide windows are.
//!
//! With s² the mean variance of the features, n rows and d features, Scott's width is
//! s n^(−1/(d+4)) and Silverman's s (4/((d+2) n))^(1/(d+4)). The likelihood of the training rows
//! under windows that leave the row itself out has a finite maximum, which a golden-section search
//! over ln σ finds; with the row itself it grows without bound as σ → 0.

use std::fmt;
use std::str::FromStr;

use rayon::prelude::*;

use super::super::neighbours::Finder;
use super::super::rows::{dense_rows, means, warn};
use super::super::{Search, Window};
use crate::context::Context;
use crate::data::Matrix;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, KernelBlocks};
use crate::random::Generator;

/// Rows whose left-out likelihood is looked at; more are drawn at random.
const MOST_ROWS: usize = 2_000;

/// Rows of one block of windows.
const BLOCK_ROWS: usize = 64;

/// Steps of the search: the width is known to 1 in 10⁶ then.
const STEPS: usize = 34;

/// A rule for the width σ.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Width {
    /// Given.
    Value(f64),
    /// Scott's rule.
    Scott,
    /// Silverman's rule.
    #[default]
    Silverman,
    /// The largest leave-one-out likelihood; for Gaussian windows.
    LeaveOneOut,
}

impl FromStr for Width {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match (text, text.parse::<f64>()) {
            ("scott", _) => Ok(Self::Scott),
            ("silverman", _) => Ok(Self::Silverman),
            ("cv", _) => Ok(Self::LeaveOneOut),
            (_, Ok(width)) if width.is_finite() && width > 0.0 => Ok(Self::Value(width)),
            _ => {
                let expected = "scott, silverman, cv or a finite number above 0";
                Err(Error::parameter("width", expected, text))
            }
        }
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(width) => write!(f, "{width}"),
            Self::Scott => f.write_str("scott"),
            Self::Silverman => f.write_str("silverman"),
            Self::LeaveOneOut => f.write_str("cv"),
        }
    }
}

impl Width {
    pub(super) fn validate(self, window: Window) -> Result<()> {
        match self {
            Self::Value(width) if !(width.is_finite() && width > 0.0) => {
                Err(Error::parameter("width", "a finite number above 0", width))
            }
            Self::LeaveOneOut if window != Window::Gaussian => {
                let expected = "a gaussian window for a width by cross-validation";
                Err(Error::parameter("window", expected, window))
            }
            _ => Ok(()),
        }
    }

    /// The width for rows.
    pub(super) fn resolve(self, rows: &Matrix, context: &Context) -> Result<f64> {
        if let Self::Value(width) = self {
            return Ok(width);
        }
        let (count, d) = (rows.rows() as f64, rows.columns() as f64);
        let values = dense_rows(rows);
        let centre = means(values.chunks_exact(rows.columns()), rows.columns());
        let squares = values.chunks_exact(rows.columns()).flat_map(|row| {
            row.iter().zip(&centre).map(|(value, mean)| (value - mean) * (value - mean))
        });
        let deviation = (squares.sum::<f64>() / (count * d)).sqrt();
        if deviation == 0.0 {
            warn(context, "rows that do not differ get windows of width 1");
            return Ok(1.0);
        }
        let exponent = 1.0 / (d + 4.0);
        let silverman = deviation * (4.0 / ((d + 2.0) * count)).powf(exponent);
        match self {
            Self::Scott => Ok(deviation * count.powf(-exponent)),
            Self::LeaveOneOut if rows.rows() > 1 => {
                LeaveOneOut::new(rows, context)?.best(silverman, deviation)
            }
            _ => Ok(silverman),
        }
    }
}

/// The left-out likelihood as a function of the width.
struct LeaveOneOut<'a> {
    rows: &'a Matrix,
    asked: Vec<usize>,
    /// Squared distance of the nearest other row.
    nearest: Vec<f64>,
    context: &'a Context,
}

impl<'a> LeaveOneOut<'a> {
    fn new(rows: &'a Matrix, context: &'a Context) -> Result<Self> {
        let mut asked: Vec<usize> = (0..rows.rows()).collect();
        if asked.len() > MOST_ROWS {
            Generator::new(context.seed()).shuffle(&mut asked);
            asked.truncate(MOST_ROWS);
            asked.sort_unstable();
        }
        let finder = Finder::new(rows, Search::Auto, context)?;
        let mut nearest = vec![0.0; asked.len()];
        finder.nearest(&rows.select_rows(&asked), 0..asked.len(), 2, |i, found| {
            let other = found.iter().find(|&&(_, row)| row != asked[i]);
            nearest[i] = other.map_or(0.0, |found| found.0);
        })?;
        Ok(Self { rows, asked, nearest, context })
    }

    fn best(&self, start: f64, deviation: f64) -> Result<f64> {
        let (mut low, mut high) = ((start * 1e-2).ln(), (start.max(deviation) * 4.0).ln());
        let golden = 0.5 * (5.0_f64.sqrt() - 1.0);
        let mut inner = [high - golden * (high - low), low + golden * (high - low)];
        let mut values = [self.likelihood(inner[0].exp())?, self.likelihood(inner[1].exp())?];
        for _ in 0..STEPS {
            if self.context.stop_request().is_some() {
                return Err(Error::Interrupted);
            }
            if values[0] >= values[1] {
                high = inner[1];
                inner = [high - golden * (high - low), inner[0]];
                values = [self.likelihood(inner[0].exp())?, values[0]];
            } else {
                low = inner[0];
                inner = [inner[1], low + golden * (high - low)];
                values = [values[1], self.likelihood(inner[1].exp())?];
            }
        }
        Ok((0.5 * (low + high)).exp())
    }

    /// Mean ln density of the rows asked, each without itself, up to a constant.
    fn likelihood(&self, width: f64) -> Result<f64> {
        let gamma = 0.5 / (width * width);
        let set = self.context.instruction_set();
        let kernel = Kernel::Gaussian { gamma };
        let blocks = KernelBlocks::<f64>::new(&kernel, self.rows, None, set)?;
        let count = blocks.len();
        let part = |(at, asked): (usize, &[usize])| -> f64 {
            let queries = blocks.gather(asked);
            let mut values = vec![0.0; asked.len() * count];
            blocks.query_block(&queries, 0..asked.len(), 0..count, &mut values, count);
            let mut sum = 0.0;
            for (i, row) in values.chunks_exact_mut(count).enumerate() {
                row[asked[i]] = 0.0;
                let total: f64 = row.iter().sum();
                let nearest = self.nearest[at * BLOCK_ROWS + i];
                sum += if total > 0.0 { total.ln() } else { -gamma * nearest };
            }
            sum
        };
        let parts: Vec<f64> = if self.context.is_parallel() {
            let chunks = self.asked.par_chunks(BLOCK_ROWS).enumerate();
            self.context.install(|| chunks.map(part).collect())
        } else {
            self.asked.chunks(BLOCK_ROWS).enumerate().map(part).collect()
        };
        let mean = parts.iter().sum::<f64>() / self.asked.len() as f64;
        Ok(mean - self.rows.columns() as f64 * width.ln())
    }
}
