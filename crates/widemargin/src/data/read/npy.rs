//! NumPy's NPY files, versions 1 to 3: a dictionary of `descr`, `fortran_order` and `shape`, then the
//! values.
//!
//! Two dimensions are features, one is labels; integers, booleans and floats of every size and both
//! byte orders are read, in C and Fortran order.
//! Source: NumPy Enhancement Proposal 1, "A Simple File Format for NumPy Arrays".

use std::path::Path;

use super::elements::{Element, Elements};
use super::options::ReadOptions;
use super::place::{Fault, quoted};
use crate::data::{Labels, Matrix};
use crate::error::{Error, Result};

struct Header {
    element: Element,
    big_endian: bool,
    fortran_order: bool,
    shape: Vec<usize>,
}

struct Array<'a> {
    header: Header,
    elements: Elements<'a>,
}

fn parse<'a>(bytes: &'a [u8], path: &Path) -> Result<Array<'a>> {
    let fault = |at: usize, expected: &str, found: String| {
        Err(Fault::new(at, expected, found).in_binary(path))
    };
    if !bytes.starts_with(b"\x93NUMPY") {
        let found = quoted(&bytes[..bytes.len().min(6)]);
        return fault(0, "the signature '\\x93NUMPY' of an NPY file", found);
    }
    let (start, length) = match bytes[6..] {
        [1, _, a, b, ..] => (10, usize::from(u16::from_le_bytes([a, b]))),
        [2 | 3, _, a, b, c, d, ..] => (12, u32::from_le_bytes([a, b, c, d]) as usize),
        [version, minor, ..] if !(1..=3).contains(&version) => {
            return fault(6, "NPY version 1, 2 or 3", format!("{version}.{minor}"));
        }
        _ => return fault(bytes.len(), "the NPY header", "the end of the file".into()),
    };
    let end = start + length;
    let Some(text) = bytes.get(start..end) else {
        let expected = format!("a header of {length} bytes");
        return fault(start, &expected, format!("{} bytes", bytes.len() - start));
    };
    let header = Dictionary { text, at: 0 }
        .header()
        .map_err(|f| Fault { at: f.at + start, ..f }.in_binary(path))?;
    let size = header.element.size() as u128;
    let values = header.shape.iter().try_fold(size, |n, &s| n.checked_mul(s as u128));
    let found = bytes.len() - end;
    if values != Some(found as u128) {
        let needed = values.map_or("too many".into(), |n| n.to_string());
        let expected = format!("{needed} bytes of values for shape {:?}", header.shape);
        return fault(end, &expected, format!("{found}"));
    }
    let elements = Elements {
        element: header.element,
        big_endian: header.big_endian,
        bytes: &bytes[end..],
        offset: end,
    };
    Ok(Array { header, elements })
}

/// Reads a two-dimensional array as a table.
pub(super) fn table(bytes: &[u8], path: &Path, options: &ReadOptions) -> Result<Matrix> {
    let array = parse(bytes, path)?;
    let &[rows, columns] = array.header.shape.as_slice() else {
        let message =
            format!("expected a 2-D array of features, found shape {:?}", array.header.shape);
        return Err(Error::Format { path: path.to_owned(), message });
    };
    if array.header.fortran_order {
        array.elements.table(rows, columns, |i, j| j * rows + i, path, options)
    } else {
        array.elements.table(rows, columns, |i, j| i * columns + j, path, options)
    }
}

/// Reads an array of one dimension, or of one column or row, as labels.
pub(super) fn labels(bytes: &[u8], path: &Path) -> Result<Labels> {
    let array = parse(bytes, path)?;
    match array.header.shape.as_slice() {
        [_] | [_, 1] | [1, _] => array.elements.labels(path),
        shape => {
            let message = format!("expected a 1-D array of labels, found shape {shape:?}");
            Err(Error::Format { path: path.to_owned(), message })
        }
    }
}

/// Reader of the Python dictionary literal in the header.
struct Dictionary<'a> {
    text: &'a [u8],
    at: usize,
}

type Parsed<T> = std::result::Result<T, Fault>;

