//! IDX files, the format of MNIST: `0 0 type dimensions`, the sizes as big-endian 32-bit numbers, then
//! the values, row-major and big-endian.
//!
//! The first dimension counts rows and the others are flattened into features; a file of one dimension
//! holds labels. Sizes are checked against the bytes present before anything is allocated.
//! Source: Y. LeCun, C. Cortes, C. Burges, "The MNIST database", section "File formats".

use std::path::{Path, PathBuf};

use super::elements::{Element, Elements};
use super::options::ReadOptions;
use super::place::Fault;
use crate::data::{Labels, Matrix};
use crate::error::{Error, Result};

struct Array<'a> {
    sizes: Vec<usize>,
    elements: Elements<'a>,
}

fn parse<'a>(bytes: &'a [u8], path: &Path) -> Result<Array<'a>> {
    let fault = |at: usize, expected: &str, found: String| {
        Err(Fault::new(at, expected, found).in_binary(path))
    };
    let &[zero, other_zero, code, dimensions, ..] = bytes else {
        return fault(
            bytes.len(),
            "the 4 bytes an IDX file begins with",
            "the end of the file".into(),
        );
    };
    if (zero, other_zero) != (0, 0) {
        return fault(0, "two zero bytes", format!("{zero} {other_zero}"));
    }
    let element = match code {
        0x08 => Element::U8,
        0x09 => Element::I8,
        0x0b => Element::I16,
        0x0c => Element::I32,
        0x0d => Element::F32,
        0x0e => Element::F64,
        _ => return fault(2, "an IDX type code (8, 9, 11, 12, 13 or 14)", code.to_string()),
    };
    let offset = 4 + 4 * usize::from(dimensions);
    if dimensions == 0 {
        return fault(3, "at least one dimension", "0".into());
    }
    let Some(header) = bytes.get(4..offset) else {
        let found = format!("{} bytes", bytes.len());
        return fault(bytes.len(), &format!("the sizes of {dimensions} dimensions"), found);
    };
    let sizes: Vec<usize> = header
        .chunks_exact(4)
        .map(|s| u32::from_be_bytes([s[0], s[1], s[2], s[3]]) as usize)
        .collect();
    let values = sizes.iter().try_fold(element.size() as u128, |n, &s| n.checked_mul(s as u128));
    let found = bytes.len() - offset;
    if values != Some(found as u128) {
        let shape: Vec<String> = sizes.iter().map(usize::to_string).collect();
        let needed = values.map_or("too many".into(), |n| n.to_string());
        let expected = format!("{needed} bytes of values for {}", shape.join(" x "));
        return fault(offset, &expected, format!("{found}"));
    }
    let elements = Elements { element, big_endian: true, bytes: &bytes[offset..], offset };
    Ok(Array { sizes, elements })
}

/// Reads a file of two or more dimensions as a table.
pub(super) fn table(bytes: &[u8], path: &Path, options: &ReadOptions) -> Result<Matrix> {
    let array = parse(bytes, path)?;
    if array.sizes.len() < 2 {
        let message = "expected features in two or more dimensions, found one (a file of labels?)";
        return Err(Error::Format { path: path.to_owned(), message: message.into() });
    }
    // The product fits: the sizes were checked against the bytes present, unless one of them is zero.
    let columns = array.sizes[1..].iter().fold(1_usize, |n, &s| n.saturating_mul(s));
    array.elements.table(array.sizes[0], columns, |i, j| i * columns + j, path, options)
}

/// Reads a file of one dimension as labels.
pub(super) fn labels(bytes: &[u8], path: &Path) -> Result<Labels> {
    let array = parse(bytes, path)?;
    if array.sizes.len() != 1 {
        let message = format!("expected labels in one dimension, found {}", array.sizes.len());
        return Err(Error::Format { path: path.to_owned(), message });
    }
    array.elements.labels(path)
}

/// The label file that lies beside an image file under MNIST's naming, if there is one.
pub(super) fn companion(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    if !name.contains("images") {
        return None;
    }
    let labels = name.replace("images", "labels").replace("idx3", "idx1");
    let beside = path.with_file_name(labels);
    beside.is_file().then_some(beside)
}
