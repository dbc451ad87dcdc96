//! Robust machines against optima of an interior-point solver, all choices of rows, and the identities of their losses.

use widemargin::data::{Dataset, Dense, Labels, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{
    Bias, DistancePrice, Machine, Model, RobustLoss, RobustMethod, RobustSvc, Svc,
};
use widemargin::{CancelToken, Context, Error, Status};

use crate::common::random;

/// Six rows on the right sides and two outliers: the fourth and the eighth.
const EIGHT: [f64; 16] = [2., 1., 1., 2., 3., 2., -5., -4., -2., -1., -1., -2., -3., -2., 4., 5.];
const SIGNS: [i64; 8] = [1, 1, 1, 1, -1, -1, -1, -1];

fn table(columns: usize, values: &[f64], labels: &[i64]) -> Dataset {
    let dense = Dense::new(values.len() / columns, columns, values.to_vec()).unwrap();
    Dataset::new(Matrix::DenseF64(dense), Labels::Int(labels.to_vec())).unwrap()
}

fn linear(beta: f64) -> RobustSvc {
    RobustSvc {
        c: 1.0 / beta,
        kernel: Kernel::Linear,
        intercept: Bias::None,
        tol: 1e-7,
        ..RobustSvc::default()
    }
}

fn fit(machine: &RobustSvc, data: &Dataset) -> Model {
    machine.fit(data, &Context::new()).unwrap()
}

fn reals<'a>(model: &'a Model, name: &str) -> &'a [f64] {
    model.training.as_ref().unwrap().reals(name).unwrap()
}

fn number(model: &Model, name: &str) -> f64 {
    let training = model.training.as_ref().unwrap();
    training.parameters.iter().find(|(own, _)| own == name).unwrap().1.number().unwrap()
}

fn objective(model: &Model) -> f64 {
    model.training.as_ref().unwrap().outcome.primal
}

fn bound(model: &Model) -> f64 {
    model.training.as_ref().unwrap().outcome.dual
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * b.abs().max(1e-3)
}

/// Signed decision values yᵢf(xᵢ), +1 being positive.
fn margins(model: &Model, data: &Dataset) -> Vec<f64> {
    let values =
        model.predictor(&Context::new()).unwrap().decision_values(data.features()).unwrap();
    let Labels::Int(labels) = data.labels() else { panic!() };
    // Positive means the smaller label.
    values.values().iter().zip(labels).map(|(f, y)| -f * *y as f64).collect()
}

/// Two overlapping classes of rows in the plane, some labels wrong.
fn noisy(n: usize, seed: u64) -> Dataset {
    let u = random(4 * n, seed);
    let mut values = Vec::new();
    let mut labels = Vec::new();
    for i in 0..n {
        let y: i64 = if i % 2 == 0 { 1 } else { -1 };
        values.extend([y as f64 + 2.0 * (u[4 * i] - 0.5), 3.0 * (u[4 * i + 1] - 0.5)]);
        labels.push(if u[4 * i + 2] < 0.2 { -y } else { y });
    }
    table(2, &values, &labels)
}

/// min over w of ½β‖w‖² + Σ of the hinge losses of `rows`, linear without constant, by coordinate ascent on the dual.
fn machine_of(values: &[f64], labels: &[f64], rows: &[usize], beta: f64) -> f64 {
    let (mut w, mut lambda) = ([0.0; 2], vec![0.0; rows.len()]);
    for _ in 0..200_000 {
        let mut change = 0.0_f64;
        for (k, &i) in rows.iter().enumerate() {
            let x = [values[2 * i], values[2 * i + 1]];
            let f = labels[i] * (w[0] * x[0] + w[1] * x[1]);
            let square = x[0] * x[0] + x[1] * x[1];
            let next = (lambda[k] + (1.0 - f) * beta / square).clamp(0.0, 1.0_f64);
            let step = (next - lambda[k]) * labels[i] / beta;
            (w[0], w[1]) = (w[0] + step * x[0], w[1] + step * x[1]);
            change = change.max((next - lambda[k]).abs());
            lambda[k] = next;
        }
        if change < 1e-13 {
            break;
        }
    }
    lambda.iter().sum::<f64>() - 0.5 * beta * (w[0] * w[0] + w[1] * w[1])
}

