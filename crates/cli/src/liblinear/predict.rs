//! `ll-predict`: LIBLINEAR's options, output file and summary lines.

use std::ffi::OsString;

use widemargin::data::Layout;
use widemargin::data::read::StoredPrecision;
use widemargin::data::write::write_atomically;
use widemargin::machine::{MachineKind, Model};

use crate::failure::{CommandResult, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::libsvm::{PredictOptions, predict, read_data, session, summary, write_predictions};
use crate::model_file;
use crate::terminal;

/// Printed when there is nothing to do.
pub(crate) const USAGE: &str = "\
Usage: ll-predict [options] test_file model_file output_file
options:
-b probability_estimates : write probabilities, 0 or 1 (default 0); logistic regression only
-q : print nothing
";

/// Predicts a file.
pub(crate) fn run(arguments: &[OsString], interrupt: &Interrupt) -> CommandResult {
    let PredictOptions { probability, quiet, data_path, model_path, output } =
        PredictOptions::read(arguments)?;
    let session = session(interrupt)?;
    let mut model = Model::load(model_path)?;
    if probability && model.kind != MachineKind::Logistic {
        let message = "probability output is only supported for logistic regression";
        return Err(Failure::Message(message.into()));
    }
    let data = session.read("reading", || {
        let base = model.preparation.index_base;
        let loaded = read_data(data_path, false, base, Layout::Sparse, StoredPrecision::Auto)?;
        model_file::align(&mut model, loaded.dataset)
    })?;
    let (labels, shares) = session
        .ask("predicting", |context| predict(&model, data.features(), probability, context))?;
    session.save(|| {
        write_atomically(output, |out| write_predictions(out, &model, &labels, shares.as_ref()))
    })?;
    if !quiet {
        terminal::print(&summary(&model, &data, &labels, "")?)?;
    }
    Ok(Outcome::Done)
}
