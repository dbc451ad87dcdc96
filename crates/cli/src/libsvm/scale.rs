//! `svm-scale`: LIBSVM's options, range files and output.

use std::ffi::OsString;
use std::path::Path;

use widemargin::data::Dataset;
use widemargin::data::read::{Format, IndexBase, ReadOptions, read};
use widemargin::data::scaling::{RangeScaling, Scaler};
use widemargin::data::write::{write_atomically, write_svm_scale};

use super::options::{Words, unknown};
use crate::data_file::check_outputs;
use crate::failure::{CommandResult, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::terminal;

/// Printed when there is nothing to do.
pub(super) const USAGE: &str = "\
Usage: svm-scale [options] data_filename
options:
-l lower : smallest value of a scaled feature (default -1)
-u upper : largest value of a scaled feature (default +1)
-y y_lower y_upper : scale the targets to these limits (default: leave them)
-s save_filename : write the ranges of the features to save_filename
-r restore_filename : scale with the ranges in restore_filename
";

struct Options<'a> {
    lower: f64,
    upper: f64,
    target: Option<(f64, f64)>,
    save: Option<&'a Path>,
    restore: Option<&'a Path>,
}

fn read_options(arguments: &[OsString]) -> CommandResult<(Options<'_>, &Path)> {
    let mut options = Options { lower: -1.0, upper: 1.0, target: None, save: None, restore: None };
    let mut words = Words::new(arguments);
    while let Some(option) = words.option() {
        match option.letter {
            'l' => options.lower = words.number(&option)?,
            'u' => options.upper = words.number(&option)?,
            'y' => options.target = Some((words.number(&option)?, words.next_number('y')?)),
            's' => options.save = Some(Path::new(words.next_word('s')?)),
            'r' => options.restore = Some(Path::new(words.next_word('r')?)),
            _ => return Err(unknown(&option)),
        }
    }
    let inconsistent =
        |limits: (f64, f64)| limits.1.partial_cmp(&limits.0).is_none_or(|o| o.is_le());
    if inconsistent((options.lower, options.upper)) || options.target.is_some_and(inconsistent) {
        return Err(Failure::Message("inconsistent lower/upper specification".into()));
    }
    if options.save.is_some() && options.restore.is_some() {
        return Err(Failure::Message("cannot use -r and -s simultaneously".into()));
    }
    match words.files() {
        [data] => Ok((options, Path::new(data))),
        other => Err(Failure::usage(format!("expected one data file, found {}", other.len()))),
    }
}

/// Scales a file to standard output.
pub(super) fn run(arguments: &[OsString], interrupt: &Interrupt) -> CommandResult {
    let (options, path) = read_options(arguments)?;
    check_outputs(&[("-s", options.save)], &[Some(path), options.restore])?;
    let read_options = ReadOptions::new().format(Format::Libsvm);
    let loaded = read(path, &read_options)?;
    let data = loaded.dataset;
    let first_index = if loaded.index_base == Some(IndexBase::Zero) { 0 } else { 1 };
    let scaling = match options.restore {
        Some(path) => RangeScaling::load_range_file(path)?,
        None => {
            let scaling = RangeScaling::fit(data.features(), options.lower, options.upper)?;
            match options.target {
                Some((lower, upper)) => scaling.with_target(data.labels(), lower, upper)?,
                None => scaling,
            }
        }
    };
    if let Some(path) = options.save {
        interrupt.while_saving(|| scaling.save_range_file(path))?;
    }
    let before = nonzeros(&data);
    let scaled = apply(data, scaling)?;
    let after = nonzeros(&scaled);
    write_atomically(Path::new("-"), |out| write_svm_scale(out, &scaled, first_index))?;
    if after > before {
        terminal::note(&format!(
            "WARNING: original #nonzeros {before}\n       > new      #nonzeros {after}\n\
             If feature values are non-negative and sparse, use -l 0 rather than the default -l -1"
        ));
    }
    Ok(Outcome::Done)
}

fn nonzeros(data: &Dataset) -> usize {
    (data.features().density() * data.rows() as f64 * data.columns() as f64).round() as usize
}

fn apply(mut data: Dataset, scaling: RangeScaling) -> CommandResult<Dataset> {
    if let Some(target) = scaling.target() {
        let labels = target.transform(data.labels())?;
        data = data.with_labels(labels)?;
    }
    let features = Scaler::Range(scaling).transform_resized(data.features().clone())?;
    Ok(data.with_features(features)?)
}
