//! Kernels that are not positive semidefinite are told by every machine, with an eigenvalue that proves it.

use std::sync::{Arc, Mutex};

use widemargin::data::{Dataset, Dense, Labels, Matrix};
use widemargin::kernel::{CustomKernel, Gram, Kernel};
use widemargin::machine::{
    Lasvm, LsSvc, Machine, Model, MulticlassSvc, NuSvc, NuSvr, OneClass, OnlineSvc, Svc, Svdd, Svr,
};
use widemargin::operation::cross_validate::cross_validate;
use widemargin::operation::folds::Folds;
use widemargin::{Context, Event};

/// Rows on two arcs, and what distinguishes them.
fn rows(n: usize) -> (Matrix, Vec<i64>) {
    let values = (0..n).flat_map(|i| {
        let angle = i as f64 * 0.7;
        let radius = 1.0 + (i % 2) as f64 + 0.1 * (i % 5) as f64;
        [radius * angle.cos(), radius * angle.sin()]
    });
    let table = Dense::new(n, 2, values.collect()).unwrap();
    (Matrix::DenseF64(table), (0..n as i64).map(|i| i % 2).collect())
}

/// Trains and returns the model, or none where the machine refuses the kernel, and the warnings.
fn told(machine: &dyn Machine, data: &Dataset) -> (Option<Model>, Vec<String>) {
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&warnings);
    let context = Context::new().with_observer(move |event: &Event| {
        if let Event::Warning { message } = event {
            heard.lock().unwrap().push(message.clone());
        }
    });
    let model = machine.fit(data, &context).ok();
    let warnings = warnings.lock().unwrap().clone();
    (model, warnings)
}

fn of_kernel(warnings: &[String]) -> Vec<&String> {
    warnings.iter().filter(|message| message.contains("not positive semidefinite")).collect()
}

/// The eigenvalue that a warning names.
fn eigenvalue(message: &str) -> f64 {
    let (_, rest) = message.split_once("has the eigenvalue ").unwrap();
    rest.split(',').next().unwrap().parse().unwrap()
}

#[test]
fn every_machine_tells_an_indefinite_kernel_and_none_a_gaussian() {
    let (features, labels) = rows(30);
    let sigmoid = Kernel::Sigmoid { gamma: 1.0, coef0: -1.0 };
    let gram = Gram::of(&sigmoid, &features, &Context::new()).unwrap();
    let smallest = gram.definiteness(&Context::new()).unwrap().smallest;
    let classes = Dataset::new(features.clone(), Labels::Int(labels.clone())).unwrap();
    let numbers = labels.iter().map(|label| *label as f64).collect();
    let targets = Dataset::new(features.clone(), Labels::Real(numbers)).unwrap();
    let machines = |kernel: &Kernel| -> Vec<(Box<dyn Machine>, &Dataset)> {
        let kernel = || kernel.clone();
        let all_in_one = MulticlassSvc { kernel: kernel(), ..MulticlassSvc::default() };
        vec![
            (Box::new(Svc { kernel: kernel(), ..Svc::default() }), &classes),
            (Box::new(NuSvc { kernel: kernel(), nu: 0.3, ..NuSvc::default() }), &classes),
            (Box::new(all_in_one), &classes),
            (Box::new(Lasvm { kernel: kernel(), ..Lasvm::default() }), &classes),
            (Box::new(OnlineSvc { kernel: kernel(), ..OnlineSvc::default() }), &classes),
            (Box::new(LsSvc { kernel: kernel(), ..LsSvc::default() }), &classes),
            (Box::new(Svr { kernel: kernel(), ..Svr::default() }), &targets),
            (Box::new(NuSvr { kernel: kernel(), ..NuSvr::default() }), &targets),
            (Box::new(OneClass { kernel: kernel(), ..OneClass::default() }), &targets),
            (Box::new(Svdd { kernel: kernel(), ..Svdd::default() }), &targets),
        ]
    };
    for (place, (machine, data)) in machines(&sigmoid).iter().enumerate() {
        let (model, warnings) = told(machine.as_ref(), data);
        let about = of_kernel(&warnings);
        assert_eq!(about.len(), 1, "machine {place}: {warnings:?}");
        // All 30 rows are tested.
        assert!(
            (eigenvalue(about[0]) - smallest).abs() < 1e-3 * -smallest,
            "{} {smallest}",
            about[0]
        );
        if let Some(model) = model {
            let parameters = &model.training.as_ref().unwrap().parameters;
            let noted = parameters.iter().find(|(name, _)| name == "negative-eigenvalue");
            let value = noted.expect("in the training record").1.number().unwrap();
            assert!((value - smallest).abs() < 1e-5, "machine {place}: {value}");
        }
    }
    for (place, (machine, data)) in machines(&Kernel::Gaussian { gamma: 0.5 }).iter().enumerate() {
        let (model, warnings) = told(machine.as_ref(), data);
        assert!(of_kernel(&warnings).is_empty(), "machine {place}: {warnings:?}");
        let parameters = &model.unwrap().training.unwrap().parameters;
        assert!(parameters.iter().all(|(name, _)| name != "negative-eigenvalue"));
    }
}

