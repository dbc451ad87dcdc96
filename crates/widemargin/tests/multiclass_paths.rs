//! The ways to one optimum: explicit weights, parts, a start from another solution, time limits.

use std::time::{Duration, Instant};

use widemargin::Context;
use widemargin::Status;
use widemargin::data::{Dataset, Dense, Labels, Layout, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{
    AllInOne, FitInput, Machine, Model, MulticlassSvc, OnlineSvc, Precision, SolverOptions, Start,
    WarmStart,
};

use crate::common::numbers;

/// Rows around the corners of a polygon, one per class, with further features of noise.
fn blobs(rows: usize, features: usize, classes: usize) -> Dataset {
    let mut next = numbers(5);
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for i in 0..rows {
        let class = i % classes;
        let angle = std::f64::consts::TAU * class as f64 / classes as f64;
        values.push(angle.cos() + 1.6 * (next() - 0.5));
        values.push(angle.sin() + 1.6 * (next() - 0.5));
        values.extend((2..features).map(|_| if next() < 0.7 { 0.0 } else { next() }));
        labels.push(class as i64);
    }
    let table = Dense::new(rows, features, values).unwrap();
    Dataset::new(Matrix::DenseF64(table), Labels::Int(labels)).unwrap()
}

fn dual(model: &Model) -> f64 {
    let outcome = model.training.as_ref().unwrap().outcome;
    assert_eq!(outcome.status, Status::Solved, "{outcome:?}");
    outcome.dual
}

fn exact(machine: AllInOne, kernel: Kernel, bias: bool) -> MulticlassSvc {
    let options =
        SolverOptions { tol: 1e-6, precision: Precision::F64, ..SolverOptions::default() };
    MulticlassSvc { machine, kernel, bias, c: 0.7, options, ..MulticlassSvc::default() }
}

#[test]
fn explicit_weights_reach_the_optimum_of_the_kernel_matrix() {
    let dense = blobs(80, 6, 4);
    let features = dense.features().clone().into_layout(Layout::Sparse);
    let sparse = dense.clone().with_features(features).unwrap();
    let as_polynomial = Kernel::Polynomial { degree: 1, gamma: 1.0, coef0: 0.0 };
    for machine in AllInOne::ALL {
        for bias in [false, true] {
            let kernel = exact(machine, as_polynomial.clone(), bias);
            let expected = dual(&kernel.fit(&dense, &Context::new()).unwrap());
            for data in [&dense, &sparse] {
                let linear = exact(machine, Kernel::Linear, bias);
                let model = linear.fit(data, &Context::new()).unwrap();
                let found = dual(&model);
                let place = format!("{machine}, bias {bias}: {found}, not {expected}");
                assert!((found - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{place}");
                assert_eq!(model.training.unwrap().outcome.kernel_rows, 0, "{place}");
            }
        }
    }
}

#[test]
fn a_cache_too_small_for_the_matrix_changes_no_optimum() {
    let data = blobs(1500, 4, 3);
    for machine in [AllInOne::LeeLinWahba, AllInOne::CrammerSinger] {
        let svc = MulticlassSvc {
            machine,
            c: 5.0,
            kernel: Kernel::Gaussian { gamma: 0.5 },
            ..MulticlassSvc::default()
        };
        let whole = dual(&svc.fit(&data, &Context::new()).unwrap());
        // All examples at once, in blocks, and in blocks of parts of them.
        for megabytes in [10, 4] {
            let small = Context::new().with_cache_bytes(megabytes << 20);
            let found = dual(&svc.fit(&data, &small).unwrap());
            let place = format!("{machine}, {megabytes} MB");
            assert!((whole - found).abs() <= 1e-4 * whole, "{place}: {found}, not {whole}");
            let threads = small.with_threads(2).unwrap();
            let again = dual(&svc.fit(&data, &threads).unwrap());
            assert_eq!(found, again, "{place}: two threads");
        }
    }
}

#[test]
fn a_start_from_another_c_saves_steps() {
    let data = blobs(300, 3, 4);
    for machine in AllInOne::ALL {
        let mut svc = exact(machine, Kernel::Gaussian { gamma: 0.7 }, false);
        let start = svc.fit(&data, &Context::new()).unwrap();
        svc.c *= 1.2;
        let cold = svc.fit(&data, &Context::new()).unwrap();
        assert_eq!(svc.warm_start().is_some(), machine != AllInOne::Atm);
        let warm =
            svc.fit_from(FitInput::new(&data), Start::of(&start, &svc), &Context::new()).unwrap();
        let (a, b) = (dual(&cold), dual(&warm));
        assert!((a - b).abs() <= 1e-6 * a, "{machine}: {b}, not {a}");
        svc.c /= 1.2;
        let again =
            svc.fit_from(FitInput::new(&data), Start::of(&start, &svc), &Context::new()).unwrap();
        let steps = |model: &Model| model.training.as_ref().unwrap().outcome.iterations;
        // Coefficients do not determine the variables of this machine; it starts anew.
        if machine != AllInOne::Atm {
            assert!(steps(&again) <= steps(&start) / 4, "{machine}: {} steps", steps(&again));
        }
    }
}

#[test]
fn a_limit_on_steps_holds() {
    let data = blobs(500, 3, 4);
    for machine in AllInOne::ALL {
        for max_iterations in [1, 7, 100] {
            let mut svc = exact(machine, Kernel::Gaussian { gamma: 0.7 }, false);
            svc.options.max_iterations = Some(max_iterations);
            for megabytes in [1, 64] {
                let context = Context::new().with_cache_bytes(megabytes << 20);
                let outcome = svc.fit(&data, &context).unwrap().training.unwrap().outcome;
                assert_eq!(outcome.status, Status::IterationLimit, "{machine}");
                assert_eq!(outcome.iterations, max_iterations, "{machine}, {megabytes} MB");
            }
        }
    }
}

#[test]
fn a_time_limit_holds() {
    let data = blobs(3000, 40, 10);
    let svc = MulticlassSvc {
        machine: AllInOne::LeeLinWahba,
        c: 1e4,
        kernel: Kernel::Gaussian { gamma: 0.01 },
        options: SolverOptions { tol: 1e-7, ..SolverOptions::default() },
        ..MulticlassSvc::default()
    };
    for megabytes in [4, 1024] {
        let context = Context::new().with_cache_bytes(megabytes << 20);
        let started = Instant::now();
        let context = context.with_time_limit(Duration::from_secs(2));
        let model = svc.fit(&data, &context).unwrap();
        let spent = started.elapsed().as_secs_f64();
        let outcome = model.training.unwrap().outcome;
        assert_eq!(outcome.status, Status::TimeLimit, "{outcome:?}");
        assert!(outcome.primal > outcome.dual && outcome.dual > 0.0, "{outcome:?}");
        // Generous: other tests run beside this one.
        assert!(spent < 6.0, "{spent} s with {megabytes} MB");
    }
}

#[test]
fn an_online_pass_is_the_same_on_any_number_of_threads() {
    // Large enough for the chunks of kept rows to be shared out.
    let data = blobs(700, 200, 5);
    let online =
        OnlineSvc { c: 5.0, kernel: Kernel::Gaussian { gamma: 0.05 }, ..OnlineSvc::default() };
    let fit = |threads: usize| {
        let context = Context::new().with_threads(threads).unwrap();
        online.fit(&data, &context).unwrap()
    };
    let (one, two) = (fit(1), fit(2));
    assert!(one.support_count() > 400, "{}", one.support_count());
    assert_eq!(one.functions(), two.functions());
}
