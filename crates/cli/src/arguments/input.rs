//! How data files are read.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use widemargin::data::Layout;
use widemargin::data::read::{
    Column, Format, IndexBase, LabelColumn, Loaded, Missing, ReadOptions, UnknownCategory, read,
};

use super::value::bytes;
use crate::failure::CommandResult;

/// Kinds of data file.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FormatName {
    /// LIBSVM / SVMlight text
    #[value(alias = "svmlight")]
    Libsvm,
    /// Comma-separated text
    Csv,
    /// Tab-separated text
    Tsv,
    /// IDX, the format of MNIST
    Idx,
    /// NumPy array
    Npy,
    /// Apache Parquet
    Parquet,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Libsvm => Self::Libsvm,
            FormatName::Csv | FormatName::Tsv => Self::Csv,
            FormatName::Idx => Self::Idx,
            FormatName::Npy => Self::Npy,
            FormatName::Parquet => Self::Parquet,
        }
    }
}

/// What is done with words that the training data did not have.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum UnknownName {
    /// Refuse the file
    Error,
    /// No word of the column
    Ignore,
    /// The feature of rare words
    Other,
}

impl From<UnknownName> for UnknownCategory {
    fn from(name: UnknownName) -> Self {
        match name {
            UnknownName::Error => Self::Error,
            UnknownName::Ignore => Self::Ignore,
            UnknownName::Other => Self::Other,
        }
    }
}

/// What the user says about the data files of a command.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputArguments {
    /// Kind of file, instead of finding out from its content and name
    #[arg(long, value_enum)]
    pub(crate) format: Option<FormatName>,

    /// File with the labels of DATA (IDX, NPY, or text with one label a line)
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: Option<PathBuf>,

    /// Label column of a table: its name, its number from 0, negative from the end, or 'none'
    /// [default: the one named label, class, target or y, else the last]
    #[arg(long, value_name = "COLUMN", value_parser = label_column, allow_negative_numbers = true)]
    pub(crate) label_column: Option<LabelColumn>,

    /// The first line of a table names its columns
    #[arg(long, conflicts_with = "no_header")]
    pub(crate) header: bool,

    /// The first line of a table is data
    #[arg(long)]
    pub(crate) no_header: bool,

    /// Fill missing values of a table: error, mean, median, mode or a number
    #[arg(long, value_name = "HOW", value_parser = missing, allow_negative_numbers = true)]
    pub(crate) missing: Option<Missing>,

    /// Treat a column of numbers as words (one-hot); may be repeated
    #[arg(long, value_name = "COLUMN", value_parser = column, allow_negative_numbers = true)]
    pub(crate) categorical: Vec<Column>,

    /// Keep a column of a table as strings, for the kernels of strings
    #[arg(long, value_name = "COLUMN", value_parser = column, allow_negative_numbers = true)]
    pub(crate) text: Option<Column>,

    /// A word that the training data did not have, or a gap without --missing: error, ignore (no
    /// feature), or other, for which the words of single training rows share a feature
    /// [default: error, or as the model was trained with]
    #[arg(long, value_enum, value_name = "HOW", hide_possible_values = true)]
    pub(crate) unknown_category: Option<UnknownName>,

    /// Leave a column of a table out; may be repeated
    #[arg(long, value_name = "COLUMN", value_parser = column, allow_negative_numbers = true)]
    pub(crate) ignore_column: Vec<Column>,

    /// Store the features densely [default: by the share of zeros]
    #[arg(long, conflicts_with = "sparse")]
    pub(crate) dense: bool,

    /// Store the features sparsely
    #[arg(long)]
    pub(crate) sparse: bool,

    /// Refuse archives that unpack to more than this, such as 4GB [default: half of the free memory]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) max_unpacked: Option<usize>,

    /// First feature index of LIBSVM text [default: 0 if it occurs, else 1]
    #[arg(long, value_name = "0|1", value_parser = index_base)]
    pub(crate) index_base: Option<IndexBase>,
}

fn column(text: &str) -> Result<Column, String> {
    Ok(text.parse().map_or_else(|_| Column::Name(text.to_owned()), Column::Index))
}

fn label_column(text: &str) -> Result<LabelColumn, String> {
    match text {
        "none" => Ok(LabelColumn::Absent),
        _ => column(text).map(LabelColumn::At),
    }
}

fn missing(text: &str) -> Result<Missing, String> {
    match text {
        "error" => Ok(Missing::Error),
        "mean" => Ok(Missing::Mean),
        "median" => Ok(Missing::Median),
        "mode" => Ok(Missing::MostFrequent),
        _ => match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Missing::Constant(value)),
            _ => Err("expected error, mean, median, mode or a number".to_owned()),
        },
    }
}

fn index_base(text: &str) -> Result<IndexBase, String> {
    match text {
        "0" => Ok(IndexBase::Zero),
        "1" => Ok(IndexBase::One),
        _ => Err("expected 0 or 1".to_owned()),
    }
}

/// The number LIBSVM text gives to its first feature.
pub(crate) fn first_index(base: Option<IndexBase>) -> u32 {
    if base == Some(IndexBase::Zero) { 0 } else { 1 }
}

impl InputArguments {
    /// The options as the readers understand them.
    pub(crate) fn options(&self) -> ReadOptions {
        let mut options = ReadOptions::new();
        if let Some(format) = self.format {
            options = options.format(format.into());
        }
        if let Some(FormatName::Tsv) = self.format {
            options = options.delimiter(b'\t');
        }
        if let Some(labels) = &self.labels {
            options = options.labels_path(labels);
        }
        if let Some(column) = &self.label_column {
            options = options.label_column(column.clone());
        }
        if self.header || self.no_header {
            options = options.header(self.header);
        }
        if let Some(missing) = self.missing {
            options = options.missing(missing);
        }
        for column in &self.categorical {
            options = options.categorical(column.clone());
        }
        if let Some(column) = &self.text {
            options = options.text(column.clone());
        }
        if let Some(unknown) = self.unknown_category {
            options = options.unknown_category(unknown.into());
        }
        for column in &self.ignore_column {
            options = options.ignore_column(column.clone());
        }
        if self.dense || self.sparse {
            options = options.layout(if self.dense { Layout::Dense } else { Layout::Sparse });
        }
        if let Some(base) = self.index_base {
            options = options.index_base(base);
        }
        if let Some(limit) = self.max_unpacked {
            options = options.max_unpacked(limit as u64);
        }
        options
    }

    /// The same options for a second file with its own label file.
    pub(crate) fn with_labels(&self, labels: Option<&Path>) -> Self {
        Self { labels: labels.map(Path::to_owned), ..self.clone() }
    }

    /// Reads a data file.
    pub(crate) fn read(&self, path: &Path) -> CommandResult<Loaded> {
        Ok(read(path, &self.options())?)
    }
}
