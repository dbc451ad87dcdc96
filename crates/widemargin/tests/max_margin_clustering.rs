//! Maximum-margin clustering against optima of an interior-point solver, against all labels of few rows, and against
//! what the problem's symmetries demand.

use widemargin::data::{Dataset, Dense, Labels, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{
    Balance, Body, ClusteringMethod, ClusteringWidths, Links, Machine, MarginClusters,
    MaxMarginClustering, Model,
};
use widemargin::{CancelToken, Context, Error, Status};

use crate::common::random;

/// Four rows near the origin, four away from it.
const EIGHT: [f64; 16] = [0., 0., 1., 0., 0., 1., 1., 1., 4., 3., 5., 3., 4., 4., 6., 5.];

fn table(columns: usize, values: &[f64]) -> Dataset {
    let dense = Dense::new(values.len() / columns, columns, values.to_vec()).unwrap();
    Dataset::new(Matrix::DenseF64(dense), Labels::None).unwrap()
}

fn clusters_of(model: &Model) -> &MarginClusters {
    let Body::MarginClusters(found) = &model.body else { panic!("{:?}", model.body.name()) };
    found
}

fn fit(machine: &MaxMarginClustering, data: &Dataset) -> MarginClusters {
    clusters_of(&machine.fit(data, &Context::new()).unwrap()).clone()
}

/// min over all labels with |Σy| ≤ `imbalance` of max Σλ − ½λᵀ(K ∘ yyᵀ)λ/β over the box, by coordinate ascent.
fn least_of_all_labels(k: &[f64], n: usize, beta: f64, imbalance: f64) -> f64 {
    least_of_labels(k, n, beta, |y| y.iter().sum::<f64>().abs() <= imbalance)
}

/// The same over labels of both signs that are `allowed`.
fn least_of_labels(k: &[f64], n: usize, beta: f64, allowed: impl Fn(&[f64]) -> bool) -> f64 {
    let mut least = f64::INFINITY;
    for mask in 1..1_u32 << (n - 1) {
        let y = |i: usize| if mask & (1 << i) != 0 { -1.0 } else { 1.0 };
        if !allowed(&(0..n).map(y).collect::<Vec<f64>>()) {
            continue;
        }
        let mut lambda = vec![0.0; n];
        for _ in 0..20_000 {
            let mut change = 0.0_f64;
            for i in 0..n {
                let f: f64 =
                    (0..n).map(|j| k[i * n + j] * y(i) * y(j) * lambda[j]).sum::<f64>() / beta;
                let next = (lambda[i] + (1.0 - f) * beta / k[i * n + i]).clamp(0.0, 1.0);
                change = change.max((next - lambda[i]).abs());
                lambda[i] = next;
            }
            if change < 1e-14 {
                break;
            }
        }
        let square: f64 = (0..n * n)
            .map(|at| k[at] * y(at / n) * y(at % n) * lambda[at / n] * lambda[at % n])
            .sum();
        least = least.min(lambda.iter().sum::<f64>() - 0.5 * square / beta);
    }
    least
}

fn gaussian(rows: &[f64], columns: usize, gamma: f64) -> Vec<f64> {
    let row = |i: usize| &rows[i * columns..][..columns];
    let n = rows.len() / columns;
    let squared = |i, j| row(i).iter().zip(row(j)).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
    (0..n * n).map(|at| (-gamma * squared(at / n, at % n)).exp()).collect()
}

#[test]
fn eight_rows_have_the_optima_of_an_interior_point_solver() {
    // Objective of the best labels and value of the relaxation, by Clarabel through CVXPY.
    let gaussian = Kernel::Gaussian { gamma: 1.0 / 9.0 };
    let cases = [
        (&gaussian, false, 0.01, 1.0, 0.014_516_5, 0.014_063_9),
        (&gaussian, false, 0.01, 2.0, 0.014_516_5, 0.013_730_6),
        (&gaussian, false, 1.0, 1.0, 1.450_040_1, 1.406_387_1),
        (&gaussian, false, 1.0, 2.0, 1.450_040_1, 1.373_059_9),
        (&Kernel::Linear, true, 0.01, 1.0, 0.001_882_353, 0.001_882_353),
        (&Kernel::Linear, true, 1.0, 2.0, 0.188_235_3, 0.188_235_3),
    ];
    for (kernel, centre, beta, balance, objective, relaxation) in cases {
        let machine = MaxMarginClustering {
            kernel: kernel.clone(),
            centre,
            beta,
            balance: Balance::Most(balance),
            ..MaxMarginClustering::default()
        };
        let found = fit(&machine, &table(2, &EIGHT));
        assert_eq!(found.labels, [0, 0, 0, 0, 1, 1, 1, 1]);
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-5 * b;
        assert!(close(found.objective, objective), "{} {objective}", found.objective);
        assert!(close(found.relaxation.unwrap(), relaxation), "{found:?} {relaxation}");
        assert!(found.bound <= found.relaxation.unwrap() && found.gap().unwrap() <= 1e-5);
    }
}

#[test]
fn the_search_is_complete_and_the_bound_is_one() {
    for seed in 0..6 {
        let n = 6 + seed as usize % 4;
        let rows: Vec<f64> = random(2 * n, seed).iter().map(|x| 4.0 * x).collect();
        for (beta, gamma) in [(0.01, 0.3), (2.0, 0.3), (0.1, 2.0)] {
            let imbalance = 2.0;
            let least = least_of_all_labels(&gaussian(&rows, 2, gamma), n, beta, imbalance);
            let machine = MaxMarginClustering {
                kernel: Kernel::Gaussian { gamma },
                beta,
                balance: Balance::Most(imbalance),
                ..MaxMarginClustering::default()
            };
            let found = fit(&machine, &table(2, &rows));
            assert!((found.objective - least).abs() <= 1e-7 * least, "{found:?} {least}");
            let value = found.relaxation.unwrap();
            assert!(found.bound <= value && value <= least * (1.0 + 1e-6), "{found:?} {least}");
            assert!(found.gap().unwrap() <= 1.1e-6, "{found:?}");
        }
    }
}

#[test]
fn the_order_of_the_rows_does_not_matter_and_small_beta_only_scales() {
    let rows = random(60, 5);
    let machine = MaxMarginClustering {
        kernel: Kernel::Gaussian { gamma: 4.0 },
        method: ClusteringMethod::Relaxation,
        ..MaxMarginClustering::default()
    };
    let first = fit(&machine, &table(2, &rows));
    let reversed: Vec<f64> = rows.chunks_exact(2).rev().flatten().copied().collect();
    let second = fit(&machine, &table(2, &reversed));
    let relaxation = first.relaxation.unwrap();
    assert!((second.relaxation.unwrap() / relaxation - 1.0).abs() < 3e-6);
    // No λ reaches 1, so that the optimum is proportional to β.
    let tenth = fit(&MaxMarginClustering { beta: 0.001, ..machine }, &table(2, &rows));
    assert!((10.0 * tenth.relaxation.unwrap() / relaxation - 1.0).abs() < 3e-6);
    let sizes = first.labels.iter().filter(|label| **label == 0).count();
    assert!((2 * sizes).abs_diff(30) <= 3, "{sizes} of 30");
}

#[test]
fn new_rows_join_the_side_of_the_margin_and_files_keep_everything() {
    for centre in [false, true] {
        let machine = MaxMarginClustering {
            kernel: Kernel::Gaussian { gamma: 0.1 },
            centre,
            ..MaxMarginClustering::default()
        };
        let data = table(2, &EIGHT);
        let context = Context::new();
        let model = machine.fit(&data, &context).unwrap();
        let predict = |model: &Model, rows: &Dataset| match model
            .predictor(&context)
            .unwrap()
            .predict(rows.features())
            .unwrap()
        {
            Labels::Int(labels) => labels,
            other => panic!("{other:?}"),
        };
        assert_eq!(predict(&model, &data), [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(predict(&model, &table(2, &[0.4, 0.6, 5.2, 4.1])), [0, 1]);
        model.validate().unwrap();
        let file = tempfile_path("clusters.wm");
        model.save(&file).unwrap();
        assert_eq!(Model::load(&file).unwrap(), model);
        std::fs::remove_file(file).unwrap();
    }
}

fn tempfile_path(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("widemargin-{}-{name}", std::process::id()))
}

#[test]
fn a_search_that_is_stopped_has_labels_and_a_bound() {
    let token = CancelToken::new();
    let stop = token.clone();
    let context =
        Context::new().with_cancel_token(token).with_observer(move |event: &widemargin::Event| {
            if matches!(event, widemargin::Event::Iteration { .. }) {
                stop.cancel();
            }
        });
    let machine = MaxMarginClustering {
        kernel: Kernel::Gaussian { gamma: 4.0 },
        ..MaxMarginClustering::default()
    };
    let model = machine.fit(&table(2, &random(60, 8)), &context).unwrap();
    assert_eq!(model.training.as_ref().unwrap().outcome.status, Status::Interrupted);
    let found = clusters_of(&model);
    assert!(0.0 < found.bound && found.bound <= found.objective, "{found:?}");
    assert!(found.labels.contains(&0) && found.labels.contains(&1));
}

/// Stops at the first event of a descent.
fn stopped_at_once() -> Context {
    let token = CancelToken::new();
    let stop = token.clone();
    Context::new().with_cancel_token(token).with_observer(move |event: &widemargin::Event| {
        if matches!(event, widemargin::Event::Iteration { .. }) {
            stop.cancel();
        }
    })
}

#[test]
fn every_search_that_is_stopped_has_labels_of_all_clusters() {
    for (clusters, method) in [
        (2, ClusteringMethod::Iterative),
        (3, ClusteringMethod::Iterative),
        (3, ClusteringMethod::Relaxation),
        (4, ClusteringMethod::Relaxation),
    ] {
        let machine = MaxMarginClustering {
            clusters,
            kernel: Kernel::Gaussian { gamma: 4.0 },
            method,
            ..MaxMarginClustering::default()
        };
        let model = machine.fit(&table(2, &random(300, 8)), &stopped_at_once()).unwrap();
        let case = format!("{clusters} by {method}");
        assert_eq!(model.training.as_ref().unwrap().outcome.status, Status::Interrupted, "{case}");
        let found = clusters_of(&model);
        assert!(found.bound <= found.objective, "{case}: {found:?}");
        assert!((0..clusters).all(|r| found.labels.contains(&r)), "{case}");
        let context = Context::new();
        let predictor = model.predictor(&context).unwrap();
        assert_eq!(predictor.predict(table(2, &random(6, 1)).features()).unwrap().len(), 3);
    }
    // A time limit that is over before the kernel matrix is there leaves nothing to return.
    let limit = Context::new().with_time_limit(std::time::Duration::ZERO);
    match MaxMarginClustering::default().fit(&table(2, &random(300, 8)), &limit) {
        Err(error) => assert!(matches!(error, Error::Interrupted), "{error:?}"),
        Ok(model) => assert_eq!(model.training.unwrap().outcome.status, Status::TimeLimit),
    }
}

#[test]
fn links_and_shares_hold_and_bound_the_labels_that_keep_them() {
    let n = 10;
    for seed in 0..6 {
        let rows: Vec<f64> = random(2 * n, 90 + seed).iter().map(|x| 3.0 * x).collect();
        let (beta, gamma) = ([0.01, 0.5, 3.0][seed as usize % 3], 0.4);
        let k = gaussian(&rows, 2, gamma);
        let links = Links::new(vec![(0, 9), (3, 9)], vec![(1, 2)]);
        let linked = |y: &[f64]| y[0] == y[9] && y[3] == y[9] && y[1] != y[2];
        let difference = |y: &[f64]| y.iter().sum::<f64>().abs();
        let cases: [(Option<f64>, Links, f64); 3] = [
            (
                None,
                links.clone(),
                least_of_labels(&k, n, beta, |y| linked(y) && difference(y) <= 2.0),
            ),
            (
                Some(0.2),
                Links::default(),
                least_of_labels(&k, n, beta, |y| (difference(y) - 6.0).abs() <= 2.0),
            ),
            (
                Some(0.7),
                links,
                least_of_labels(&k, n, beta, |y| linked(y) && (difference(y) - 4.0).abs() <= 2.0),
            ),
        ];
        for (share, links, least) in cases {
            for method in [ClusteringMethod::Relaxation, ClusteringMethod::Enumeration] {
                let machine = MaxMarginClustering {
                    kernel: Kernel::Gaussian { gamma },
                    beta,
                    balance: Balance::Most(2.0),
                    share,
                    links: links.clone(),
                    method,
                    ..MaxMarginClustering::default()
                };
                let found = fit(&machine, &table(2, &rows));
                let case = format!("{seed} {share:?} {links} {method}: {found:?} {least}");
                assert!(found.bound <= least * (1.0 + 1e-6), "{case}");
                assert!(found.gap().unwrap() <= 1.1e-6, "{case}");
                match method {
                    ClusteringMethod::Enumeration => {
                        assert!((found.objective - least).abs() <= 1e-6 * least, "{case}");
                    }
                    _ => assert!(found.objective >= least * (1.0 - 1e-6), "{case}"),
                }
                let y: Vec<f64> = found.labels.iter().map(|&r| 1.0 - 2.0 * r as f64).collect();
                assert!(links.is_empty() || linked(&y), "{case}");
                let wanted = share.map_or(0.0, |share| (20.0 * share - 10.0).abs());
                assert!((difference(&y) - wanted).abs() <= 2.0 + 1e-9, "{case}");
                let sums = found.memberships.chunks_exact(2).map(|row| row[0] + row[1]);
                assert!(sums.clone().count() == n && sums.clone().all(|s| (s - 1.0).abs() < 1e-12));
            }
        }
    }
}

#[test]
fn links_and_shares_that_cannot_be_are_refused() {
    let data = table(2, &EIGHT);
    let refused = |machine: MaxMarginClustering| match machine.fit(&data, &Context::new()) {
        Err(Error::Parameter { name, expected, .. }) => format!("{name}: {expected}"),
        other => panic!("{other:?}"),
    };
    let with = |text: &str| MaxMarginClustering {
        links: text.parse().unwrap(),
        ..MaxMarginClustering::default()
    };
    assert_eq!(refused(with("0=1,1=2,0!2")), "links: links that two clusters can satisfy");
    assert_eq!(refused(with("0=8")), "links: rows from 0 to 7");
    assert!(refused(with("0=1,1=2,2=3,3=4,4=5,5=6")).starts_with("balance"));
    assert!(refused(MaxMarginClustering { clusters: 3, ..with("0=1") }).starts_with("links"));
    let share = |share| MaxMarginClustering { share: Some(share), ..Default::default() };
    for bad in [0.0, 1.0, -0.1, f64::NAN] {
        assert!(refused(share(bad)).starts_with("share"));
    }
    assert!(refused(MaxMarginClustering { clusters: 3, ..share(0.3) }).starts_with("share"));
    let iterative = MaxMarginClustering { method: ClusteringMethod::Iterative, ..share(0.3) };
    assert!(refused(iterative).starts_with("share"));
    for bad in ["", "0", "0=", "a=1", "0=1;2=3", "-1=2"] {
        assert!(bad.parse::<Links>().is_err(), "{bad}");
    }
    assert_eq!("4!1, 0=3".parse::<Links>().unwrap().to_string(), "0=3,4!1");
    assert_eq!("none".parse::<Links>().unwrap(), Links::default());
}

#[test]
fn memberships_are_largest_in_the_labels_and_files_keep_them() {
    let machine = MaxMarginClustering {
        kernel: Kernel::Linear,
        centre: true,
        method: ClusteringMethod::Relaxation,
        tol: 1e-9,
        ..MaxMarginClustering::default()
    };
    let model = machine.fit(&table(2, &EIGHT), &Context::new()).unwrap();
    let found = clusters_of(&model);
    for (row, label) in found.memberships.chunks_exact(2).zip(&found.labels) {
        assert!(row[*label] > 0.5 && (row[0] + row[1] - 1.0).abs() < 1e-12, "{found:?}");
    }
    let again = Model::load_from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again, model);
}

#[test]
fn bad_input_is_refused_by_name() {
    let machine = MaxMarginClustering::default();
    let context = Context::new();
    let refused =
        |machine: &MaxMarginClustering, data: &Dataset| machine.fit(data, &context).unwrap_err();
    let odd = table(1, &[0.0, 1.0, 5.0]);
    for balance in [0.0, 0.2, -1.0, f64::NAN] {
        let machine = MaxMarginClustering { balance: Balance::Most(balance), ..machine.clone() };
        assert!(matches!(refused(&machine, &odd), Error::Parameter { name: "balance", .. }));
    }
    for beta in [0.0, -1.0, f64::INFINITY] {
        let machine = MaxMarginClustering { beta, ..machine.clone() };
        assert!(matches!(refused(&machine, &odd), Error::Parameter { name: "beta", .. }));
    }
    assert!(matches!(refused(&machine, &table(1, &[1.0])), Error::Length { .. }));
    assert!(matches!(refused(&machine, &table(1, &[1.0; 6])), Error::Kernel { .. }));
    assert!(matches!(refused(&machine, &table(1, &[1.0, f64::NAN])), Error::NonFinite { .. }));
    let sigmoid = Kernel::Sigmoid { gamma: 1.0, coef0: -1.0 };
    let machine = MaxMarginClustering { kernel: sigmoid, ..machine };
    assert!(matches!(refused(&machine, &odd), Error::Kernel { .. }));
    // Two rows are two clusters, whatever is asked.
    let two = fit(&MaxMarginClustering::default(), &table(1, &[0.0, 3.0]));
    assert_eq!(two.labels, [0, 1]);
}

/// The least of max Σλ − ½λᵀ(K ∘ M)λ/β over all labels of three clusters whose sizes differ by at most `imbalance`, with
/// Mᵢⱼ = 1 within a cluster and −½ between two, by coordinate ascent.
fn least_of_three(k: &[f64], n: usize, beta: f64, imbalance: usize) -> f64 {
    let mut least = f64::INFINITY;
    for mut code in 0..3_usize.pow(n as u32 - 1) {
        let mut labels = vec![0; n];
        for label in &mut labels[1..] {
            (*label, code) = (code % 3, code / 3);
        }
        let counts = [0, 1, 2].map(|r| labels.iter().filter(|label| **label == r).count());
        let (small, large) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        if *small == 0 || large - small > imbalance {
            continue;
        }
        let m = |i: usize, j: usize| if labels[i] == labels[j] { 1.0 } else { -0.5 };
        let mut lambda = vec![0.0; n];
        for _ in 0..5_000 {
            let mut change = 0.0_f64;
            for i in 0..n {
                let f: f64 = (0..n).map(|j| k[i * n + j] * m(i, j) * lambda[j]).sum::<f64>() / beta;
                let next = (lambda[i] + (1.0 - f) * beta / k[i * n + i]).clamp(0.0, 1.0);
                change = change.max((next - lambda[i]).abs());
                lambda[i] = next;
            }
            if change < 1e-13 {
                break;
            }
        }
        let square: f64 =
            (0..n * n).map(|at| k[at] * m(at / n, at % n) * lambda[at / n] * lambda[at % n]).sum();
        least = least.min(lambda.iter().sum::<f64>() - 0.5 * square / beta);
    }
    least
}

#[test]
fn no_labels_of_three_clusters_are_below_the_bound() {
    for seed in 0..3 {
        let n = 7;
        let rows: Vec<f64> = random(2 * n, 40 + seed).iter().map(|x| 4.0 * x).collect();
        let least = least_of_three(&gaussian(&rows, 2, 0.4), n, 0.05, 2);
        let machine = MaxMarginClustering {
            clusters: 3,
            kernel: Kernel::Gaussian { gamma: 0.4 },
            beta: 0.05,
            balance: Balance::Most(2.0),
            ..MaxMarginClustering::default()
        };
        let found = fit(&machine, &table(2, &rows));
        assert!(found.bound <= least * (1.0 + 1e-6), "{} {least}", found.bound);
        assert!(found.objective >= least * (1.0 - 1e-6), "{} {least}", found.objective);
        assert_eq!(found.labels[0], 0);
        assert!((0..3).all(|r| found.labels.contains(&r)));
    }
}

#[test]
fn three_heaps_are_three_clusters_by_every_method() {
    let u = random(240, 9);
    let centres = [[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]];
    let values: Vec<f64> =
        (0..120).flat_map(|i| [0, 1].map(|j| centres[i % 3][j] + u[2 * i + j])).collect();
    let expected: Vec<usize> = (0..120).map(|i| i % 3).collect();
    for method in
        [ClusteringMethod::Relaxation, ClusteringMethod::Alternation, ClusteringMethod::Iterative]
    {
        let machine = MaxMarginClustering {
            clusters: 3,
            kernel: Kernel::Gaussian { gamma: 0.1 },
            method,
            tol: 1e-3,
            ..MaxMarginClustering::default()
        };
        let model = machine.fit(&table(2, &values), &Context::new()).unwrap();
        assert_eq!(clusters_of(&model).labels, expected, "{method}");
        model.validate().unwrap();
        let again = Model::load_from_bytes(&model.to_bytes().unwrap()).unwrap();
        let new = table(2, &[0.2, 0.3, 5.5, 0.5, 0.1, 5.9]);
        let predicted = again.predictor(&Context::new()).unwrap().predict(new.features()).unwrap();
        assert_eq!(predicted, Labels::Int(vec![0, 1, 2]), "{method}");
    }
}

#[test]
fn many_rows_are_clustered_by_features_and_no_step_raises_the_objective() {
    use std::sync::{Arc, Mutex};
    let n = 4_500;
    let u = random(2 * n, 12);
    let values: Vec<f64> = (0..n)
        .flat_map(|i| [u[2 * i] + if i % 2 == 0 { 0.0 } else { 1.6 }, u[2 * i + 1]])
        .collect();
    let objectives = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&objectives);
    let context = Context::new().with_observer(move |event: &widemargin::Event| {
        if let widemargin::Event::Iteration { iteration, objective, .. } = event {
            seen.lock().unwrap().push((*iteration, *objective));
        }
    });
    let machine = MaxMarginClustering {
        kernel: Kernel::Gaussian { gamma: 0.5 },
        ..MaxMarginClustering::default()
    };
    let model = machine.fit(&table(2, &values), &context).unwrap();
    let found = clusters_of(&model);
    let wrong = (0..n).filter(|&i| found.labels[i] != i % 2).count();
    assert!(wrong < n / 100, "{wrong}");
    assert_eq!(found.relaxation, None);
    assert!(model.preparation.map.is_some());
    let seen = objectives.lock().unwrap();
    let descends = |pair: &[(usize, f64)]| pair[1].0 <= pair[0].0 || pair[1].1 <= pair[0].1;
    assert!(seen.len() > 2 && seen.windows(2).all(descends), "{seen:?}");
}

