//! Views: kernels of some columns, or of a file of their own with the same rows.
//!
//! The columns of such files come before those of the data file, so that their places are known before the data
//! is read, and stay where LIBSVM text has columns at its end that the training rows had not.

use std::path::{Path, PathBuf};

use clap::Args;
use widemargin::data::Dataset;
use widemargin::data::read::{Column, ColumnRole, Format, LabelColumn, Loaded, ReadOptions, read};

use crate::failure::{CommandResult, Failure};

/// Names of columns that hold labels.
const LABEL_NAMES: [&str; 4] = ["label", "class", "target", "y"];

/// A kernel of some columns or of a file.
#[derive(Clone, Debug)]
pub(crate) struct View {
    rows: Rows,
    /// With its parameters, as --kernels reads it.
    kernel: String,
}

#[derive(Clone, Debug)]
enum Rows {
    /// Columns of the data file, counted from 1.
    Columns(String),
    /// A file and its number of columns.
    File(PathBuf, usize),
}

/// Files with more columns of the rows that a model predicts.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ViewFiles {
    /// A file with more columns of the rows of DATA, for a model that was trained with --view
    /// NAME=FILE:KERNEL; as many and in the same order as there
    #[arg(long = "view-file", value_name = "FILE", help_heading = "Input")]
    pub(crate) paths: Vec<PathBuf>,
}

/// Reads `shape=1-4,7:rbf:gamma=0.5` or `shape=FILE:rbf:gamma=0.5`.
pub(crate) fn view(text: &str) -> Result<View, String> {
    let parts = text.split_once('=').and_then(|(name, rest)| {
        let (rows, kernel) = rest.split_once(':')?;
        let (kernel, parameters) = kernel.split_once(':').unwrap_or((kernel, ""));
        let given = [name, rows, kernel].iter().all(|part| !part.trim().is_empty());
        given.then_some((rows, kernel, parameters))
    });
    let Some((rows, kernel, parameters)) = parts else {
        return Err(
            "expected NAME=COLUMNS:KERNEL such as shape=1-4:rbf:gamma=0.5, or NAME=FILE:KERNEL"
                .to_owned(),
        );
    };
    let kernel = match parameters {
        "" => kernel.to_owned(),
        _ => format!("{kernel}({parameters})"),
    };
    let are_columns = rows.chars().all(|c| c.is_ascii_digit() || " ,-".contains(c));
    let rows = match are_columns {
        true => Rows::Columns(rows.to_owned()),
        false => {
            let table = read_view(Path::new(rows)).map_err(|error| error.to_string())?;
            Rows::File(PathBuf::from(rows), table.columns())
        }
    };
    Ok(View { rows, kernel })
}

/// The kernels of a list and those of views, as --kernels reads them.
///
/// # Errors
/// For kernels of a list that name columns beside views of files, whose columns come first.
pub(crate) fn with_views(kernels: Option<&str>, views: &[View]) -> Result<Option<String>, String> {
    let widths = views.iter().map(|view| match view.rows {
        Rows::File(_, width) => width,
        Rows::Columns(_) => 0,
    });
    let total: usize = widths.sum();
    if total > 0 && kernels.is_some_and(|kernels| kernels.contains("view(")) {
        return Err(
            "--view NAME=FILE:KERNEL goes with --view NAME=COLUMNS:KERNEL, not with columns \
                    in --kernels"
                .to_owned(),
        );
    }
    let mut start = 0;
    let mut all: Vec<String> = kernels.map(str::to_owned).into_iter().collect();
    for view in views {
        let columns = match &view.rows {
            Rows::Columns(columns) => shifted(columns, total)?,
            Rows::File(_, width) => {
                start += width;
                format!("{}-{start}", start - width + 1)
            }
        };
        all.push(format!("view({columns}: {})", view.kernel));
    }
    Ok((!all.is_empty()).then(|| all.join(", ")))
}

