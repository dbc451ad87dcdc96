//! The folder of a chunked table.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::code::{Chunk, ChunkBuffers, Rows};
use crate::data::read::IndexBase;
use crate::data::write::write_atomically;
use crate::data::{Csr, Dataset, Layout, Matrix};
use crate::error::{Error, Result};

/// Version of the layout of the folder.
const VERSION: u32 = 3;
const MANIFEST: &str = "chunks.json";

/// The content of a file the rows came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Source {
    /// Its size in bytes.
    pub bytes: u64,
    /// CRC-32 of them.
    pub checksum: u32,
}

impl Source {
    /// The file at `path`, which is read whole.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be read.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let fail = |source| Error::io(path, source);
        let mut file = fs::File::open(path).map_err(fail)?;
        let mut checksum = crc32fast::Hasher::new();
        let mut buffer = vec![0; 1 << 20];
        let mut bytes = 0;
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(Self { bytes, checksum: checksum.finalize() }),
                Ok(count) => {
                    checksum.update(&buffer[..count]);
                    bytes += count as u64;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(fail(error)),
            }
        }
    }
}

/// What the chunks were made from, and how: the same origin gives the same chunks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// The files, in order.
    pub sources: Vec<Source>,
    /// How their text was read.
    pub reading: String,
    /// Whether values are stored in single precision.
    pub single: bool,
}

/// What the manifest says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Manifest {
    version: u32,
    origin: Origin,
    columns: usize,
    index_base: Option<IndexBase>,
    /// Rows and stored values of every chunk.
    chunks: Vec<(usize, usize)>,
}

/// A chunked table that is complete.
#[derive(Clone, Debug)]
pub(crate) struct ChunkStore {
    folder: PathBuf,
    manifest: Manifest,
}

impl ChunkStore {
    /// The table in `folder`, if there is one of exactly this origin.
    ///
    /// # Errors
    /// [`Error::Io`] when the manifest is there but cannot be read.
    pub(crate) fn open(folder: &Path, origin: &Origin) -> Result<Option<Self>> {
        let path = folder.join(MANIFEST);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(path, error)),
        };
        let Ok(manifest) = serde_json::from_slice::<Manifest>(&text) else { return Ok(None) };
        let same = manifest.version == VERSION && manifest.origin == *origin;
        Ok(same.then(|| Self { folder: folder.to_owned(), manifest }))
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.manifest.chunks.iter().map(|(rows, _)| rows).sum()
    }

    /// Number of columns.
    pub(crate) fn columns(&self) -> usize {
        self.manifest.columns
    }

    /// Number of stored values.
    pub(crate) fn nonzeros(&self) -> usize {
        self.manifest.chunks.iter().map(|(_, stored)| stored).sum()
    }

    /// Where the indices of the text started.
    pub(crate) fn index_base(&self) -> Option<IndexBase> {
        self.manifest.index_base
    }

    /// Number of chunks.
    pub(crate) fn chunks(&self) -> usize {
        self.manifest.chunks.len()
    }

    /// The rows of chunk `index` among all rows.
    pub(crate) fn range(&self, index: usize) -> std::ops::Range<usize> {
        let before: usize = self.manifest.chunks[..index].iter().map(|(rows, _)| rows).sum();
        before..before + self.manifest.chunks[index].0
    }

    /// A number that identifies this table.
    pub(crate) fn fingerprint(&self) -> u32 {
        crc32fast::hash(format!("{:?}", self.manifest).as_bytes())
    }

    /// The labels of all rows.
    ///
    /// # Errors
    /// [`Error::Io`] or, when a file is damaged, [`Error::Format`].
    pub(crate) fn labels(&self) -> Result<Vec<f64>> {
        let mut labels = Vec::with_capacity(self.rows());
        for (index, (rows, _)) in self.manifest.chunks.iter().enumerate() {
            let path = chunk_path(&self.folder, index);
            let read = || -> std::io::Result<Vec<u8>> {
                let mut bytes = Vec::new();
                let length = Chunk::labels_end(*rows) as u64;
                fs::File::open(&path)?.take(length).read_to_end(&mut bytes)?;
                Ok(bytes)
            };
            let bytes = read().map_err(|source| Error::io(&path, source))?;
            let own = Chunk::decode_labels(&bytes, *rows)
                .map_err(|message| Error::Format { path, message })?;
            labels.extend(own);
        }
        Ok(labels)
    }

    /// Reads chunk `index`, in the buffers of earlier ones.
    ///
    /// # Errors
    /// [`Error::Io`] or, when the file is damaged, [`Error::Format`].
    pub(crate) fn read(&self, index: usize, buffers: &mut ChunkBuffers) -> Result<Chunk> {
        let path = chunk_path(&self.folder, index);
        let mut bytes = std::mem::take(&mut buffers.bytes);
        bytes.clear();
        fs::File::open(&path)
            .and_then(|mut file| file.read_to_end(&mut bytes))
            .map_err(|source| Error::io(&path, source))?;
        let decoded = Chunk::decode(&bytes, self.manifest.columns, buffers);
        buffers.bytes = bytes;
        let chunk = decoded.and_then(|chunk| {
            let expected = self.manifest.chunks[index].0;
            match chunk.rows.rows() {
                found if found == expected => Ok(chunk),
                found => Err(format!("expected {expected} rows, found {found}")),
            }
        });
        chunk.map_err(|message| Error::Format {
            path,
            message: format!("a damaged chunk ({message}); delete the folder to make it anew"),
        })
    }
}

