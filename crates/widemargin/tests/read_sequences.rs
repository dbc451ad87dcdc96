//! Files of sequences: four formats of the same content, templates, and what is wrong where.

use widemargin::data::read::{SequenceFormat, SequenceOptions, TokenColumn, read_sequence_bytes};
use widemargin::data::{Dictionary, NO_TAG, TaggedSequences, Templates};

fn read(text: &str, options: &SequenceOptions) -> (TaggedSequences, Vec<String>) {
    let mut names = Dictionary::new();
    let loaded = read_sequence_bytes(text.as_bytes(), options, &mut names).unwrap();
    (loaded.data, names.into_names())
}

fn message(text: &str, options: &SequenceOptions) -> String {
    read_sequence_bytes(text.as_bytes(), options, &mut Dictionary::new()).unwrap_err().to_string()
}

/// Names and values of the features of a position.
fn features(data: &TaggedSequences, names: &[String], position: usize) -> Vec<(String, f64)> {
    let mut list = Vec::new();
    data.rows().for_each_nonzero(position, |j, value| list.push((names[j].clone(), value)));
    list.sort_by(|a, b| a.0.cmp(&b.0));
    list
}

fn format(format: SequenceFormat) -> SequenceOptions {
    SequenceOptions { format: Some(format), ..SequenceOptions::default() }
}

