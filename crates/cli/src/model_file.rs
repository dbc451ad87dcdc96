//! Where models are written, and in which format.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use widemargin::Error;
use widemargin::data::read::{
    ColumnRole, Format, IndexBase, Loaded, TableEncoding, read, read_bytes,
};
use widemargin::data::read::{is_standard_stream, read_all};
use widemargin::data::{Dataset, Labels};
use widemargin::machine::Model;
use widemargin::operation::persist::ModelFormat;

use crate::arguments::{InputArguments, with_files};
use crate::data_file::{check_place, is_no_model};
use crate::failure::{CommandResult, Failure};
use crate::terminal;

/// Kinds of model file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelFormatName {
    /// Versioned and checksummed; keeps everything
    Native,
    /// LIBSVM's text
    Libsvm,
    /// LIBLINEAR's text, for linear machines
    Liblinear,
}

impl ModelFormatName {
    /// Its name for people and JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => "widemargin",
            Self::Libsvm => "libsvm",
            Self::Liblinear => "liblinear",
        }
    }

    /// The format a model of this format becomes by default: native, and from that the text of
    /// the program that has such models.
    pub(crate) fn other(self, model: &Model) -> Self {
        match self {
            Self::Native if model.linear().is_some() => Self::Liblinear,
            Self::Native => Self::Libsvm,
            Self::Libsvm | Self::Liblinear => Self::Native,
        }
    }
}

impl From<ModelFormat> for ModelFormatName {
    fn from(format: ModelFormat) -> Self {
        match format {
            ModelFormat::Native => Self::Native,
            ModelFormat::Libsvm => Self::Libsvm,
            ModelFormat::Liblinear => Self::Liblinear,
        }
    }
}

/// Bytes that distinguish a model from data.
const PREAMBLE: u64 = 1 << 16;

/// What a file holds.
pub(crate) enum Content {
    /// A model.
    Model(ModelFormatName, Box<Model>),
    /// A data set.
    Data(Box<Loaded>),
}

/// Reads a model or data file, whichever it is.
pub(crate) fn open(path: &Path, input: &InputArguments) -> CommandResult<Content> {
    let model = |format: ModelFormat, model| Content::Model(format.into(), Box::new(model));
    if is_standard_stream(path) {
        let bytes = read_all(path)?;
        return Ok(match ModelFormat::detect(&bytes) {
            Some(format) => model(format, Model::load_from_bytes(&bytes)?),
            None => Content::Data(Box::new(read_bytes(&bytes, &input.options())?)),
        });
    }
    Ok(match ModelFormat::detect(&beginning(path)?) {
        Some(format) => model(format, Model::load(path)?),
        None => Content::Data(Box::new(input.read(path)?)),
    })
}

fn beginning(path: &Path) -> CommandResult<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(PREAMBLE).read_to_end(&mut bytes))
        .map_err(|source| Error::io(path, source))?;
    Ok(bytes)
}

/// Reads rows for a model: as its training file was read, and with as many features.
pub(crate) fn read_for(
    model: &mut Model,
    input: &InputArguments,
    path: &Path,
) -> CommandResult<Dataset> {
    let loaded = read(path, &model.preparation.read_options(input.options()))?;
    fitted(model, loaded)
}

/// As [`read_for`], blank labels in a table being none, with columns of views' files before those of the data.
pub(crate) fn read_to_predict(
    model: &mut Model,
    input: &InputArguments,
    path: &Path,
    view_files: &[PathBuf],
) -> CommandResult<Dataset> {
    let options = input.options().missing_labels(true);
    let mut loaded = read(path, &model.preparation.read_options(options))?;
    let label = loaded.columns.iter().find(|column| column.role == ColumnRole::Label);
    if let Some(label) = label.filter(|label| label.missing > 0) {
        let (blank, rows) = (label.missing, loaded.dataset.rows());
        let name = &label.name;
        if blank < rows {
            let what = format!("{blank} of {rows} labels in column '{name}' are blank");
            terminal::warn(&format!("{what}: the predictions are compared with none of them"));
        }
        loaded.dataset = loaded.dataset.with_labels(Labels::None)?;
    }
    if !view_files.is_empty() {
        return with_files(kernel_values(model.is_precomputed(), loaded)?, view_files);
    }
    fitted(model, loaded)
}

