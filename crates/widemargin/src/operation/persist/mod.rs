//! Model files: saved whole or not at all, loaded safely from any bytes.
//!
//! The native format keeps everything a [`Model`] holds, exactly; LIBSVM's and LIBLINEAR's text
//! formats keep what they know and go both ways with those programs. Loading recognises them by
//! their content, allocates no more than the file accounts for, checks every invariant of the model
//! and never panics.

mod envelope;
mod header;
mod liblinear;
mod libsvm;
mod native;
mod number;
mod tokens;
mod version1;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::data::read::source::without_byte_order_mark;
use crate::data::write::write_atomically;
use crate::error::{Error, Result};
use crate::machine::Model;

/// The kinds of model file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelFormat {
    /// Versioned and checksummed arrays; keeps everything.
    Native,
    /// LIBSVM's text.
    Libsvm,
    /// LIBLINEAR's text.
    Liblinear,
}

impl ModelFormat {
    /// The format that `bytes`, the beginning of a file or all of it, look like.
    pub fn detect(bytes: &[u8]) -> Option<Self> {
        let bytes = without_byte_order_mark(bytes);
        if bytes.starts_with(&envelope::MAGIC) {
            Some(Self::Native)
        } else if libsvm::looks_like(bytes) {
            Some(Self::Libsvm)
        } else if liblinear::looks_like(bytes) {
            Some(Self::Liblinear)
        } else {
            None
        }
    }
}

impl Model {
    /// Writes the model to `path` in the native format (`.wm` by custom).
    ///
    /// A file already there is replaced only when the new one is complete on the disk.
    ///
    /// # Errors
    /// [`Error::Model`] for a kernel that is the user's own function or a model that breaks its
    /// invariants, [`Error::Io`] when the disk refuses.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let bytes = self.to_bytes()?;
        write_atomically(path.as_ref(), |out| out.write_all(&bytes))
    }

    /// The bytes [`save`](Self::save) writes.
    ///
    /// # Errors
    /// As for [`save`](Self::save), the disk aside.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.validate()?;
        native::encode(self)
    }

    /// Writes the model to `path` as LIBSVM's programs do.
    ///
    /// Feature names and the training record have no place in that format and are left out.
    ///
    /// # Errors
    /// [`Error::Model`] when LIBSVM has no such model, saying what to do instead; [`Error::Io`]
    /// when the disk refuses.
    pub fn save_libsvm(&self, path: impl AsRef<Path>) -> Result<()> {
        let bytes = self.to_libsvm_bytes()?;
        write_atomically(path.as_ref(), |out| out.write_all(&bytes))
    }

    /// The text [`save_libsvm`](Self::save_libsvm) writes.
    ///
    /// # Errors
    /// As for [`save_libsvm`](Self::save_libsvm), the disk aside.
    pub fn to_libsvm_bytes(&self) -> Result<Vec<u8>> {
        self.validate()?;
        libsvm::write(self)
    }

    /// Writes a linear model to `path` as LIBLINEAR's programs do.
    ///
    /// # Errors
    /// [`Error::Model`] when LIBLINEAR has no such model, saying what to do instead; [`Error::Io`]
    /// when the disk refuses.
    pub fn save_liblinear(&self, path: impl AsRef<Path>) -> Result<()> {
        let text = self.liblinear_text()?;
        write_atomically(path.as_ref(), |out| text.write(out))
    }

    /// The text [`save_liblinear`](Self::save_liblinear) writes.
    ///
    /// # Errors
    /// As for [`save_liblinear`](Self::save_liblinear), the disk aside.
    pub fn to_liblinear_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let text = self.liblinear_text()?;
        text.write(&mut bytes).map_err(|source| Error::io(Path::new("memory"), source))?;
        Ok(bytes)
    }

    fn liblinear_text(&self) -> Result<liblinear::Text> {
        self.validate()?;
        liblinear::text(self)
    }

    /// Reads a model file of any format; `-` is standard input.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be read, [`Error::Format`] or [`Error::Parse`] when it is not a
    /// sound model.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = read(path).map_err(|source| Error::io(path, source))?;
        decode(path, &bytes)
    }

    /// Reads a model from the content of a file of any format.
    ///
    /// # Errors
    /// [`Error::Format`] or [`Error::Parse`] when it is not a sound model.
    pub fn load_from_bytes(bytes: &[u8]) -> Result<Self> {
        decode(Path::new("model"), bytes)
    }
}

fn decode(path: &Path, bytes: &[u8]) -> Result<Model> {
    let bytes = without_byte_order_mark(bytes);
    match ModelFormat::detect(bytes) {
        Some(ModelFormat::Native) => native::decode(path, bytes),
        Some(ModelFormat::Libsvm) => libsvm::read(path, bytes),
        Some(ModelFormat::Liblinear) => liblinear::read(path, bytes),
        None => Err(unknown(path, bytes)),
    }
}

/// Reads a file whose beginning could be a model's; of others only the beginning.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut input: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(File::open(path)?)
    };
    let mut bytes = Vec::new();
    input.by_ref().take(libsvm::LONGEST_PREAMBLE as u64).read_to_end(&mut bytes)?;
    match ModelFormat::detect(&bytes) {
        Some(ModelFormat::Native) => {
            // One byte more than announced is enough to see that there are too many.
            let announced = envelope::announced_length(&bytes).unwrap_or(0).saturating_add(1);
            let rest = announced.saturating_sub(bytes.len() as u64);
            input.take(rest).read_to_end(&mut bytes)?;
        }
        Some(ModelFormat::Libsvm | ModelFormat::Liblinear) => {
            input.read_to_end(&mut bytes)?;
        }
        None => {}
    }
    Ok(bytes)
}

fn unknown(path: &Path, bytes: &[u8]) -> Error {
    let begins = if bytes.is_empty() {
        "it is empty".to_owned()
    } else {
        let shown = &bytes[..bytes.len().min(16)];
        format!("it begins with \"{}\"", shown.escape_ascii())
    };
    Error::Format {
        path: path.into(),
        message: format!("expected a widemargin, LIBSVM or LIBLINEAR model file, but {begins}"),
    }
}

#[cfg(test)]
mod tests;
