//! The data sets of the repository, checked against sums and counts that pandas and scikit-learn gave.

use std::path::Path;

use widemargin::data::read::{ReadOptions, read_dataset};
use widemargin::data::{ClassOrder, Dataset, Labels};

fn load(name: &str) -> Dataset {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data").join(name);
    read_dataset(path, &ReadOptions::new()).unwrap()
}

fn sum(data: &Dataset) -> f64 {
    let mut sum = 0.0;
    (0..data.rows()).for_each(|i| data.features().for_each_nonzero(i, |_, v| sum += v));
    sum
}

fn counts(data: &Dataset) -> Vec<(String, usize)> {
    let classes = data.labels().classes(ClassOrder::Sorted).unwrap();
    let rows = classes.rows_by_class();
    classes.names.iter().zip(rows).map(|(name, rows)| (name.to_string(), rows.len())).collect()
}

fn check(name: &str, shape: (usize, usize), total: f64, expected: &[(&str, usize)]) {
    let data = load(name);
    assert_eq!((data.rows(), data.columns()), shape, "{name}");
    assert!((sum(&data) - total).abs() < 1e-9 * total, "{name}: {}", sum(&data));
    let expected: Vec<_> = expected.iter().map(|(n, c)| ((*n).to_owned(), *c)).collect();
    assert_eq!(counts(&data), expected, "{name}");
}

#[test]
fn classification_sets() {
    let species = [("setosa", 50), ("versicolor", 50), ("virginica", 50)];
    check("iris.csv", (150, 4), 2078.7, &species);
    check("iris.libsvm", (150, 4), 2078.7, &[("0", 50), ("1", 50), ("2", 50)]);
    check("wine.csv", (178, 13), 159975.295999, &[("1", 59), ("2", 71), ("3", 48)]);
    check("wdbc.csv", (569, 30), 1056474.4596356, &[("benign", 357), ("malignant", 212)]);
    check("sonar.csv", (208, 60), 3510.8897, &[("M", 111), ("R", 97)]);
    check("ripley-train.csv", (250, 2), 107.90099133, &[("0", 125), ("1", 125)]);
    check("ripley-test.csv", (1000, 2), 417.655146477, &[("0", 500), ("1", 500)]);
    let digits = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180];
    let names: Vec<String> = (0..10).map(|d| d.to_string()).collect();
    let digits: Vec<_> = names.iter().map(String::as_str).zip(digits).collect();
    check("digits.libsvm.xz", (1797, 64), 561718.0, &digits);
}

#[test]
fn the_regression_set() {
    let data = load("diabetes.csv");
    assert_eq!((data.rows(), data.columns()), (442, 10));
    assert!((sum(&data) - 276404.2336).abs() < 1e-6);
    let Labels::Int(targets) = data.labels() else { panic!("targets are whole numbers") };
    assert_eq!(targets.iter().sum::<i64>(), 67243);
}

#[test]
fn both_files_of_iris_hold_the_same_flowers() {
    assert_eq!(load("iris.csv").features(), load("iris.libsvm").features());
}
