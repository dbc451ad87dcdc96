use super::super::Priors;
use super::super::rows::table;
use super::*;
use crate::Context;
use crate::data::{Dataset, Labels};
use crate::machine::{Body, Machine, Mixtures, Model};
use crate::numeric::random::Generator;

/// Three ellipses that differ in size and direction.
fn ellipses(rows: usize) -> Dataset {
    let mut generator = Generator::new(7);
    let values = (0..rows).flat_map(|i| {
        let (x, y) = (generator.normal(), generator.normal());
        match i % 3 {
            0 => [x, 0.3 * y],
            1 => [4.0 + 0.4 * x, 1.0 + 1.2 * y + 0.5 * x],
            _ => [1.0 + 0.5 * x + 0.4 * y, 5.0 + 0.5 * y - 0.4 * x],
        }
    });
    let rows_table = table(values.collect(), 2).unwrap();
    Dataset::new(rows_table, Labels::Int((0..rows as i64).map(|i| i % 3).collect())).unwrap()
}

fn part(model: &Model) -> &Mixtures {
    match &model.body {
        Body::Mixtures(part) => part,
        other => panic!("{other:?}"),
    }
}

const ALL: [Covariance; 7] = [
    Covariance::EqualSpherical,
    Covariance::Spherical,
    Covariance::Diagonal,
    Covariance::Tied,
    Covariance::EqualShape,
    Covariance::VariableVolume,
    Covariance::Full,
];

#[test]
fn the_likelihood_never_falls_and_models_nest() {
    let data = ellipses(450);
    let mut reached = std::collections::HashMap::new();
    for covariance in ALL {
        let mut before = f64::NEG_INFINITY;
        for max_iterations in 1..25 {
            let machine = GaussianMixture {
                components: 3,
                covariance,
                max_iterations,
                tol: 0.0,
                floor: 0.0,
                ..GaussianMixture::default()
            };
            let model = machine.fit(&data, &Context::new()).unwrap();
            let now = part(&model).log_likelihood;
            assert!(now >= before - 1e-9 * now.abs(), "{covariance}: {before} then {now}");
            before = now;
        }
        reached.insert(covariance.to_string(), before);
    }
    let nested = [
        ("eii", "spherical"),
        ("spherical", "vev"),
        ("vev", "full"),
        ("eii", "tied"),
        ("tied", "eev"),
        ("eev", "vev"),
        ("spherical", "diag"),
        ("diag", "full"),
    ];
    for (small, large) in nested {
        assert!(reached[small] <= reached[large] + 1e-6, "{small} and {large}: {reached:?}");
    }
}

#[test]
fn one_component_is_the_mean_and_the_covariance() {
    let data = ellipses(200);
    let machine = GaussianMixture { floor: 0.0, ..GaussianMixture::default() };
    let model = machine.fit(&data, &Context::new()).unwrap();
    let mut row = vec![0.0; 2];
    let rows: Vec<Vec<f64>> = (0..200)
        .map(|i| {
            data.features().copy_row(i, &mut row);
            row.clone()
        })
        .collect();
    let mean: Vec<f64> = (0..2).map(|j| rows.iter().map(|r| r[j]).sum::<f64>() / 200.0).collect();
    model.vectors().copy_row(0, &mut row);
    for i in 0..2 {
        assert!((row[i] - mean[i]).abs() < 1e-12);
        for j in 0..2 {
            let sum: f64 = rows.iter().map(|r| (r[i] - mean[i]) * (r[j] - mean[j])).sum();
            assert!((part(&model).covariances[2 * i + j] - sum / 200.0).abs() < 1e-12);
        }
    }
}

#[test]
fn threads_change_no_bit_and_far_offsets_lose_no_digits() {
    let data = ellipses(6000);
    let machine = GaussianMixture { components: 3, ..GaussianMixture::default() };
    let alone = machine.fit(&data, &Context::new()).unwrap();
    let together = machine.fit(&data, &Context::new().with_threads(2).unwrap()).unwrap();
    assert_eq!(alone.body, together.body);
    let mut row = vec![0.0; 2];
    let moved = (0..6000).flat_map(|i| {
        data.features().copy_row(i, &mut row);
        [row[0] + 1e6, row[1] - 1e6]
    });
    let moved = data.clone().with_features(table(moved.collect(), 2).unwrap()).unwrap();
    let far = machine.fit(&moved, &Context::new()).unwrap();
    for (a, b) in part(&alone).covariances.iter().zip(&part(&far).covariances) {
        assert!((a - b).abs() < 1e-6, "{a} and {b}");
    }
}

#[test]
fn the_number_of_components_is_found() {
    let machine = GaussianMixture {
        components: 6,
        criterion: Some(MixtureCriterion::Bic),
        starts: 3,
        ..GaussianMixture::default()
    };
    let model = machine.fit(&ellipses(600), &Context::new()).unwrap();
    assert_eq!(model.support_count(), 3);
}

#[test]
fn degenerate_rows_are_survived() {
    // Equal rows, a constant column, fewer rows than features.
    let equal = Dataset::new(table([1.0, 2.0].repeat(20), 2).unwrap(), Labels::None).unwrap();
    let few = Dataset::new(table(vec![1.0, 2.0, 3.0, 4.0, 5.0, 7.0], 3).unwrap(), Labels::None);
    for covariance in ALL {
        for data in [&equal, few.as_ref().unwrap()] {
            let machine =
                GaussianMixture { components: 2, covariance, ..GaussianMixture::default() };
            let model = machine.fit(data, &Context::new()).unwrap();
            assert!(part(&model).log_likelihood.is_finite(), "{covariance}");
        }
        let machine = GaussianMixture { components: 3, covariance, ..GaussianMixture::default() };
        assert!(machine.fit(few.as_ref().unwrap(), &Context::new()).is_err());
    }
    let machine = GaussianMixture { floor: 0.0, ..GaussianMixture::default() };
    let error = machine.fit(&equal, &Context::new()).unwrap_err().to_string();
    assert!(error.contains("singular"), "{error}");
}

#[test]
fn losses_and_priors_move_the_answer() {
    let data = ellipses(300);
    let context = Context::new();
    let count = |machine: &MixtureBayes| {
        let model = machine.fit(&data, &context).unwrap();
        match model.predictor(&context).unwrap().predict(data.features()).unwrap() {
            Labels::Int(labels) => labels.iter().filter(|label| **label == 2).count(),
            other => panic!("{other:?}"),
        }
    };
    let plain = count(&MixtureBayes::default());
    // Missing class 2 costs a million times more.
    let loss = Some(vec![0., 1., 1., 1., 0., 1., 1e6, 1e6, 0.]);
    assert!(count(&MixtureBayes { loss, ..MixtureBayes::default() }) > plain);
    let never = Priors::Given(vec![0.5, 0.5, 0.0]);
    assert_eq!(count(&MixtureBayes { priors: never, ..MixtureBayes::default() }), 0);
    let short = MixtureBayes { loss: Some(vec![0.0; 4]), ..MixtureBayes::default() };
    assert!(short.fit(&data, &context).is_err());
}
