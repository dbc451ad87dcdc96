//! Claims about the reader of LIBSVM text.

use super::*;
use crate::data::{Layout, Matrix};
use proptest::prelude::*;

fn parse(text: &str, options: &ReadOptions) -> Result<LibsvmText> {
    read(text.as_bytes(), Path::new("f"), options)
}

fn rows(text: &str) -> (Labels, Vec<Vec<(usize, f64)>>) {
    let data = parse(text, &ReadOptions::new().layout(Layout::Sparse)).unwrap().dataset;
    let mut rows = vec![Vec::new(); data.rows()];
    for (i, row) in rows.iter_mut().enumerate() {
        data.features().for_each_nonzero(i, |j, v| row.push((j, v)));
    }
    (data.labels().clone(), rows)
}

#[test]
fn a_file_with_everything_in_it() {
    let text = "# head\n\n+1 1:0.5 3:-2e-1 # tail\r\n-1\t2:.5\t \r\n  1 3:7#x\n2";
    let (labels, rows) = rows(text);
    assert_eq!(labels, Labels::Int(vec![1, -1, 1, 2]));
    let expected = vec![vec![(0, 0.5), (2, -0.2)], vec![(1, 0.5)], vec![(2, 7.0)], Vec::new()];
    assert_eq!(rows, expected);
}

#[test]
fn byte_order_marks_at_the_beginning_of_lines_are_no_part_of_labels() {
    let mark = "\u{feff}";
    let joined = format!("{mark}{mark}1 1:2\n{mark}-1 1:3\n {mark}1 2:1\n{mark}# end\n{mark}\n");
    assert_eq!(rows(&joined), rows("1 1:2\n-1 1:3\n1 2:1\n"));
    let words = format!("{mark}a 1:2\n{mark}b{mark} 1:3\n");
    assert_eq!(rows(&words).0, Labels::Text(vec!["a".into(), format!("b{mark}")]));
}

#[test]
fn the_index_zero_anywhere_makes_the_file_zero_based() {
    let zero = parse("1 1:1 2:2\n-1 0:5\n", &ReadOptions::new()).unwrap();
    assert_eq!((zero.base, zero.dataset.columns()), (IndexBase::Zero, 3));
    let one = parse("1 1:1 2:2\n-1 1:5\n", &ReadOptions::new()).unwrap();
    assert_eq!((one.base, one.dataset.columns()), (IndexBase::One, 2));
    let declared = ReadOptions::new().index_base(IndexBase::Zero);
    assert_eq!(parse("1 1:1 2:2\n", &declared).unwrap().dataset.columns(), 3);
}

#[test]
fn rows_of_a_precomputed_kernel_keep_their_serial_numbers() {
    let (_, rows) = rows("1 0:1 1:4 2:0.5\n-1 0:2 1:0.5 2:9\n");
    assert_eq!(rows[0], [(0, 1.0), (1, 4.0), (2, 0.5)]);
    assert_eq!(rows[1], [(0, 2.0), (1, 0.5), (2, 9.0)]);
}

#[test]
fn labels_are_kept_as_given() {
    assert_eq!(rows("1.5 1:1\n2 1:1\n").0, Labels::Real(vec![1.5, 2.0]));
    assert_eq!(rows("1.0 1:1\n-2e0 1:1\n").0, Labels::Int(vec![1, -2]));
    let spelt = Labels::Int(vec![9_226_748_800_000_000, i64::MAX]);
    assert_eq!(rows("922674880E7 1:1\n9223372036854775807 1:1\n").0, spelt);
    assert_eq!(rows("1e300 1:1\n2 1:1\n").0, Labels::Real(vec![1e300, 2.0]));
    assert_eq!(rows("cat 1:1\n+1 1:1\n").0, Labels::Text(vec!["cat".into(), "+1".into()]));
    assert_eq!(rows("1,3 1:1\n2 1:1\n").0, Labels::Text(vec!["1,3".into(), "2".into()]));
    let large = i64::MAX;
    assert_eq!(rows(&format!("{large} 1:1\n-{large} 1:1\n")).0, Labels::Int(vec![large, -large]));
    let absent = ReadOptions::new().label_column(LabelColumn::Absent);
    assert_eq!(*parse("1:2\n3:4\n", &absent).unwrap().dataset.labels(), Labels::None);
}

