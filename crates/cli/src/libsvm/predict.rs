//! `svm-predict`: LIBSVM's options, output file and summary lines.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use widemargin::Context;
use widemargin::data::read::StoredPrecision;
use widemargin::data::write::{general, write_atomically};
use widemargin::data::{Dataset, Dense, Label, Labels, Layout, Matrix};
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

/// The options of both predict programs.
pub(crate) struct PredictOptions<'a> {
    pub(crate) probability: bool,
    pub(crate) quiet: bool,
    pub(crate) data_path: &'a Path,
    pub(crate) model_path: &'a Path,
    pub(crate) output: &'a Path,
}

impl<'a> PredictOptions<'a> {
    pub(crate) fn read(arguments: &'a [OsString]) -> CommandResult<Self> {
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
        let [data_path, model_path, output] = [data_path, model_path, output].map(Path::new);
        let inputs = [Some(data_path), Some(model_path)];
        check_outputs(&[("output_file", Some(output))], &inputs)?;
        Ok(Self { probability, quiet, data_path, model_path, output })
    }
}

/// Predicts a file.
pub(super) fn run(arguments: &[OsString], interrupt: &Interrupt) -> CommandResult {
    let PredictOptions { probability, quiet, data_path, model_path, output } =
        PredictOptions::read(arguments)?;
    let session = session(interrupt)?;
    let mut model = Model::load(model_path)?;
    let data = session.read("reading", || {
        let base = model.preparation.index_base;
        let loaded = read_data(
            data_path,
            model.is_precomputed(),
            base,
            Layout::Auto,
            StoredPrecision::Auto,
        )?;
        let data = model_file::kernel_values(model.is_precomputed(), loaded)?;
        model_file::align(&mut model, data)
    })?;
    let noise = check_probability(&model, probability)?;
    let shares_wanted = probability && noise.is_none();
    let (labels, shares) = session
        .ask("predicting", |context| predict(&model, data.features(), shares_wanted, context))?;
    session
        .save(|| write_atomically(output, |out| write(out, &model, &labels, shares.as_ref())))?;
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
        terminal::print(&summary(&model, &data, &labels, " (classification)")?)?;
    }
    Ok(Outcome::Done)
}

/// The predictions, and the probabilities of all classes where they are wanted.
pub(crate) fn predict(
    model: &Model,
    rows: &Matrix,
    probability: bool,
    context: &Context,
) -> widemargin::Result<(Labels, Option<Dense<f64>>)> {
    let predictor = model.predictor(context)?;
    let values = predictor.decision_values(rows)?;
    if !probability {
        return Ok((predictor.predictions(&values), None));
    }
    let shares = predictor.probabilities_of(&values)?;
    Ok((predictor.most_probable(&shares), Some(shares)))
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

/// `labels` and the classes, the first line of predictions with probabilities.
fn heading(model: &Model) -> String {
    let names = match &model.classes {
        Some(table) => table.names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        None => "normal outlier".to_owned(),
    };
    format!("labels {names}")
}

/// Writes a prediction a line, with the probabilities of all classes if there are any.
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

/// The lines that both programs print; LIBSVM's has `classification` after an accuracy.
pub(crate) fn summary(
    model: &Model,
    data: &Dataset,
    labels: &Labels,
    classification: &str,
) -> CommandResult<String> {
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
    let share = general(100.0 * confusion.accuracy(), 6);
    let (correct, total) = (confusion.correct(), confusion.total());
    Ok(format!("Accuracy = {share}% ({correct}/{total}){classification}\n"))
}