#[test]
fn the_same_sequences_are_read_from_all_formats() {
    let word = Templates::parse("%x[0,0]\n").unwrap();
    let with = |kind| SequenceOptions { templates: Some(word.clone()), ..format(kind) };
    let columns = read("a X\nb Y\n\n\na Y\n", &with(SequenceFormat::Columns));
    let table = read("sequence,word,tag\n7,a,X\n7,b,Y\n3,a,Y\n", &with(SequenceFormat::Table));
    let attributes = read("X\ta\nY\tb\n\nY\ta\n\n", &format(SequenceFormat::Crfsuite));
    for (data, names) in [&columns, &table, &attributes] {
        assert_eq!(names, &["a", "b"]);
        assert_eq!(data.lengths().collect::<Vec<_>>(), [2, 1]);
        assert_eq!(data.tags().unwrap().codes, [0, 1, 1]);
        assert_eq!(features(data, names, 1), [("b".to_owned(), 1.0)]);
    }
    let (numbered, _) =
        read("1 qid:1 1:1\n2 qid:1 2:1\n2 qid:2 1:1\n", &SequenceOptions::default());
    let nonzeros = |data: &TaggedSequences, position: usize| {
        let mut list = Vec::new();
        data.rows().for_each_nonzero(position, |j, value| list.push((j, value)));
        list
    };
    assert!((0..3).all(|k| nonzeros(&numbered, k) == nonzeros(&columns.0, k)));
    assert_eq!(numbered.tags().unwrap().codes, [0, 1, 1]);
    assert_eq!(numbered.lengths().collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn templates_look_around() {
    let templates = Templates::parse("# words\nU0:%x[-1,0]/%x[1,1]\n\nU1:%x[2,0]\nB\n").unwrap();
    assert_eq!(templates.to_string(), "U0:%x[-1,0]/%x[1,1]\nU1:%x[2,0]");
    let options = SequenceOptions { templates: Some(templates), ..SequenceOptions::default() };
    let (data, names) = read("a p 1\nb q 0\nc r 1\n", &options);
    let found: Vec<Vec<String>> = (0..3)
        .map(|k| features(&data, &names, k).into_iter().map(|(name, _)| name).collect())
        .collect();
    assert_eq!(found[0], ["U0:_B-1/q", "U1:c"]);
    assert_eq!(found[1], ["U0:a/r", "U1:_B+1"]);
    assert_eq!(found[2], ["U0:b/_B+1", "U1:_B+2"]);
    // Five words and two pairs of the first column, five words and four pairs of the second.
    assert_eq!(Templates::usual(2).to_string().lines().count(), 16);
    for wrong in ["U0:x", "U0:%x[0]", "U0:%x[1000,0]", "\n"] {
        assert!(Templates::parse(wrong).is_err(), "{wrong}");
    }
    let far = SequenceOptions {
        templates: Some(Templates::parse("%x[0,5]").unwrap()),
        ..SequenceOptions::default()
    };
    assert_eq!(message("a X\n", &far), "columns of the templates: expected 6, found 1");
}

#[test]
fn attributes_have_values_and_escapes() {
    let (data, names) =
        read("X\ta:2.5\tb\\:c\ta:0.5\nY\tx\\\\y:-1e2\n", &format(SequenceFormat::Crfsuite));
    assert_eq!(features(&data, &names, 0), [("a".into(), 3.0), ("b:c".into(), 1.0)]);
    assert_eq!(features(&data, &names, 1), [("x\\y".to_owned(), -100.0)]);
}

#[test]
fn unknown_tags_and_names() {
    let word = Templates::parse("%x[0,0]").unwrap();
    let options = SequenceOptions { templates: Some(word), ..SequenceOptions::default() };
    let (data, names) = read("a X\nb ?\nc Y\n", &options);
    assert_eq!(data.tags().unwrap().codes, [0, NO_TAG, 1]);
    let runs = data.known_runs().unwrap();
    assert_eq!(runs.lengths().collect::<Vec<_>>(), [1, 1]);
    assert_eq!(runs.tags().unwrap().codes, [0, 1]);
    let mut known = Dictionary::closed(&names);
    let text = b"a X\nnew Z\n";
    let loaded = read_sequence_bytes(text, &options, &mut known).unwrap();
    assert_eq!((loaded.unknown_features, loaded.data.rows().columns()), (1, 3));
    assert!(features(&loaded.data, &names, 1).is_empty());
    let untagged = SequenceOptions { tagged: false, ..options };
    assert!(read("a\nb\n", &untagged).0.tags().is_none());
}

#[test]
fn a_table_finds_its_columns() {
    let named = SequenceOptions {
        sequence_column: TokenColumn::Name("id".into()),
        tag_column: Some(TokenColumn::Index(0)),
        templates: Some(Templates::parse("%x[0,0]").unwrap()),
        ..format(SequenceFormat::Table)
    };
    let (data, names) = read("tag\tword\tid\nX\ta\t1\nY\tb\t2\n", &named);
    assert_eq!((names, data.count()), (vec!["a".to_owned(), "b".to_owned()], 2));
    let error = message("a,b\n1,2\n", &named);
    assert_eq!(error, "-: expected a column 'id', found a, b");
    for text in ["sequence\n7\n", "sequence,tag\n7,X\n"] {
        let error = message(text, &format(SequenceFormat::Table));
        assert!(error.contains("a column beside the sequence and the tag, found seq"), "{error}");
    }
    let untagged = SequenceOptions { tagged: false, ..format(SequenceFormat::Table) };
    assert!(message("sequence\n7\n", &untagged).contains("a column beside the sequence, found"));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let columns = format(SequenceFormat::Columns);
    let error = message("a p X\nb Y\n", &columns);
    assert_eq!(error, "-:2:1: expected 3 columns as in the first line, found 2");
    assert_eq!(message("X\n", &columns), "-:1:1: expected a column beside the tag, found 1");
    assert_eq!(message("\n\n", &columns), "-: expected at least one sequence, found none");
    let attributes = format(SequenceFormat::Crfsuite);
    let error = message("X\tok\nY\tok\ta:b\n", &attributes);
    assert_eq!(error, "-:2:6: expected an attribute, or attribute:number, found 'a:b'");
    assert_eq!(message("\ta\n", &attributes), "-:1:1: expected a tag, found none");
    let error = message("1 1:1\n", &format(SequenceFormat::SvmHmm));
    assert!(error.contains("expected a 'qid:' in every line"), "{error}");
    for bytes in [&b"a \xff X\n"[..], b"X\t\xff\n"] {
        for kind in [SequenceFormat::Columns, SequenceFormat::Crfsuite] {
            let read = read_sequence_bytes(bytes, &format(kind), &mut Dictionary::new());
            assert!(read.unwrap_err().to_string().contains("expected UTF-8 text"));
        }
    }
}
