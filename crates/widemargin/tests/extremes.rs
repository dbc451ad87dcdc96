//! Every machine over extreme data and parameters: within its time limit it gives an error or a model
//! whose numbers are finite, and says "solved" of nothing else.

use std::time::{Duration, Instant};

use widemargin::data::{Dataset, Dense, Labels, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{
    AllInOne, KernelAdatron, Lasvm, Machine, MulticlassSvc, NuSvc, NuSvr, OneClass, OnlineSvc,
    Precision, Svc, Svdd, Svr,
};
use widemargin::{Context, Error};

/// Seconds that a training may take, and what it may take beyond them on a busy machine.
const LIMIT: f64 = 0.5;
const GRACE: f64 = 5.0;

/// Two features in a fixed pattern, the second of size `scale`; two classes.
fn rows(count: usize, scale: f64) -> Dataset {
    let value = |i: usize| (i * 7919 % 1013) as f64 / 1013.0 - 0.5;
    let values = (0..count).flat_map(|i| [value(2 * i), scale * value(2 * i + 1)]).collect();
    let labels = (0..count as i64).map(|i| i % 2).collect();
    let table = Dense::new(count, 2, values).unwrap();
    Dataset::new(Matrix::DenseF64(table), Labels::Int(labels)).unwrap()
}

/// Every machine with dual variables; those with a C have it, the others have ν.
fn machines(c: f64, nu: f64, kernel: &Kernel) -> Vec<(String, Box<dyn Machine>)> {
    let kernel = || kernel.clone();
    let mut all: Vec<(String, Box<dyn Machine>)> = vec![
        ("c-svc".into(), Box::new(Svc { c, kernel: kernel(), ..Svc::default() })),
        ("nu-svc".into(), Box::new(NuSvc { nu, kernel: kernel(), ..NuSvc::default() })),
        ("epsilon-svr".into(), Box::new(Svr { c, kernel: kernel(), ..Svr::default() })),
        ("nu-svr".into(), Box::new(NuSvr { c, nu, kernel: kernel(), ..NuSvr::default() })),
        ("one-class".into(), Box::new(OneClass { nu, kernel: kernel(), ..OneClass::default() })),
        ("svdd".into(), Box::new(Svdd { nu, kernel: kernel(), ..Svdd::default() })),
        ("lasvm".into(), Box::new(Lasvm { c, kernel: kernel(), ..Lasvm::default() })),
        ("adatron".into(), Box::new(KernelAdatron { c, kernel: kernel(), ..Default::default() })),
    ];
    for machine in AllInOne::ALL {
        let batch = MulticlassSvc { machine, c, kernel: kernel(), ..MulticlassSvc::default() };
        let online = OnlineSvc { machine, c, kernel: kernel(), ..OnlineSvc::default() };
        all.push((format!("{machine}"), Box::new(batch)));
        all.push((format!("{machine} online"), Box::new(online)));
    }
    all
}

fn check(data: &Dataset, c: f64, nu: f64, kernel: &Kernel) {
    for (name, machine) in machines(c, nu, kernel) {
        let started = Instant::now();
        let context = Context::new().with_time_limit(Duration::from_secs_f64(LIMIT));
        let found = machine.fit(data, &context);
        let place = format!("{name}, C = {c:e}, nu = {nu:e}, {kernel}");
        assert!(started.elapsed().as_secs_f64() < LIMIT + GRACE, "{place}: too late");
        if let Ok(model) = found {
            let outcome = model.training.unwrap().outcome;
            assert!(outcome.is_finite(), "{place}: {outcome:?}");
            let finite = outcome.primal.is_finite() && outcome.dual.is_finite();
            assert!(finite || !outcome.status.is_solved(), "{place}: {outcome:?}");
        }
    }
}

#[test]
fn extreme_parameters_end_in_time_and_finite() {
    let data = rows(40, 1.0);
    let kernel = Kernel::Gaussian { gamma: 1.0 };
    for c in [1e-300, 1e-30, 1e30, 1e150, 1e300] {
        check(&data, c, c.min(0.5), &kernel);
    }
    for gamma in [1e-300, 1e300] {
        check(&data, 1.0, 0.3, &Kernel::Gaussian { gamma });
    }
}

#[test]
fn extreme_features_end_in_time_and_finite() {
    let cubic = Kernel::Polynomial { gamma: 1.0, coef0: 1.0, degree: 3 };
    for scale in [1e-300, 2e7, 1e30, 1e150] {
        for kernel in [Kernel::Linear, cubic.clone(), Kernel::Gaussian { gamma: 1.0 }] {
            check(&rows(50, scale), 1.0, 0.3, &kernel);
        }
    }
}

#[test]
fn what_overflows_single_precision_is_learnt_in_double() {
    let kernel = Kernel::Polynomial { gamma: 1.0, coef0: 1.0, degree: 3 };
    let machine = Svdd { nu: 0.3, kernel, ..Svdd::default() };
    // (1e7)⁶ overflows single precision and not double precision.
    let model = machine.fit(&rows(50, 2e7), &Context::new()).unwrap();
    assert_eq!(model.precision(), Precision::F64);
    assert!(model.training.unwrap().outcome.dual.is_finite());
    // (1e60)⁶ overflows both; the error names the kernel and the row.
    let error = machine.fit(&rows(50, 1e60), &Context::new()).unwrap_err();
    assert!(matches!(&error, Error::Overflow { row: 1, .. }), "{error}");
    assert!(error.to_string().contains("scale the data"), "{error}");
}
