//! What all machines have in common: they learn a model from a data set.

use super::Model;
use crate::context::Context;
use crate::data::Dataset;
use crate::error::Result;
use crate::kernel::Kernel;

/// A machine with its parameters set, ready to learn.
pub trait Machine: Send + Sync {
    /// Learns a model.
    ///
    /// # Errors
    /// Bad parameters, data that does not suit the machine, or an interruption before a model
    /// existed. Running out of time or iterations is no error but a
    /// [`Status`](crate::solver::Status) of the model.
    fn fit(&self, data: &Dataset, context: &Context) -> Result<Model>;

    /// Learns a model, starting from the solution `start` of a related problem: the same rows (or
    /// the same first rows) with other parameters, weights or labels.
    ///
    /// The optimum is that of [`fit`](Self::fit); a near start only saves time. Machines that
    /// cannot use the start ignore it.
    ///
    /// # Errors
    /// As [`fit`](Self::fit).
    fn fit_from(&self, data: &Dataset, start: &Model, context: &Context) -> Result<Model> {
        let _ = start;
        self.fit(data, context)
    }

    /// The kernel it will use, if it uses one; whoever trains on parts of a data set must then also
    /// take parts of the rows of a precomputed kernel.
    fn kernel(&self) -> Option<&Kernel> {
        None
    }
}
