//! The likelihood of a mixture of Gaussians whose variances are known, maximised over weights and means with a
//! proven bound: ℓ(w, μ) = Σₖ cₖ ln Σⱼ wⱼ N(yₖ; μⱼ, sⱼI) (Lu 2005, chapter 6).
//!
//! ℓ is concave in w, and for given shares of the rows in the components it is concave in μ; together it is neither,
//! and EM ends at one of its maxima. Lu's generalised Benders decomposition cuts the set of shares into regions. A
//! spatial branch and bound over the means needs some hundred regions where that needs thousands: see [`boxes`].

mod boxes;
mod local;
mod weights;

use crate::outcome::Status;

pub(crate) use boxes::certify;

/// ln 2π.
const LN_TWO_PI: f64 = 1.837_877_066_409_345_5;

/// Rows and variances.
pub(crate) struct Problem {
    /// Different rows, one after another.
    rows: Vec<f64>,
    /// How often each occurs.
    counts: Vec<f64>,
    features: usize,
    variances: Vec<f64>,
}

/// A mixture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mixture {
    pub weights: Vec<f64>,
    /// Means, one after another.
    pub means: Vec<f64>,
    pub log_likelihood: f64,
}

/// When the search ends.
pub(crate) struct Limits {
    /// Difference of bound and likelihood.
    pub gap: f64,
    /// Regions whose bound was computed.
    pub regions: usize,
    /// Starts of EM for the first mixture.
    pub starts: usize,
}

/// The best mixture found and what is proven of it.
pub(crate) struct Certified {
    pub mixture: Mixture,
    /// No mixture has a larger likelihood.
    pub bound: f64,
    /// Regions whose bound was computed.
    pub regions: usize,
    pub status: Status,
}

impl Problem {
    /// Rows that occur several times are kept once.
    pub(crate) fn new(rows: &[f64], features: usize, variances: Vec<f64>) -> Self {
        let mut order: Vec<&[f64]> = rows.chunks_exact(features).collect();
        let compare = |a: &&[f64], b: &&[f64]| {
            let each = a.iter().zip(b.iter()).map(|(a, b)| a.total_cmp(b));
            each.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        };
        order.sort_unstable_by(compare);
        let mut problem = Self { rows: Vec::new(), counts: Vec::new(), features, variances };
        for same in order.chunk_by(|a, b| a == b) {
            problem.rows.extend_from_slice(same[0]);
            problem.counts.push(same.len() as f64);
        }
        problem
    }

    fn components(&self) -> usize {
        self.variances.len()
    }

    fn row(&self, k: usize) -> &[f64] {
        &self.rows[k * self.features..][..self.features]
    }

    /// Rows, each as often as it occurs.
    fn total(&self) -> f64 {
        self.counts.iter().sum()
    }

    /// ln of the largest value of component j's density.
    fn log_height(&self, j: usize) -> f64 {
        -0.5 * self.features as f64 * (LN_TWO_PI + self.variances[j].ln())
    }

    /// ln of component j's density at row k.
    fn log_density(&self, k: usize, j: usize, mean: &[f64]) -> f64 {
        let distance: f64 = self.row(k).iter().zip(mean).map(|(y, m)| (y - m) * (y - m)).sum();
        self.log_height(j) - distance / (2.0 * self.variances[j])
    }
}