#[test]
fn eight_rows_have_the_optima_of_an_interior_point_solver() {
    // β, capped losses: optimum and bound, trimmed to six rows: optimum and bound (Clarabel through CVXPY).
    let cases = [
        (1.0, 2.111_111, 0.995_862, 0.111_111, 0.108_219),
        (10.0, 3.111_111, 2.980_581, 1.111_111, 1.082_186),
        (50.0, 5.587_692, 5.587_692, 3.587_692, 3.587_692),
    ];
    let data = table(2, &EIGHT, &SIGNS);
    for (beta, ramp, ramp_bound, trimmed, trimmed_bound) in cases {
        for method in [RobustMethod::Relaxation, RobustMethod::Enumeration] {
            let machine = RobustSvc { method, ..linear(beta) };
            let capped = fit(&machine, &data);
            assert!(close(objective(&capped), ramp, 2e-6), "{beta} {}", objective(&capped));
            let trims = RobustSvc { loss: RobustLoss::Trimmed, keep: 0.75, ..machine };
            let trims = fit(&trims, &data);
            assert!(close(objective(&trims), trimmed, 1e-5), "{beta} {}", objective(&trims));
            for model in [&capped, &trims] {
                assert_eq!(reals(model, "kept"), [1., 1., 1., 0., 1., 1., 1., 0.]);
                let scores = reals(model, "outlier-scores");
                assert!(scores[3] > 0.0 && scores[7] > 0.0, "{scores:?}");
            }
            for (model, expected) in [(&capped, ramp_bound), (&trims, trimmed_bound)] {
                let value = number(model, "relaxation");
                assert!(close(value, expected, 2e-5), "β {beta}: {value}, {expected}");
                if method == RobustMethod::Relaxation {
                    let proven = bound(model);
                    assert!(proven <= value && close(proven, expected, 2e-5), "{proven} {value}");
                } else {
                    assert!(close(bound(model), objective(model), 1e-9));
                }
            }
            let shares = reals(&trims, "shares");
            let (outliers, others): (Vec<usize>, Vec<usize>) =
                (0..8).partition(|i| [3, 7].contains(i));
            let least = others.iter().map(|&i| shares[i]).fold(f64::INFINITY, f64::min);
            assert!(outliers.iter().all(|&i| shares[i] < least), "{shares:?}");
        }
    }
}

#[test]
fn bounds_hold_and_the_search_is_complete() {
    for seed in 0..4 {
        let n = 10;
        let data = noisy(n, seed);
        let Matrix::DenseF64(rows) = data.features() else { panic!() };
        let values = rows.values();
        let Labels::Int(labels) = data.labels() else { panic!() };
        let labels: Vec<f64> = labels.iter().map(|&y| y as f64).collect();
        for beta in [0.1, 5.0] {
            let (mut ramp, mut trimmed) = (f64::INFINITY, f64::INFINITY);
            for mask in 0..1_u32 << n {
                let kept: Vec<usize> = (0..n).filter(|i| mask & (1 << i) != 0).collect();
                let cost = machine_of(values, &labels, &kept, beta);
                ramp = ramp.min(cost + (n - kept.len()) as f64);
                if kept.len() == 8 {
                    trimmed = trimmed.min(cost);
                }
            }
            for (loss, least) in [(RobustLoss::Ramp, ramp), (RobustLoss::Trimmed, trimmed)] {
                let machine = RobustSvc { loss, keep: 0.75, ..linear(beta) };
                let complete =
                    fit(&RobustSvc { method: RobustMethod::Enumeration, ..machine.clone() }, &data);
                assert!(
                    close(objective(&complete), least, 1e-6),
                    "{loss} {}",
                    objective(&complete)
                );
                let relaxed =
                    fit(&RobustSvc { method: RobustMethod::Relaxation, ..machine }, &data);
                assert!(bound(&relaxed) <= least * (1.0 + 1e-7), "{} {least}", bound(&relaxed));
                assert!(objective(&relaxed) >= least * (1.0 - 1e-7));
                let value = number(&relaxed, "relaxation");
                assert!(bound(&relaxed) >= value - 1e-4 * value.abs().max(1e-3), "{value}");
            }
        }
    }
}

