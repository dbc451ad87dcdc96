//! The frame around a native model file: what it is, which version, how long and whether intact.
//!
//! Bytes 0–7 are the magic, 8–11 the version, 12–15 the CRC-32 of all other bytes, 16–23 the length
//! of the file, all little-endian; from byte 24 a `safetensors` document follows. A CRC-32 detects
//! every change confined to four neighbouring bytes, and others with probability 1 − 2⁻³².

use std::path::Path;

use crate::error::{Error, Result};

/// First bytes of every native model file; the first is no text, the last catches newline mangling.
pub(super) const MAGIC: [u8; 8] = *b"\x8aWMODEL\n";

/// Version of the format this program writes; it reads this and all earlier ones.
pub(super) const VERSION: u32 = 2;

const LENGTH_AT: usize = 16;
const CHECKSUM_AT: usize = 12;
/// Where the document begins.
pub(super) const FRAME: usize = 24;

/// Frames a document.
pub(super) fn seal(document: &[u8]) -> Vec<u8> {
    let length = FRAME + document.len();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&(length as u64).to_le_bytes());
    bytes.extend_from_slice(document);
    let sum = checksum(&bytes);
    bytes[CHECKSUM_AT..LENGTH_AT].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The version of the format, and the document inside an intact frame.
pub(super) fn open<'a>(path: &Path, bytes: &'a [u8]) -> Result<(u32, &'a [u8])> {
    let fail = |message: String| Err(Error::Format { path: path.into(), message });
    if bytes.len() < FRAME {
        return fail(format!(
            "expected a model file of at least {FRAME} bytes, found {}: it is cut short",
            bytes.len()
        ));
    }
    let version = u32_at(bytes, MAGIC.len());
    if version == 0 || version > VERSION {
        return fail(format!(
            "expected a model format version from 1 to {VERSION}, found {version}: \
             a newer widemargin wrote the file, or it is damaged"
        ));
    }
    match announced_length(bytes) {
        Some(length) if length == bytes.len() as u64 => {}
        Some(length) if length > bytes.len() as u64 => {
            let found = bytes.len();
            return fail(format!("expected {length} bytes, found {found}: it is cut short"));
        }
        length => {
            let length = length.unwrap_or(0);
            return fail(format!("expected {length} bytes, found more: something was appended"));
        }
    }
    let (expected, found) = (u32_at(bytes, CHECKSUM_AT), checksum(bytes));
    if expected != found {
        return fail(format!(
            "expected checksum {expected:08x}, found {found:08x}: the file is damaged"
        ));
    }
    Ok((version, &bytes[FRAME..]))
}

/// The length of the file according to its frame, if that is there.
pub(super) fn announced_length(bytes: &[u8]) -> Option<u64> {
    let field = bytes.get(LENGTH_AT..FRAME)?;
    Some(u64::from_le_bytes(field.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..CHECKSUM_AT]);
    hasher.update(&bytes[LENGTH_AT..]);
    hasher.finalize()
}
