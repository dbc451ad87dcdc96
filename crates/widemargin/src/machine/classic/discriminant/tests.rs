//! The worked examples of the specification's hand fixture.

use super::*;
use crate::Context;
use crate::data::{Dataset, Dense, Labels, Matrix};
use crate::kernel::Kernel;
use crate::machine::{Body, Machine, Model};

fn fixture() -> Dataset {
    let rows = vec![0., 0., 1., 0., 0., 1., 1., 1., 3., 2., 4., 2., 3., 3., 5., 4.];
    let rows = Matrix::DenseF64(Dense::new(8, 2, rows).unwrap());
    Dataset::new(rows, Labels::Int(vec![-1, -1, -1, -1, 1, 1, 1, 1])).unwrap()
}

/// Value at (2, 1), positive for class 1.
fn value(model: &Model) -> f64 {
    let context = Context::new();
    let point = Matrix::DenseF64(Dense::new(1, 2, vec![2.0, 1.0]).unwrap());
    -model.predictor(&context).unwrap().decision_values(&point).unwrap().row(0)[0]
}

fn part(model: &Model) -> crate::machine::Discriminant {
    match &model.body {
        Body::Discriminant(part) => part.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_linear_example_is_exact() {
    for threshold in [FisherThreshold::Prior, FisherThreshold::Midpoint] {
        let model =
            Fisher { threshold, ..Fisher::default() }.fit(&fixture(), &Context::new()).unwrap();
        let mut weights = vec![0.0; 2];
        model.vectors().copy_row(0, &mut weights);
        assert!((weights[0] - 6.0).abs() < 1e-12 && (weights[1] - 2.0).abs() < 1e-12);
        assert!((model.functions()[0].offset + 16.0).abs() < 1e-12);
        assert!((part(&model).separability - 24.0).abs() < 1e-12);
        assert!((value(&model) + 2.0).abs() < 1e-12);
    }
}

#[test]
fn the_best_direction_beats_random_ones() {
    let data = fixture();
    let model = Fisher::default().fit(&data, &Context::new()).unwrap();
    let best = part(&model).separability;
    let mut generator = crate::numeric::random::Generator::new(1);
    let (delta, within) = ([3.25, 2.25], [[0.46875, 0.21875], [0.21875, 0.46875]]);
    for _ in 0..2000 {
        let w = [generator.normal(), generator.normal()];
        let between = (w[0] * delta[0] + w[1] * delta[1]).powi(2);
        let scatter: f64 =
            (0..2).flat_map(|i| (0..2).map(move |j| w[i] * within[i][j] * w[j])).sum();
        assert!(between / scatter <= best + 1e-9);
    }
}

#[test]
fn the_kernel_example_is_exact() {
    let machine = KernelFisher {
        kernel: Kernel::Gaussian { gamma: 0.5 },
        mu: 0.1,
        threshold: KernelFisherThreshold::Midpoint,
        ..KernelFisher::default()
    };
    let model = machine.fit(&fixture(), &Context::new()).unwrap();
    let expected = [
        -6.225634815,
        -6.352844465,
        -6.303811157,
        -6.629419639,
        3.394042412,
        3.181539309,
        3.280813733,
        5.801141685,
    ];
    let part = part(&model);
    for (found, expected) in part.projections[0].parts[0].coefficients.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-8, "{found} and {expected}");
    }
    assert!((part.separability - 23.047909413).abs() < 1e-8);
    assert!((model.functions()[0].offset - 4.820565813).abs() < 1e-8);
    assert!((value(&model) + 1.121844034).abs() < 1e-8);
}

#[test]
fn a_linear_kernel_gives_the_linear_direction() {
    let machine = KernelFisher { kernel: Kernel::Linear, mu: 1e-9, ..KernelFisher::default() };
    let data = fixture();
    let model = machine.fit(&data, &Context::new()).unwrap();
    let weights = model.linear_weights().unwrap();
    let (x, y) = (weights.row(0)[0], weights.row(0)[1]);
    assert!((x / y - 3.0).abs() < 1e-5, "{x} and {y}");
}

#[test]
fn several_classes_of_a_linear_kernel_give_the_linear_projections() {
    let rows: Vec<f64> = (0..90)
        .flat_map(|i| {
            let spread = |k: usize| ((i * k % 31) as f64 / 31.0 - 0.5) * 1.5;
            let (x, y) = [(0.0, 0.0), (2.0, 0.5), (0.5, 2.0)][i % 3];
            [x + spread(7), y + spread(11), spread(5)]
        })
        .collect();
    let rows = Matrix::DenseF64(Dense::new(90, 3, rows).unwrap());
    let labels = Labels::Int((0..90).map(|i| i % 3).collect());
    let data = Dataset::new(rows, labels).unwrap();
    let context = Context::new();
    let linear = Fisher::default().fit(&data, &context).unwrap();
    let machine = KernelFisher { kernel: Kernel::Linear, mu: 1e-8, ..KernelFisher::default() };
    let kernel = machine.fit(&data, &context).unwrap();
    let [a, b] = [&linear, &kernel].map(|model| {
        let model = model.projection().unwrap();
        model.predictor(&context).unwrap().decision_values(data.features()).unwrap()
    });
    for direction in 0..2 {
        // The same up to sign and a shift.
        let differences = |table: &Dense<f64>| -> Vec<f64> {
            (0..90).map(|i| (table.row(i)[direction] - table.row(0)[direction]).abs()).collect()
        };
        for (x, y) in differences(&a).iter().zip(differences(&b)) {
            assert!((x - y).abs() < 1e-4, "{x} and {y}");
        }
    }
    let predictions = [&linear, &kernel]
        .map(|model| model.predictor(&context).unwrap().predict(data.features()).unwrap());
    assert_eq!(predictions[0], predictions[1]);
}

