//! Delimited text: separators, headers, labels, words, gaps, and encodings applied to later files.

use widemargin::data::read::{
    Column, Format, LabelColumn, Loaded, Missing, ReadOptions, TableEncoding, UnknownCategory,
    read_bytes,
};
use widemargin::data::{Dataset, Labels, Layout};

fn csv() -> ReadOptions {
    ReadOptions::new().format(Format::Csv).layout(Layout::Dense)
}

fn load(text: &str, options: &ReadOptions) -> Loaded {
    read_bytes(text.as_bytes(), options).unwrap()
}

fn message(text: &str, options: &ReadOptions) -> String {
    read_bytes(text.as_bytes(), options).unwrap_err().to_string()
}

fn rows(data: &Dataset) -> Vec<Vec<f64>> {
    let mut rows = vec![vec![0.0; data.columns()]; data.rows()];
    for (i, row) in rows.iter_mut().enumerate() {
        data.features().copy_row(i, row);
    }
    rows
}

fn at(index: i64) -> LabelColumn {
    LabelColumn::At(Column::Index(index))
}

fn named(name: &str) -> LabelColumn {
    LabelColumn::At(Column::Name(name.into()))
}

fn words(words: &[&str]) -> Labels {
    Labels::Text(words.iter().map(|w| (*w).to_owned()).collect())
}

#[test]
fn header_labels_and_words() {
    let text = "width,colour,height,species\n1.5,red,2,setosa\n2.5,blue,3,\"iris, other\"\n1e1,red,-4,setosa\n";
    let data = load(text, &csv()).dataset;
    assert_eq!(data.feature_names().unwrap(), ["width", "colour=blue", "colour=red", "height"]);
    assert_eq!(rows(&data), [[1.5, 0.0, 1.0, 2.0], [2.5, 1.0, 0.0, 3.0], [10.0, 0.0, 1.0, -4.0]]);
    assert_eq!(*data.labels(), words(&["setosa", "iris, other", "setosa"]));
}

#[test]
fn the_label_column_is_found_or_named_or_counted() {
    let text = "y,a,b\n1,2,3\n4,5,6\n";
    assert_eq!(*load(text, &csv()).dataset.labels(), Labels::Int(vec![1, 4]));
    for (column, expected) in [(at(1), [2, 5]), (at(-1), [3, 6]), (named("a"), [2, 5])] {
        let data = load(text, &csv().label_column(column)).dataset;
        assert_eq!(*data.labels(), Labels::Int(expected.to_vec()));
        assert_eq!(data.columns(), 2);
    }
    let none = load(text, &csv().label_column(LabelColumn::Absent)).dataset;
    assert_eq!((none.labels(), none.columns()), (&Labels::None, 3));
    let last = load("1,2,0.5\n4,5,6\n", &csv()).dataset;
    assert_eq!(*last.labels(), Labels::Real(vec![0.5, 6.0]));
    assert_eq!(last.feature_names().unwrap(), ["x1", "x2"]);
}

#[test]
fn separators_and_line_ends() {
    let expected = load("1,2,3\n4,5,6\n", &csv()).dataset;
    for text in [
        "1\t2\t3\n4\t5\t6\n",
        "1;2;3\r\n4;5;6\r\n",
        "1|2|3\n\n4|5|6",
        "1 2 3\n4 5 6\n",
        "\u{feff}1, 2 ,3\n4,5,6\n",
    ] {
        assert_eq!(load(text, &csv()).dataset, expected, "{text:?}");
    }
    assert_eq!(load("1;2\n", &csv().delimiter(b';')).dataset.columns(), 1);
}

#[test]
fn a_given_header_wins_over_the_guess() {
    let text = "1,2,3\n4,5,6\n";
    let data = load(text, &csv().header(true)).dataset;
    assert_eq!(data.rows(), 1);
    assert_eq!(data.feature_names().unwrap(), ["1", "2"]);
}

#[test]
fn gaps_are_an_error_unless_filled() {
    let text = "a,b,c,class\n1,x,5,0\n,y,?,1\n3,,NA,0\n8,y,nan,1\n";
    assert_eq!(
        message(text, &csv()),
        "-:3:1: expected a value in column 'a' (or an option that fills gaps), found none"
    );
    let column = |missing, j: usize| {
        let data = load(text, &csv().missing(missing)).dataset;
        rows(&data).iter().map(|r| r[j]).collect::<Vec<f64>>()
    };
    assert_eq!(column(Missing::Mean, 0), [1.0, 4.0, 3.0, 8.0]);
    assert_eq!(column(Missing::Median, 0), [1.0, 3.0, 3.0, 8.0]);
    assert_eq!(column(Missing::MostFrequent, 2), [0.0, 1.0, 1.0, 1.0]);
    assert_eq!(column(Missing::Constant(-1.0), 4), [5.0, -1.0, -1.0, -1.0]);
    let names = load(text, &csv().missing(Missing::Constant(-1.0))).dataset;
    assert_eq!(names.feature_names().unwrap(), ["a", "b=-1", "b=x", "b=y", "c"]);
}

