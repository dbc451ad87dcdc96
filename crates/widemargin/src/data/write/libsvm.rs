//! LIBSVM text from a data set.
//!
//! [`write_libsvm`] writes every number in the shortest form that reads back as itself;
//! [`write_svm_scale`] writes the bytes LIBSVM's `svm-scale` would. Zeros are left out in both.

use std::io::{self, Write};
use std::path::Path;

use super::number::{general, push_shortest};
use super::write_atomically;
use crate::data::{Dataset, Labels, Matrix};
use crate::error::Result;

/// Writes `data` as LIBSVM text with features counted from `first_index` (1 unless the data came from
/// a 0-based file); rows without labels get the label 0.
///
/// # Errors
/// What `out` says, or `InvalidInput` for a word that cannot be a label of this format because it is
/// empty or has a blank, a control character, `:` or `#` in it.
pub fn write_libsvm(out: &mut dyn Write, data: &Dataset, first_index: u32) -> io::Result<()> {
    let mut line = String::new();
    for i in 0..data.rows() {
        line.clear();
        push_label(&mut line, data.labels(), i)?;
        if let Some(groups) = data.groups() {
            line.push_str(&format!(" qid:{}", groups[i]));
        }
        push_features(&mut line, data.features(), i, first_index as usize);
        line.push('\n');
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}

/// Saves LIBSVM text, all of it or nothing; see [`write_libsvm`].
///
/// # Errors
/// [`Error::Io`](crate::Error::Io).
pub fn save_libsvm(path: impl AsRef<Path>, data: &Dataset, first_index: u32) -> Result<()> {
    write_atomically(path.as_ref(), |out| write_libsvm(out, data, first_index))
}

/// Writes `data` exactly as `svm-scale` prints its result: labels as `%.17g`, values as `%g`, a blank
/// after each.
///
/// # Errors
/// As [`write_libsvm`].
pub fn write_svm_scale(out: &mut dyn Write, data: &Dataset, first_index: u32) -> io::Result<()> {
    let mut line = String::new();
    for i in 0..data.rows() {
        line.clear();
        match data.labels() {
            Labels::Real(values) => line.push_str(&general(values[i], 17)),
            labels => push_label(&mut line, labels, i)?,
        }
        line.push(' ');
        data.features().for_each_nonzero(i, |j, value| {
            line.push_str(&format!("{}:{} ", j + first_index as usize, general(value, 6)));
        });
        line.push('\n');
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}

fn push_label(line: &mut String, labels: &Labels, i: usize) -> io::Result<()> {
    match labels {
        Labels::None => line.push('0'),
        Labels::Int(values) => line.push_str(&values[i].to_string()),
        Labels::Real(values) => push_shortest(line, values[i]),
        Labels::Text(words) => {
            let word = &words[i];
            let unfit =
                |c: char| c.is_ascii_whitespace() || c.is_ascii_control() || c == ':' || c == '#';
            if word.is_empty() || word.contains(unfit) {
                let message =
                    format!("row {}: the label {word:?} cannot be written in LIBSVM text", i + 1);
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
            line.push_str(word);
        }
    }
    Ok(())
}

fn push_features(line: &mut String, features: &Matrix, i: usize, first_index: usize) {
    let push_index = |line: &mut String, j: usize| {
        line.push(' ');
        line.push_str(&(j + first_index).to_string());
        line.push(':');
    };
    match features {
        // Single precision is written in its own shortest form, not in that of the double it widens to.
        Matrix::DenseF32(_) | Matrix::SparseF32(_) => features.for_each_nonzero(i, |j, value| {
            push_index(line, j);
            push_shortest(line, value as f32);
        }),
        Matrix::DenseF64(_) | Matrix::SparseF64(_) => features.for_each_nonzero(i, |j, value| {
            push_index(line, j);
            push_shortest(line, value);
        }),
    }
}
