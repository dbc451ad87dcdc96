//! The classical machines on real data, against published and recorded numbers, and through files.

use std::path::Path;

use widemargin::Context;
use widemargin::data::read::{ReadOptions, read_dataset};
use widemargin::data::{Dataset, Dense, Labels, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{
    Affinity, Body, Centres, Covariance, Fisher, FisherThreshold, GaussianMixture, KMeans,
    KNearest, KernelDensity, KernelFisher, KernelFisherThreshold, Machine, MixtureBayes,
    MixtureStop, Model, NeighbourMetric, NeighbourSearch, NetworkInput, Parzen,
    ProbabilisticNetwork, Spectral, Weighting, WindowWidth,
};
use widemargin::operation::cross_validate::{Quality, cross_validate};
use widemargin::operation::folds::Folds;

fn load(name: &str) -> Dataset {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data").join(name);
    read_dataset(path, &ReadOptions::new()).unwrap()
}

fn predictions(model: &Model, data: &Dataset) -> Labels {
    let context = Context::new();
    model.predictor(&context).unwrap().predict(data.features()).unwrap()
}

fn errors(model: &Model, data: &Dataset) -> usize {
    let found = predictions(model, data);
    (0..data.rows()).filter(|&i| found.get(i) != data.labels().get(i)).count()
}

/// Versicolor against virginica.
fn two_irises() -> Dataset {
    load("iris.csv").select_rows(&(50..150).collect::<Vec<_>>())
}

#[test]
fn fisher_on_two_irises_is_that_of_the_specification() {
    let data = two_irises();
    let machine = Fisher { threshold: FisherThreshold::Midpoint, ..Fisher::default() };
    let model = machine.fit(&data, &Context::new()).unwrap();
    let weights = model.linear_weights().unwrap();
    let expected = [-3.6288803, -5.69247004, 7.11237519, 12.6388175];
    for (found, expected) in weights.row(0).iter().zip(expected) {
        assert!((-found - expected).abs() < 1e-6, "{found} and {expected}");
    }
    assert!((model.functions()[0].offset + 17.00314842).abs() < 1e-6);
    let Body::Discriminant(part) = &model.body else { panic!() };
    assert!((part.separability - 14.50906715).abs() < 1e-7);
    assert_eq!(errors(&model, &data), 3);
}

#[test]
fn posteriors_and_neighbours_on_iris_make_the_specification_s_errors() {
    let data = load("iris.csv");
    let context = Context::new();
    let bayes = MixtureBayes {
        mixture: GaussianMixture { floor: 0.0, ..GaussianMixture::default() },
        ..MixtureBayes::default()
    };
    assert_eq!(errors(&bayes.fit(&data, &context).unwrap(), &data), 3);
    assert_eq!(errors(&Fisher::default().fit(&data, &context).unwrap(), &data), 3);
    for (k, expected) in [(1, 6), (5, 5)] {
        for search in [NeighbourSearch::Brute, NeighbourSearch::Tree, NeighbourSearch::BallTree] {
            let machine = KNearest { k, search, ..KNearest::default() };
            let found = cross_validate(&machine, &data, &Folds::LeaveOneOut, &context).unwrap();
            let Some(Quality::Classes(confusion)) = found.quality else { panic!() };
            assert_eq!(confusion.total() - confusion.correct(), expected, "k = {k}");
        }
    }
}

#[test]
fn predictions_do_not_depend_on_invertible_maps_of_the_features() {
    let data = two_irises();
    let mut row = vec![0.0; 4];
    let mixed = (0..data.rows()).flat_map(|i| {
        data.features().copy_row(i, &mut row);
        [row[0] + 2.0 * row[1], row[1] - row[3], 3.0 * row[2] + row[0], row[3] - 0.5 * row[2]]
    });
    let mixed = Dense::new(data.rows(), 4, mixed.collect()).unwrap();
    let mixed = data.clone().with_features(Matrix::DenseF64(mixed)).unwrap();
    let machines: [Box<dyn Machine>; 3] = [
        Box::new(Fisher::default()),
        Box::new(MixtureBayes {
            mixture: GaussianMixture { floor: 0.0, ..GaussianMixture::default() },
            ..MixtureBayes::default()
        }),
        Box::new(KNearest { metric: NeighbourMetric::Mahalanobis, ..KNearest::default() }),
    ];
    for machine in machines {
        let plain = machine.fit(&data, &Context::new()).unwrap();
        let other = machine.fit(&mixed, &Context::new()).unwrap();
        assert_eq!(predictions(&plain, &data), predictions(&other, &mixed), "{}", plain.kind);
    }
}

#[test]
fn landmarks_that_are_all_rows_change_nothing_and_few_do_little() {
    let data = load("wdbc.csv");
    let scaled = widemargin::data::scaling::Scaler::fit_standard(data.features()).unwrap();
    let features = scaled.transform(data.features().clone()).unwrap();
    let data = data.with_features(features).unwrap();
    let machine = |landmarks| KernelFisher {
        kernel: Kernel::Gaussian { gamma: 0.02 },
        threshold: KernelFisherThreshold::Midpoint,
        landmarks,
        ..KernelFisher::default()
    };
    let context = Context::new().with_threads(2).unwrap();
    let whole = machine(None).fit(&data, &context).unwrap();
    let all = machine(Some(569)).fit(&data, &Context::new()).unwrap();
    assert_eq!(whole.functions(), all.functions());
    assert!(errors(&whole, &data) <= 5);
    let few = machine(Some(100)).fit(&data, &context).unwrap();
    assert_eq!(few.support_count(), 100);
    assert!(errors(&few, &data) <= 14, "{}", errors(&few, &data));
}

/// Every machine, with something unusual in each.
fn all() -> Vec<(Box<dyn Machine>, &'static str)> {
    vec![
        (Box::new(Fisher::default()), "iris.csv"),
        (Box::new(KernelFisher::default()), "iris.csv"),
        (
            Box::new(GaussianMixture {
                components: 3,
                covariance: Covariance::VariableVolume,
                ..GaussianMixture::default()
            }),
            "iris.csv",
        ),
        (
            Box::new(MixtureBayes {
                mixture: GaussianMixture {
                    components: 2,
                    covariance: Covariance::Tied,
                    ..GaussianMixture::default()
                },
                loss: Some(vec![0., 1., 1., 1., 0., 2., 1., 1., 0.]),
                ..MixtureBayes::default()
            }),
            "iris.csv",
        ),
        (
            Box::new(KNearest {
                metric: NeighbourMetric::Mahalanobis,
                weighting: Weighting::Distance,
                ..KNearest::default()
            }),
            "iris.csv",
        ),
        (Box::new(KNearest { regression: true, ..KNearest::default() }), "diabetes.csv"),
        (Box::new(Parzen::default()), "iris.csv"),
        (Box::new(KernelDensity { width: WindowWidth::Scott, ..Default::default() }), "iris.csv"),
        (
            Box::new(ProbabilisticNetwork {
                input: NetworkInput::Lifted { radius: 0.0 },
                ..ProbabilisticNetwork::default()
            }),
            "iris.csv",
        ),
        (Box::new(KMeans { clusters: 3, ..KMeans::default() }), "iris.csv"),
        (
            Box::new(Spectral {
                clusters: 3,
                affinity: Affinity::Neighbours { count: 10 },
                ..Spectral::default()
            }),
            "iris.csv",
        ),
    ]
}

#[test]
fn every_model_survives_its_file_and_damage_is_noticed() {
    let context = Context::new();
    for (machine, file) in all() {
        let data = load(file);
        let model = machine.fit(&data, &context).unwrap();
        let bytes = model.to_bytes().unwrap();
        let again = Model::load_from_bytes(&bytes).unwrap();
        assert_eq!(model, again, "{}", model.kind);
        let values = |model: &Model| {
            model.predictor(&context).unwrap().decision_values(data.features()).unwrap()
        };
        assert_eq!(values(&model), values(&again), "{}", model.kind);
        for at in (0..bytes.len()).step_by(bytes.len() / 50) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            assert!(Model::load_from_bytes(&damaged).is_err(), "{} byte {at}", model.kind);
        }
        assert!(model.to_libsvm_bytes().is_err());
    }
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let context = Context::new();
    let data = load("iris.csv");
    let knn = KNearest::default().fit(&data, &context).unwrap();
    let mut short = knn.clone();
    if let Body::Neighbours(part) = &mut short.body {
        part.targets.pop();
    }
    assert!(short.validate().unwrap_err().to_string().contains("targets"));
    let mut wild = knn.clone();
    if let Body::Neighbours(part) = &mut wild.body {
        part.targets[0] = 3.0;
    }
    assert!(wild.validate().unwrap_err().to_string().contains("targets"));
    let centres = Centres { centres: knn.vectors().clone() };
    let other = Model { body: centres.into(), ..knn };
    let error = other.validate().unwrap_err().to_string();
    assert!(error.contains("expected the body of knn, found centres"), "{error}");
}