#[test]
fn an_encoding_turns_a_later_file_into_the_same_features() {
    let train = "a,colour,class\n1,red,p\n,blue,n\n3,red,p\n";
    let loaded = load(train, &csv().missing(Missing::Mean));
    let json = serde_json::to_string(&loaded.encoding.unwrap()).unwrap();
    let encoding: TableEncoding = serde_json::from_str(&json).unwrap();
    assert_eq!(encoding.feature_names(), loaded.dataset.feature_names().unwrap());
    let options = csv().encoding(encoding);

    // Other order, another column, no label column, a gap.
    let test = "colour,id,a\nblue,7,\nred,8,5\n";
    let data = load(test, &options).dataset;
    assert_eq!(rows(&data), [[2.0, 1.0, 0.0], [5.0, 0.0, 1.0]]);
    assert_eq!(*data.labels(), Labels::None);

    // No header: by place, with and without the label.
    assert_eq!(rows(&load("4,blue,p\n", &options).dataset), [[4.0, 1.0, 0.0]]);
    assert_eq!(rows(&load("4,blue\n", &options).dataset), [[4.0, 1.0, 0.0]]);

    assert_eq!(
        message("a,colour\n1,green\n", &options),
        "-:2:3: expected a word the training data had in column 'colour', found 'green'"
    );
    let ignoring = options.clone().unknown_category(UnknownCategory::Ignore);
    assert_eq!(rows(&load("a,colour\n1,green\n", &ignoring).dataset), [[1.0, 0.0, 0.0]]);
    assert_eq!(
        message("a,colour\nx,red\n", &options),
        "-:2:1: expected a number in column 'a', found 'x'"
    );
    assert_eq!(
        message("a,colour\n1,?\n", &options),
        "-:2:3: expected a value in column 'colour' (the training data had no gaps there to learn from), found none"
    );
    assert_eq!(
        message("a,hue\n1,red\n", &options.clone().header(true)),
        "-: expected a column 'colour', found none"
    );
    assert_eq!(
        message("1,2,3,4\n", &options),
        "-: expected 3 columns as in the training data, found 4"
    );
}

#[test]
fn numbers_can_be_words_and_columns_can_be_left_out() {
    let text = "id,zip,a,class\n1,90210,1,x\n2,10001,2,y\n3,90210,3,x\n";
    let options = csv().categorical(Column::Name("zip".into())).ignore_column(Column::Index(0));
    let data = load(text, &options).dataset;
    assert_eq!(data.feature_names().unwrap(), ["zip=10001", "zip=90210", "a"]);
    assert_eq!(rows(&data)[1], [1.0, 0.0, 2.0]);
}

#[test]
fn one_word_among_many_numbers_is_a_mistake_not_a_category() {
    let mut text = String::from("age,class\n");
    for i in 0..30 {
        text += &format!("{},{}\n", if i == 17 { "1O".into() } else { i.to_string() }, i % 2);
    }
    assert_eq!(
        message(&text, &csv()),
        "-:19:1: expected a number in column 'age' (numbers in 29 of 30 rows; declare it \
         categorical to take words), found '1O'"
    );
    let words = csv().categorical(Column::Name("age".into()));
    assert_eq!(load(&text, &words).dataset.columns(), 30);
}

#[test]
fn places_in_quoted_fields_are_exact() {
    let text = "name,a,class\n\"two\nlines, one \"\"quote\"\"\",inf,1\n";
    assert_eq!(
        message(text, &csv()),
        "-:3:23: expected a finite number in column 'a', found 'inf'"
    );
    let ragged = "a,b,c\r\n1,2,3\r\n\r\n4,5\r\n";
    assert_eq!(message(ragged, &csv()), "-:4:3: expected 3 fields as in the first row, found 2");
}

#[test]
fn large_whole_labels_keep_every_digit() {
    let labels = |text: &str| load(text, &csv()).dataset.labels().clone();
    let large = Labels::Int(vec![9_223_372_036_854_775_807, 1]);
    assert_eq!(labels("a,y\n1,9223372036854775807\n2,1\n"), large);
    assert_eq!(labels("a,y\n1,1e16\n2,1\n"), Labels::Int(vec![10_000_000_000_000_000, 1]));
    assert_eq!(labels("a,y\n1,1e16\n2,0.5\n"), Labels::Real(vec![1e16, 0.5]));
    assert_eq!(labels("a,y\n1,1e300\n2,5\n"), Labels::Real(vec![1e300, 5.0]));
}
