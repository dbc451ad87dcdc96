//! The bytes of a chunk.
//!
//! After a CRC-32 of all that follows come the kind of values, the numbers of rows and stored values,
//! the labels, the lengths of the rows (LEB128), the bytes that a difference of column indices takes
//! in each row, those differences and the values, all little-endian.

use std::mem::take;

use crate::data::{Csr, is_exact_in_single};

/// Rows with their labels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chunk {
    /// The rows.
    pub rows: Rows,
    /// A label or target of every row.
    pub labels: Vec<f64>,
}

/// Buffers of earlier chunks, which the next ones use again.
#[derive(Default)]
pub(crate) struct ChunkBuffers {
    pub(super) bytes: Vec<u8>,
    labels: Vec<f64>,
    starts: Vec<usize>,
    indices: Vec<u32>,
    single: Vec<f32>,
    double: Vec<f64>,
}

impl ChunkBuffers {
    /// Takes back what a chunk that is no longer needed has.
    pub(crate) fn take_back(&mut self, chunk: Chunk) {
        self.labels = chunk.labels;
        (self.starts, self.indices) = match chunk.rows {
            Rows::Ones(table) => {
                let (starts, indices, _) = table.into_parts();
                (starts, indices)
            }
            Rows::Single(table) => {
                let (starts, indices, values) = table.into_parts();
                self.single = values;
                (starts, indices)
            }
            Rows::Double(table) => {
                let (starts, indices, values) = table.into_parts();
                self.double = values;
                (starts, indices)
            }
        };
    }
}

/// The rows of a chunk by what is stored of their values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rows {
    /// Every value is 1.
    Ones(Csr<()>),
    /// Single precision.
    Single(Csr<f32>),
    /// Double precision.
    Double(Csr<f64>),
}

impl Rows {
    /// Takes rows in the smallest form that `single` allows.
    pub(crate) fn new(table: Csr<f64>, single: bool) -> Self {
        if table.values().iter().all(|v| *v == 1.0) {
            Self::Ones(table.map(|_| ()))
        } else if single || is_exact_in_single(table.values()) {
            Self::Single(table.map(|v| v as f32))
        } else {
            Self::Double(table)
        }
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Ones(table) => table.rows(),
            Self::Single(table) => table.rows(),
            Self::Double(table) => table.rows(),
        }
    }

    fn structure(&self) -> (&[usize], &[u32]) {
        match self {
            Self::Ones(table) => (table.indptr(), table.indices()),
            Self::Single(table) => (table.indptr(), table.indices()),
            Self::Double(table) => (table.indptr(), table.indices()),
        }
    }
}

const CHECKSUM: usize = 4;
const HEADER: usize = CHECKSUM + 1 + 8 + 8;

impl Chunk {
    /// The bytes of the chunk.
    pub(super) fn encode(&self) -> Vec<u8> {
        let (starts, indices) = self.rows.structure();
        let mut out = Vec::with_capacity(HEADER + self.labels.len() * 9 + indices.len() * 6);
        let kind = match self.rows {
            Rows::Ones(_) => 0_u8,
            Rows::Single(_) => 1,
            Rows::Double(_) => 2,
        };
        out.extend_from_slice(&[0; CHECKSUM]);
        out.push(kind);
        out.extend_from_slice(&(self.labels.len() as u64).to_le_bytes());
        out.extend_from_slice(&(indices.len() as u64).to_le_bytes());
        for label in &self.labels {
            out.extend_from_slice(&label.to_le_bytes());
        }
        for bounds in starts.windows(2) {
            put(&mut out, (bounds[1] - bounds[0]) as u64);
        }
        let rows = || starts.windows(2).map(|bounds| &indices[bounds[0]..bounds[1]]);
        out.extend(rows().map(|row| width(differences(row).max().unwrap_or(0)) as u8));
        for row in rows() {
            let width = width(differences(row).max().unwrap_or(0));
            for difference in differences(row) {
                out.extend_from_slice(&difference.to_le_bytes()[..width]);
            }
        }
        match &self.rows {
            Rows::Ones(_) => {}
            Rows::Single(table) => {
                table.values().iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes()));
            }
            Rows::Double(table) => {
                table.values().iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes()));
            }
        }
        let sum = crc32fast::hash(&out[CHECKSUM..]);
        out[..CHECKSUM].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// Bytes up to the end of the labels of `rows` rows.
    pub(super) fn labels_end(rows: usize) -> usize {
        HEADER.saturating_add(rows.saturating_mul(8))
    }

    /// The labels in the first bytes of a chunk, whose checksum is verified when it is read whole.
    pub(super) fn decode_labels(bytes: &[u8], rows: usize) -> Result<Vec<f64>, String> {
        let mut from = Bytes { bytes: bytes.get(CHECKSUM + 1..).unwrap_or_default(), at: 0 };
        let (found, _) = (from.count()?, from.count()?);
        if found != rows {
            return Err(format!("expected a chunk of {rows} rows, found {found}"));
        }
        from.numbers(rows, f64::from_le_bytes, Vec::new())
    }

    /// The chunk in `bytes`, with `columns` columns, in the buffers that is there; what is wrong with them
    /// otherwise.
    pub(super) fn decode(
        bytes: &[u8],
        columns: usize,
        buffers: &mut ChunkBuffers,
    ) -> Result<Self, String> {
        if bytes.len() < HEADER {
            return Err("it is cut short".into());
        }
        let (sum, body) = bytes.split_at(CHECKSUM);
        let (expected, found) =
            (u32::from_le_bytes([sum[0], sum[1], sum[2], sum[3]]), crc32fast::hash(body));
        if expected != found {
            return Err(format!("expected checksum {expected:08x}, found {found:08x}"));
        }
        let mut from = Bytes { bytes: &body[1..], at: 0 };
        let (rows, stored) = (from.count()?, from.count()?);
        if rows.saturating_add(stored) > bytes.len() {
            return Err("it announces more rows than it can hold".into());
        }
        let labels = from.numbers(rows, f64::from_le_bytes, take(&mut buffers.labels))?;
        let mut starts = take(&mut buffers.starts);
        starts.clear();
        starts.reserve(rows + 1);
        starts.push(0);
        let mut end = 0_usize;
        for _ in 0..rows {
            end = end.saturating_add(from.length()? as usize);
            starts.push(end);
        }
        if end != stored {
            return Err(format!("expected {stored} stored values, found rows with {end}"));
        }
        let widths = from.take(rows)?;
        let mut indices = take(&mut buffers.indices);
        indices.clear();
        indices.reserve(stored);
        for (bounds, &width) in starts.windows(2).zip(widths) {
            let list = from.take((bounds[1] - bounds[0]).saturating_mul(width.into()))?;
            let end = match width {
                1 => add_up(list, |[a]: [u8; 1]| a.into(), &mut indices),
                2 => add_up(list, |bytes| u16::from_le_bytes(bytes).into(), &mut indices),
                3 => add_up(list, |[a, b, c]| u32::from_le_bytes([a, b, c, 0]), &mut indices),
                4 => add_up(list, u32::from_le_bytes, &mut indices),
                _ => return Err(format!("unknown width of indices {width}")),
            };
            if end > 1 << 32 {
                return Err("an index is too large".into());
            }
        }
        let fail = |error: crate::Error| error.to_string();
        let rows = match body[0] {
            0 => Rows::Ones(Csr::new(columns, starts, indices, vec![(); stored]).map_err(fail)?),
            1 => {
                let values = from.numbers(stored, f32::from_le_bytes, take(&mut buffers.single))?;
                Rows::Single(Csr::new(columns, starts, indices, values).map_err(fail)?)
            }
            2 => {
                let values = from.numbers(stored, f64::from_le_bytes, take(&mut buffers.double))?;
                Rows::Double(Csr::new(columns, starts, indices, values).map_err(fail)?)
            }
            other => return Err(format!("unknown kind of values {other}")),
        };
        Ok(Self { rows, labels })
    }
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// How far every index of a row is from the place after the one before.
fn differences(row: &[u32]) -> impl Iterator<Item = u32> {
    let before = std::iter::once(0).chain(row.iter().map(|index| index + 1));
    row.iter().zip(before).map(|(index, before)| index - before)
}

