//! The width of Parzen windows.
//!
//! With s² the mean variance of the features, n rows and d features, Scott's width is
//! s n^(−1/(d+4)) and Silverman's s (4/((d+2) n))^(1/(d+4)). The likelihood of the training rows
//! under windows that leave the row itself out has a finite maximum, which a golden-section search
//! over ln σ finds; with the row itself it grows without bound as σ → 0. Classifiers may have the
//! widths that make the fewest errors instead.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::super::Window;
use super::super::rows::{total_scatter, warn};
use super::errors::least_errors;
use super::left_out::{LeftOut, sampled_rows};
use crate::context::Context;
use crate::data::Matrix;
use crate::error::{Error, Result};

/// Widths whose windows can be computed: γ = 1/(2σ²) neither overflows nor vanishes.
const PREDICTABLE: RangeInclusive<f64> = 1e-150..=1e150;

/// A rule for the width σ of Parzen windows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum WindowWidth {
    /// Given.
    Value(f64),
    /// Scott's rule.
    Scott,
    /// Silverman's rule.
    #[default]
    Silverman,
    /// The largest leave-one-out likelihood; for Gaussian windows.
    LeaveOneOut,
    /// The fewest leave-one-out errors, with a width for every class; for classifiers with
    /// Gaussian windows.
    LeastErrors,
}

impl FromStr for WindowWidth {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match (text, text.parse::<f64>()) {
            ("scott", _) => Ok(Self::Scott),
            ("silverman", _) => Ok(Self::Silverman),
            ("cv", _) => Ok(Self::LeaveOneOut),
            ("cv-errors", _) => Ok(Self::LeastErrors),
            (_, Ok(width)) if width.is_finite() && width > 0.0 => Ok(Self::Value(width)),
            _ => {
                let expected = "scott, silverman, cv, cv-errors or a finite number above 0";
                Err(Error::parameter("width", expected, text))
            }
        }
    }
}

impl fmt::Display for WindowWidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(width) => write!(f, "{width}"),
            Self::Scott => f.write_str("scott"),
            Self::Silverman => f.write_str("silverman"),
            Self::LeaveOneOut => f.write_str("cv"),
            Self::LeastErrors => f.write_str("cv-errors"),
        }
    }
}

impl WindowWidth {
    pub(super) fn validate(self, window: Window) -> Result<()> {
        match self {
            Self::Value(width) => Error::check_positive("width", width),
            Self::LeaveOneOut | Self::LeastErrors if window != Window::Gaussian => {
                let expected = "a gaussian window for a width by cross-validation";
                Err(Error::parameter("window", expected, window))
            }
            _ => Ok(()),
        }
    }

    /// The widths of classes, given the rows of each, all rows in the same order and ln P.
    pub(super) fn resolve_all(
        self,
        classes: &[Matrix],
        whole: &Matrix,
        log_priors: &[f64],
        context: &Context,
    ) -> Result<Vec<f64>> {
        let widths: Vec<f64> = match self {
            Self::LeastErrors if classes.len() == 1 => {
                let expected = "scott, silverman, cv or a number where there are no classes";
                return Err(Error::parameter("width", expected, self));
            }
            Self::LeastErrors => least_errors(classes, whole, log_priors, context)?,
            _ => classes.iter().map(|rows| self.resolve(rows, context)).collect::<Result<_>>()?,
        };
        match widths.iter().find(|width| !PREDICTABLE.contains(width)) {
            Some(width) => {
                let (least, most) = (PREDICTABLE.start(), PREDICTABLE.end());
                let expected = format!(
                    "a width from {least:e} to {most:e}, whose square is a number (scale the features)"
                );
                Err(Error::parameter("width", expected, format!("{width:e}")))
            }
            None => Ok(widths),
        }
    }

    /// The width for rows.
    pub(super) fn resolve(self, rows: &Matrix, context: &Context) -> Result<f64> {
        if let Self::Value(width) = self {
            return Ok(width);
        }
        let (count, d) = (rows.rows() as f64, rows.columns() as f64);
        let deviation = (total_scatter(rows) / (count * d)).sqrt();
        if deviation == 0.0 {
            warn(context, "rows that do not differ get windows of width 1");
            return Ok(1.0);
        }
        let exponent = 1.0 / (d + 4.0);
        let silverman = deviation * (4.0 / ((d + 2.0) * count)).powf(exponent);
        match self {
            Self::Scott => Ok(deviation * count.powf(-exponent)),
            Self::LeaveOneOut if rows.rows() > 1 => {
                let places = sampled_rows(rows.rows(), context);
                let queries = rows.select_rows(&places);
                let own = places.into_iter().map(Some).collect();
                LeftOut::new(rows, &queries, own, context)?.likeliest(silverman, deviation)
            }
            _ => Ok(silverman),
        }
    }
}
