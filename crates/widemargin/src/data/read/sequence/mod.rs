//! Readers of sequences: columns of tokens (CoNLL), attributes (CRFsuite), numbered features with the sequence as
//! `qid` (SVM-HMM), and tables with a column that names the sequence.
//!
//! Lines of a sequence follow one another. Tokens become features by [`Templates`]; their names, and those of
//! attributes, are places in a [`Dictionary`], which grows while training data is read and leaves unknown names out
//! once it is closed.

mod attributes;
mod tokens;

use std::path::Path;

use super::{Format, LabelColumn, ReadOptions, read_all, read_bytes};
use crate::data::{Dictionary, Label, Labels, SequenceBuilder, TaggedSequences, Templates};
use crate::error::{Error, Result};

pub use tokens::{TokenColumn, Tokens};

/// Kinds of files of sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SequenceFormat {
    /// A token a line, its columns separated by blanks or tabs; an empty line after every sequence.
    Columns,
    /// A position a line: tag, then attributes with an optional `:value`, separated by tabs; an empty line after every
    /// sequence.
    Crfsuite,
    /// LIBSVM text with the sequence as `qid`.
    SvmHmm,
    /// A table with a header, and a column that names the sequence.
    Table,
}

/// How to read sequences.
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceOptions {
    /// The kind of file; recognised by its content and name unless given.
    pub format: Option<SequenceFormat>,
    /// How tokens become features; for columns and tables of words.
    pub templates: Option<Templates>,
    /// Whether there are tags: in the last column of tokens, before attributes.
    pub tagged: bool,
    /// The column of a table that names the sequence.
    pub sequence_column: TokenColumn,
    /// The column of a table with the tag, the last one unless given.
    pub tag_column: Option<TokenColumn>,
    /// The mark of an unknown tag, and of a number that was not observed.
    pub unknown: String,
    /// Whether the columns of tokens are numbers, which are features as they stand; templates do not apply then.
    pub numbers: bool,
}

impl Default for SequenceOptions {
    fn default() -> Self {
        Self {
            format: None,
            templates: None,
            tagged: true,
            sequence_column: TokenColumn::Name("sequence".into()),
            tag_column: None,
            unknown: "?".into(),
            numbers: false,
        }
    }
}

/// Sequences that were read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadedSequences {
    /// The sequences.
    pub data: TaggedSequences,
    /// The kind of file it was.
    pub format: SequenceFormat,
    /// The templates by which tokens became features.
    pub templates: Option<Templates>,
    /// Features of positions that a closed dictionary does not have.
    pub unknown_features: usize,
}

/// Reads a file of sequences (`-`: standard input), also a compressed one.
///
/// # Errors
/// [`Error::Io`] when it cannot be read, [`Error::Parse`] (with line and column) or [`Error::Format`] when it is damaged.
pub fn read_sequences(
    path: impl AsRef<Path>,
    options: &SequenceOptions,
    dictionary: &mut Dictionary,
) -> Result<LoadedSequences> {
    let path = path.as_ref();
    parse(&read_all(path)?, path, options, dictionary)
}

/// Reads uncompressed bytes as [`read_sequences`] would a file of that content.
///
/// # Errors
/// As [`read_sequences`].
pub fn read_sequence_bytes(
    bytes: &[u8],
    options: &SequenceOptions,
    dictionary: &mut Dictionary,
) -> Result<LoadedSequences> {
    parse(bytes, Path::new("-"), options, dictionary)
}