/// Bytes that a number takes.
fn width(number: u32) -> usize {
    (u32::BITS - number.leading_zeros()).div_ceil(8).max(1) as usize
}

/// Adds the indices whose differences are in `list`; the place after the last.
fn add_up<const N: usize>(
    list: &[u8],
    read: impl Fn([u8; N]) -> u32,
    indices: &mut Vec<u32>,
) -> u64 {
    let mut next = 0_u64;
    indices.extend(list.as_chunks::<N>().0.iter().map(|bytes| {
        let index = next + u64::from(read(*bytes));
        next = index + 1;
        index as u32
    }));
    next
}

/// Bytes taken one field at a time.
struct Bytes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let end = self.at.checked_add(length);
        let list = end.and_then(|end| self.bytes.get(self.at..end)).ok_or("it is cut short")?;
        self.at += length;
        Ok(list)
    }

    fn numbers<T, const N: usize>(
        &mut self,
        count: usize,
        read: impl Fn([u8; N]) -> T,
        mut numbers: Vec<T>,
    ) -> Result<Vec<T>, String> {
        let list = self.take(count.saturating_mul(N))?;
        numbers.clear();
        numbers.extend(list.as_chunks::<N>().0.iter().map(|bytes| read(*bytes)));
        Ok(numbers)
    }

    fn count(&mut self) -> Result<usize, String> {
        let value = self.numbers(1, u64::from_le_bytes, Vec::new())?[0];
        usize::try_from(value).map_err(|_| "a count is too large".into())
    }

    fn length(&mut self) -> Result<u64, String> {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let &byte = self.bytes.get(self.at).ok_or("it is cut short")?;
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
            if shift > 56 {
                return Err("a number is too long".into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(values: Vec<f64>, single: bool) -> Chunk {
        let table = Csr::new(70_000, vec![0, 2, 2, 5], vec![0, 69_999, 3, 4, 400], values).unwrap();
        Chunk { rows: Rows::new(table, single), labels: vec![1.0, -1.0, 0.25] }
    }

    #[test]
    fn chunks_come_back_as_they_were() {
        let mut buffers = ChunkBuffers::default();
        for (values, single, kind) in [
            (vec![1.0; 5], false, 0),
            (vec![1.0, 0.5, 2.0, -3.0, 4.0], false, 1),
            (vec![0.1; 5], true, 1),
            (vec![0.1; 5], false, 2),
        ] {
            let chunk = chunk(values, single);
            let bytes = chunk.encode();
            assert_eq!(bytes[CHECKSUM], kind);
            assert_eq!(Chunk::decode(&bytes, 70_000, &mut buffers).unwrap(), chunk);
            buffers.take_back(chunk);
        }
    }

    #[test]
    fn damage_is_noticed() {
        let bytes = chunk(vec![0.1; 5], false).encode();
        let decode = |bytes: &[u8]| Chunk::decode(bytes, 70_000, &mut ChunkBuffers::default());
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(decode(&damaged).is_err(), "byte {at}");
            assert!(decode(&bytes[..at]).is_err(), "cut at {at}");
        }
        assert!(
            Chunk::decode(&bytes, 100, &mut ChunkBuffers::default())
                .unwrap_err()
                .contains("indices")
        );
    }
}