fn chunk_path(folder: &Path, index: usize) -> PathBuf {
    folder.join(format!("chunk-{index:06}.bin"))
}

/// Removes a file that may not be there.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io(path, error)),
        _ => Ok(()),
    }
}

/// Writes a chunked table, batch by batch.
pub(crate) struct ChunkWriter {
    folder: PathBuf,
    manifest: Manifest,
}

impl ChunkWriter {
    /// Begins a table in `folder`, which is made if need be; one that is there is removed.
    ///
    /// # Errors
    /// [`Error::Io`] when the disk refuses.
    pub(crate) fn new(folder: &Path, origin: Origin) -> Result<Self> {
        fs::create_dir_all(folder).map_err(|source| Error::io(folder, source))?;
        remove(&folder.join(MANIFEST))?;
        // Those of a larger table would stay on the disk for ever.
        for entry in fs::read_dir(folder).map_err(|source| Error::io(folder, source))?.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let number = name.strip_prefix("chunk-").and_then(|name| name.strip_suffix(".bin"));
            if number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit())) {
                remove(&entry.path())?;
            }
        }
        let manifest =
            Manifest { version: VERSION, origin, columns: 0, index_base: None, chunks: Vec::new() };
        Ok(Self { folder: folder.to_owned(), manifest })
    }

    /// Adds the rows of a batch as a chunk.
    ///
    /// # Errors
    /// [`Error::Labels`] when the labels are no numbers, [`Error::NonFinite`] for a value that is not
    /// finite, [`Error::Io`] when the disk refuses.
    pub(crate) fn add(&mut self, batch: Dataset, base: Option<IndexBase>) -> Result<()> {
        batch.features().validate()?;
        let labels = batch.labels().values()?;
        let table: Csr<f64> = match batch.features().clone().into_layout(Layout::Sparse) {
            Matrix::SparseF64(table) => table,
            Matrix::SparseF32(table) => table.map(f64::from),
            Matrix::DenseF32(_) | Matrix::DenseF64(_) => {
                return Err(Error::Empty { what: "sparse row" });
            }
        };
        self.manifest.columns = self.manifest.columns.max(table.columns());
        self.manifest.index_base = self.manifest.index_base.or(base);
        self.manifest.chunks.push((table.rows(), table.nonzeros()));
        let chunk = Chunk { rows: Rows::new(table, self.manifest.origin.single), labels };
        let path = chunk_path(&self.folder, self.manifest.chunks.len() - 1);
        fs::write(&path, chunk.encode()).map_err(|source| Error::io(path, source))
    }

    /// Ends the table; only now it counts as one.
    ///
    /// # Errors
    /// [`Error::Empty`] when it has no rows, [`Error::Io`] when the disk refuses.
    pub(crate) fn finish(self) -> Result<ChunkStore> {
        if self.manifest.chunks.is_empty() {
            return Err(Error::Empty { what: "row" });
        }
        let path = self.folder.join(MANIFEST);
        let text = serde_json::to_vec(&self.manifest).unwrap_or_default();
        write_atomically(&path, |out| out.write_all(&text))?;
        Ok(ChunkStore { folder: self.folder, manifest: self.manifest })
    }
}
