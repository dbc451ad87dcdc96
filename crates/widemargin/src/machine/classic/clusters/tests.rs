use super::super::rows::table;
use super::graph::Graph;
use super::spectral::normalised_cut;
use super::*;
use crate::context::{CancelToken, Context};
use crate::data::{Dataset, Dense, Labels, Matrix};
use crate::error::Error;
use crate::machine::{Body, Machine, Model};
use crate::numeric::random::Generator;
use crate::solver::Status;

fn clouds(rows: usize, clusters: usize) -> Dataset {
    let mut generator = Generator::new(4);
    let values = (0..rows).flat_map(|i| {
        let angle = (i % clusters) as f64 / clusters as f64 * std::f64::consts::TAU;
        [5.0 * angle.cos() + 0.4 * generator.normal(), 5.0 * angle.sin() + 0.4 * generator.normal()]
    });
    let labels = Labels::Int((0..rows as i64).map(|i| i % clusters as i64).collect());
    Dataset::new(table(values.collect(), 2).unwrap(), labels).unwrap()
}

fn predictions(model: &Model, data: &Dataset) -> Vec<i64> {
    let context = Context::new();
    match model.predictor(&context).unwrap().predict(data.features()).unwrap() {
        Labels::Int(labels) => labels,
        other => panic!("{other:?}"),
    }
}

/// Whether two groupings are the same up to names.
fn same(found: &[i64], data: &Dataset) -> bool {
    let Labels::Int(truth) = data.labels() else { return false };
    (0..found.len()).all(|i| (0..i).all(|j| (found[i] == found[j]) == (truth[i] == truth[j])))
}

#[test]
fn a_cut_and_new_centres_stop_when_asked() {
    let token = CancelToken::new();
    let context = Context::new().with_cancel_token(token.clone());
    let rows = Matrix::DenseF64(Dense::new(4, 1, vec![0.0, 1.0, 10.0, 11.0]).unwrap());
    let graph = Graph::new(&rows, Affinity::Gaussian { gamma: 1.0 }, &context).unwrap();
    token.cancel();
    let cut = normalised_cut(&graph, &[-1.0, -1.0, 1.0, 1.0], &context);
    assert!(matches!(cut, Err(Error::Interrupted)), "{cut:?}");
    let graph = Graph::new(&rows, Affinity::Gaussian { gamma: 1.0 }, &context);
    assert!(matches!(graph.err(), Some(Error::Interrupted)));
}

#[test]
fn separate_clouds_are_found() {
    let data = clouds(300, 5);
    let context = Context::new();
    let starts = 3;
    let machines: [Box<dyn Machine>; 3] = [
        Box::new(KMeans { clusters: 5, starts, ..KMeans::default() }),
        Box::new(Spectral { clusters: 5, ..Spectral::default() }),
        Box::new(Spectral {
            clusters: 5,
            affinity: Affinity::Neighbours { count: 8 },
            ..Spectral::default()
        }),
    ];
    for machine in machines {
        let model = machine.fit(&data, &context).unwrap();
        assert!(same(&predictions(&model, &data), &data), "{}", model.kind);
        model.validate().unwrap();
    }
}

#[test]
fn lloyd_ends_where_no_row_and_no_centre_moves() {
    let data = clouds(400, 7);
    let machine = KMeans { clusters: 4, tol: 0.0, ..KMeans::default() };
    let model = machine.fit(&data, &Context::new()).unwrap();
    let found = predictions(&model, &data);
    let (mut row, mut centre) = (vec![0.0; 2], vec![0.0; 2]);
    for c in 0..4 {
        let (mut sums, mut size) = ([0.0; 2], 0.0);
        for i in (0..400).filter(|&i| found[i] == c) {
            data.features().copy_row(i, &mut row);
            (0..2).for_each(|j| sums[j] += row[j]);
            size += 1.0;
        }
        model.vectors().copy_row(c as usize, &mut centre);
        (0..2).for_each(|j| assert!((sums[j] / size - centre[j]).abs() < 1e-12));
    }
}

/// The longest that a machine may take when it was given a second, on a busy machine and in an unoptimised build.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(5);

fn uniform(rows: usize, columns: usize) -> Dataset {
    let mut generator = Generator::new(1);
    let values = (0..rows * columns).map(|_| generator.unit()).collect();
    Dataset::new(table(values, columns).unwrap(), Labels::None).unwrap()
}

