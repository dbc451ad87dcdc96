//! `convert`: data and model files from one format to another.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::arguments::{InputArguments, first_index};
use crate::data_file::{OutputArguments, WrittenFormat};
use crate::failure::{CommandResult, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::model_file::{self, Content, ModelFormatName};

/// Formats of data and models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AnyFormat {
    /// LIBSVM's text, of data or of a model
    #[value(alias = "libsvm-model")]
    Libsvm,
    /// Data as comma-separated text with a header
    Csv,
    /// Data as a NumPy array; labels go to --output-labels
    Npy,
    /// A model in widemargin's own format
    Native,
    /// A linear model in LIBLINEAR's text
    Liblinear,
}

/// Convert a data or model file to another format
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  widemargin convert heart.csv heart.txt                       # CSV to LIBSVM text
  widemargin convert a9a.txt.xz a9a.npy --output-labels a9a.labels.npy
  widemargin convert heart.wm heart.model --to libsvm          # for LIBSVM's svm-predict
  widemargin convert heart.model heart.wm --to native")]
pub(crate) struct Arguments {
    /// Data or model file; '-': standard input
    file: PathBuf,

    /// File to write [default: standard output]
    #[arg(value_name = "OUTPUT")]
    target: Option<PathBuf>,

    /// The same as an option
    #[arg(short, long, value_name = "FILE", conflicts_with = "target")]
    output: Option<PathBuf>,

    /// Its format [default: data by the name, .csv, .npy, else LIBSVM text; a native model becomes
    /// LIBSVM's and the reverse]
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<AnyFormat>,

    /// Where to write the labels of an NPY file
    #[arg(long, value_name = "FILE")]
    output_labels: Option<PathBuf>,

    #[command(flatten)]
    input: InputArguments,
}

/// Converts a file.
pub(crate) fn run(arguments: &Arguments, interrupt: &Interrupt) -> CommandResult {
    let target = arguments.target.as_ref().or(arguments.output.as_ref());
    let target = target.map_or(Path::new("-"), PathBuf::as_path);
    match model_file::open(&arguments.file, &arguments.input)? {
        Content::Data(loaded) => {
            let output = OutputArguments {
                output: target.to_owned(),
                to: arguments.to.map(data_format).transpose()?,
                output_labels: arguments.output_labels.clone(),
            };
            let first = first_index(loaded.index_base);
            interrupt.while_saving(|| output.save(&loaded.dataset, first))?;
        }
        Content::Model(format, model) => {
            let format = arguments.to.map_or_else(|| Ok(format.other(&model)), model_format)?;
            interrupt.while_saving(|| model_file::save(&model, target, format))?;
        }
    }
    Ok(Outcome::Done)
}

fn data_format(format: AnyFormat) -> CommandResult<WrittenFormat> {
    match format {
        AnyFormat::Libsvm => Ok(WrittenFormat::Libsvm),
        AnyFormat::Csv => Ok(WrittenFormat::Csv),
        AnyFormat::Npy => Ok(WrittenFormat::Npy),
        AnyFormat::Native | AnyFormat::Liblinear => {
            Err(Failure::usage("--to native and liblinear are for models; this file is data"))
        }
    }
}

fn model_format(format: AnyFormat) -> CommandResult<ModelFormatName> {
    match format {
        AnyFormat::Libsvm => Ok(ModelFormatName::Libsvm),
        AnyFormat::Native => Ok(ModelFormatName::Native),
        AnyFormat::Liblinear => Ok(ModelFormatName::Liblinear),
        AnyFormat::Csv | AnyFormat::Npy => {
            Err(Failure::usage("--to csv and --to npy are for data; this file is a model"))
        }
    }
}
