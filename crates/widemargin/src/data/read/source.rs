//! The bytes of a path, or of standard input for `-`, with any compression undone.
//!
//! Compression is recognised by the first bytes, never by the name: gzip (also of several members),
//! xz, Zstandard (also of several frames) and bzip2.
//! A damaged or truncated archive is an [`Error::Format`] that names the file; memory grows with the
//! bytes that actually come out, not with what a header promises, and not beyond a limit.
//! A UTF-8 byte order mark in front of text is dropped.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::data::memory;
use crate::error::{Error, Result};

/// What some editors put in front of UTF-8 text; no binary format that is read begins with it.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Largest dictionary an xz stream may ask for, in KiB (`xz -9` uses 64 MiB).
const XZ_MEMORY_KIB: u32 = 1 << 20;

/// How a file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    /// Not at all.
    None,
    /// gzip, one member or several.
    Gzip,
    /// xz, one stream or several.
    Xz,
    /// Zstandard, one frame or several.
    Zstd,
    /// bzip2, one stream or several.
    Bzip2,
}

impl Compression {
    /// Longest signature, in bytes.
    pub(crate) const SIGNATURE: usize = 6;

    /// Recognises the compression by the first bytes of a file.
    pub(crate) fn detect(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, 8, ..] => Self::Gzip,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, ..]
            | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, ..] => Self::Bzip2,
            _ => Self::None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::None => "plain",
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
        }
    }
}

/// Whether `path` stands for standard input or output.
pub fn is_standard_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// `bytes` without a UTF-8 byte order mark in front.
pub(crate) fn without_byte_order_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}

/// Bytes an archive may unpack to by default: half of the available memory, because a text and the
/// table read from it are in memory at the same time.
pub(crate) fn default_max_unpacked() -> u64 {
    memory::available() / 2
}

/// Opens `path` (`-`: standard input) as a stream of uncompressed bytes.
///
/// # Errors
/// [`Error::Io`] when the file cannot be opened or its first bytes cannot be read.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>> {
    let fail = |source| Error::io(path, source);
    let raw: Box<dyn Read> = if is_standard_stream(path) {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).map_err(fail)?)
    };
    let (start, whole) = peek::<{ Compression::SIGNATURE }>(raw).map_err(fail)?;
    let buffered = BufReader::with_capacity(1 << 16, whole);
    let plain = decoder(Compression::detect(&start), buffered);
    let (start, mut whole) = peek::<{ BYTE_ORDER_MARK.len() }>(plain).map_err(fail)?;
    if start == BYTE_ORDER_MARK {
        fill(&mut whole, &mut [0; BYTE_ORDER_MARK.len()]).map_err(fail)?;
    }
    Ok(Box::new(whole))
}

/// The first bytes of a stream, and all of it.
fn peek<const N: usize>(mut stream: Box<dyn Read>) -> io::Result<(Vec<u8>, impl Read)> {
    let mut start = [0; N];
    let filled = fill(&mut stream, &mut start)?;
    let start = start[..filled].to_vec();
    Ok((start.clone(), Cursor::new(start).chain(stream)))
}

/// All uncompressed bytes of `path` (`-`: standard input), if an archive unpacks to at
/// most half of the available memory.
///
/// # Errors
/// [`Error::Io`] when the file cannot be read, [`Error::Format`] when it is a damaged archive or one
/// that unpacks to more.
pub fn read_all(path: &Path) -> Result<Vec<u8>> {
    read_all_within(path, None)
}