#[test]
fn of_several_widths_the_one_with_the_largest_margin_is_taken() {
    // Two rings around one point.
    let u = random(120, 21);
    let values: Vec<f64> = (0..60)
        .flat_map(|i| {
            let (radius, angle) =
                ([1.0, 2.5][i % 2] + 0.2 * (u[2 * i] - 0.5), std::f64::consts::TAU * u[2 * i + 1]);
            [radius * angle.cos(), radius * angle.sin()]
        })
        .collect();
    let data = table(2, &values);
    let machine = MaxMarginClustering {
        widths: ClusteringWidths::MultiScale,
        kernel: Kernel::Gaussian { gamma: 17.0 },
        tol: 1e-3,
        ..MaxMarginClustering::default()
    };
    let model = machine.fit(&data, &Context::new()).unwrap();
    let found = clusters_of(&model);
    assert_eq!(found.labels, (0..60).map(|i| i % 2).collect::<Vec<_>>());
    let Kernel::Gaussian { gamma } = found.expansion.kernel else { panic!() };
    let alone = MaxMarginClustering {
        widths: ClusteringWidths::Given,
        kernel: Kernel::Gaussian { gamma },
        ..machine.clone()
    };
    assert_eq!(&fit(&alone, &data), found);
    // The median distance, by all pairs.
    let mut squares: Vec<f64> = Vec::new();
    for i in 0..60 {
        for j in 0..i {
            let (dx, dy) = (values[2 * i] - values[2 * j], values[2 * i + 1] - values[2 * j + 1]);
            squares.push(dx * dx + dy * dy);
        }
    }
    squares.sort_by(f64::total_cmp);
    let median = squares[squares.len() / 2].sqrt();
    for width in [0.1, 0.2, 0.35, 0.6, 1.0] {
        let kernel = Kernel::Gaussian { gamma: (width * median).powi(-2) };
        let other = fit(&MaxMarginClustering { kernel, ..alone.clone() }, &data);
        assert!(found.objective <= other.objective * (1.0 + 1e-12), "{width}");
    }
    let linear = MaxMarginClustering { kernel: Kernel::Linear, ..machine.clone() };
    let error = linear.fit(&data, &Context::new()).unwrap_err().to_string();
    assert!(error.contains("widths"), "{error}");
    let same = table(1, &[1.0; 6]);
    assert!(matches!(machine.fit(&same, &Context::new()), Err(Error::Kernel { .. })));
}
