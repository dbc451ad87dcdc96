//! The width of a Gaussian kernel by the margin: of several widths the one whose clusters have the least objective.
//!
//! Gaussian kernels put all rows on the unit sphere whatever their width, so that margins can be compared: the objective
//! is the squared radius over the squared margin, up to a factor. A narrow kernel, near the identity, has nβ/2 for all
//! labels (β ≤ 1); a wide one, near a constant, does not separate at all.

use super::{Body, MaxMarginClustering};
use crate::context::Context;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::machine::median_distance::median_distance;
use crate::machine::model::Model;
use crate::machine::names::names;

/// Widths that are tried, in units of the median distance of the rows (Xu 2007 tries five as well).
const WIDTHS: [f64; 5] = [0.1, 0.2, 0.35, 0.6, 1.0];

/// Whether several widths of a Gaussian kernel are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusteringWidths {
    /// The kernel as it is.
    #[default]
    Given,
    /// Five widths, from a tenth of the median distance of the rows to that distance; the one with the least objective,
    /// the largest margin, is kept. What the kernel's γ is does not matter.
    MultiScale,
}

names!(ClusteringWidths, "widths", Given: "given", MultiScale: "multi-scale");

impl MaxMarginClustering {
    /// The model of the best width; the best so far where the context asks to stop.
    pub(super) fn train_widths(&self, data: &Dataset, context: &Context) -> Result<Model> {
        if !matches!(self.kernel, Kernel::Gaussian { .. }) {
            let expected = "kernel rbf with several widths";
            return Err(Error::parameter("widths", expected, self.kernel.name()));
        }
        self.check(data)?;
        let median = median_distance(data.features());
        if median <= 0.0 || !median.is_finite() {
            let found = format!("a median distance of {median}");
            return Err(Error::kernel("rbf", "rows whose distances are finite and not 0", found));
        }
        let mut best: Option<(f64, Model)> = None;
        for width in WIDTHS {
            let kernel = Kernel::Gaussian { gamma: (width * median).powi(-2) };
            let machine = Self { kernel, ..self.clone() };
            let model = match machine.train(data, context) {
                Err(Error::Interrupted) if best.is_some() => break,
                model => model?,
            };
            let Body::MarginClusters(found) = &model.body else { return Ok(model) };
            if best.as_ref().is_none_or(|(least, _)| found.objective < *least) {
                best = Some((found.objective, model));
            }
            if context.stop_request().is_some() {
                break;
            }
        }
        let (_, mut model) = best.ok_or(Error::Interrupted)?;
        if let (Some(training), Some(stop)) = (&mut model.training, context.stop_request()) {
            training.outcome.status = training.outcome.status.max(stop);
        }
        Ok(model)
    }
}