/// As [`read_all`] with another limit on what an archive unpacks to.
///
/// # Errors
/// As [`read_all`].
pub(crate) fn read_all_within(path: &Path, max_unpacked: Option<u64>) -> Result<Vec<u8>> {
    let mut raw = Vec::new();
    if is_standard_stream(path) {
        io::stdin().lock().read_to_end(&mut raw)
    } else {
        File::open(path).and_then(|mut file| file.read_to_end(&mut raw))
    }
    .map_err(|e| Error::io(path, e))?;
    let mut plain = decompress(raw, path, max_unpacked)?;
    if plain.starts_with(BYTE_ORDER_MARK) {
        plain.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(plain)
}

/// Undoes the compression of `bytes`, which came from `path`, if they unpack to at most
/// `max_unpacked` bytes (half of the available memory unless given).
///
/// # Errors
/// [`Error::Format`] when the archive is truncated, damaged or too large.
pub fn decompress(bytes: Vec<u8>, path: &Path, max_unpacked: Option<u64>) -> Result<Vec<u8>> {
    let compression = Compression::detect(&bytes);
    if compression == Compression::None {
        return Ok(bytes);
    }
    let name = compression.name();
    let limit = max_unpacked.unwrap_or_else(default_max_unpacked);
    let mut plain = Vec::new();
    let mut unpacked = decoder(compression, Cursor::new(bytes)).take(limit.saturating_add(1));
    let outcome = unpacked.read_to_end(&mut plain);
    let refuse = |message| Err(Error::Format { path: path.to_owned(), message });
    match outcome {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
            refuse(format!("the {name} archive is truncated after {} unpacked bytes", plain.len()))
        }
        Err(e) => refuse(format!(
            "the {name} archive is damaged after {} unpacked bytes: {e}",
            plain.len()
        )),
        Ok(_) if plain.len() as u64 > limit => {
            refuse(format!("the {name} archive unpacks to more than the limit of {limit} bytes"))
        }
        Ok(_) => Ok(plain),
    }
}

fn decoder(compression: Compression, bytes: impl BufRead + 'static) -> Box<dyn Read> {
    match compression {
        Compression::None => Box::new(bytes),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(bytes)),
        Compression::Xz => {
            Box::new(lzma_rust2::XzReader::new_mem_limit(bytes, true, XZ_MEMORY_KIB))
        }
        Compression::Zstd => Box::new(ZstdFrames::new(bytes)),
        Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(bytes)),
    }
}

fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

/// All frames of a Zstandard file one after the other, each with its checksum verified.
struct ZstdFrames<R> {
    source: R,
    frame: FrameDecoder,
    inside: bool,
}

impl<R: BufRead> ZstdFrames<R> {
    fn new(source: R) -> Self {
        Self { source, frame: FrameDecoder::new(), inside: false }
    }

