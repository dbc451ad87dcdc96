//! Readers: from a file, standard input or bytes to a [`Dataset`].
//!
//! [`read`] opens a path (`-` is standard input), undoes its compression, recognises its format by
//! content and then by name, and gives the table with what a later file needs to be read alike.
//! Inside a rayon pool (see [`Context::install`](crate::Context::install)) LIBSVM text is parsed by
//! all its threads; the result never depends on their number.

pub(crate) mod assemble;
mod companion;
mod csv;
mod detect;
mod elements;
mod idx;
mod libsvm;
mod npy;
pub(crate) mod number;
mod options;
#[cfg(feature = "parquet")]
mod parquet;
pub(crate) mod place;
mod sequence;
pub(crate) mod source;
mod table;
mod weights;

use std::path::{Path, PathBuf};

pub(crate) use options::DEFAULT_MAX_COLUMNS;
pub use options::{
    Column, Format, IndexBase, LabelColumn, Missing, ReadOptions, StoredPrecision, UnknownCategory,
};
pub use sequence::{
    LoadedSequences, SequenceFormat, SequenceOptions, TokenColumn, Tokens, read_sequence_bytes,
    read_sequences,
};
pub use source::{decompress, is_standard_stream, read_all};
pub use table::{Appearance, ColumnProfile, ColumnRole, TableEncoding};
pub use weights::{parse_weights, read_weights};

use crate::data::{Dataset, Labels, Matrix};
use crate::error::{Error, Result};
use libsvm::LibsvmText;
use table::LoadedTable;

/// A file that was read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// The table and its labels.
    pub dataset: Dataset,
    /// The kind of file it was.
    pub format: Format,
    /// For LIBSVM text: where its indices start, [`IndexBase::Zero`] or [`IndexBase::One`]. Read the
    /// files that belong to this one with the same base.
    pub index_base: Option<IndexBase>,
    /// For tables: how words became numbers. Read the files that belong to this one with it.
    pub encoding: Option<TableEncoding>,
    /// For tables: how every column was read and what it looks like, in file order.
    pub columns: Vec<ColumnProfile>,
}

/// Reads a data file, or standard input for `-`.
///
/// # Errors
/// [`Error::Io`] when it cannot be read, [`Error::Format`] or [`Error::Parse`] (with line and column)
/// when it is damaged.
pub fn read(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Loaded> {
    let path = path.as_ref();
    if options.format == Some(Format::Libsvm)
        && let Some(text) = libsvm::read_file(path, options)?
    {
        let loaded = Loaded::text(text);
        return with_companion(loaded, path, options);
    }
    let bytes = source::read_all_within(path, options.max_unpacked)?;
    read_named(&bytes, path, options)
}

/// Reads the table of a data file; see [`read`].
///
/// # Errors
/// As [`read`].
pub fn read_dataset(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Dataset> {
    read(path, options).map(|loaded| loaded.dataset)
}

/// Reads uncompressed bytes as [`read`] would a file of that content; errors call it `-`.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(bytes: &[u8], options: &ReadOptions) -> Result<Loaded> {
    read_named(source::without_byte_order_mark(bytes), Path::new("-"), options)
}

fn read_named(bytes: &[u8], path: &Path, options: &ReadOptions) -> Result<Loaded> {
    let format = options.format.unwrap_or_else(|| detect::format(bytes, path));
    let loaded = match format {
        Format::Libsvm => Loaded::text(libsvm::read(bytes, path, options)?),
        Format::Idx => Loaded::unlabelled(idx::table(bytes, path, options)?, format)?,
        Format::Npy => Loaded::unlabelled(npy::table(bytes, path, options)?, format)?,
        Format::Csv => Loaded::table(csv::read(bytes, path, options)?, format),
        #[cfg(feature = "parquet")]
        Format::Parquet => Loaded::table(parquet::read(bytes, path, options)?, format),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => {
            return Err(Error::Format {
                path: path.to_owned(),
                message: "a Parquet file, which this build cannot read (cargo feature 'parquet')"
                    .into(),
            });
        }
    };
    with_companion(loaded, path, options)
}

/// Reads uncompressed bytes as a file of labels: IDX, NPY, or text with one label per line.
///
/// # Errors
/// [`Error::Format`] or [`Error::Parse`] (with line and column) when they are damaged.
pub fn read_label_bytes(bytes: &[u8]) -> Result<Labels> {
    companion::parse(source::without_byte_order_mark(bytes), Path::new("-"))
}

/// A table with the labels of a file beside it, if there is one.
fn with_companion(mut loaded: Loaded, path: &Path, options: &ReadOptions) -> Result<Loaded> {
    if let Some(labels_path) = labels_path(loaded.format, path, options) {
        let labels = companion::read(&labels_path, options.max_unpacked)?;
        let (rows, found) = (loaded.dataset.rows(), labels.len());
        if found != rows {
            let table = path.display();
            let message = format!("expected {rows} labels, one per row of {table}, found {found}");
            return Err(Error::Format { path: labels_path, message });
        }
        loaded.dataset = loaded.dataset.with_labels(labels)?;
    }
    Ok(loaded)
}

impl Loaded {
    fn plain(dataset: Dataset, format: Format) -> Self {
        Self { dataset, format, index_base: None, encoding: None, columns: Vec::new() }
    }

    fn table(table: LoadedTable, format: Format) -> Self {
        let plain = Self::plain(table.dataset, format);
        Self { encoding: Some(table.encoding), columns: table.columns, ..plain }
    }

    fn text(text: LibsvmText) -> Self {
        let plain = Self::plain(text.dataset, Format::Libsvm);
        Self { index_base: Some(text.base), ..plain }
    }

    fn unlabelled(features: Matrix, format: Format) -> Result<Self> {
        Ok(Self::plain(Dataset::new(features, Labels::None)?, format))
    }
}

fn labels_path(format: Format, path: &Path, options: &ReadOptions) -> Option<PathBuf> {
    match &options.labels_path {
        Some(given) => Some(given.clone()),
        None if format == Format::Idx && options.label_column == LabelColumn::Auto => {
            idx::companion(path)
        }
        None => None,
    }
}
