use super::super::Priors;
use super::super::rows::table;
use super::*;
use crate::Context;
use crate::data::{Dataset, Dense, Labels};
use crate::machine::{Body, Machine, Model};
use crate::numeric::random::Generator;

fn fixture() -> Dataset {
    let rows = vec![0., 0., 1., 0., 0., 1., 1., 1., 3., 2., 4., 2., 3., 3., 5., 4.];
    let labels = Labels::Int(vec![-1, -1, -1, -1, 1, 1, 1, 1]);
    Dataset::new(table(rows, 2).unwrap(), labels).unwrap()
}

fn values(model: &Model, queries: Vec<f64>) -> Dense<f64> {
    let context = Context::new();
    let queries = table(queries, model.features()).unwrap();
    model.predictor(&context).unwrap().decision_values(&queries).unwrap()
}

fn random(rows: usize, columns: usize, seed: u64) -> Vec<f64> {
    let mut generator = Generator::new(seed);
    (0..rows * columns).map(|_| generator.normal()).collect()
}

#[test]
fn the_worked_example_is_exact() {
    let machine = Parzen { width: WindowWidth::Value(0.8), ..Parzen::default() };
    let model = machine.fit(&fixture(), &Context::new()).unwrap();
    let row = values(&model, vec![2.0, 1.0]);
    // Priors ½ on top of the densities of the specification.
    assert!((row.row(0)[0].exp() - 0.5 * 0.0454771247).abs() < 1e-10);
    assert!((row.row(0)[1].exp() - 0.5 * 0.0155327613).abs() < 1e-10);
}

#[test]
fn a_width_that_cannot_predict_is_refused_with_the_remedy() {
    let context = Context::new();
    let refused = |machine: &dyn Machine, data: &Dataset| {
        let message = machine.fit(data, &context).unwrap_err().to_string();
        assert!(message.contains("width") && message.contains("scale the features"), "{message}");
    };
    for width in [1e-300, 1e-160, 1e300].map(WindowWidth::Value) {
        refused(&ProbabilisticNetwork { width, ..ProbabilisticNetwork::default() }, &fixture());
        refused(&KernelDensity { width, ..KernelDensity::default() }, &fixture());
        refused(&Parzen { width, ..Parzen::default() }, &fixture());
    }
    // A rule of thumb follows the data out of the range.
    let tiny = table((0..6).map(|i| f64::from(i) * 1e-152).collect(), 1).unwrap();
    refused(&KernelDensity::default(), &Dataset::new(tiny, Labels::None).unwrap());
    for width in [1e-150, 1e150].map(WindowWidth::Value) {
        let model = KernelDensity { width, ..KernelDensity::default() }.fit(&fixture(), &context);
        assert!(!values(&model.unwrap(), vec![0.0, 0.0]).row(0)[0].is_nan());
    }
}

#[test]
fn every_window_integrates_to_one() {
    let windows = [
        Window::Gaussian,
        Window::Tophat,
        Window::Epanechnikov,
        Window::Exponential,
        Window::Linear,
        Window::Cosine,
    ];
    for window in windows {
        let machine = KernelDensity { window, width: WindowWidth::Value(0.7) };
        let data =
            Dataset::new(table(vec![0.0, 0.1, 0.4, -0.3], 2).unwrap(), Labels::None).unwrap();
        let model = machine.fit(&data, &Context::new()).unwrap();
        let (side, step) = (240, 0.05);
        let places = (0..side * side).flat_map(|p| {
            let place = |i: usize| (i as f64 - 0.5 * side as f64) * step + 0.003;
            [place(p / side), place(p % side)]
        });
        let found = values(&model, places.collect());
        let total: f64 = found.values().iter().map(|v| v.exp()).sum::<f64>() * step * step;
        assert!((total - 1.0).abs() < 6e-3, "{window}: {total}");
    }
}

#[test]
fn far_queries_have_finite_logarithms_and_the_nearest_class() {
    let machine = Parzen { width: WindowWidth::Value(1e-3), ..Parzen::default() };
    let model = machine.fit(&fixture(), &Context::new()).unwrap();
    let row = values(&model, vec![1e3, 1e3]);
    assert!(row.values().iter().all(|v| v.is_finite()));
    assert!(row.row(0)[1] > row.row(0)[0]);
    // exp(−γd²) of the nearest row alone: (5, 4).
    let gamma = 0.5 / 1e-6;
    let squared = 995.0_f64.powi(2) + 996.0_f64.powi(2);
    let constant = (0.5_f64 / 4.0).ln() - (std::f64::consts::TAU * 1e-6).ln();
    let expected = constant - gamma * squared;
    assert!((row.row(0)[1] / expected - 1.0).abs() < 1e-12);
}