#[test]
fn objectives_are_those_of_the_functions() {
    let data = noisy(60, 7);
    let n = 60;
    for (loss, method) in [
        (RobustLoss::Ramp, RobustMethod::ConcaveConvex),
        (RobustLoss::Eta, RobustMethod::Alternation),
        (RobustLoss::Trimmed, RobustMethod::Alternation),
        (RobustLoss::Trimmed, RobustMethod::ConcaveConvex),
        (RobustLoss::Ramp, RobustMethod::Relaxation),
    ] {
        let machine = RobustSvc { loss, method, ..linear(0.5) };
        let model = fit(&machine, &data);
        let z = margins(&model, &data);
        let mut hinge: Vec<f64> = z.iter().map(|z| (1.0 - z).max(0.0)).collect();
        hinge.sort_by(f64::total_cmp);
        let losses: f64 = match loss {
            RobustLoss::Trimmed => hinge[..48].iter().sum(),
            _ => hinge.iter().map(|h| h.min(1.0)).sum(),
        };
        let w = model.linear_weights().unwrap();
        let norm: f64 = w.values().iter().map(|w| w * w).sum();
        assert!(close(objective(&model), 0.25 * norm + losses, 1e-8), "{loss} {method}");
        // Scores are signed distances on the wrong side.
        let scores = reals(&model, "outlier-scores");
        assert!(scores.iter().zip(&z).all(|(s, z)| (s + z / norm.sqrt()).abs() < 1e-8));
        let kept = reals(&model, "kept").iter().filter(|k| **k == 1.0).count();
        assert!(if loss == RobustLoss::Trimmed { kept == 48 } else { kept < n });
        // No support vector machine of all rows has so small an objective.
        assert!(bound(&model) <= objective(&model));
    }
}

#[test]
fn with_every_row_kept_it_is_the_support_vector_machine() {
    let data = noisy(40, 3);
    let machine = RobustSvc { loss: RobustLoss::Trimmed, keep: 1.0, ..linear(2.0) };
    let power = RobustSvc { loss: RobustLoss::Power, power: 1.0, ..linear(2.0) };
    let trimmed = fit(&machine, &data);
    let hinge = fit(&power, &data);
    assert!(close(objective(&trimmed), objective(&hinge), 1e-9));
    assert!(close(bound(&hinge), objective(&hinge), 1e-9));
    // Without outliers capped losses are hinge losses.
    let clean = table(1, &[-3.0, -2.0, 2.0, 3.0], &[-1, -1, 1, 1]);
    let ramp = fit(&linear(1.0), &clean);
    let svc =
        Svc { kernel: Kernel::Linear, ..Svc::default() }.fit(&clean, &Context::new()).unwrap();
    assert!(close(objective(&ramp), svc.training.unwrap().outcome.primal, 1e-3));
}

#[test]
fn powers_of_the_hinge_are_stationary() {
    let data = noisy(50, 11);
    for power in [0.5, 1.0, 1.5, 2.0] {
        let model = fit(&RobustSvc { loss: RobustLoss::Power, power, ..linear(1.0) }, &data);
        let weights = model.linear_weights().unwrap();
        let Matrix::DenseF64(rows) = data.features() else { panic!() };
        let Labels::Int(labels) = data.labels() else { panic!() };
        let cost = |w: [f64; 2]| {
            let slack = |i: usize| {
                let x = rows.row(i);
                (1.0 + labels[i] as f64 * (w[0] * x[0] + w[1] * x[1])).max(0.0)
            };
            0.5 * (w[0] * w[0] + w[1] * w[1]) + (0..50).map(|i| slack(i).powf(power)).sum::<f64>()
        };
        let w = [weights.values()[0], weights.values()[1]];
        let least = cost(w);
        assert!(close(objective(&model), least, 1e-7), "{power} {} {least}", objective(&model));
        // Vertical tangents at p < 1 make every row on the margin a local minimum in its direction.
        for angle in 0..16 {
            let (sin, cos) = (f64::from(angle) * std::f64::consts::TAU / 16.0).sin_cos();
            let moved = cost([w[0] + 1e-3 * cos, w[1] + 1e-3 * sin]);
            assert!(moved >= least - 2e-5, "{power} {moved} {least}");
        }
    }
}

