//! Delimited text from a data set: a header, one row per line, the label last.

use std::io::{self, Write};
use std::path::Path;

use super::number::push_shortest;
use super::write_atomically;
use crate::data::{Dataset, Labels, Matrix, memory};
use crate::error::Result;

/// Writes `data` with a header of its feature names (`x1`, `x2`, ... if it has none) and, if it has
/// labels, a last column `label`; numbers are in the shortest form that reads back as itself.
///
/// # Errors
/// What `out` says.
pub fn write_csv(out: &mut dyn Write, data: &Dataset, delimiter: u8) -> io::Result<()> {
    write_records(out, data, delimiter).map_err(|error| match error.into_kind() {
        csv::ErrorKind::Io(source) => source,
        other => io::Error::other(format!("{other:?}")),
    })
}

fn write_records(out: &mut dyn Write, data: &Dataset, delimiter: u8) -> csv::Result<()> {
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
    let labelled = !matches!(data.labels(), Labels::None);
    let single = matches!(data.features(), Matrix::DenseF32(_) | Matrix::SparseF32(_));
    let mut header = match data.feature_names() {
        Some(names) => names.to_vec(),
        None => (1..=data.columns()).map(|j| format!("x{j}")).collect(),
    };
    if labelled {
        header.push("label".into());
    }
    writer.write_record(&header)?;
    let mut row = vec![0.0; data.columns()];
    let mut text = String::new();
    for i in 0..data.rows() {
        data.features().copy_row(i, &mut row);
        for value in &row {
            text.clear();
            if single {
                push_shortest(&mut text, *value as f32);
            } else {
                push_shortest(&mut text, *value);
            }
            writer.write_field(&text)?;
        }
        if let Some(label) = data.labels().get(i) {
            writer.write_field(label.to_string())?;
        }
        writer.write_record(None::<&[u8]>)?;
    }
    Ok(writer.flush()?)
}

/// Saves text with fields between commas or other delimiters, all of it or nothing; see [`write_csv`].
///
/// # Errors
/// [`Error::Io`](crate::Error::Io); [`Error::TooLarge`](crate::Error::TooLarge) when there is no memory for
/// one row.
pub fn save_csv(path: impl AsRef<Path>, data: &Dataset, delimiter: u8) -> Result<()> {
    // A name and a number of every column.
    let bytes = (size_of::<String>() + 16 + 8) as u128 * data.columns() as u128;
    memory::check(|| format!("a row of {} columns", data.columns()), bytes)?;
    write_atomically(path.as_ref(), |out| write_csv(out, data, delimiter))
}
