//! Sigmoids, coupled pairs and density marks equal those LIBSVM 3.37 computed from the same
//! decision values (`tests/fixtures/libsvm/make.py` and `make_sigmoid.py` recorded them).

use std::path::Path;

use super::{Sigmoid, couple_pairs, density_probability, fit_sigmoid};
use crate::machine::{Calibration, Model};

fn text(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/libsvm");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn table(name: &str) -> Vec<Vec<f64>> {
    let row = |line: &str| line.split(' ').map(|n| n.parse().unwrap()).collect();
    text(name).lines().map(row).collect()
}

#[test]
fn sigmoids_fitted_to_the_same_values_are_the_same() {
    let text = text("sigmoid.txt");
    assert_eq!(text.lines().count(), 4);
    for line in text.lines() {
        let mut words = line.split(' ');
        let mut number = || words.next().unwrap().parse::<f64>().unwrap();
        let (a, b) = (number(), number());
        let (values, positive): (Vec<f64>, Vec<bool>) = words
            .map(|pair| pair.split_once(':').unwrap())
            .map(|(value, side)| (value.parse::<f64>().unwrap(), side == "1"))
            .unzip();
        let found = fit_sigmoid(&values, &positive);
        assert!((found.a - a).abs() < 1e-9 * a.abs().max(1.0), "{} for {a}", found.a);
        assert!((found.b - b).abs() < 1e-9 * b.abs().max(1.0), "{} for {b}", found.b);
    }
}

#[test]
fn coupled_pairs_are_the_same() {
    for name in ["c_svc_linear_binary", "c_svc_rbf", "nu_svc_rbf"] {
        let model = Model::load_from_bytes(text(&format!("{name}.model")).as_bytes()).unwrap();
        let Some(Calibration::Sigmoid { a, b }) = &model.calibration else { panic!("{name}") };
        let classes = model.classes.as_ref().unwrap().names.len();
        let values = table(&format!("{name}.values"));
        for (values, expected) in values.iter().zip(table(&format!("{name}.probabilities"))) {
            let pair = |(f, value): (usize, &f64)| {
                Sigmoid { a: a[f], b: b[f] }.probability(*value).clamp(1e-7, 1.0 - 1e-7)
            };
            let pairs: Vec<f64> = values.iter().enumerate().map(pair).collect();
            for (found, expected) in couple_pairs(classes, &pairs).iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-12, "{name}: {found} for {expected}");
            }
        }
    }
}

#[test]
fn density_marks_are_read_the_same() {
    let model = Model::load_from_bytes(text("one_class_rbf.model").as_bytes()).unwrap();
    let Some(Calibration::Density { marks }) = &model.calibration else { panic!() };
    let values = table("one_class_rbf.values");
    for (value, expected) in values.iter().zip(table("one_class_rbf.probabilities")) {
        assert!((density_probability(marks, value[0]) - expected[0]).abs() < 1e-12);
    }
}
