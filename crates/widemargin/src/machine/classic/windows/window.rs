//! The shapes of Parzen windows, normalised to integrate to 1 in any number of dimensions.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, PI, TAU};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::machine::names::names;
use crate::numeric::special::log_gamma;

/// A function of u = distance / width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Window {
    /// exp(−u²/2)
    #[default]
    Gaussian,
    /// 1 for u < 1: the hypercube's round relative.
    Tophat,
    /// 1 − u² for u < 1
    Epanechnikov,
    /// exp(−u)
    Exponential,
    /// 1 − u for u < 1
    Linear,
    /// cos(πu/2) for u < 1
    Cosine,
}

names!(Window, "window", Gaussian: "gaussian", Tophat: "tophat", Epanechnikov: "epanechnikov",
       Exponential: "exponential", Linear: "linear", Cosine: "cosine");

impl Window {
    /// The value at a squared distance, before normalisation.
    pub(super) fn value(self, squared: f64, width: f64) -> f64 {
        let u = squared.max(0.0).sqrt() / width;
        match self {
            Self::Gaussian => (-0.5 * u * u).exp(),
            Self::Exponential => (-u).exp(),
            _ if u >= 1.0 => 0.0,
            Self::Tophat => 1.0,
            Self::Epanechnikov => 1.0 - u * u,
            Self::Linear => 1.0 - u,
            Self::Cosine => (FRAC_PI_2 * u).cos(),
        }
    }

    /// ln ∫ of the window of that width in d dimensions.
    pub(super) fn log_integral(self, dimensions: usize, width: f64) -> f64 {
        let d = dimensions as f64;
        let unit = match self {
            Self::Gaussian => 0.5 * d * TAU.ln(),
            Self::Tophat => log_ball(dimensions),
            Self::Epanechnikov => log_ball(dimensions) + (2.0 / (d + 2.0)).ln(),
            Self::Exponential => log_sphere(dimensions) + log_gamma(d),
            Self::Linear => log_ball(dimensions) - (d + 1.0).ln(),
            Self::Cosine => log_sphere(dimensions) + cosine_moment(dimensions - 1).ln(),
        };
        unit + d * width.ln()
    }

    /// Checks that the integral can be computed: that of the cosine cancels in many dimensions.
    pub(super) fn validate(self, dimensions: usize) -> Result<()> {
        if self == Self::Cosine && dimensions > 12 {
            let expected = "another window in more than 12 dimensions";
            return Err(Error::parameter("window", expected, self));
        }
        Ok(())
    }
}

/// ∫₀¹ rⁿ cos(πr/2) dr, twice by parts: 2/π − n (n − 1) (2/π)² of the one two lower.
fn cosine_moment(n: usize) -> f64 {
    match n {
        0 => FRAC_2_PI,
        1 => FRAC_2_PI - FRAC_2_PI * FRAC_2_PI,
        _ => {
            let factor = (n * (n - 1)) as f64 * FRAC_2_PI * FRAC_2_PI;
            FRAC_2_PI - factor * cosine_moment(n - 2)
        }
    }
}

/// ln of the volume of the unit ball in d dimensions.
fn log_ball(dimensions: usize) -> f64 {
    0.5 * dimensions as f64 * PI.ln() - log_gamma(0.5 * dimensions as f64 + 1.0)
}

/// ln of the area of the unit sphere in d dimensions.
fn log_sphere(dimensions: usize) -> f64 {
    log_ball(dimensions) + (dimensions as f64).ln()
}
