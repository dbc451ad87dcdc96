//! `ll-predict`: LIBLINEAR's options, answers file and summary lines.

use std::ffi::OsString;
use std::path::Path;

use widemargin::data::Layout;
use widemargin::data::read::StoredPrecision;
use widemargin::data::write::{general, write_atomically};
use widemargin::machine::{MachineKind, Model};
use widemargin::operation::metrics::{Confusion, RegressionErrors};

use crate::data_file::check_outputs;
use crate::failure::{CommandResult, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::libsvm::{Words, read_data, session, switch, unknown, write_answers};
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
    let (mut probability, mut quiet) = (false, false);
    let mut words = Words::new(arguments);
    while let Some(option) = words.option() {
        match option.letter {
            'b' => probability = switch(&mut words, &option)?,
            'q' => quiet = true,
            _ => return Err(unknown(&option)),
        }
    }
    let [data_path, model_path, output] = words.files() else {
        return Err(Failure::usage("expected a test file, a model file and an output file"));
    };
    check_outputs(
        &[("output_file", Some(Path::new(output)))],
        &[Some(Path::new(data_path)), Some(Path::new(model_path))],
    )?;
    let session = session(interrupt)?;
    let mut model = Model::load(model_path)?;
    if probability && model.kind != MachineKind::Logistic {
        let message = "probability output is only supported for logistic regression";
        return Err(Failure::Message(message.into()));
    }
    let data = session.read("reading", || {
        let base = model.preparation.index_base;
        let loaded =
            read_data(Path::new(data_path), false, base, Layout::Sparse, StoredPrecision::Auto)?;
        model_file::align(&mut model, loaded.dataset)
    })?;
    let (labels, shares) = session.ask("predicting", |context| {
        let predictor = model.predictor(context)?;
        let values = predictor.decision_values(data.features())?;
        if !probability {
            return Ok((predictor.predictions(&values), None));
        }
        let shares = predictor.probabilities_of(&values)?;
        Ok((predictor.most_probable(&shares), Some(shares)))
    })?;
    session.save(|| {
        write_atomically(Path::new(output), |out| {
            write_answers(out, &model, &labels, shares.as_ref())
        })
    })?;
    if quiet {
        return Ok(Outcome::Done);
    }
    let text = if model.kind.is_regressor() {
        let errors = RegressionErrors::new(&data.labels().values()?, &labels.values()?)?;
        format!(
            "Mean squared error = {} (regression)\n\
             Squared correlation coefficient = {} (regression)\n",
            general(errors.mean_squared_error, 6),
            general(errors.squared_correlation, 6)
        )
    } else {
        let confusion = Confusion::new(data.labels(), &labels)?;
        let share = general(100.0 * confusion.accuracy(), 6);
        format!("Accuracy = {share}% ({}/{})\n", confusion.correct(), confusion.total())
    };
    terminal::print(&text)?;
    Ok(Outcome::Done)
}
