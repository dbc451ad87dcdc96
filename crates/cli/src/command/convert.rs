//! `convert`: data and model files from one format to another.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::arguments::{InputArguments, first_index};
use crate::data_file::{OutputArguments, WrittenFormat, check_outputs, ending, is_other_format};
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
    /// Data as tab-separated text with a header
    Tsv,
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

    /// Its format [default: data by the name, .csv, .tsv, .npy, else LIBSVM text; a model called .wm is
    /// native, else a native model becomes LIBSVM's and the reverse]
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
    check_outputs(
        &[("OUTPUT", Some(target)), ("--output-labels", arguments.output_labels.as_deref())],
        &[Some(&arguments.file), arguments.input.labels.as_deref()],
    )?;
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
            let format = match arguments.to {
                Some(format) => model_format(format)?,
                None => named_model_format(target)?.unwrap_or_else(|| format.other(&model)),
            };
            interrupt.while_saving(|| model_file::save(&model, target, format))?;
        }
    }
    Ok(Outcome::Done)
}

fn data_format(format: AnyFormat) -> CommandResult<WrittenFormat> {
    match format {
        AnyFormat::Libsvm => Ok(WrittenFormat::Libsvm),
        AnyFormat::Csv => Ok(WrittenFormat::Csv),
        AnyFormat::Tsv => Ok(WrittenFormat::Tsv),
        AnyFormat::Npy => Ok(WrittenFormat::Npy),
        AnyFormat::Native | AnyFormat::Liblinear => {
            Err(Failure::usage("--to native and liblinear are for models; this file is data"))
        }
    }
}

/// The format of a model by the extension of its file, if known.
fn named_model_format(path: &Path) -> CommandResult<Option<ModelFormatName>> {
    match ending(path).as_deref() {
        Some("wm") => Ok(Some(ModelFormatName::Native)),
        Some("csv" | "tsv" | "tab" | "npy") => Err(Failure::usage(format!(
            "{}: this is a name for data, and the input is a model; --to names a format of models",
            path.display()
        ))),
        Some(other) if is_other_format(other) => Err(Failure::usage(format!(
            "{}: models are written as .wm or as LIBSVM's or LIBLINEAR's text; --to names one of them \
             for any file name",
            path.display()
        ))),
        _ => Ok(None),
    }
}

fn model_format(format: AnyFormat) -> CommandResult<ModelFormatName> {
    match format {
        AnyFormat::Libsvm => Ok(ModelFormatName::Libsvm),
        AnyFormat::Native => Ok(ModelFormatName::Native),
        AnyFormat::Liblinear => Ok(ModelFormatName::Liblinear),
        AnyFormat::Csv | AnyFormat::Tsv | AnyFormat::Npy => {
            Err(Failure::usage("--to csv, tsv and npy are for data; this file is a model"))
        }
    }
}