#[test]
fn threads_change_no_answer() {
    let two = Context::new().with_threads(2).unwrap();
    for (machine, file) in all() {
        let data = load(file);
        let (a, b) =
            (machine.fit(&data, &Context::new()).unwrap(), machine.fit(&data, &two).unwrap());
        assert_eq!(a.body, b.body, "{}", a.kind);
        let values = |context: &Context| {
            a.predictor(context).unwrap().decision_values(data.features()).unwrap()
        };
        assert_eq!(values(&Context::new()), values(&two), "{}", a.kind);
    }
}

#[test]
fn weights_nan_and_missing_labels_are_refused() {
    let iris = load("iris.csv");
    for (machine, file) in all() {
        let data = load(file);
        let weighted = data.clone().with_weights(vec![1.0; data.rows()]).unwrap();
        let error = machine.fit(&weighted, &Context::new()).unwrap_err().to_string();
        assert!(error.contains("weights"), "{error}");
        let mut values = vec![0.5; data.rows() * data.columns()];
        values[7] = f64::NAN;
        let table = Dense::new(data.rows(), data.columns(), values).unwrap();
        let nan = data.clone().with_features(Matrix::DenseF64(table)).unwrap();
        let error = machine.fit(&nan, &Context::new()).unwrap_err().to_string();
        assert!(error.contains("finite"), "{error}");
        let model = machine.fit(&data, &Context::new()).unwrap();
        let context = Context::new();
        let predictor = model.predictor(&context).unwrap();
        assert!(predictor.decision_values(nan.features()).is_err());
        let narrow = Matrix::DenseF64(Dense::new(1, 1, vec![0.0]).unwrap());
        assert!(predictor.decision_values(&narrow).is_err(), "{}", model.kind);
    }
    let unlabelled = iris.with_labels(Labels::None).unwrap();
    assert!(Fisher::default().fit(&unlabelled, &Context::new()).is_err());
}