#[test]
fn query_numbers_become_groups() {
    let data = parse("3 qid:1 1:1\n2 qid:1 2:1\n1 qid:-4\n", &ReadOptions::new()).unwrap();
    assert_eq!(data.dataset.groups(), Some([1, 1, -4].as_slice()));
}

#[test]
fn explicit_zeros_count_for_the_width_but_are_not_stored() {
    let data = parse("1 1:1 5:0\n", &ReadOptions::new().layout(Layout::Sparse)).unwrap();
    let Matrix::SparseF64(m) = data.dataset.features() else { panic!("asked for sparse") };
    assert_eq!((m.columns(), m.nonzeros()), (5, 1));
}

fn place(text: &str, options: &ReadOptions) -> (usize, usize, String) {
    match parse(text, options) {
        Err(Error::Parse { line, column, expected, .. }) => (line, column, expected),
        other => panic!("{text:?} gave {:?}", other.map(|t| t.dataset)),
    }
}

#[test]
fn faults_are_reported_where_they_stand() {
    let plain = ReadOptions::new();
    for (text, line, column) in [
        ("1 1:1\n-1 2:nan\n", 2, 6),
        ("1 1:-inf", 1, 5),
        ("1 1:1e999", 1, 5),
        ("1 3:1 3:2", 1, 7),
        ("1 3:1 2:2", 1, 7),
        ("1 1:1\n\n1 4294967295:1", 3, 3),
        ("1 99999999999999999999999:1", 1, 3),
        ("1 1:1 7", 1, 8),
        ("1 1:", 1, 5),
        ("1 1:abc", 1, 5),
        ("1 1:2x", 1, 5),
        ("1 -1:2", 1, 3),
        ("1 a:2", 1, 3),
        ("1:2 2:3", 1, 1),
        ("nan 1:1", 1, 1),
        ("1 qid:x 1:1", 1, 7),
        ("1 qid:1 1:1\n2 1:1", 2, 3),
        ("1 1:1\n2 qid:1 1:1", 2, 3),
    ] {
        let (l, c, expected) = place(text, &plain);
        assert_eq!((l, c), (line, column), "{text:?}: expected {expected}");
    }
    let declared = plain.clone().columns(2);
    assert_eq!(place("1 1:1\n1 3:1", &declared).0, 2);
    assert_eq!(place("1 0:1\n1 2:1", &declared).0, 2);
    let from_one = plain.index_base(IndexBase::One);
    assert_eq!(place("1 0:1", &from_one).1, 3);
}

proptest! {
    #[test]
    fn parsing_in_chunks_equals_parsing_in_one_piece(
        lines in prop::collection::vec(
            prop::sample::select(vec![
                "1 1:2 5:0.25", "-1 2:3", "", "# note", "+1 4:1e-3 7:0", "2\r", "0 1:1 2:2 3:3",
                "x 1:1", "1 1:1 1:1", "0.5 9:9", "1 0:3 2:1",
            ]),
            0..30,
        ),
        chunk in 1_usize..40,
        dense in any::<bool>(),
    ) {
        let text = lines.join("\n");
        let layout = if dense { Layout::Dense } else { Layout::Sparse };
        let options = ReadOptions::new().layout(layout);
        let path = Path::new("f");
        let whole = read_in_chunks(text.as_bytes(), path, &options, text.len());
        let pieces = read_in_chunks(text.as_bytes(), path, &options, chunk);
        match (whole, pieces) {
            (Ok(a), Ok(b)) => {
                prop_assert_eq!(a.dataset, b.dataset);
                prop_assert_eq!(a.base, b.base);
            }
            (Err(a), Err(b)) => prop_assert_eq!(a.to_string(), b.to_string()),
            (a, b) => prop_assert!(false, "{:?} {:?}", a.map(|t| t.dataset), b.map(|t| t.dataset)),
        }
    }
}
