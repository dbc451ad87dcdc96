use proptest::prelude::*;

use super::super::rows::table;
use super::tree::{Hull, Tree};
use super::*;
use crate::context::{CancelToken, Context};
use crate::data::{Dataset, Labels, Matrix};
use crate::error::Error;
use crate::machine::{Body, Machine};
use crate::numeric::algebra::squared_distance;

fn plain(rows: &[f64], columns: usize, query: &[f64], k: usize) -> Vec<(f64, usize)> {
    let rows = rows.chunks_exact(columns).enumerate();
    let mut all: Vec<(f64, usize)> =
        rows.map(|(i, row)| (squared_distance(query, row), i)).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all.truncate(k);
    all
}

fn found(finder: &Finder, queries: &Matrix, k: usize) -> Vec<Vec<(f64, usize)>> {
    let mut all = Vec::new();
    let (rows, context) = (0..queries.rows(), &Context::new());
    finder.nearest(queries, rows, k, context, |_, found| all.push(found.to_vec())).unwrap();
    all
}

#[test]
fn a_tree_stops_when_asked() {
    let token = CancelToken::new();
    token.cancel();
    let context = Context::new().with_cancel_token(token);
    let values: Vec<f64> = (0..400).map(|i| f64::from(i * 7919 % 1013)).collect();
    let tree = Tree::new(&values, 2, Hull::Ball, &context);
    assert!(matches!(tree.err(), Some(Error::Interrupted)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn trees_and_blocks_find_the_same_rows_as_a_plain_loop(
        columns in 1_usize..5,
        numbers in prop::collection::vec(0_i8..4, 200..700),
        queries in prop::collection::vec(-1_i8..5, 8..40),
        k in 1_usize..20,
    ) {
        // An integer grid, so that many distances are equal.
        let values = |list: &[i8]| -> Vec<f64> {
            let whole = list.len() / columns * columns;
            list[..whole].iter().map(|&v| f64::from(v)).collect()
        };
        let (rows, queries) = (values(&numbers), values(&queries));
        let k = k.min(rows.len() / columns);
        let context = Context::new();
        let (matrix, asked) = (table(rows.clone(), columns)?, table(queries.clone(), columns)?);
        let expected: Vec<_> =
            queries.chunks_exact(columns).map(|query| plain(&rows, columns, query, k)).collect();
        for search in [NeighbourSearch::Tree, NeighbourSearch::BallTree, NeighbourSearch::Brute] {
            let finder = Finder::new(&matrix, search, k, &context)?;
            prop_assert_eq!(&found(&finder, &asked, k), &expected);
        }
    }
}

fn answer(machine: &KNearest, rows: Vec<f64>, labels: Vec<i64>, query: Vec<f64>) -> i64 {
    let columns = query.len();
    let data = Dataset::new(table(rows, columns).unwrap(), Labels::Int(labels)).unwrap();
    let context = Context::new();
    let model = machine.fit(&data, &context).unwrap();
    let asked = table(query, columns).unwrap();
    match model.predictor(&context).unwrap().predict(&asked).unwrap() {
        Labels::Int(labels) => labels[0],
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_worked_example_and_the_tie_rule() {
    let rows = vec![0., 0., 1., 0., 0., 1., 1., 1., 3., 2., 4., 2., 3., 3., 5., 4.];
    let labels = vec![-1, -1, -1, -1, 1, 1, 1, 1];
    for k in [1, 3] {
        let machine = KNearest { k, ..KNearest::default() };
        assert_eq!(answer(&machine, rows.clone(), labels.clone(), vec![2.0, 1.0]), -1);
    }
    let two = KNearest { k: 2, ..KNearest::default() };
    // One vote each: the smaller distance wins, here that of the higher class.
    assert_eq!(answer(&two, vec![-2.0, 1.0], vec![0, 1], vec![0.0]), 1);
    // The same sum of distances: the nearest neighbour in the order of the rows wins.
    assert_eq!(answer(&two, vec![-1.0, 1.0], vec![1, 0], vec![0.0]), 1);
    // Two at distances 1 and 3 against two at distance 2: the same sum, the nearest wins.
    let four = KNearest { k: 4, ..KNearest::default() };
    assert_eq!(answer(&four, vec![2.0, -2.0, 3.0, -1.0], vec![0, 0, 1, 1], vec![0.0]), 1);
}

#[test]
fn k_out_of_range_and_one_class_are_errors() {
    let data = |labels| Dataset::new(table(vec![1.0, 2.0, 3.0], 1).unwrap(), labels).unwrap();
    let fit = |k, data: &Dataset| KNearest { k, ..KNearest::default() }.fit(data, &Context::new());
    let error = fit(4, &data(Labels::Int(vec![0, 1, 1]))).unwrap_err().to_string();
    assert_eq!(error, "parameter k: expected at least 1 and at most the 3 rows, found 4");
    assert!(fit(0, &data(Labels::Int(vec![0, 1, 1]))).is_err());
    assert!(fit(1, &data(Labels::Int(vec![1, 1, 1]))).is_err());
}

#[test]
fn mahalanobis_equals_euclid_on_whitened_rows_and_survives_a_constant_column() {
    let rows: Vec<f64> = (0..60)
        .flat_map(|i| {
            let (a, b) = ((i * 7 % 30) as f64, (i * 11 % 30) as f64);
            [a + b, a - 0.5 * b, 4.0]
        })
        .collect();
    let labels = Labels::Int((0..60).map(|i| i % 2).collect());
    let data = Dataset::new(table(rows.clone(), 3).unwrap(), labels.clone()).unwrap();
    let machine = KNearest { metric: NeighbourMetric::Mahalanobis, ..KNearest::default() };
    let context = Context::new();
    let model = machine.fit(&data, &context).unwrap();
    let predictions = model.predictor(&context).unwrap().predict(data.features()).unwrap();
    // a and b are uncorrelated with the same variance up to what the modulus makes of them; undo the
    // map by hand.
    let unmixed: Vec<f64> = rows
        .chunks_exact(3)
        .flat_map(|row| {
            let b = (row[0] - row[1]) / 1.5;
            [row[0] - b, b]
        })
        .collect();
    let plain = Dataset::new(table(unmixed, 2).unwrap(), labels).unwrap();
    let model = machine.fit(&plain, &context).unwrap();
    let same = model.predictor(&context).unwrap().predict(plain.features()).unwrap();
    assert_eq!(predictions, same);
}

#[test]
fn the_search_follows_how_rows_lie() {
    let mut generator = crate::numeric::random::Generator::new(5);
    // A curve and a cloud in twelve dimensions.
    let curve: Vec<f64> = (0..2000)
        .flat_map(|_| {
            let t = 6.0 * generator.unit();
            (1..=12).map(move |j| (t + f64::from(j)).sin() * f64::from(j))
        })
        .collect();
    let cloud: Vec<f64> = (0..2000 * 12).map(|_| generator.normal()).collect();
    let labels = Labels::Int((0..2000).map(|i| i % 2).collect());
    for (rows, expected) in [(curve, NeighbourSearch::Tree), (cloud, NeighbourSearch::Brute)] {
        let data = Dataset::new(table(rows, 12).unwrap(), labels.clone()).unwrap();
        let model = KNearest::default().fit(&data, &Context::new()).unwrap();
        let Body::Neighbours(part) = &model.body else { panic!() };
        assert_eq!(part.search, expected);
    }
}
