//! `svm-predict`: LIBSVM's options, answers file and summary lines.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use widemargin::Context;
use widemargin::data::write::{general, write_atomically};
use widemargin::data::{Dataset, Labels};
use widemargin::machine::Model;
use widemargin::operation::metrics::{Confusion, RegressionErrors};

use super::options::{Words, switch, unknown};
use super::{read_data, threads};
use crate::failure::{CommandResult, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::model_file;
use crate::session::Session;
use crate::terminal;

/// Printed when there is nothing to do.
pub(super) const USAGE: &str = "\
Usage: svm-predict [options] test_file model_file output_file
options:
-b probability_estimates : write probabilities, 0 or 1 (default 0); not for one-class SVM
-q : print nothing
";

/// Predicts a file.
pub(super) fn run(arguments: &[OsString], interrupt: &Interrupt) -> CommandResult {
    let mut quiet = false;
    let mut words = Words::new(arguments);
    while let Some(option) = words.option() {
        match option.letter {
            'b' if switch(&mut words, &option)? => {
                return Err(Failure::Message("probabilities cannot be predicted yet".into()));
            }
            'b' => {}
            'q' => quiet = true,
            _ => return Err(unknown(&option)),
        }
    }
    let [data_path, model_path, output] = words.files() else {
        return Err(Failure::usage("expected a test file, a model file and an output file"));
    };
    let session = Session {
        context: Context::new().with_threads(threads())?.with_cancel_token(interrupt.token()),
        interrupt,
        time_limit: None,
        quiet: true,
    };
    let mut model = Model::load(model_path)?;
    let data = session.read("reading", || {
        let base = model.preparation.index_base;
        let loaded = read_data(Path::new(data_path), &model.kernel, base)?;
        let data = model_file::kernel_values(&model.kernel, loaded)?;
        model_file::align(&mut model, data)
    })?;
    let labels =
        session.ask("predicting", |context| model.predictor(context)?.predict(data.features()))?;
    session.save(|| write_atomically(Path::new(output), |out| write(out, &labels)))?;
    if !quiet {
        terminal::print(&summary(&model, &data, &labels)?)?;
    }
    Ok(Outcome::Done)
}

fn write(out: &mut dyn Write, labels: &Labels) -> io::Result<()> {
    match labels {
        Labels::Real(values) => {
            values.iter().try_for_each(|value| writeln!(out, "{}", general(*value, 17)))
        }
        _ => (0..labels.len())
            .filter_map(|i| labels.get(i))
            .try_for_each(|label| writeln!(out, "{label}")),
    }
}

/// The lines LIBSVM prints.
fn summary(model: &Model, data: &Dataset, labels: &Labels) -> CommandResult<String> {
    if model.kind.is_regressor() {
        let errors = RegressionErrors::new(&data.labels().values()?, &labels.values()?)?;
        return Ok(format!(
            "Mean squared error = {} (regression)\n\
             Squared correlation coefficient = {} (regression)\n",
            general(errors.mean_squared_error, 6),
            general(errors.squared_correlation, 6)
        ));
    }
    let confusion = Confusion::new(data.labels(), labels)?;
    Ok(format!(
        "Accuracy = {}% ({}/{}) (classification)\n",
        general(100.0 * confusion.accuracy(), 6),
        confusion.correct(),
        confusion.total()
    ))
}
