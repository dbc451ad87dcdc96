//! Reads the rows that a machine is trained on.

use std::path::{Path, PathBuf};

use widemargin::data::Dataset;
use widemargin::data::read::{read, read_weights};
use widemargin::machine::{Model, Preparation, Specification};
use widemargin::operation::advice::{column_advice, training_advice};

use super::transduce::{self, NO_LABEL};
use crate::arguments::{InputArguments, with_files};
use crate::failure::{CommandResult, Failure};
use crate::model_file;
use crate::report::DataReport;

/// The rows of a data file.
pub(super) struct TrainingData {
    pub(super) data: Dataset,
    /// What later files have to repeat.
    pub(super) preparation: Preparation,
    /// The report about the file.
    pub(super) report: DataReport,
}

/// Refuses a column kept as strings for a machine that would take its characters for numbers.
pub(super) fn check_strings(
    input: &InputArguments,
    specification: &Specification,
) -> CommandResult<()> {
    if input.text.is_none() || specification.compares_strings()? {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "--text keeps a column as strings, which {} would take for numbers: \
         add --kernel spectrum, mismatch, subsequence or alignment",
        specification.kind()
    )))
}

/// The rows of a data file with their weights, columns of views' files before theirs.
pub(super) fn training_rows(
    input: &InputArguments,
    path: &Path,
    weights: Option<&Path>,
    view_files: &[PathBuf],
    specification: &Specification,
) -> CommandResult<TrainingData> {
    let may_miss = transduce::mark(specification).as_deref() == Some(NO_LABEL);
    let mut loaded = read(path, &input.options().missing_labels(may_miss))?;
    let preparation = Preparation::of_file(&loaded);
    let columns = std::mem::take(&mut loaded.columns);
    let is_table = specification.takes_kernel_values(loaded.dataset.features())?;
    let data = model_file::kernel_values(is_table, loaded)?;
    let mut data = with_files(data, view_files)?;
    if let Some(path) = weights {
        data = data.with_weights(read_weights(path)?)?;
    }
    let mut advice = column_advice(&columns);
    advice.extend(training_advice(specification, &data));
    Ok(TrainingData { data, preparation, report: DataReport { columns, advice } })
}

/// Adds what was read from the file to what the machine left (the scaling and the feature map), and what the
/// machine was.
pub(super) fn complete(model: &mut Model, of_file: Preparation, specification: &Specification) {
    let own = std::mem::take(&mut model.preparation);
    model.preparation = Preparation { scaler: own.scaler, map: own.map, ..of_file };
    specification.record(model);
}