#[test]
fn the_leave_one_out_program_is_solved() {
    // The optima of HiGHS through scipy.optimize.linprog, with a price of coefficients of 1, 0.1 and 0.
    let data = table(2, &EIGHT, &SIGNS);
    for (c, left_out, expected) in
        [(1.0, 1.0, 7.597_613_916), (10.0, 0.5, 1.190_103_978), (1e9, 1.0, 3.105_259_794)]
    {
        let kernel = Kernel::Gaussian { gamma: 0.1 };
        let machine = RobustSvc { loss: RobustLoss::LeaveOneOut, left_out, kernel, ..linear(1.0) };
        let model = fit(&RobustSvc { c, ..machine }, &data);
        assert!(close(objective(&model), expected, 1e-6), "{} {expected}", objective(&model));
        assert!(bound(&model) <= objective(&model));
        assert!(c > 1e8 || close(bound(&model), expected, 1e-6), "{} {expected}", bound(&model));
    }
}

#[test]
fn distances_from_the_means_lower_the_margin() {
    let data = table(2, &EIGHT, &SIGNS);
    // Without a price it is the support vector machine.
    let free = RobustSvc {
        loss: RobustLoss::Centroid,
        distance_price: DistancePrice::Value(0.0),
        ..linear(1.0)
    };
    assert!(close(objective(&fit(&free, &data)), 6.846_154, 1e-6));
    let priced = fit(&RobustSvc { distance_price: DistancePrice::Auto, ..free }, &data);
    assert!(objective(&priced) < 6.8);
    let scores = reals(&priced, "outlier-scores");
    assert!(scores[3] > 0.0 && scores[7] > 0.0);
}

#[test]
fn many_classes_are_separated_in_pairs_and_files_keep_everything() {
    let u = random(90, 2);
    let mut values = Vec::new();
    let mut labels = Vec::new();
    for i in 0..30 {
        let class = i as i64 % 3;
        let centre = [[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]][class as usize];
        values.extend([centre[0] + u[2 * i], centre[1] + u[2 * i + 1]]);
        labels.push(class);
    }
    let data = table(2, &values, &labels);
    let mut wrong = labels.clone();
    wrong[0] = 1;
    let machine = RobustSvc { kernel: Kernel::Gaussian { gamma: 0.1 }, ..RobustSvc::default() };
    let model = fit(&machine, &table(2, &values, &wrong));
    let predicted = model.predictor(&Context::new()).unwrap().predict(data.features()).unwrap();
    assert_eq!(predicted, Labels::Int(labels));
    let kept = reals(&model, "kept");
    assert!(kept[0] == 0.0 && kept[1..].iter().all(|k| *k == 1.0), "{kept:?}");
    model.validate().unwrap();
    let again = Model::load_from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again, model);
}

#[test]
fn a_training_that_is_stopped_has_a_function_and_a_bound() {
    for method in [RobustMethod::Relaxation, RobustMethod::ConcaveConvex, RobustMethod::Enumeration]
    {
        let token = CancelToken::new();
        let stop = token.clone();
        let observe = move |event: &widemargin::Event| {
            if matches!(event, widemargin::Event::Iteration { .. }) {
                stop.cancel();
            }
        };
        let context = Context::new().with_cancel_token(token).with_observer(observe);
        let model = RobustSvc { method, ..linear(1.0) }.fit(&noisy(40, 1), &context).unwrap();
        assert_eq!(model.training.as_ref().unwrap().outcome.status, Status::Interrupted);
        assert!(0.0 <= bound(&model) && bound(&model) <= objective(&model));
    }
}