/// The files of views.
pub(crate) fn view_files(views: &[View]) -> Vec<PathBuf> {
    let file = |view: &View| match &view.rows {
        Rows::File(path, _) => Some(path.clone()),
        Rows::Columns(_) => None,
    };
    views.iter().filter_map(file).collect()
}

/// Columns such as `1-4,7` further right.
fn shifted(columns: &str, by: usize) -> Result<String, String> {
    if by == 0 {
        return Ok(columns.to_owned());
    }
    let number = |text: &str| {
        let number = text.trim().parse::<usize>().ok().and_then(|number| number.checked_add(by));
        number.map(|number| number.to_string()).ok_or_else(|| {
            format!("'{columns}': expected columns such as 1-4,7 in --view, found '{text}'")
        })
    };
    let range = |range: &str| {
        range.split('-').map(number).collect::<Result<Vec<_>, _>>().map(|ends| ends.join("-"))
    };
    columns.split(',').map(range).collect::<Result<Vec<_>, _>>().map(|parts| parts.join(","))
}

/// The rows of a view's file: numbers in all columns, but for one that is named as labels are and says that the
/// rows are in the order of the data file.
fn read_view(path: &Path) -> CommandResult<Dataset> {
    let fail = |what: String| Failure::usage(format!("{}: {what}", path.display()));
    let options = ReadOptions::new();
    let is_libsvm = |loaded: &Loaded| loaded.format == Format::Libsvm;
    let mut loaded = match read(path, &options.clone().label_column(LabelColumn::Absent)) {
        Ok(loaded) if !is_libsvm(&loaded) => loaded,
        // Labels at the beginnings of lines are no numbers of columns.
        Err(error) if !read(path, &options).is_ok_and(|loaded| is_libsvm(&loaded)) => {
            return Err(error.into());
        }
        _ => {
            let what = "expected a table (CSV, TSV, NPY, Parquet or IDX) in a view's file";
            return Err(fail(format!("{what}, found LIBSVM text, which has no number of columns")));
        }
    };
    let is_label = |name: &str| LABEL_NAMES.iter().any(|label| name.eq_ignore_ascii_case(label));
    if let Some(label) = loaded.columns.iter().find(|column| is_label(&column.name)) {
        let column = Column::Name(label.name.clone());
        loaded = read(path, &options.label_column(LabelColumn::At(column)))?;
    }
    let mut features = loaded.columns.iter().filter(|column| column.role != ColumnRole::Label);
    if let Some(words) = features.find(|column| column.words.is_some()) {
        return Err(fail(format!(
            "expected numbers in a view's file, found words in column '{}'",
            words.name
        )));
    }
    Ok(loaded.dataset)
}

/// The rows with the columns of files before theirs.
pub(crate) fn with_files(mut data: Dataset, files: &[PathBuf]) -> CommandResult<Dataset> {
    for path in files.iter().rev() {
        let left = read_view(path)?;
        data = data
            .after(&left)
            .map_err(|error| Failure::Message(format!("{}: {error}", path.display())))?;
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_the_data_follow_those_of_files() {
        let file = View { rows: Rows::File("a.csv".into(), 3), kernel: "rbf".into() };
        let columns = view("x=1-2, 4:poly:degree=2").unwrap();
        let words = |kernels, views: &[View]| with_views(kernels, views);
        let both = [columns.clone(), file.clone(), file];
        let expected = "linear, view(7-8,10: poly(degree=2)), view(1-3: rbf), view(4-6: rbf)";
        assert_eq!(words(Some("linear"), &both).unwrap().unwrap(), expected);
        let alone = words(None, &[columns]).unwrap().unwrap();
        assert_eq!(alone, "view(1-2, 4: poly(degree=2))");
        assert_eq!(words(None, &[]), Ok(None));
        assert!(words(Some("view(1: rbf)"), &both).unwrap_err().contains("not with columns"));
        assert!(view("x=none.csv:rbf").unwrap_err().contains("none.csv"));
    }
}
