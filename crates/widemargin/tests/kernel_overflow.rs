//! Kernel values that overflow: single precision gives way to double, and what overflows that too is an
//! error that names the kernel and the row; no machine is "solved" with numbers that are not finite.

use std::sync::{Arc, Mutex};

use widemargin::data::{Dataset, Dense, Labels, Matrix};
use widemargin::kernel::{CustomKernel, Kernel};
use widemargin::machine::{
    AllInOne, KernelAdatron, Machine, MulticlassSvc, NuSvc, OneClass, Precision, Svc, Svdd, Svr,
};
use widemargin::{Context, Error, Event};

/// 50 rows of three features, the last of which is up to `size`.
fn data(size: f64, classes: i64) -> Dataset {
    let value = |i: usize, j: usize| {
        let unit = ((i * 7919 + j * 104_729) % 1009) as f64 / 1009.0;
        if j == 2 { size * unit } else { unit }
    };
    let values = (0..50).flat_map(|i| (0..3).map(move |j| value(i, j))).collect();
    let labels = Labels::Int((0..50).map(|i| i % classes).collect());
    Dataset::new(Matrix::DenseF64(Dense::new(50, 3, values).unwrap()), labels).unwrap()
}

fn machines(kernel: &Kernel) -> Vec<Box<dyn Machine>> {
    let kernel = || kernel.clone();
    vec![
        Box::new(Svc { kernel: kernel(), ..Svc::default() }),
        Box::new(NuSvc { kernel: kernel(), ..NuSvc::default() }),
        Box::new(Svr { kernel: kernel(), ..Svr::default() }),
        Box::new(OneClass { kernel: kernel(), ..OneClass::default() }),
        Box::new(Svdd { kernel: kernel(), ..Svdd::default() }),
        Box::new(KernelAdatron { kernel: kernel(), ..KernelAdatron::default() }),
        Box::new(MulticlassSvc {
            kernel: kernel(),
            machine: AllInOne::WestonWatkins,
            ..MulticlassSvc::default()
        }),
    ]
}

fn cubic() -> Kernel {
    Kernel::Polynomial { gamma: 1.0 / 3.0, coef0: 1.0, degree: 3 }
}

#[test]
fn values_too_large_for_single_precision_are_computed_in_double() {
    let data = data(2e7, 2);
    for machine in machines(&cubic()) {
        let messages = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&messages);
        let context = Context::new()
            .with_time_limit(std::time::Duration::from_secs(2))
            .with_observer(move |event: &Event| {
                if let Event::Warning { message } = event {
                    kept.lock().unwrap().push(message.clone());
                }
            });
        let model = machine.fit(&data, &context).unwrap();
        assert_eq!(model.precision(), Precision::F64, "{:?}", model.kind);
        let outcome = model.training.as_ref().unwrap().outcome;
        assert!(outcome.primal.is_finite() && outcome.dual.is_finite(), "{outcome:?}");
        let messages = messages.lock().unwrap();
        assert!(messages[0].contains("kernel polynomial"), "{messages:?}");
        assert!(messages[0].contains("row "), "{messages:?}");
        let context = Context::new();
        let values = model.predictor(&context).unwrap().decision_values(data.features()).unwrap();
        assert!(values.values().iter().all(|value| value.is_finite()), "{:?}", model.kind);
    }
}

#[test]
fn values_too_large_for_double_precision_are_an_error() {
    let data = data(1e110, 2);
    for machine in machines(&cubic()) {
        let error = machine.fit(&data, &Context::new()).unwrap_err();
        let Error::Overflow { kernel, row, precision, .. } = &error else { panic!("{error}") };
        assert_eq!((&kernel[..], *row, *precision), ("polynomial", 1, "double"));
        assert!(error.to_string().contains("scale the data"), "{error}");
    }
}

#[test]
fn every_kernel_either_works_or_says_that_it_overflows() {
    let kernels = [
        Kernel::Linear,
        cubic(),
        Kernel::Gaussian { gamma: 1.0 },
        Kernel::Laplacian { gamma: 1.0 },
        Kernel::ChiSquared { gamma: 1.0 },
        Kernel::Cosine,
        Kernel::Sigmoid { gamma: 1.0, coef0: -1.0 },
        Kernel::Sum(vec![(1.0, cubic()), (1e30, Kernel::Linear)]),
        Kernel::Product(vec![Kernel::Linear, Kernel::Linear, Kernel::Linear]),
    ];
    let context = Context::new().with_time_limit(std::time::Duration::from_secs(2));
    for kernel in kernels {
        for size in [1e10, 1e19, 1e38, 1e80, 1e150, 1e300] {
            let data = data(size, 2);
            let svc = Svc { kernel: kernel.clone(), ..Svc::default() };
            match svc.fit(&data, &context) {
                Ok(model) => {
                    let outcome = model.training.as_ref().unwrap().outcome;
                    assert!(outcome.dual.is_finite(), "{kernel:?} {size}: {outcome:?}");
                    let values = model.predictor(&context).unwrap();
                    let values = values.decision_values(data.features()).unwrap();
                    let finite = values.values().iter().all(|value| value.is_finite());
                    assert!(finite, "{kernel:?} {size}");
                }
                Err(error) => {
                    assert!(matches!(error, Error::Overflow { .. }), "{kernel:?} {size}: {error}");
                    assert!(size >= 1e80, "{kernel:?} {size}: {error}");
                }
            }
        }
    }
}

#[test]
fn a_kernel_of_the_user_must_be_finite() {
    let data = data(1.0, 2);
    let kernel = CustomKernel::new("broken", |x: &[f64], z: &[f64]| {
        let product: f64 = x.iter().zip(z).map(|(a, b)| a * b).sum();
        if x == z { product + 1.0 } else { f64::NAN }
    });
    for machine in machines(&Kernel::Custom(kernel)) {
        let error = machine.fit(&data, &Context::new()).unwrap_err();
        assert!(error.to_string().contains("kernel broken"), "{error}");
    }
    let infinite = CustomKernel::new("infinite", |_: &[f64], _: &[f64]| f64::INFINITY);
    let svc = Svc { kernel: Kernel::Custom(infinite), ..Svc::default() };
    let error = svc.fit(&data, &Context::new()).unwrap_err();
    assert!(matches!(error, Error::Overflow { row: 1, .. }), "{error}");
}

#[test]
fn a_query_that_overflows_is_named() {
    let train = data(1.0, 2);
    let svc = Svc { kernel: cubic(), ..Svc::default() };
    let context = Context::new();
    let model = svc.fit(&train, &context).unwrap();
    let mut values = vec![0.5; 12];
    values[7] = 1e30;
    let queries = Matrix::DenseF64(Dense::new(4, 3, values).unwrap());
    let error = model.predictor(&context).unwrap().decision_values(&queries).unwrap_err();
    assert!(matches!(error, Error::Overflow { row: 3, .. }), "{error}");
}