#[test]
fn bad_input_is_refused_by_name() {
    let data = table(2, &EIGHT, &SIGNS);
    let context = Context::new();
    let refused = |machine: RobustSvc, name: &str| match machine.fit(&data, &context).unwrap_err() {
        Error::Parameter { name: found, .. } => assert_eq!(found, name),
        other => panic!("{name}: {other}"),
    };
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        refused(RobustSvc { c: value, ..linear(1.0) }, "c");
    }
    for keep in [0.0, -0.5, 1.5, f64::NAN] {
        refused(RobustSvc { keep, loss: RobustLoss::Trimmed, ..linear(1.0) }, "keep");
    }
    refused(RobustSvc { power: 2.5, ..linear(1.0) }, "power");
    refused(RobustSvc { left_out: 1.5, ..linear(1.0) }, "left-out");
    refused(RobustSvc { intercept: Bias::Free, ..linear(1.0) }, "intercept");
    let method = RobustMethod::ConcaveConvex;
    refused(RobustSvc { loss: RobustLoss::Power, method, ..linear(1.0) }, "robust-method");
    let weighted = table(2, &EIGHT, &SIGNS).with_weights(vec![2.0; 8]).unwrap();
    for machine in [
        RobustSvc { loss: RobustLoss::Trimmed, ..linear(1.0) },
        RobustSvc { method: RobustMethod::Relaxation, ..linear(1.0) },
    ] {
        let error = machine.fit(&weighted, &context).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "weights", .. }), "{error}");
    }
    let one = table(2, &EIGHT, &[1; 8]);
    let error = linear(1.0).fit(&one, &context).unwrap_err().to_string();
    assert!(error.contains("class"), "{error}");
    let sigmoid = Kernel::Sigmoid { gamma: 1.0, coef0: -1.0 };
    let error = RobustSvc { kernel: sigmoid, ..linear(1.0) }.fit(&data, &context).unwrap_err();
    assert!(matches!(error, Error::Kernel { .. }), "{error}");
}

#[test]
fn many_rows_of_a_linear_kernel_are_learnt_without_their_matrix() {
    // Two heaps of 550 rows in three dimensions; one row in ten is far on the wrong side.
    let n = 1_100;
    let (u, steps) = (random(3 * n, 77), random(120, 5));
    let labels: Vec<i64> = (0..n).map(|i| if i % 2 == 0 { 1 } else { -1 }).collect();
    let rows: Vec<f64> = (0..3 * n)
        .map(|at| {
            let (i, y) = (at / 3, labels[at / 3] as f64);
            let centre = if i % 20 < 2 { -4.0 * y } else { 0.8 * y };
            1.5 * (u[at] - 0.5) + if at % 3 == 0 { centre } else { 0.0 }
        })
        .collect();
    let data = table(3, &rows, &labels);
    let axes = table(3, &[1., 0., 0., 0., 1., 0., 0., 0., 1.], &[1, 1, 1]);
    for loss in [RobustLoss::Ramp, RobustLoss::Eta, RobustLoss::Trimmed] {
        let machine = RobustSvc { loss, starts: 1, c: 0.1, ..linear(1.0) };
        let found = fit(&machine, &data);
        assert!(found.training.as_ref().unwrap().outcome.status.is_solved(), "{loss}");
        // The function is linear: its values at the unit vectors are its weights.
        let w = margins(&found, &axes);
        let value = |w: &[f64]| -> f64 {
            let product = |i: usize| (0..3).map(|k| w[k] * rows[3 * i + k]).sum::<f64>();
            let mut losses: Vec<f64> =
                (0..n).map(|i| (1.0 - labels[i] as f64 * product(i)).max(0.0)).collect();
            if loss == RobustLoss::Trimmed {
                losses.sort_by(f64::total_cmp);
                losses.truncate(4 * n / 5);
            } else {
                losses.iter_mut().for_each(|xi| *xi = xi.min(1.0));
            }
            0.5 * w.iter().map(|w| w * w).sum::<f64>() / machine.c + losses.iter().sum::<f64>()
        };
        let reached = objective(&found);
        assert!(close(reached, value(&w), 1e-6), "{loss}: {reached} {}", value(&w));
        // No small step lowers the objective by more than the accuracy of the descent.
        let length = w.iter().map(|w| w * w).sum::<f64>().sqrt();
        for step in steps.chunks_exact(3) {
            for size in [0.01, 0.1] {
                let moved: Vec<f64> =
                    w.iter().zip(step).map(|(w, s)| w + size * length * (2.0 * s - 1.0)).collect();
                assert!(value(&moved) >= reached * (1.0 - 1e-3), "{loss}: {}", value(&moved));
            }
        }
        // Only the rows on the wrong side pay.
        let dropped = reals(&found, "kept").iter().filter(|kept| **kept == 0.0).count();
        assert!(dropped >= n / 12 && dropped <= n / 5, "{loss}: {dropped}");
        assert!(w[0] > 0.5 * length, "{loss}: {w:?}");
    }
}