/// What a machine says of rows, or what it predicts.
fn outcome(machine: &dyn Machine, data: &Dataset) -> Result<Dense<f64>, String> {
    let context = Context::new();
    let model = machine.fit(data, &context).map_err(|error| error.to_string())?;
    let values = model.predictor(&context).unwrap().decision_values(data.features());
    values.map_err(|error| error.to_string())
}

/// The same rows with columns added.
fn widened(data: &Dataset, more: impl Fn(&[f64]) -> Vec<f64>) -> Dataset {
    let mut row = vec![0.0; data.columns()];
    let mut values = Vec::new();
    for i in 0..data.rows() {
        data.features().copy_row(i, &mut row);
        values.extend_from_slice(&row);
        values.extend(more(&row));
    }
    let columns = values.len() / data.rows();
    let table = Dense::new(data.rows(), columns, values).unwrap();
    Dataset::new(Matrix::DenseF64(table), data.labels().clone()).unwrap()
}

#[test]
fn constant_and_duplicate_columns_leave_finite_answers() {
    for (machine, file) in all() {
        let data = load(file);
        let wide = widened(&data, |row| vec![row[0], 3.0]);
        let values = outcome(machine.as_ref(), &wide).unwrap();
        assert!(values.values().iter().all(|value| value.is_finite()), "{file}");
    }
}

