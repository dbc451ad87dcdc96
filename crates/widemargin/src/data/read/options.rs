//! What a caller can say about a file before it is read; everything has a default.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::table::TableEncoding;
use crate::data::Layout;

/// Columns a file may have unless [`ReadOptions::max_columns`] says otherwise: more than any public
/// data set, few enough that one mistyped index cannot ask for gigabytes later on.
pub(crate) const DEFAULT_MAX_COLUMNS: usize = 1 << 27;

/// Kinds of file that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Format {
    /// LIBSVM / SVMlight text: `label index:value ...`.
    Libsvm,
    /// Delimited text: CSV, TSV and other separators.
    Csv,
    /// IDX, the format of MNIST.
    Idx,
    /// A NumPy array.
    Npy,
    /// Apache Parquet (needs the cargo feature `parquet`).
    Parquet,
}

/// The index that LIBSVM text gives to its first feature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IndexBase {
    /// 0 if the index 0 occurs anywhere in the file, otherwise 1.
    #[default]
    Auto,
    /// Features are counted from 0.
    Zero,
    /// Features are counted from 1; the index 0 is an error.
    One,
}

/// Precision in which values are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum StoredPrecision {
    /// Double for text; for binary files the narrower of the two that keeps every value.
    #[default]
    Auto,
    /// Single.
    F32,
    /// Double.
    F64,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Column {
    /// By place, 0 being the first and −1 the last.
    Index(i64),
    /// By its name in the header.
    Name(String),
}

/// Where the labels of a file are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelColumn {
    /// LIBSVM: first on the line. Tables: the one column named `label`, `class`, `target` or `y` in
    /// any case, otherwise the last column.
    #[default]
    Auto,
    /// The file has no labels.
    Absent,
    /// This column of a table.
    At(Column),
}

/// What to do with a missing value: an empty field, `NA`, `N/A`, `null`, `nan` or `?` in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Missing {
    /// Report where it is.
    #[default]
    Error,
    /// The mean of the column; in a column of words the most frequent one.
    Mean,
    /// The median of the column; in a column of words the most frequent one.
    Median,
    /// The most frequent value of the column, the smallest of several.
    MostFrequent,
    /// This number; in a column of words the word that spells it.
    Constant(f64),
}

/// What to do with a word that the training table did not have in that column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum UnknownCategory {
    /// Report where it is.
    #[default]
    Error,
    /// Give the row zero in all columns of that word list.
    Ignore,
    /// Give the row the feature of all other words. The training table must be read with this as well:
    /// the words of single rows share that feature, so that a machine learns what rare words mean.
    Other,
}

impl UnknownCategory {
    pub(super) fn is_error(&self) -> bool {
        *self == Self::Error
    }
}

/// How to read a file.
///
/// ```
/// use widemargin::data::Layout;
/// use widemargin::data::read::{IndexBase, ReadOptions, read_bytes};
/// let options = ReadOptions::new().layout(Layout::Sparse).index_base(IndexBase::One).columns(4);
/// let data = read_bytes(b"+1 1:0.5 3:2\n-1 2:1\n", &options)?.dataset;
/// assert_eq!((data.rows(), data.columns()), (2, 4));
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    pub(super) format: Option<Format>,
    pub(super) layout: Layout,
    pub(super) precision: StoredPrecision,
    pub(super) index_base: IndexBase,
    pub(super) columns: Option<usize>,
    pub(super) max_columns: Option<usize>,
    pub(super) max_unpacked: Option<u64>,
    pub(super) allow_non_finite: bool,
    pub(super) label_column: LabelColumn,
    pub(super) labels_path: Option<PathBuf>,
    pub(super) delimiter: Option<u8>,
    pub(super) header: Option<bool>,
    pub(super) missing: Missing,
    pub(super) missing_labels: bool,
    pub(super) categorical: Vec<Column>,
    pub(super) text: Option<Column>,
    pub(super) ignored: Vec<Column>,
    pub(super) unknown_category: Option<UnknownCategory>,
    pub(super) encoding: Option<TableEncoding>,
}

/// Methods that set the option of the same name and hand the options on.
macro_rules! setters {
    ($($(#[$doc:meta])+ $option:ident: $type:ty,)+) => {$(
        $(#[$doc])+
        pub fn $option(mut self, $option: $type) -> Self {
            self.$option = $option.into();
            self
        }
    )+};
}

impl ReadOptions {
    /// Everything decided by the file itself.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Reads the file as this kind, whatever its name and content say.
        format: Format,
        /// Stores the table this way instead of by its density.
        layout: Layout,
        /// Stores values in this precision.
        precision: StoredPrecision,
        /// Index of the first feature in LIBSVM text.
        index_base: IndexBase,
        /// Number of features the table has, whatever the largest index present; a larger index is an
        /// error that says where it is.
        columns: usize,
        /// Refuses files with more columns than this (2²⁷ unless called).
        max_columns: usize,
        /// Refuses archives that unpack to more bytes than this
        /// (half of the available memory unless called).
        max_unpacked: u64,
        /// Lets NaN and infinite values of LIBSVM text and NPY files through.
        allow_non_finite: bool,
        /// Says where the labels are.
        label_column: LabelColumn,
        /// Separator of delimited text instead of the one found by looking.
        delimiter: u8,
        /// Whether the first line of delimited text names the columns, instead of finding out.
        header: bool,
        /// What to do with missing values of a table.
        missing: Missing,
        /// Whether rows of a table may have no label: they get the label `?` instead of an error.
        missing_labels: bool,
        /// What to do with words the [`encoding`](Self::encoding) does not know, and with missing words
        /// that nothing stands in for. Kept in the encoding of the table it is given for.
        unknown_category: UnknownCategory,
        /// Turns a table into numbers exactly as the table this encoding was made from.
        encoding: TableEncoding,
    }

    /// Takes the labels from a file of their own (IDX, NPY or text with one label per line).
    pub fn labels_path(mut self, path: impl AsRef<Path>) -> Self {
        self.labels_path = Some(path.as_ref().to_owned());
        self
    }

    /// Treats this column of a table as words even if all its values are numbers.
    pub fn categorical(mut self, column: Column) -> Self {
        self.categorical.push(column);
        self
    }

    /// Keeps this column of a table as strings: its features are their characters, place by place, for the
    /// [string kernels](crate::kernel::StringKernel).
    pub fn text(mut self, column: Column) -> Self {
        self.text = Some(column);
        self
    }

    /// Leaves this column of a table out.
    pub fn ignore_column(mut self, column: Column) -> Self {
        self.ignored.push(column);
        self
    }

    /// Columns that a file may have.
    pub(super) fn most_columns(&self) -> usize {
        self.max_columns.unwrap_or(DEFAULT_MAX_COLUMNS)
    }
}