impl Dictionary<'_> {
    fn header(mut self) -> Parsed<Header> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect(b'{')?;
        while self.peek() != Some(b'}') {
            let at = self.at;
            match self.string()?.as_str() {
                "descr" => {
                    self.expect(b':')?;
                    let at = self.at;
                    if self.peek() == Some(b'[') {
                        let expected = "a plain number type";
                        return Err(Fault::new(at, expected, "a structured type"));
                    }
                    let text = self.string()?;
                    descr = Some(element(&text).ok_or_else(|| bad_type(at, &text))?);
                }
                "fortran_order" => {
                    self.expect(b':')?;
                    fortran_order = Some(self.boolean()?);
                }
                "shape" => {
                    self.expect(b':')?;
                    shape = Some(self.shape()?);
                }
                other => {
                    let expected = "'descr', 'fortran_order' or 'shape'";
                    return Err(Fault::new(at, expected, quoted(other.as_bytes())));
                }
            }
            if self.peek() == Some(b',') {
                self.at += 1;
            } else if self.peek() != Some(b'}') {
                return Err(self.unexpected("',' or '}'"));
            }
        }
        let missing = |key: &str| Fault::new(0, format!("'{key}' in the header"), "none");
        let (element, big_endian) = descr.ok_or_else(|| missing("descr"))?;
        let fortran_order = fortran_order.ok_or_else(|| missing("fortran_order"))?;
        let shape = shape.ok_or_else(|| missing("shape"))?;
        Ok(Header { element, big_endian, fortran_order, shape })
    }

    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn unexpected(&self, expected: &str) -> Fault {
        let rest = &self.text[self.at.min(self.text.len())..];
        let found =
            if rest.is_empty() { "the end of the header".into() } else { quoted(&rest[..1]) };
        Fault::new(self.at, expected, found)
    }

    fn expect(&mut self, byte: u8) -> Parsed<()> {
        if self.peek() != Some(byte) {
            return Err(self.unexpected(&format!("'{}'", byte as char)));
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Parsed<String> {
        let Some(quote @ (b'\'' | b'"')) = self.peek() else {
            return Err(self.unexpected("a quoted string"));
        };
        let start = self.at + 1;
        let Some(length) = self.text[start..].iter().position(|b| *b == quote) else {
            return Err(Fault::new(self.at, "a closing quote", "none"));
        };
        self.at = start + length + 1;
        Ok(String::from_utf8_lossy(&self.text[start..start + length]).into_owned())
    }

    fn boolean(&mut self) -> Parsed<bool> {
        self.peek();
        for (word, value) in [(&b"True"[..], true), (b"False", false)] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.unexpected("True or False"))
    }

    fn shape(&mut self) -> Parsed<Vec<usize>> {
        self.expect(b'(')?;
        let mut shape = Vec::new();
        while self.peek() != Some(b')') {
            let digits = self.text[self.at..].iter().take_while(|b| b.is_ascii_digit()).count();
            let text = std::str::from_utf8(&self.text[self.at..self.at + digits]).unwrap_or("");
            let Ok(size) = text.parse() else {
                return Err(self.unexpected("a size"));
            };
            shape.push(size);
            self.at += digits;
            if self.peek() == Some(b',') {
                self.at += 1;
            } else if self.peek() != Some(b')') {
                return Err(self.unexpected("',' or ')'"));
            }
        }
        self.at += 1;
        Ok(shape)
    }
}

fn bad_type(at: usize, descr: &str) -> Fault {
    let kind = match descr.trim_start_matches(['<', '>', '|', '=']).chars().next() {
        Some('O') => "Python objects",
        Some('U' | 'S') => "text",
        Some('c') => "complex numbers",
        Some('M' | 'm') => "dates",
        _ => "an unknown type",
    };
    let expected = "numbers or booleans ('<f8', '<f4', '<i8', '|u1', '|b1', ...)";
    Fault::new(at, expected, format!("'{}' ({kind})", descr.escape_default()))
}

/// The type a `descr` names, and whether it is big-endian.
fn element(descr: &str) -> Option<(Element, bool)> {
    let (order, kind) = match descr.as_bytes() {
        [order @ (b'<' | b'>' | b'|' | b'='), ..] => (*order, &descr[1..]),
        _ => (b'=', descr),
    };
    let element = match kind {
        "b1" | "?" => Element::Bool,
        "u1" => Element::U8,
        "i1" => Element::I8,
        "u2" => Element::U16,
        "i2" => Element::I16,
        "u4" => Element::U32,
        "i4" => Element::I32,
        "u8" => Element::U64,
        "i8" => Element::I64,
        "f2" => Element::F16,
        "f4" => Element::F32,
        "f8" => Element::F64,
        _ => return None,
    };
    if order == b'|' && element.size() > 1 {
        return None;
    }
    Some((element, order == b'>' || (order == b'=' && cfg!(target_endian = "big"))))
}
