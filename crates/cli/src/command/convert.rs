//! `convert`: data and model files from one format to another.

use std::path::PathBuf;

use clap::Args;
use widemargin::machine::Model;

use crate::arguments::{InputArguments, first_index};
use crate::data_file::OutputArguments;
use crate::failure::{CommandResult, Outcome};
use crate::interrupt::Interrupt;
use crate::model_file::{self, Content, ModelFormatName};

/// Convert a data or model file to another format
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  widemargin convert heart.csv -o heart.txt                       # CSV to LIBSVM text
  widemargin convert a9a.txt.xz -o a9a.npy --output-labels a9a.labels.npy
  widemargin convert heart.wm --model-format libsvm -o heart.model   # for LIBSVM's svm-predict
  widemargin convert heart.model --model-format native -o heart.wm")]
pub(crate) struct Arguments {
    /// Data or model file; '-': standard input
    file: PathBuf,

    /// Format of a model [default: native becomes libsvm and the reverse]
    #[arg(long, value_enum, help_heading = "Output")]
    model_format: Option<ModelFormatName>,

    #[command(flatten)]
    output: OutputArguments,
    #[command(flatten)]
    input: InputArguments,
}

/// Converts a file.
pub(crate) fn run(arguments: &Arguments, interrupt: &Interrupt) -> CommandResult {
    arguments.output.check()?;
    match model_file::open(&arguments.file, &arguments.input)? {
        Content::Data(loaded) => interrupt.while_saving(|| {
            arguments.output.save(&loaded.dataset, first_index(loaded.index_base))
        })?,
        Content::Model(format, model) => {
            let format = arguments.model_format.unwrap_or_else(|| format.other());
            interrupt.while_saving(|| convert(&model, arguments, format))?;
        }
    }
    Ok(Outcome::Done)
}

fn convert(model: &Model, arguments: &Arguments, format: ModelFormatName) -> CommandResult<()> {
    model_file::save(model, &arguments.output.output, format)
}
