//! The message for every bad input of `docs/errors.md`: the table there is this test.
//!
//! Each row of the table names a case of [`cases`]; the message in the row must be the one the
//! library gives, with `FILE` for the path.

use std::fs;
use std::path::{Path, PathBuf};

use widemargin::Error;
use widemargin::data::read::{
    Column, Format, IndexBase, LabelColumn, ReadOptions, read, read_dataset,
};
use widemargin::data::scaling::{RangeScaling, Scaler};
use widemargin::data::{Dense, Layout, Matrix};

use crate::common::assert_documented;

/// A bad input: how `docs/errors.md` describes it, and the error it gives.
struct Case {
    input: &'static str,
    error: Error,
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn file(&self, content: &[u8]) -> PathBuf {
        let path = self.0.path().join("FILE");
        fs::write(&path, content).unwrap();
        path
    }

    fn read(&self, input: &'static str, content: &[u8], options: &ReadOptions) -> Case {
        let error = read(self.file(content), options).map(|l| l.dataset).expect_err(input);
        Case { input, error }
    }

    fn text(&self, input: &'static str, content: &str) -> Case {
        self.read(input, content.as_bytes(), &ReadOptions::new())
    }

    fn csv(&self, input: &'static str, content: &str) -> Case {
        let options = ReadOptions::new().format(Format::Csv);
        self.read(input, content.as_bytes(), &options)
    }

    fn range(&self, input: &'static str, content: &str) -> Case {
        let error = RangeScaling::load_range_file(self.file(content.as_bytes())).expect_err(input);
        Case { input, error }
    }
}