#[test]
fn more_classes_than_features_give_the_eigenvectors_of_the_between_class_scatter() {
    // Six classes in two dimensions: S_W⁻¹S_B by hand.
    let mut generator = crate::numeric::random::Generator::new(3);
    let rows: Vec<f64> = (0..120)
        .flat_map(|i| {
            let class = (i % 6) as f64;
            [class * 0.7 + generator.normal(), (class * 1.3).sin() * 2.0 + generator.normal()]
        })
        .collect();
    let labels: Vec<i64> = (0..120).map(|i| i % 6).collect();
    let mean = |keep: &dyn Fn(usize) -> bool| -> [f64; 2] {
        let kept: Vec<usize> = (0..120).filter(|&i| keep(i)).collect();
        [0, 1].map(|j| kept.iter().map(|&i| rows[2 * i + j]).sum::<f64>() / kept.len() as f64)
    };
    let centre = mean(&|_| true);
    let (mut within, mut between) = ([[0.0; 2]; 2], [[0.0; 2]; 2]);
    for i in 0..120 {
        let own = mean(&|other| other % 6 == i % 6);
        for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let away = |j: usize| rows[2 * i + j] - own[j];
            within[a][b] += away(a) * away(b) / 120.0;
            between[a][b] += (own[a] - centre[a]) * (own[b] - centre[b]) / 120.0;
        }
    }
    let data = Dataset::new(
        Matrix::DenseF64(Dense::new(120, 2, rows.clone()).unwrap()),
        Labels::Int(labels),
    );
    let context = Context::new();
    let model = Fisher::default().fit(&data.unwrap(), &context).unwrap();
    let part = part(&model);
    assert_eq!(part.ratios.len(), 2);
    for (ratio, projection) in part.ratios.iter().zip(&part.projections) {
        let mut w = [0.0; 2];
        model.vectors().copy_row(projection.parts[0].support.start, &mut w);
        for j in 0..2 {
            let left = between[j][0] * w[0] + between[j][1] * w[1];
            let right = ratio * (within[j][0] * w[0] + within[j][1] * w[1]);
            assert!((left - right).abs() < 1e-9 * (1.0 + left.abs()), "{left} and {right}");
        }
    }
}

#[test]
fn fisher_with_many_classes_ends_when_the_time_is_over() {
    let (classes, columns) = (1500, 1500);
    let mut generator = crate::numeric::random::Generator::new(5);
    let rows = (0..2 * classes * columns).map(|_| generator.unit()).collect();
    let rows = Matrix::DenseF64(Dense::new(2 * classes, columns, rows).unwrap());
    let labels = (0..2 * classes as i64).map(|i| i % classes as i64).collect();
    let data = Dataset::new(rows, Labels::Int(labels)).unwrap();
    let started = std::time::Instant::now();
    let context = Context::new().with_time_limit(std::time::Duration::from_secs(1));
    let fitted = Fisher::default().fit(&data, &context);
    assert!(matches!(fitted, Err(crate::Error::Interrupted)));
    // Five: busy machines and unoptimised builds are slow between two checks of the time.
    assert!(started.elapsed().as_secs_f64() < 5.0, "{:?}", started.elapsed());
}

#[test]
fn singular_scatter_is_regularised_and_told() {
    let warnings = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = std::sync::Arc::clone(&warnings);
    let context = Context::new().with_observer(move |event: &crate::Event| {
        if let crate::Event::Warning { message } = event {
            sink.lock().unwrap().push(message.clone());
        }
    });
    // The second feature is the first again, the third is constant.
    let rows = vec![0., 0., 1., 1., 1., 1., 3., 3., 1., 5., 5., 1., 6., 6., 1., 7., 7., 1.];
    let rows = Matrix::DenseF64(Dense::new(6, 3, rows).unwrap());
    let data = Dataset::new(rows, Labels::Int(vec![0, 0, 0, 1, 1, 1])).unwrap();
    let model = Fisher::default().fit(&data, &context).unwrap();
    assert_eq!(
        &model.predictor(&context).unwrap().predict(data.features()).unwrap(),
        data.labels()
    );
    assert!(part(&model).regularisation > 0.0);
    assert!(warnings.lock().unwrap()[0].contains("singular"));
    // One row a class: the nearest one decides.
    let data = data.select_rows(&[0, 5]);
    let model = Fisher::default().fit(&data, &context).unwrap();
    assert_eq!(
        &model.predictor(&context).unwrap().predict(data.features()).unwrap(),
        data.labels()
    );
    assert!(warnings.lock().unwrap().iter().any(|message| message.contains("nearest")));
}
