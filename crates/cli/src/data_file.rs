//! Data files that are written, in the format asked for or that their name tells.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use widemargin::data::Dataset;
use widemargin::data::write::{save_csv, save_libsvm, save_npy, save_npy_labels};

use crate::failure::{CommandResult, Failure};

/// Formats that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WrittenFormat {
    /// LIBSVM / SVMlight text
    Libsvm,
    /// Comma-separated text with a header
    Csv,
    /// NumPy array of the features; labels go to --output-labels
    Npy,
}

/// Refuses names that promise a packed file.
fn check_unpacked(path: &Path) -> CommandResult<()> {
    let packed = ["gz", "xz", "zst", "bz2"];
    match path.extension().and_then(|extension| extension.to_str()) {
        Some(extension) if packed.contains(&extension) => Err(Failure::usage(format!(
            "{}: files are written uncompressed; write to '-' and pipe into a compressor",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// Where data goes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    /// File to write; '-': standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,

    /// Its format [default: by its name: .csv, .npy, else LIBSVM text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: Option<WrittenFormat>,

    /// Where to write the labels of an NPY file
    #[arg(long, value_name = "FILE")]
    pub(crate) output_labels: Option<PathBuf>,
}

impl OutputArguments {
    /// The format asked for or told by the name.
    pub(crate) fn format(&self) -> WrittenFormat {
        let extension = self.output.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        self.to.unwrap_or(match extension.as_deref() {
            Some("csv") => WrittenFormat::Csv,
            Some("npy") => WrittenFormat::Npy,
            _ => WrittenFormat::Libsvm,
        })
    }

    /// Writes the data, whole or not at all; LIBSVM text counts features from `first_index`.
    pub(crate) fn save(&self, data: &Dataset, first_index: u32) -> CommandResult<()> {
        self.check()?;
        let path = &self.output;
        match self.format() {
            WrittenFormat::Libsvm => save_libsvm(path, data, first_index)?,
            WrittenFormat::Csv => save_csv(path, data)?,
            WrittenFormat::Npy => save_npy(path, data.features())?,
        }
        if let Some(labels) = &self.output_labels {
            save_npy_labels(labels, data.labels())?;
        }
        Ok(())
    }

    /// Refuses what would lose something or cannot be written.
    pub(crate) fn check(&self) -> CommandResult<()> {
        check_unpacked(&self.output)?;
        if self.output_labels.is_some() && self.format() != WrittenFormat::Npy {
            return Err(Failure::usage("--output-labels goes with --to npy only"));
        }
        if self.output_labels.as_deref() == Some(Path::new("-")) {
            return Err(Failure::usage("--output-labels needs a file, not standard output"));
        }
        Ok(())
    }
}