#[test]
fn the_left_out_width_is_that_of_a_grid() {
    let rows = random(120, 2, 3);
    let data = Dataset::new(table(rows.clone(), 2).unwrap(), Labels::None).unwrap();
    let machine = KernelDensity { width: WindowWidth::LeaveOneOut, ..KernelDensity::default() };
    let model = machine.fit(&data, &Context::new()).unwrap();
    let Body::Windows(part) = &model.body else { panic!() };
    let likelihood = |width: f64| -> f64 {
        let gamma = 0.5 / (width * width);
        let row = |i: usize| &rows[2 * i..2 * i + 2];
        (0..120)
            .map(|i| {
                let others = (0..120).filter(|&j| j != i);
                let near = |j: usize| crate::numeric::algebra::squared_distance(row(i), row(j));
                others.map(|j| (-gamma * near(j)).exp()).sum::<f64>().ln() - 2.0 * width.ln()
            })
            .sum()
    };
    let best = (1..400).map(|i| 0.005 * f64::from(i)).map(|w| (likelihood(w), w));
    let best = best.fold((f64::NEG_INFINITY, 0.0), |a, b| if b.0 > a.0 { b } else { a });
    assert!((part.widths[0] - best.1).abs() <= 0.005, "{} and {}", part.widths[0], best.1);
}

#[test]
fn the_network_is_parzen_on_prepared_rows() {
    let rows = random(80, 3, 5);
    let labels = Labels::Int((0..80).map(|i| i % 3).collect());
    let data = Dataset::new(table(rows.clone(), 3).unwrap(), labels.clone()).unwrap();
    let context = Context::new();
    for input in
        [NetworkInput::Distance, NetworkInput::UnitNorm, NetworkInput::Lifted { radius: 0.0 }]
    {
        let width = WindowWidth::Value(0.4);
        let network = ProbabilisticNetwork { input, width, ..ProbabilisticNetwork::default() };
        let found = values(&network.fit(&data, &context).unwrap(), rows.clone());
        let prepared = input.resolved(data.features()).unwrap().prepare(data.features()).unwrap();
        let parzen = Parzen { width, ..Parzen::default() };
        let plain = Dataset::new(prepared.clone(), labels.clone()).unwrap();
        let model = parzen.fit(&plain, &context).unwrap();
        let expected = model.predictor(&context).unwrap().decision_values(&prepared).unwrap();
        for (a, b) in found.values().iter().zip(expected.values()) {
            assert!((a - b).abs() < 1e-12 * a.abs().max(1.0));
        }
        if let NetworkInput::Lifted { .. } = input {
            for i in 0..80 {
                let mut row = vec![0.0; 4];
                prepared.copy_row(i, &mut row);
                let length: f64 = row.iter().map(|v| v * v).sum();
                assert!((length - 1.0).abs() < 1e-12);
            }
        }
    }
    // exp((x·w − 1)/σ²) for vectors of length 1, by hand.
    let network = ProbabilisticNetwork {
        input: NetworkInput::UnitNorm,
        width: WindowWidth::Value(0.4),
        priors: Priors::Equal,
    };
    let model = network.fit(&data, &context).unwrap();
    let found = model.predictor(&context).unwrap().probabilities(data.features()).unwrap();
    let unit: Vec<Vec<f64>> = rows
        .chunks_exact(3)
        .map(|row| {
            let length = row.iter().map(|v| v * v).sum::<f64>().sqrt();
            row.iter().map(|v| v / length).collect()
        })
        .collect();
    for i in 0..80 {
        let mut sums = [0.0; 3];
        for j in 0..80 {
            let product: f64 = unit[i].iter().zip(&unit[j]).map(|(a, b)| a * b).sum();
            let size = (0..80).filter(|k| k % 3 == j % 3).count() as f64;
            sums[j % 3] += ((product - 1.0) / 0.16).exp() / size;
        }
        let total: f64 = sums.iter().sum();
        for (c, sum) in sums.iter().enumerate() {
            assert!((found.row(i)[c] - sum / total).abs() < 1e-12);
        }
    }
}

#[test]
fn widths_that_make_no_sense_are_refused_or_replaced() {
    let fit = |machine: &Parzen, data: &Dataset| machine.fit(data, &Context::new());
    let zero = Parzen { width: WindowWidth::Value(0.0), ..Parzen::default() };
    let message = fit(&zero, &fixture()).unwrap_err().to_string();
    assert_eq!(message, "parameter width: expected a finite number above 0, found 0");
    let tophat = Parzen { window: Window::Tophat, ..Parzen::default() };
    assert!(fit(&tophat, &fixture()).unwrap_err().to_string().contains("gaussian"));
    // Equal rows, and one row a class.
    let rows = table(vec![1.0, 1.0, 1.0, 5.0], 1).unwrap();
    let data = Dataset::new(rows, Labels::Int(vec![0, 0, 0, 1])).unwrap();
    let model = fit(&Parzen::default(), &data).unwrap();
    let found = values(&model, vec![1.0, 5.0]);
    assert!(found.row(0)[0] > found.row(0)[1] && found.row(1)[1] > found.row(1)[0]);
    let network =
        ProbabilisticNetwork { input: NetworkInput::UnitNorm, ..ProbabilisticNetwork::default() };
    let error = network.fit(&fixture(), &Context::new()).unwrap_err().to_string();
    assert!(error.contains("zeros only in row 1"), "{error}");
}