/// The rows of a file with the features of a model.
fn fitted(model: &mut Model, loaded: Loaded) -> CommandResult<Dataset> {
    let is_text = loaded.format == Format::Libsvm;
    let data = kernel_values(model.is_precomputed(), loaded)?;
    let has_strings = model.preparation.encoding.as_ref().is_some_and(TableEncoding::has_text);
    if has_strings {
        let known = model.features();
        return match model.takes_columns(data.columns()) || model.widen(data.columns()) {
            true => Ok(data),
            false => {
                Err(Error::length("features, characters among them", known, data.columns()).into())
            }
        };
    }
    if is_text { align(model, data) } else { Ok(data) }
}

/// The rows of a file; of a precomputed kernel without the serial number LIBSVM puts in column 0.
pub(crate) fn kernel_values(precomputed: bool, loaded: Loaded) -> CommandResult<Dataset> {
    let data = loaded.dataset;
    if !precomputed || loaded.index_base != Some(IndexBase::Zero) {
        return Ok(data);
    }
    let features = data.features().clone().without_first_column();
    Ok(data.with_features(features)?)
}

/// LIBSVM text has no number of columns: zeros at the end of rows may be missing, and features the model has
/// never seen are zero in all its support vectors.
pub(crate) fn align(model: &mut Model, data: Dataset) -> CommandResult<Dataset> {
    let (known, found) = (model.features(), data.columns());
    if found == known || (found > known && model.widen(found)) {
        return Ok(data);
    }
    let features = data.features().clone().resized_columns(known);
    Ok(data.with_features(features)?)
}

/// The model's path: as given, or the data file's name with `.wm` in the current folder.
pub(crate) fn target(given: Option<&Path>, data: &Path) -> CommandResult<PathBuf> {
    if let Some(path) = given {
        return Ok(path.to_owned());
    }
    if is_standard_stream(data) {
        return Err(Failure::usage("data from standard input needs -o FILE for the model"));
    }
    let mut name = PathBuf::from(data.file_name().unwrap_or("model".as_ref()));
    for packed in ["gz", "xz", "zst", "bz2"] {
        if name.extension().is_some_and(|extension| extension == packed) {
            name.set_extension("");
        }
    }
    Ok(name.with_extension("wm"))
}

/// Fails now rather than after hours of training when the model could not be written, or when the name
/// promises another format.
pub(crate) fn check_writable(path: &Path) -> CommandResult<()> {
    if is_no_model(path) {
        return Err(Failure::usage(format!(
            "{}: a model is written in a format of its own; give the file a name such as {}",
            path.display(),
            path.with_extension("wm").display()
        )));
    }
    check_place(path)
}

/// Writes the model whole or not at all.
pub(crate) fn save(model: &Model, path: &Path, format: ModelFormatName) -> CommandResult<()> {
    match format {
        ModelFormatName::Native => model.save(path)?,
        ModelFormatName::Libsvm => model.save_libsvm(path)?,
        ModelFormatName::Liblinear => model.save_liblinear(path)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_name_drops_packing_and_folder() {
        let name = |data: &str| target(None, Path::new(data)).unwrap();
        assert_eq!(name("a/heart.csv"), Path::new("heart.wm"));
        assert_eq!(name("a9a.libsvm.xz"), Path::new("a9a.wm"));
        assert_eq!(name("heart_scale"), Path::new("heart_scale.wm"));
        assert!(target(None, Path::new("-")).is_err());
        assert_eq!(target(Some(Path::new("m")), Path::new("-")).unwrap(), Path::new("m"));
    }
}
