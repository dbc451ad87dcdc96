//! `svm-predict`: LIBSVM's options, answers file and summary lines.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use widemargin::data::read::StoredPrecision;
use widemargin::data::write::{general, write_atomically};
use widemargin::data::{Dataset, Dense, Label, Labels, Layout};
use widemargin::machine::{Calibration, Model};
use widemargin::operation::metrics::{Confusion, RegressionErrors};

use super::options::{Words, switch, unknown};
use super::{read_data, session};
use crate::data_file::check_outputs;
use crate::failure::{CommandResult, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::model_file;
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
    let data = session.read("reading", || {
        let base = model.preparation.index_base;
        let loaded = read_data(
            Path::new(data_path),
            model.is_precomputed(),
            base,
            Layout::Auto,
            StoredPrecision::Auto,
        )?;
        let data = model_file::kernel_values(model.is_precomputed(), loaded)?;
        model_file::align(&mut model, data)
    })?;
    let noise = check_probability(&model, probability)?;
    let answers = session.ask("predicting", |context| {
        let predictor = model.predictor(context)?;
        let values = predictor.decision_values(data.features())?;
        if !probability || noise.is_some() {
            return Ok((predictor.predictions(&values), None));
        }
        let shares = predictor.probabilities_of(&values)?;
        Ok((predictor.most_probable(&shares), Some(shares)))
    })?;
    let (labels, shares) = answers;
    session.save(|| {
        write_atomically(Path::new(output), |out| write(out, &model, &labels, shares.as_ref()))
    })?;
    if !quiet {
        if model.calibration.is_some() && !probability {
            terminal::print("Model supports probability estimates, but disabled in prediction.\n")?;
        }
        if let Some(scale) = noise {
            terminal::print(&format!(
                "Prob. model for test data: target value = predicted value + z,\n\
                 z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={}\n",
                general(scale, 6)
            ))?;
        }
        terminal::print(&summary(&model, &data, &labels)?)?;
    }
    Ok(Outcome::Done)
}

/// Checks that the model has what `-b` asks for; for regression the scale of the noise.
fn check_probability(model: &Model, wanted: bool) -> CommandResult<Option<f64>> {
    match &model.calibration {
        None if wanted => {
            Err(Failure::Message("Model does not support probability estimates".into()))
        }
        Some(Calibration::Laplace { scale }) if wanted => Ok(Some(*scale)),
        _ => Ok(None),
    }
}

/// `labels` and the classes, the first line of answers with probabilities.
fn heading(model: &Model) -> String {
    let names = match &model.classes {
        Some(table) => table.names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        None => "normal outlier".to_owned(),
    };
    format!("labels {names}")
}

/// Writes an answer a line, with the probabilities of all classes if there are any.
pub(crate) fn write(
    out: &mut dyn Write,
    model: &Model,
    labels: &Labels,
    shares: Option<&Dense<f64>>,
) -> io::Result<()> {
    if shares.is_some() {
        writeln!(out, "{}", heading(model))?;
    }
    for i in 0..labels.len() {
        match labels.get(i) {
            Some(Label::Real(value)) => write!(out, "{}", general(value, 17))?,
            Some(label) => write!(out, "{}", terminal::one_line(&label.to_string()))?,
            None => {}
        }
        if let Some(shares) = shares {
            for share in shares.row(i) {
                write!(out, " {}", general(*share, 6))?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
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