    fn open_frame(&mut self) -> io::Result<()> {
        match self.frame.init(&mut self.source) {
            Ok(()) => {
                self.inside = true;
                Ok(())
            }
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let length = u64::from(length);
                let skipped = io::copy(&mut self.source.by_ref().take(length), &mut io::sink())?;
                if skipped < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
            }
            Err(e) => Err(self.describe(e)),
        }
    }

    fn close_frame(&mut self) -> io::Result<()> {
        self.inside = false;
        match (self.frame.get_checksum_from_data(), self.frame.get_calculated_checksum()) {
            (Some(stored), Some(computed)) if stored != computed => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "checksum mismatch"))
            }
            _ => Ok(()),
        }
    }

    fn describe(&mut self, error: FrameDecoderError) -> io::Error {
        match self.source.fill_buf() {
            Ok([]) => io::ErrorKind::UnexpectedEof.into(),
            _ => io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
        }
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.inside {
                while self.frame.can_collect() == 0 && !self.frame.is_finished() {
                    let step = BlockDecodingStrategy::UptoBlocks(1);
                    if let Err(e) = self.frame.decode_blocks(&mut self.source, step) {
                        return Err(self.describe(e));
                    }
                }
                let copied = self.frame.read(out)?;
                if copied > 0 || out.is_empty() {
                    return Ok(copied);
                }
                self.close_frame()?;
            } else if self.source.fill_buf()?.is_empty() {
                return Ok(0);
            } else {
                self.open_frame()?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const TEXT: &[u8] = b"1 1:2\n-1 2:3\n";
    // Made with `zstd`, `xz` and `bzip2` from TEXT.
    const ZSTD: &[u8] = &[
        0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x69, 0x00, 0x00, 0x31, 0x20, 0x31, 0x3a, 0x32, 0x0a,
        0x2d, 0x31, 0x20, 0x32, 0x3a, 0x33, 0x0a, 0x9b, 0x47, 0x7b, 0xaf,
    ];
    const XZ: &[u8] = &[
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21,
        0x01, 0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0x01, 0x00, 0x0c, 0x31, 0x20, 0x31,
        0x3a, 0x32, 0x0a, 0x2d, 0x31, 0x20, 0x32, 0x3a, 0x33, 0x0a, 0x00, 0x00, 0x00, 0x00, 0x06,
        0xb7, 0xc7, 0xe0, 0xa4, 0x5c, 0x55, 0x8d, 0x00, 0x01, 0x25, 0x0d, 0x71, 0x19, 0xc4, 0xb6,
        0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
    ];
    const BZIP2: &[u8] = &[
        0x42, 0x5a, 0x68, 0x39, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0xb6, 0xc3, 0x9e, 0xae, 0x00,
        0x00, 0x02, 0xd8, 0x00, 0x00, 0x10, 0x40, 0x02, 0x38, 0x10, 0x20, 0x00, 0x21, 0xa6, 0x8d,
        0xa4, 0x21, 0x80, 0x80, 0xb9, 0x05, 0x6e, 0x5f, 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, 0xb6,
        0xc3, 0x9e, 0xae,
    ];

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn archives() -> Vec<(Compression, Vec<u8>)> {
        vec![
            (Compression::Gzip, gzip(TEXT)),
            (Compression::Xz, XZ.to_vec()),
            (Compression::Zstd, ZSTD.to_vec()),
            (Compression::Bzip2, BZIP2.to_vec()),
        ]
    }

    #[test]
    fn every_compression_is_recognised_and_undone() {
        for (compression, archive) in archives() {
            assert_eq!(Compression::detect(&archive), compression);
            assert_eq!(decompress(archive, Path::new("a"), None).unwrap(), TEXT, "{compression:?}");
        }
        assert_eq!(decompress(TEXT.to_vec(), Path::new("a"), None).unwrap(), TEXT);
    }

    #[test]
    fn archives_written_one_after_the_other_are_read_as_one() {
        for (compression, archive) in archives() {
            let twice = [archive.as_slice(), archive.as_slice()].concat();
            let plain = decompress(twice, Path::new("a"), None).unwrap();
            assert_eq!(plain, [TEXT, TEXT].concat(), "{compression:?}");
        }
    }

    #[test]
    fn a_truncated_archive_is_an_error_that_names_the_file() {
        for (compression, archive) in archives() {
            for length in Compression::SIGNATURE..archive.len() {
                let error = decompress(archive[..length].to_vec(), Path::new("data.bin"), None)
                    .expect_err(&format!("{compression:?} cut to {length}"));
                assert!(error.to_string().starts_with("data.bin: the "), "{error}");
            }
        }
    }

    #[test]
    fn a_stream_gives_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        for (compression, archive) in archives() {
            let path = folder.path().join(compression.name());
            std::fs::write(&path, archive).unwrap();
            let mut plain = Vec::new();
            open(&path).unwrap().read_to_end(&mut plain).unwrap();
            assert_eq!(plain, TEXT);
            assert_eq!(read_all(&path).unwrap(), TEXT);
        }
    }

    #[test]
    fn an_archive_that_unpacks_to_too_much_is_refused() {
        for (compression, archive) in archives() {
            let within = |limit| decompress(archive.clone(), Path::new("a"), Some(limit));
            assert_eq!(within(TEXT.len() as u64).unwrap(), TEXT, "{compression:?}");
            let error = within(TEXT.len() as u64 - 1).unwrap_err().to_string();
            let expected = format!(
                "a: the {} archive unpacks to more than the limit of 12 bytes",
                compression.name()
            );
            assert_eq!(error, expected);
        }
        // Less than a megabyte that becomes 64.
        let bomb = gzip(&vec![b' '; 1 << 26]);
        assert!(bomb.len() < 1 << 20);
        assert!(decompress(bomb, Path::new("a"), Some(1 << 20)).is_err());
    }

    #[test]
    fn a_byte_order_mark_is_dropped_in_plain_and_packed_files() {
        let folder = tempfile::tempdir().unwrap();
        let marked = [BYTE_ORDER_MARK, TEXT].concat();
        for (name, bytes) in [("plain", marked.clone()), ("packed", gzip(&marked))] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let mut plain = Vec::new();
            open(&path).unwrap().read_to_end(&mut plain).unwrap();
            assert_eq!(plain, TEXT, "{name}");
            assert_eq!(read_all(&path).unwrap(), TEXT, "{name}");
        }
        assert_eq!(without_byte_order_mark(&marked), TEXT);
    }
}
