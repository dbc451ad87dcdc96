//! Reads the rows that a machine is trained on.

use std::path::Path;

use widemargin::data::Dataset;
use widemargin::data::read::{read, read_weights};
use widemargin::kernel::Kernel;
use widemargin::machine::{Model, Preparation, Specification};

use super::transduce::{self, NO_LABEL};
use crate::arguments::InputArguments;
use crate::failure::CommandResult;
use crate::model_file;

/// The rows of a data file with their weights, and what later files have to repeat.
pub(super) fn training_rows(
    input: &InputArguments,
    path: &Path,
    weights: Option<&Path>,
    specification: &Specification,
) -> CommandResult<(Dataset, Preparation)> {
    let may_miss = transduce::mark(specification).as_deref() == Some(NO_LABEL);
    let loaded = read(path, &input.options().missing_labels(may_miss))?;
    let preparation = Preparation::of_file(&loaded);
    let kernel = specification.kernel(loaded.dataset.features())?;
    let mut data = model_file::kernel_values(kernel == Kernel::Precomputed, loaded)?;
    if let Some(path) = weights {
        data = data.with_weights(read_weights(path)?)?;
    }
    Ok((data, preparation))
}

/// Adds what the file told to what the machine left (the scaling and the feature map), and what the
/// machine was.
pub(super) fn complete(model: &mut Model, of_file: Preparation, specification: &Specification) {
    let own = std::mem::take(&mut model.preparation);
    model.preparation = Preparation { scaler: own.scaler, map: own.map, ..of_file };
    specification.record(model);
}