fn npy(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/npy");
    fs::read(folder.join(name)).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn libsvm_cases(dir: &Folder) -> Vec<Case> {
    let plain = ReadOptions::new();
    let from_one = plain.clone().index_base(IndexBase::One);
    let three = plain.clone().columns(3);
    let dense = plain.clone().layout(Layout::Dense);
    vec![
        dir.text("`1 1:nan`", "1 1:nan\n"),
        dir.text("`1 1:inf`", "1 1:inf\n"),
        dir.text("`1 1:1e999` (too large for a double)", "1 1:1e999\n"),
        dir.text("`1 1:1 1:2` (index twice)", "1 1:1 1:2\n"),
        dir.text("`1 3:1 2:2` (indices descend)", "1 3:1 2:2\n"),
        dir.read("`1 0:1`, indices declared to count from 1", b"1 0:1\n", &from_one),
        dir.text("`1 4294967295:1`", "1 4294967295:1\n"),
        dir.text("`1 99999999999999999999:1`", "1 99999999999999999999:1\n"),
        dir.read("`1 4:1`, three columns declared", b"1 4:1\n", &three),
        dir.read(
            "`1 99999999:1` ten thousand times, dense storage asked for",
            "1 99999999:1\n".repeat(10_000).as_bytes(),
            &dense,
        ),
        dir.text("`1 1:1 7` (colon missing)", "1 1:1 7\n"),
        dir.text("`1 1:` (value missing)", "1 1:\n"),
        dir.text("`1 1:abc`", "1 1:abc\n"),
        dir.text("`1 -1:2`", "1 -1:2\n"),
        dir.text("`1 1:2x 2:1`", "1 1:2x 2:1\n"),
        dir.text("`1 1:2,2:1`", "1 1:2,2:1\n"),
        dir.text("`1:2 2:3` (label missing)", "1:2 2:3\n"),
        dir.text("`nan 1:1` (label NaN)", "nan 1:1\n"),
        dir.text("a label of control characters (a binary file?)", "\u{1}\u{2} 1:1\n"),
        dir.text("`1 qid:x 1:1`", "1 qid:x 1:1\n"),
        dir.text("`qid` on some rows only", "1 qid:1 1:1\n2 1:1\n"),
        dir.text("an empty file", ""),
        dir.text("a file of comments and blank lines", "# nothing\n\n"),
    ]
}

fn file_cases(dir: &Folder) -> Vec<Case> {
    let plain = ReadOptions::new();
    let mut cases = vec![
        Case {
            input: "a file that does not exist",
            error: read_dataset(dir.0.path().join("FILE"), &plain).unwrap_err(),
        },
        Case {
            input: "a folder instead of a file",
            error: {
                let path = dir.0.path().join("FILE");
                fs::create_dir(&path).unwrap();
                let error = read_dataset(&path, &plain).unwrap_err();
                fs::remove_dir(&path).unwrap();
                error
            },
        },
    ];
    let packed = gzip(b"1 1:1\n-1 1:2\n");
    let mut damaged = packed.clone();
    let crc = damaged.len() - 8;
    damaged[crc] ^= 1;
    cases.push(dir.read("a truncated `.gz`", &packed[..packed.len() - 9], &plain));
    cases.push(dir.read(
        "an archive that unpacks to 13 bytes where 12 are allowed",
        &packed,
        &ReadOptions::new().max_unpacked(12),
    ));
    cases.push(dir.read("a `.gz` with a wrong checksum", &damaged, &plain));
    cases
}

fn csv_cases(dir: &Folder) -> Vec<Case> {
    let labelled = |column: Column| {
        ReadOptions::new().format(Format::Csv).label_column(LabelColumn::At(column))
    };
    let named = labelled(Column::Name("species".into()));
    vec![
        dir.csv("CSV: a row with too few fields", "a,b,c\n1,2,3\n4,5\n"),
        dir.csv("CSV: a row with too many fields", "a,b,c\n1,2,3\n4,5,6,7\n"),
        dir.read("CSV: a label column that is not there", b"a,b,c\n1,2,3\n", &named),
        dir.read("CSV: a label column by name, but no header", b"1,2,3\n4,5,6\n", &named),
        dir.read("CSV: label column 7 of 3", b"a,b,c\n1,2,3\n", &labelled(Column::Index(7))),
        dir.csv("CSV: an empty field", "a,b,c\n1,,3\n"),
        dir.csv("CSV: a missing label", "a,b,class\n1,2,?\n"),
        dir.csv("CSV: an infinite value", "a,b,c\n1,-inf,3\n"),
        dir.csv(
            "CSV: a word among numbers",
            "a,class\n1,0\n2,1\n3,0\n4,1\n5,0\n6,1\n7,0\n8,1\n9,0\n1O,1\n",
        ),
        dir.csv("CSV: only a header", "a,b,c\n"),
        dir.csv("CSV: nothing but labels", "class\n1\n2\n"),
    ]
}

fn binary_cases(dir: &Folder) -> Vec<Case> {
    let plain = ReadOptions::new();
    let as_npy = plain.clone().format(Format::Npy);
    let whole = npy("le_f8.npy");
    let idx = |sizes: [u32; 3], values: usize| {
        let mut bytes = vec![0, 0, 8, 3];
        sizes.iter().for_each(|size| bytes.extend(size.to_be_bytes()));
        bytes.resize(bytes.len() + values, 1);
        bytes
    };
    let labels = dir.0.path().join("LABELS");
    fs::write(&labels, "1\n2\n3\n").unwrap();
    let with_labels = plain.clone().labels_path(&labels);
    let mut cases = vec![
        dir.read("NPY: another signature", b"PK\x03\x04 not an array", &as_npy),
        dir.read("NPY: truncated", &whole[..whole.len() - 5], &plain),
        dir.read("NPY: three dimensions", &npy("cube.npy"), &plain),
        dir.read("NPY: Python objects", &npy("objects.npy"), &plain),
        dir.read("NPY: text", &npy("text.npy"), &plain),
        dir.read("NPY: a NaN", &npy("nan.npy"), &plain),
        dir.read("IDX: truncated", &idx([2, 2, 2], 7), &plain),
        dir.read("IDX: sizes that no memory holds", &idx([u32::MAX; 3], 8), &plain),
        dir.read("IDX: no rows", &idx([0, 28, 28], 0), &plain),
        dir.read("IDX: a label file as data", &[0, 0, 8, 1, 0, 0, 0, 2, 1, 0], &plain),
        dir.read("a label file with 3 labels for 2 rows", &idx([2, 2, 2], 8), &with_labels),
    ];
    if cfg!(not(feature = "parquet")) {
        let input = "Parquet without the feature that reads it";
        cases.push(dir.read(input, b"PAR1....PAR1", &plain));
    }
    cases
}

fn scaling_cases(dir: &Folder) -> Vec<Case> {
    let matrix = |columns: usize| {
        let values = (0..2 * columns).map(|v| v as f64).collect();
        Matrix::DenseF64(Dense::new(2, columns, values).unwrap())
    };
    let scaler = Scaler::fit_range(&matrix(3), -1.0, 1.0).unwrap();
    vec![
        dir.range("range file: another first line", "hello\n"),
        dir.range("range file: a limit is missing", "x\n-1\n"),
        dir.range("range file: limits the wrong way round", "x\n1 -1\n"),
        dir.range("range file: a word for a number", "x\n-1 1\n1 0 one\n"),
        dir.range("range file: indices not ascending", "x\n-1 1\n2 0 1\n2 0 1\n"),
        dir.range("range file: an absurd index", "x\n-1 1\n4294967295 0 1\n"),
        dir.range("range file: truncated", "x\n-1 1\n1 0"),
        Case {
            input: "scaling 4 features with the ranges of 3",
            error: scaler.transform(matrix(4)).unwrap_err(),
        },
        Case {
            input: "scaling to the range 1 to −1",
            error: Scaler::fit_range(&matrix(3), 1.0, -1.0).unwrap_err(),
        },
    ]
}

fn cases() -> (tempfile::TempDir, Vec<Case>) {
    let dir = Folder(tempfile::tempdir().unwrap());
    let mut cases = file_cases(&dir);
    cases.extend(libsvm_cases(&dir));
    cases.extend(csv_cases(&dir));
    cases.extend(binary_cases(&dir));
    cases.extend(scaling_cases(&dir));
    (dir.0, cases)
}

#[test]
fn every_bad_input_gets_the_message_of_the_documentation() {
    let (folder, cases) = cases();
    let prefix = format!("{}{}", folder.path().display(), std::path::MAIN_SEPARATOR);
    let table: String = cases
        .iter()
        .map(|case| {
            let message = case.error.to_string().replace(&prefix, "");
            format!("| {} | `{}` |\n", case.input, message.replace('|', "\\|"))
        })
        .collect();
    assert_documented(&table);
}

#[cfg(unix)]
#[test]
fn an_unreadable_file_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    fs::write(&path, "1 1:1\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    // The administrator may read everything; then there is nothing to see here.
    if let Err(error) = read_dataset(&path, &ReadOptions::new()) {
        let message = error.to_string();
        assert_eq!(message, format!("{}: Permission denied (os error 13)", path.display()));
    } else {
        assert!(fs::read(&path).is_ok());
    }
}
