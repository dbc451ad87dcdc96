//! From text to chunks.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::{LEAST_MEMORY, OutOfCore};
use crate::context::{Context, Event};
use crate::data::Layout;
use crate::data::chunks::{ChunkStore, ChunkWriter, Origin, Source};
use crate::data::read::source::open;
use crate::data::read::{Format, read_bytes};
use crate::error::{Error, Result};

/// Memory per byte of text while a batch is read: the text, the parsed rows twice, the chunk.
const MEMORY_PER_BYTE: usize = 12;

/// Largest batch of text.
const LARGEST_BATCH: usize = 64 << 20;

/// The files among the inputs: themselves, and those in folders by name.
///
/// # Errors
/// [`Error::Io`] when one is not there.
pub(crate) fn input_files(inputs: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for input in inputs {
        if input.is_dir() {
            let fail = |source| Error::io(input, source);
            let mut own = Vec::new();
            for entry in std::fs::read_dir(input).map_err(fail)? {
                let path = entry.map_err(fail)?.path();
                if path.is_file() {
                    own.push(path);
                }
            }
            own.sort();
            files.extend(own);
        } else {
            files.push(input.clone());
        }
    }
    Ok(files)
}

/// The chunks of the inputs: those in the folder if they are of the same content, read alike, else made
/// anew.
///
/// # Errors
/// [`Error::Parameter`] for too little memory; what the reader and the disk refuse.
pub(crate) fn convert(job: &OutOfCore, single: bool, context: &Context) -> Result<ChunkStore> {
    if job.memory < LEAST_MEMORY {
        let expected = format!("at least {LEAST_MEMORY} bytes");
        return Err(Error::parameter("memory", expected, job.memory));
    }
    let files = input_files(&job.inputs)?;
    let sources = files.iter().map(|path| Source::of(path)).collect::<Result<Vec<Source>>>()?;
    let total: u64 = sources.iter().map(|source| source.bytes).sum();
    let origin = Origin { sources, reading: format!("{:?}", job.read), single };
    if let Some(store) = ChunkStore::open(&job.folder, &origin)? {
        return Ok(store);
    }
    let batch = (job.memory / MEMORY_PER_BYTE).min(LARGEST_BATCH);
    let name = "chunks";
    context.report(&Event::Stage { name, total: (total as usize).div_ceil(batch) });
    let mut writer = ChunkWriter::new(&job.folder, origin)?;
    let mut base = None;
    for path in &files {
        let mut text = BufReader::with_capacity(1 << 20, open(path)?);
        let mut lines_before = 0;
        loop {
            let bytes = next_batch(&mut text, batch, path)?;
            if bytes.is_empty() {
                break;
            }
            if context.stop_request().is_some() {
                return Err(Error::Interrupted);
            }
            let mut options = job.read.clone().format(Format::Libsvm).layout(Layout::Sparse);
            if let Some(base) = base {
                options = options.index_base(base);
            }
            let loaded = context
                .install(|| read_bytes(&bytes, &options))
                .map_err(|error| placed(error, path, lines_before))?;
            base = base.or(loaded.index_base);
            lines_before += bytes.iter().filter(|byte| **byte == b'\n').count();
            drop(bytes);
            writer.add(loaded.dataset, base)?;
            context.report(&Event::StageStep { name });
        }
    }
    writer.finish()
}

/// The next lines, at least `batch` bytes unless the text ends; a single line may be as long as that.
fn next_batch(text: &mut impl BufRead, batch: usize, path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(batch + (1 << 16));
    let fail = |source| Error::io(path, source);
    while bytes.len() < batch {
        let ready = text.fill_buf().map_err(fail)?;
        if ready.is_empty() {
            return Ok(bytes);
        }
        let taken = ready.len().min(batch - bytes.len());
        bytes.extend_from_slice(&ready[..taken]);
        text.consume(taken);
    }
    let rest = text.by_ref().take(batch as u64).read_until(b'\n', &mut bytes).map_err(fail)?;
    if rest == batch && bytes.last() != Some(&b'\n') {
        let message = format!("a line is longer than {batch} bytes; it needs more memory");
        return Err(Error::Format { path: path.to_owned(), message });
    }
    Ok(bytes)
}

/// An error in a batch as one in its file.
fn placed(error: Error, path: &Path, lines_before: usize) -> Error {
    match error {
        Error::Parse { line, column, expected, found, .. } => {
            Error::Parse { path: path.into(), line: line + lines_before, column, expected, found }
        }
        Error::Format { message, .. } => Error::Format { path: path.into(), message },
        other => other,
    }
}