#[test]
fn functions_tables_and_signed_sums_are_tested_by_their_values() {
    let (features, labels) = rows(40);
    let distance = CustomKernel::new("distance", |a, b| {
        a.iter().zip(b).map(|(x, z)| (x - z).powi(2)).sum::<f64>().sqrt()
    });
    let gaussian = |gamma| Kernel::Gaussian { gamma };
    let product = CustomKernel::new("product", |a, b| a.iter().zip(b).map(|(x, z)| x * z).sum());
    for (kernel, count) in [
        (Kernel::Custom(distance), 1),
        (Kernel::Custom(product), 0),
        (Kernel::Sum(vec![(1.0, gaussian(0.1)), (-1.0, gaussian(10.0))]), 1),
        // Negative weights do not make every sum indefinite.
        (Kernel::Sum(vec![(1.0, Kernel::Linear), (-0.5, Kernel::Linear)]), 0),
        (Kernel::Polynomial { gamma: 1.0, coef0: -3.0, degree: 3 }, 1),
    ] {
        let data = Dataset::new(features.clone(), Labels::Int(labels.clone())).unwrap();
        let name = kernel.name().to_owned();
        let (_, warnings) = told(&Svc { kernel, ..Svc::default() }, &data);
        assert_eq!(of_kernel(&warnings).len(), count, "{name}: {warnings:?}");
    }
    let table = |change: fn(usize, usize) -> f64| {
        let n = labels.len();
        let values = (0..n * n).map(|at| change(at / n, at % n)).collect();
        Dataset::new(
            Matrix::DenseF64(Dense::new(n, n, values).unwrap()),
            Labels::Int(labels.clone()),
        )
        .unwrap()
    };
    let given = Svc { kernel: Kernel::Precomputed, ..Svc::default() };
    let equal = |i: usize, j: usize| if i == j { 1.0 } else { 0.0 };
    assert!(told(&given, &table(equal)).1.is_empty());
    let (_, warnings) = told(&given, &table(|i, j| if i == j { 0.5 } else { 1.0 }));
    assert!((eigenvalue(of_kernel(&warnings)[0]) + 0.5).abs() < 1e-3, "{warnings:?}");
    let (_, warnings) = told(&given, &table(|i, j| if i <= j { 1.0 } else { 0.0 }));
    assert!(warnings.iter().any(|message| message.contains("not symmetric")), "{warnings:?}");
}

#[test]
fn the_folds_of_a_validation_tell_it_once() {
    let (features, labels) = rows(60);
    let data = Dataset::new(features, Labels::Int(labels)).unwrap();
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&warnings);
    let context = Context::new().with_observer(move |event: &Event| {
        if let Event::Warning { message } = event {
            heard.lock().unwrap().push(message.clone());
        }
    });
    let kernel = Kernel::Sigmoid { gamma: 1.0, coef0: -1.0 };
    let machine = Svc { kernel, ..Svc::default() };
    cross_validate(&machine, &data, &Folds::Stratified(5), &context).unwrap();
    let warnings = warnings.lock().unwrap();
    assert_eq!(of_kernel(&warnings).len(), 1, "{warnings:?}");
}