#[test]
fn one_row_a_class_and_equal_rows_are_survived_or_told() {
    let data = load("iris.csv").select_rows(&[0, 60, 120]);
    let equal = Dense::new(6, 2, vec![1.5; 12]).unwrap();
    let labels = Labels::Int(vec![0, 0, 1, 1, 2, 2]);
    let equal = Dataset::new(Matrix::DenseF64(equal), labels).unwrap();
    for (machine, _) in all() {
        for data in [&data, &equal] {
            match outcome(machine.as_ref(), data) {
                Ok(values) => assert!(values.values().iter().all(|value| value.is_finite())),
                // More neighbours or components than there are rows.
                Err(message) => {
                    let told =
                        message.contains("at most the") || message.contains("fewer than the");
                    assert!(told, "{message}");
                }
            }
        }
    }
}

#[test]
fn sparse_rows_give_the_answers_of_dense_ones() {
    use widemargin::data::Layout;
    for (machine, file) in all() {
        let data = load(file);
        // Half of the values zero, so that storing few of them makes a difference.
        let mut row = vec![0.0; data.columns()];
        let mut values = Vec::new();
        for i in 0..data.rows() {
            data.features().copy_row(i, &mut row);
            values.extend(
                row.iter().enumerate().map(|(j, v)| if (i + j) % 2 == 0 { *v } else { 0.0 }),
            );
        }
        let table = Matrix::DenseF64(Dense::new(data.rows(), data.columns(), values).unwrap());
        let dense = data.clone().with_features(table.clone()).unwrap();
        let sparse = data.with_features(table.into_layout(Layout::Sparse)).unwrap();
        assert!(sparse.features().is_sparse());
        let (a, b) = (outcome(machine.as_ref(), &dense), outcome(machine.as_ref(), &sparse));
        let (a, b) = (a.unwrap(), b.unwrap());
        for (x, y) in a.values().iter().zip(b.values()) {
            assert!((x - y).abs() <= 1e-6 * x.abs().max(1.0), "{file}: {x} and {y}");
        }
    }
}

#[test]
fn too_many_features_for_a_covariance_are_told() {
    // A square matrix of so many columns fits into no memory.
    let columns = 3_000_000;
    let row = |j: u32| (vec![j], vec![1.0]);
    let rows: Vec<(Vec<u32>, Vec<f64>)> = (0..6).map(row).collect();
    let ends = (0..=6).collect();
    let places = rows.iter().flat_map(|row| row.0.clone()).collect();
    let values = rows.iter().flat_map(|row| row.1.clone()).collect();
    let wide = widemargin::data::Csr::new(columns, ends, places, values).unwrap();
    let labels = Labels::Int(vec![0, 0, 0, 1, 1, 1]);
    let data = Dataset::new(Matrix::SparseF64(wide), labels).unwrap();
    let mahalanobis = KNearest { metric: NeighbourMetric::Mahalanobis, ..KNearest::default() };
    let machines: [Box<dyn Machine>; 3] =
        [Box::new(Fisher::default()), Box::new(MixtureBayes::default()), Box::new(mahalanobis)];
    for machine in machines {
        let message = outcome(machine.as_ref(), &data).unwrap_err();
        assert!(message.contains("of 3000000 features needs"), "{message}");
    }
    assert!(outcome(&KNearest { k: 3, ..KNearest::default() }, &data).is_ok());
    assert!(outcome(&KMeans { clusters: 2, ..KMeans::default() }, &data).is_ok());
}