#[test]
fn k_means_keeps_its_best_centres_when_the_time_is_over() {
    let data = uniform(2000, 4);
    let machine = KMeans { clusters: 4, starts: usize::MAX, ..KMeans::default() };
    let started = std::time::Instant::now();
    let context = Context::new().with_time_limit(std::time::Duration::from_secs(1));
    let model = machine.fit(&data, &context).unwrap();
    assert!(started.elapsed() < LONGEST, "{:?}", started.elapsed());
    assert_eq!(model.training.as_ref().unwrap().outcome.status, Status::TimeLimit);
    model.validate().unwrap();
    // Not even the centres are drawn in no time.
    let context = Context::new().with_time_limit(std::time::Duration::ZERO);
    assert!(matches!(machine.fit(&data, &context), Err(Error::Interrupted)));
}

#[test]
fn spectral_clustering_ends_when_the_time_is_over() {
    let data = uniform(3000, 20);
    for affinity in [Affinity::Gaussian { gamma: 0.1 }, Affinity::Neighbours { count: 10 }] {
        let machine = Spectral { clusters: 400, affinity, ..Spectral::default() };
        let started = std::time::Instant::now();
        let context = Context::new().with_time_limit(std::time::Duration::from_millis(300));
        assert!(matches!(machine.fit(&data, &context), Err(Error::Interrupted)));
        assert!(started.elapsed() < LONGEST, "{affinity:?}: {:?}", started.elapsed());
    }
}

#[test]
fn cuts_are_the_least_of_all() {
    // Two clouds and a bridge, few enough to try every cut.
    let places = [0.0, 0.3, 0.5, 1.2, 1.9, 2.3, 2.4, 2.8, 3.0_f64];
    let data = Dataset::new(table(places.to_vec(), 1).unwrap(), Labels::None).unwrap();
    let affinity = Affinity::Gaussian { gamma: 1.0 };
    let n = places.len();
    let similar = |i: usize, j: usize| match i == j {
        true => 0.0,
        false => (-(places[i] - places[j]).powi(2)).exp(),
    };
    for method in [Cut::Normalised, Cut::Ratio] {
        let machine = Spectral { clusters: 2, affinity, cut: method, ..Spectral::default() };
        let model = machine.fit(&data, &Context::new()).unwrap();
        let found = predictions(&model, &data);
        let value = |side: &dyn Fn(usize) -> bool| {
            let (mut cut, mut weights) = (0.0, [0.0, 0.0]);
            for i in 0..n {
                let degree: f64 = (0..n).map(|j| similar(i, j)).sum();
                weights[usize::from(side(i))] += if method == Cut::Ratio { 1.0 } else { degree };
                let other = (0..n).filter(|&j| side(i) && !side(j));
                cut += other.map(|j| similar(i, j)).sum::<f64>();
            }
            cut / weights[0] + cut / weights[1]
        };
        let ours = value(&|i| found[i] == 1);
        let least = (1..(1_u32 << n) - 1)
            .map(|mask| value(&|i| mask & (1 << i) != 0))
            .fold(f64::INFINITY, f64::min);
        assert!((ours - least).abs() < 1e-6, "{method}: {ours} and {least}");
        // The relaxed value: 1 − λ₂ of the normalised matrix, λ₂ of D − A over twice the largest degree.
        let objective = model.training.as_ref().unwrap().outcome.primal;
        assert!(objective >= -1e-6, "{method}: {objective}");
        if method == Cut::Ratio {
            let degrees = (0..n).map(|i| (0..n).map(|j| similar(i, j)).sum::<f64>());
            let relaxed = 2.0 * degrees.fold(0.0, f64::max) * objective;
            assert!(relaxed > 0.3 * least && relaxed <= least + 1e-5, "{relaxed} {least}");
        }
    }
}

#[test]
fn more_clusters_than_distinct_rows_are_survived() {
    let data = Dataset::new(table(vec![1.0; 6], 1).unwrap(), Labels::None).unwrap();
    let context = Context::new();
    assert!(KMeans { clusters: 3, ..KMeans::default() }.fit(&data, &context).is_ok());
    assert!(KMeans { clusters: 7, ..KMeans::default() }.fit(&data, &context).is_err());
    assert!(Spectral { clusters: 3, ..Spectral::default() }.fit(&data, &context).is_ok());
    let cut = Spectral { clusters: 3, cut: Cut::Normalised, ..Spectral::default() };
    assert!(cut.fit(&data, &context).is_err());
}

#[test]
fn spectral_clusters_keep_their_training_labels() {
    let data = clouds(120, 3);
    let model =
        Spectral { clusters: 3, ..Spectral::default() }.fit(&data, &Context::new()).unwrap();
    let Body::Neighbours(part) = &model.body else { panic!() };
    let kept: Vec<i64> = part.targets.iter().map(|&t| t as i64).collect();
    assert_eq!(kept, predictions(&model, &data));
}
