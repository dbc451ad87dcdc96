//! `scale`: learn a scaling, apply it, keep it in a file.

use std::path::{Path, PathBuf};

use clap::Args;
use widemargin::Error;
use widemargin::data::read::read_all;
use widemargin::data::scaling::{RangeScaling, Scaler};
use widemargin::data::write::write_atomically;

use crate::arguments::{InputArguments, Scaling, first_index, scaling};
use crate::data_file::{OutputArguments, check_outputs};
use crate::failure::{CommandResult, Failure, Outcome};
use crate::interrupt::Interrupt;

/// Scale the features of a data file
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  widemargin scale train.csv --save train.range -o train.scaled.csv
  widemargin scale test.csv --load train.range -o test.scaled.csv
  widemargin scale train.txt --method standard --save train.json > train.scaled.txt

Ranges of minmax are LIBSVM's range files; those of standard are JSON. 'train --scale' does the
same inside the model, so that 'predict' needs no scaled files.")]
pub(crate) struct Arguments {
    /// Data file; '-': standard input
    data: PathBuf,

    /// standard (mean 0, deviation 1), minmax (to [-1, 1]) or minmax:LOWER,UPPER
    #[arg(long, value_name = "HOW", default_value = "minmax", value_parser = scaling)]
    method: Scaling,

    /// Write the learnt scaling to a file
    #[arg(long, value_name = "FILE", conflicts_with = "load")]
    save: Option<PathBuf>,

    /// Use the scaling in a file instead of learning one
    #[arg(long, value_name = "FILE", conflicts_with = "method")]
    load: Option<PathBuf>,

    #[command(flatten)]
    output: OutputArguments,
    #[command(flatten)]
    input: InputArguments,
}

/// Scales a file.
pub(crate) fn run(arguments: &Arguments, interrupt: &Interrupt) -> CommandResult {
    let output = &arguments.output;
    output.check()?;
    check_outputs(
        &[
            ("-o", Some(&output.output)),
            ("--output-labels", output.output_labels.as_deref()),
            ("--save", arguments.save.as_deref()),
        ],
        &[Some(&arguments.data), arguments.input.labels.as_deref(), arguments.load.as_deref()],
    )?;
    if arguments.input.text.is_some() {
        return Err(Failure::usage("--text keeps a column as strings, which cannot be scaled"));
    }
    let loaded = arguments.input.read(&arguments.data)?;
    let data = loaded.dataset;
    let scaler = match &arguments.load {
        Some(path) => load(path)?,
        None => arguments
            .method
            .0
            .ok_or_else(|| Failure::usage("--method none scales nothing; use 'convert'"))?
            .fit(data.features())?,
    };
    let mut scaled = data;
    if let Scaler::Range(range) = &scaler
        && let Some(target) = range.target()
    {
        let labels = target.transform(scaled.labels())?;
        scaled = scaled.with_labels(labels)?;
    }
    let features = scaler.transform_resized(scaled.features().clone())?;
    let scaled = scaled.with_features(features)?;
    interrupt.while_saving(|| {
        if let Some(path) = &arguments.save {
            save(&scaler, path)?;
        }
        output.save(&scaled, first_index(loaded.index_base))
    })?;
    Ok(Outcome::Done)
}

fn save(scaler: &Scaler, path: &Path) -> CommandResult<()> {
    match scaler {
        Scaler::Range(range) => range.save_range_file(path)?,
        Scaler::Standard(_) => {
            let text = serde_json::to_vec(scaler)
                .map_err(|error| Failure::Message(format!("{}: {error}", path.display())))?;
            write_atomically(path, |out| out.write_all(&text))?;
        }
    }
    Ok(())
}

fn load(path: &Path) -> CommandResult<Scaler> {
    let bytes = read_all(path)?;
    if !bytes.starts_with(b"{") {
        return Ok(Scaler::Range(RangeScaling::parse_range_file(&bytes, path)?));
    }
    serde_json::from_slice(&bytes).map_err(|error| {
        let parse = Error::Parse {
            path: path.to_owned(),
            line: error.line(),
            column: error.column(),
            expected: "a scaling".into(),
            found: error.to_string(),
        };
        parse.into()
    })
}
