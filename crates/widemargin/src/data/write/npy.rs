//! NumPy's NPY files (version 1, little-endian, C order) from a table or its labels.

use std::io::{self, Write};
use std::path::Path;

use super::write_atomically;
use crate::data::{Labels, Matrix, memory};
use crate::error::{Error, Result};

/// Writes the table as a 2-D array of its own precision; sparse tables are written out in full.
///
/// # Errors
/// What `out` says.
pub fn write_npy(out: &mut dyn Write, features: &Matrix) -> io::Result<()> {
    let single = matches!(features, Matrix::DenseF32(_) | Matrix::SparseF32(_));
    let shape = format!("({}, {})", features.rows(), features.columns());
    write_header(out, if single { "<f4" } else { "<f8" }, &shape)?;
    let mut row = vec![0.0; features.columns()];
    for i in 0..features.rows() {
        features.copy_row(i, &mut row);
        for value in &row {
            if single {
                out.write_all(&(*value as f32).to_le_bytes())?;
            } else {
                out.write_all(&value.to_le_bytes())?;
            }
        }
    }
    Ok(())
}

/// Saves the table, all of it or nothing; see [`write_npy`].
///
/// # Errors
/// [`Error::Io`]; [`Error::TooLarge`] when there is no memory for one row.
pub fn save_npy(path: impl AsRef<Path>, features: &Matrix) -> Result<()> {
    let columns = features.columns();
    memory::check(|| format!("a row of {columns} columns"), 8 * columns as u128)?;
    write_atomically(path.as_ref(), |out| write_npy(out, features))
}

/// Saves whole or real labels as a 1-D array, all of it or nothing.
///
/// # Errors
/// [`Error::Labels`] for words or no labels, [`Error::Io`].
pub fn save_npy_labels(path: impl AsRef<Path>, labels: &Labels) -> Result<()> {
    let unfit = |found: &str| {
        Err(Error::Labels { expected: "numbers for an NPY file".into(), found: found.into() })
    };
    let shape = format!("({},)", labels.len());
    match labels {
        Labels::None => unfit("no labels"),
        Labels::Text(_) => unfit("words"),
        Labels::Int(values) => write_atomically(path.as_ref(), |out| {
            write_header(out, "<i8", &shape)?;
            values.iter().try_for_each(|value| out.write_all(&value.to_le_bytes()))
        }),
        Labels::Real(values) => write_atomically(path.as_ref(), |out| {
            write_header(out, "<f8", &shape)?;
            values.iter().try_for_each(|value| out.write_all(&value.to_le_bytes()))
        }),
    }
}

fn write_header(out: &mut dyn Write, descr: &str, shape: &str) -> io::Result<()> {
    const PREAMBLE: usize = 10;
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // The values begin at a multiple of 64 bytes, after a newline.
    let length = (PREAMBLE + text.len() + 1).next_multiple_of(64) - PREAMBLE;
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&(length as u16).to_le_bytes())?;
    writeln!(out, "{text:<width$}", width = length - 1)
}
