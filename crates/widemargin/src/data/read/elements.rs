//! Arrays of fixed-size numbers in binary files, turned into features or labels.

use std::path::Path;

use super::number::whole_value;
use super::options::{ReadOptions, StoredPrecision};
use super::place::Fault;
use crate::data::{Dense, Labels, Matrix};
use crate::error::{Error, Result};

/// Type of the numbers of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    F32,
    F64,
}

impl Element {
    pub(super) fn size(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Whether single precision keeps every value.
    fn fits_f32(self) -> bool {
        self.size() <= 2 || self == Self::F32
    }

    fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }
}

/// The numbers of an array as they lie in the file, row-major.
pub(super) struct Elements<'a> {
    pub(super) element: Element,
    pub(super) big_endian: bool,
    /// Exactly as many bytes as the array has.
    pub(super) bytes: &'a [u8],
    /// Where those bytes begin in the file.
    pub(super) offset: usize,
}

impl Elements<'_> {
    fn get<const N: usize>(&self, i: usize) -> [u8; N] {
        let mut raw = [0; N];
        raw.copy_from_slice(&self.bytes[i * N..(i + 1) * N]);
        if self.big_endian {
            raw.reverse();
        }
        raw
    }

    fn count(&self) -> usize {
        self.bytes.len() / self.element.size()
    }

    /// Element `i` as the nearest double.
    fn number(&self, i: usize) -> f64 {
        match self.element {
            Element::Bool => f64::from(u8::from(self.bytes[i] != 0)),
            Element::U8 => f64::from(self.bytes[i]),
            Element::I8 => f64::from(self.bytes[i] as i8),
            Element::U16 => f64::from(u16::from_le_bytes(self.get(i))),
            Element::I16 => f64::from(i16::from_le_bytes(self.get(i))),
            Element::U32 => f64::from(u32::from_le_bytes(self.get(i))),
            Element::I32 => f64::from(i32::from_le_bytes(self.get(i))),
            Element::U64 => u64::from_le_bytes(self.get(i)) as f64,
            Element::I64 => i64::from_le_bytes(self.get(i)) as f64,
            Element::F16 => half(u16::from_le_bytes(self.get(i))),
            Element::F32 => f64::from(f32::from_le_bytes(self.get(i))),
            Element::F64 => f64::from_le_bytes(self.get(i)),
        }
    }

    /// Element `i` as a whole number, if it is one.
    fn whole(&self, i: usize) -> Option<i64> {
        match self.element {
            Element::U64 => i64::try_from(u64::from_le_bytes(self.get(i))).ok(),
            Element::I64 => Some(i64::from_le_bytes(self.get(i))),
            _ => whole_value(self.number(i)),
        }
    }

    /// The array as a dense table; `source(row, column)` says which element stands there.
    pub(super) fn table(
        &self,
        rows: usize,
        columns: usize,
        source: impl Fn(usize, usize) -> usize,
        path: &Path,
        options: &ReadOptions,
    ) -> Result<Matrix> {
        if rows == 0 || columns == 0 {
            let what = if rows == 0 { "row" } else { "feature" };
            let message = format!("expected at least one {what}, found none");
            return Err(Error::Format { path: path.to_owned(), message });
        }
        if columns > options.most_columns() {
            let expected =
                format!("at most {} features (the limit on columns)", options.most_columns());
            return Err(Fault::new(0, expected, columns.to_string()).in_binary(path));
        }
        if self.element.is_float() && !options.allow_non_finite {
            self.check_finite(rows, columns, &source, path)?;
        }
        let single = match options.precision {
            StoredPrecision::Auto => self.element.fits_f32(),
            StoredPrecision::F32 => true,
            StoredPrecision::F64 => false,
        };
        let places = || (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j)));
        let matrix = if single {
            let values = places().map(|(i, j)| self.number(source(i, j)) as f32).collect();
            Matrix::DenseF32(Dense::new(rows, columns, values)?)
        } else {
            let values = places().map(|(i, j)| self.number(source(i, j))).collect();
            Matrix::DenseF64(Dense::new(rows, columns, values)?)
        };
        let matrix = matrix.into_layout(options.layout);
        match options.columns {
            Some(columns) => matrix.with_columns(columns),
            None => Ok(matrix),
        }
    }

    fn check_finite(
        &self,
        rows: usize,
        columns: usize,
        source: &impl Fn(usize, usize) -> usize,
        path: &Path,
    ) -> Result<()> {
        for i in 0..rows {
            for j in 0..columns {
                let at = source(i, j);
                let value = self.number(at);
                if !value.is_finite() {
                    let found = format!("{value} in row {}, feature {}", i + 1, j + 1);
                    let at = self.offset + at * self.element.size();
                    return Err(Fault::new(at, "a finite number", found).in_binary(path));
                }
            }
        }
        Ok(())
    }

    /// The array as labels: whole numbers if all are, else real.
    pub(super) fn labels(&self, path: &Path) -> Result<Labels> {
        if let Some(whole) = (0..self.count()).map(|i| self.whole(i)).collect() {
            return Ok(Labels::Int(whole));
        }
        let values: Vec<f64> = (0..self.count()).map(|i| self.number(i)).collect();
        match values.iter().position(|v| !v.is_finite()) {
            Some(i) => {
                let found = format!("{} in row {}", values[i], i + 1);
                let at = self.offset + i * self.element.size();
                Err(Fault::new(at, "a finite label", found).in_binary(path))
            }
            None => Ok(Labels::Real(values)),
        }
    }
}

/// A 16-bit float: sign, 5 bits of exponent (bias 15), 10 of fraction.
fn half(bits: u16) -> f64 {
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff) / 1024.0;
    let magnitude = match exponent {
        0 => fraction * 2_f64.powi(-14),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        _ => (1.0 + fraction) * 2_f64.powi(exponent - 15),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn half_precision_values_of_the_standard() {
        // IEEE 754-2008 binary16: largest, smallest normal, smallest subnormal, one third, minus two.
        assert_eq!(half(0x7bff), 65504.0);
        assert_eq!(half(0x0400), 6.103515625e-05);
        assert_eq!(half(0x0001), 5.960464477539063e-08);
        assert_eq!(half(0x3555), 0.333251953125);
        assert_eq!(half(0xc000), -2.0);
        assert_eq!(half(0xfc00), f64::NEG_INFINITY);
        assert!(half(0x7e00).is_nan());
    }
}