#[test]
fn neighbours_warn_of_even_numbers_and_loud_features() {
    let told = |machine: &KNearest, data: &Dataset| {
        let heard = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let sink = std::sync::Arc::clone(&heard);
        let context = Context::new().with_observer(move |event: &widemargin::Event| {
            if let widemargin::Event::Warning { message } = event {
                sink.lock().unwrap().push(message.clone());
            }
        });
        machine.fit(data, &context).unwrap();
        heard.lock().unwrap().join("\n")
    };
    let even = KNearest { k: 4, ..KNearest::default() };
    assert!(told(&even, &two_irises()).contains("even"));
    assert_eq!(told(&KNearest::default(), &two_irises()), "");
    assert_eq!(told(&even, &load("iris.csv")), "");
    assert!(told(&KNearest::default(), &load("wine.csv")).contains("'proline' varies"));
    let metric = NeighbourMetric::MahalanobisWithin;
    let within = KNearest { metric, ..KNearest::default() };
    assert_eq!(told(&within, &load("wine.csv")), "");
    assert!(
        errors(&within.fit(&load("wine.csv"), &Context::new()).unwrap(), &load("wine.csv")) < 3
    );
    let numbers = KNearest { metric, regression: true, ..KNearest::default() };
    let message = outcome(&numbers, &load("diabetes.csv")).unwrap_err();
    assert!(message.contains("euclidean or mahalanobis"), "{message}");
}

#[test]
fn covariances_by_either_divisor_and_shrunk() {
    let data = load("iris.csv");
    let context = Context::new();
    let covariances = |machine: &MixtureBayes| {
        let model = machine.fit(&data, &context).unwrap();
        let Body::Mixtures(part) = model.body else { panic!() };
        part.covariances
    };
    let mixture = GaussianMixture { floor: 0.0, ..GaussianMixture::default() };
    let plain = MixtureBayes { mixture: mixture.clone(), ..MixtureBayes::default() };
    let unbiased = MixtureBayes { unbiased: true, ..plain.clone() };
    for (a, b) in covariances(&plain).iter().zip(covariances(&unbiased)) {
        assert!((a * 50.0 / 49.0 - b).abs() < 1e-12);
    }
    let shrunk = GaussianMixture { shrinkage: 0.25, ..mixture.clone() };
    let shrunk = covariances(&MixtureBayes { mixture: shrunk, ..plain.clone() });
    for (a, b) in covariances(&plain).chunks_exact(16).zip(shrunk.chunks_exact(16)) {
        let level = (0..4).map(|i| a[5 * i]).sum::<f64>() / 4.0;
        for (at, (a, b)) in a.iter().zip(b).enumerate() {
            let unit = if at % 5 == 0 { 0.25 * level } else { 0.0 };
            assert!((0.75 * a + unit - b).abs() < 1e-12);
        }
    }
    let two = GaussianMixture { components: 2, ..mixture };
    let error = MixtureBayes { mixture: two, ..unbiased }.fit(&data, &context).unwrap_err();
    assert!(error.to_string().contains("one component"), "{error}");
}

#[test]
fn parameters_that_stand_still_end_em_too() {
    let data = load("iris.csv");
    let machine = |stop, tol| GaussianMixture {
        components: 3,
        stop,
        tol,
        max_iterations: 2000,
        ..GaussianMixture::default()
    };
    let (a, b) = (
        machine(MixtureStop::Likelihood, 1e-13).fit(&data, &Context::new()).unwrap(),
        machine(MixtureStop::Parameters, 1e-7).fit(&data, &Context::new()).unwrap(),
    );
    assert_eq!(b.training.as_ref().unwrap().outcome.status, widemargin::Status::Solved);
    let (Body::Mixtures(a), Body::Mixtures(b)) = (a.body, b.body) else { panic!() };
    assert!((a.log_likelihood - b.log_likelihood).abs() < 1e-9);
}