fn parse(
    bytes: &[u8],
    path: &Path,
    options: &SequenceOptions,
    dictionary: &mut Dictionary,
) -> Result<LoadedSequences> {
    let format = options.format.unwrap_or_else(|| detect(bytes, path));
    match format {
        SequenceFormat::SvmHmm => numbered(bytes, path, options),
        SequenceFormat::Crfsuite => attributes::read(bytes, path, options, dictionary),
        SequenceFormat::Columns | SequenceFormat::Table => {
            let tokens = match format {
                SequenceFormat::Columns => Tokens::of_columns(bytes, path, options)?,
                _ => Tokens::of_table(bytes, path, options)?,
            };
            if options.numbers {
                let data = with_tags(tokens.numbers(path, &options.unknown)?, &tokens, options)?;
                let (templates, unknown_features) = (None, 0);
                return Ok(LoadedSequences { data, format, templates, unknown_features });
            }
            let templates = match &options.templates {
                Some(templates) => templates.clone(),
                None => Templates::usual(tokens.columns()),
            };
            let (builder, unknown_features) = templates.apply(&tokens, dictionary)?;
            let data = finish(builder, dictionary)?;
            let data = with_tags(data, &tokens, options)?;
            Ok(LoadedSequences { data, format, templates: Some(templates), unknown_features })
        }
    }
}

/// The kind of a file: commas or tabs in its first line and a name that ends like that of a table, `qid:` in the first
/// line, tabs between the words of its first line, or else columns.
fn detect(bytes: &[u8], path: &Path) -> SequenceFormat {
    let line = bytes.split(|&b| b == b'\n').find(|line| !line.trim_ascii().is_empty());
    let line = line.unwrap_or_default();
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase());
    let name = name.unwrap_or_default();
    let is_table = [".csv", ".tsv"].iter().any(|end| name.contains(end));
    let contains = |text: &[u8]| line.windows(text.len()).any(|window| window == text);
    if is_table {
        SequenceFormat::Table
    } else if contains(b" qid:") {
        SequenceFormat::SvmHmm
    } else if contains(b"\t") && !name.contains(".conll") {
        SequenceFormat::Crfsuite
    } else {
        SequenceFormat::Columns
    }
}

/// Sequences with the names of their features.
fn finish(builder: SequenceBuilder, dictionary: &Dictionary) -> Result<TaggedSequences> {
    builder.finish(dictionary.len())?.with_feature_names(dictionary.names().to_vec())
}

fn with_tags(
    data: TaggedSequences,
    tokens: &Tokens,
    options: &SequenceOptions,
) -> Result<TaggedSequences> {
    tagged(data, tokens.tags(), &options.unknown)
}

/// With tags, unless there are none.
fn tagged(
    data: TaggedSequences,
    tags: Option<&[String]>,
    unknown: &str,
) -> Result<TaggedSequences> {
    let Some(tags) = tags else { return Ok(data) };
    let labels: Vec<Label> = tags.iter().map(|tag| Label::Text(tag.clone())).collect();
    let known: Vec<Option<&Label>> =
        labels.iter().zip(tags).map(|(label, tag)| (tag != unknown).then_some(label)).collect();
    data.with_known_tags(&known)
}

/// LIBSVM text: neighbouring rows of one `qid` are a sequence.
fn numbered(bytes: &[u8], path: &Path, options: &SequenceOptions) -> Result<LoadedSequences> {
    let label_column = if options.tagged { LabelColumn::Auto } else { LabelColumn::Absent };
    let read = ReadOptions { format: Some(Format::Libsvm), label_column, ..ReadOptions::default() };
    let dataset = read_bytes(bytes, &read)
        .map_err(|error| match error {
            Error::Parse { line, column, expected, found, .. } => {
                Error::Parse { path: path.to_owned(), line, column, expected, found }
            }
            other => other,
        })?
        .dataset;
    let Some(groups) = dataset.groups() else {
        let message = "expected a 'qid:' in every line, which names the sequence".into();
        return Err(Error::Format { path: path.to_owned(), message });
    };
    let mut lengths: Vec<usize> = Vec::new();
    for (row, group) in groups.iter().enumerate() {
        match lengths.last_mut() {
            Some(length) if groups[row - 1] == *group => *length += 1,
            _ => lengths.push(1),
        }
    }
    let labels = dataset.labels().clone();
    let mut data = TaggedSequences::new(dataset.into_features(), lengths)?;
    if !matches!(labels, Labels::None) {
        let tags: Vec<Label> = (0..labels.len()).filter_map(|row| labels.get(row)).collect();
        data = data.with_tags(&tags)?;
    }
    let format = SequenceFormat::SvmHmm;
    Ok(LoadedSequences { data, format, templates: None, unknown_features: 0 })
}
