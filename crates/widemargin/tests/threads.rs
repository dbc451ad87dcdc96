//! The number of threads changes nothing but the time.

use widemargin::Context;
use widemargin::Status;
use widemargin::data::read::{ReadOptions, read_dataset};
use widemargin::data::{Dataset, Dense, Labels, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{Machine, Model, NuSvc, OneClass, Scheme, SolverOptions, Svc, Svr};

/// Two noisy classes of `n` rows, from a fixed generator.
fn noisy(n: usize, features: usize) -> Dataset {
    let mut state = 1_u64;
    let mut uniform = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f32 / (1_u64 << 31) as f32 - 0.5
    };
    let mut values = Vec::with_capacity(n * features);
    let mut labels = Vec::with_capacity(n);
    for _ in 0..n {
        let row: Vec<f32> = (0..features).map(|_| uniform()).collect();
        let side = row[0] * row[1] + 0.3 * row[2] + 0.15 * uniform();
        labels.push(if side > 0.0 { 1 } else { -1 });
        values.extend(row);
    }
    let features = Dense::new(n, features, values).unwrap();
    Dataset::new(Matrix::DenseF32(features), Labels::Int(labels)).unwrap()
}

fn shipped(name: &str) -> Dataset {
    let path = format!("{}/../../data/{name}", env!("CARGO_MANIFEST_DIR"));
    read_dataset(path, &ReadOptions::new()).unwrap()
}

/// Everything of a model that training determines, times aside.
fn essence(model: &Model) -> impl PartialEq + use<> {
    let outcome = model.training.as_ref().unwrap().outcome;
    (
        model.functions().to_vec(),
        model.support_rows().to_vec(),
        (outcome.status, outcome.primal, outcome.dual, outcome.iterations, outcome.blocks),
        outcome.kernel_rows,
    )
}

fn assert_same_for_all_threads(machine: &dyn Machine, data: &Dataset) {
    let fit = |threads: usize| {
        let context = Context::new().with_threads(threads).unwrap().with_cache_bytes(8 << 20);
        let model = machine.fit(data, &context).unwrap();
        let values = model.predictor(&context).unwrap().decision_values(data.features()).unwrap();
        (essence(&model), values)
    };
    let one = fit(1);
    for threads in [2, 4] {
        assert!(fit(threads) == one, "{threads} threads");
    }
}

#[test]
fn a_large_two_class_problem_that_computes_rows_again() {
    let kernel = Kernel::Gaussian { gamma: 2.0 };
    let svc = Svc { c: 1.0, kernel, ..Svc::default() };
    assert_same_for_all_threads(&svc, &noisy(6000, 6));
}

#[test]
fn a_large_two_class_problem_that_keeps_rows() {
    let kernel = Kernel::Gaussian { gamma: 0.2 };
    let svc = Svc { c: 1.0, kernel, ..Svc::default() };
    assert_same_for_all_threads(&svc, &noisy(4500, 70));
}

#[test]
fn many_small_problems_sharing_rows() {
    let kernel = Kernel::Gaussian { gamma: 0.001 };
    let data = shipped("digits.libsvm.xz");
    let svc = Svc { c: 10.0, kernel: kernel.clone(), ..Svc::default() };
    assert_same_for_all_threads(&svc, &data);
    assert_same_for_all_threads(&Svc { scheme: Scheme::OneVsRest, ..svc }, &data);
    assert_same_for_all_threads(&NuSvc { nu: 0.1, kernel, ..NuSvc::default() }, &data);
}

#[test]
fn regression_and_novelty_detection() {
    let data = noisy(2500, 4);
    let kernel = Kernel::Gaussian { gamma: 1.0 };
    let svr = Svr { epsilon: 0.3, kernel: kernel.clone(), ..Svr::default() };
    assert_same_for_all_threads(&svr, &data);
    assert_same_for_all_threads(&OneClass { nu: 0.2, kernel, ..OneClass::default() }, &data);
}

#[test]
fn shrinking_and_the_cache_change_the_path_but_not_the_optimum() {
    let data = noisy(6000, 6);
    let kernel = Kernel::Gaussian { gamma: 2.0 };
    let fit = |shrinking: bool, cache: usize| {
        let options = SolverOptions { shrinking, tol: 1e-4, ..SolverOptions::default() };
        let svc = Svc { kernel: kernel.clone(), options, ..Svc::default() };
        let model = svc.fit(&data, &Context::new().with_cache_bytes(cache)).unwrap();
        let outcome = model.training.unwrap().outcome;
        assert_eq!(outcome.status, Status::Solved);
        outcome.dual
    };
    let reference = fit(false, 256 << 20);
    for (shrinking, cache) in [(true, 256 << 20), (true, 1 << 20), (false, 0)] {
        let dual = fit(shrinking, cache);
        assert!((dual - reference).abs() <= 1e-6 * reference, "{dual} and {reference}");
    }
}
