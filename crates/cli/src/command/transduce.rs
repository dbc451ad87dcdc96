//! Rows without labels in a training: those of a second file, and the predictions for all of them.

use std::path::Path;

use widemargin::data::read::{Format, read};
use widemargin::data::write::write_atomically;
use widemargin::data::{Dataset, Labels};
use widemargin::machine::specification::Value;
use widemargin::machine::{Model, Preparation, Specification};

use super::predict::write_labels;
use crate::arguments::InputArguments;
use crate::failure::CommandResult;
use crate::session::Session;

/// The label of rows without one in files.
pub(super) const NO_LABEL: &str = "?";

/// The label that marks rows without one, if the machine has such rows.
pub(super) fn mark(specification: &Specification) -> Option<String> {
    match specification.value("unlabelled") {
        Some(Value::Text(mark)) => Some(mark),
        _ => None,
    }
}

/// The rows of `path` below those of `data`, marked as rows without labels.
pub(super) fn add_rows(
    data: Dataset,
    path: &Path,
    input: &InputArguments,
    preparation: &Preparation,
    mark: &str,
) -> CommandResult<Dataset> {
    let options = preparation.read_options(input.with_labels(None).options()).missing_labels(true);
    let loaded = read(path, &options)?;
    let mut more = loaded.dataset.into_features();
    let mut data = data;
    if loaded.format == Format::Libsvm {
        // LIBSVM text has no number of columns.
        let columns = data.columns().max(more.columns());
        more = more.resized_columns(columns);
        let features = data.features().clone().resized_columns(columns);
        data = data.with_features(features)?;
    }
    Ok(data.with_unlabelled_rows(&more, mark)?)
}

/// The rows without labels.
pub(super) fn unlabelled(data: &Dataset, mark: &str) -> CommandResult<Dataset> {
    let is_marked = |row: &usize| data.labels().get(*row).is_some_and(|l| l.to_string() == mark);
    let rows: Vec<usize> = (0..data.rows()).filter(is_marked).collect();
    Ok(data.select_rows(&rows).with_labels(Labels::None)?)
}

/// Writes the prediction for every row, one a line.
pub(super) fn write_predictions(
    model: &Model,
    rows: &Dataset,
    target: &Path,
    session: &Session<'_>,
) -> CommandResult<()> {
    let labels = session.run_after_stop("predicting", |context| {
        model.predictor(context)?.predict_in_time(rows.features())
    })?;
    Ok(session.save(|| write_atomically(target, |out| write_labels(&labels, out)))?)
}
