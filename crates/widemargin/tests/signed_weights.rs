//! Signed kernel weights against recorded optima of a semidefinite program (`oracles/signed_weights.py`).

use std::fs;
use std::path::Path;

use serde::Deserialize;
use widemargin::data::{Dataset, Dense, Label, Labels, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::specification::Value;
use widemargin::machine::{
    AllInOne, BaseMachine, KernelDefaults, KernelExpression, Machine, MulticlassSvc,
    MultipleKernel, Precision, Scheme, SolverOptions, Svc, Svr, Training, WeightRule,
};
use widemargin::{Context, Status};

#[derive(Deserialize)]
struct Problem {
    machine: String,
    rows: Vec<f64>,
    labels: Vec<f64>,
    c: f64,
    kernels: Vec<String>,
    jitter: f64,
    optimum: f64,
}

impl Problem {
    fn all() -> Vec<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracles/signed_weights.json");
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    }

    /// Rows beyond the labels have none.
    fn data(&self) -> Dataset {
        let rows = self.rows.len() / 2;
        let features = Matrix::DenseF64(Dense::new(rows, 2, self.rows.clone()).unwrap());
        let label = |i: usize| self.labels.get(i).map_or("?".into(), f64::to_string);
        Dataset::new(features, Labels::Text((0..rows).map(label).collect())).unwrap()
    }

    fn kernels(&self) -> Vec<Kernel> {
        let features = self.data().into_features();
        let parse = |text: &String| {
            let parsed = KernelExpression::parse(text, KernelDefaults::default()).unwrap();
            parsed.resolve(&features).unwrap()
        };
        self.kernels.iter().map(parse).collect()
    }

    /// Twice the objective and the bound of these kernels, and the whole record.
    fn learnt(&self, kernels: Vec<Kernel>, weights: WeightRule, gap: f64) -> (f64, f64, Training) {
        let options =
            SolverOptions { tol: gap, precision: Precision::F64, ..SolverOptions::default() };
        let c = self.c;
        let svc = |scheme| BaseMachine::Svc(Svc { c, scheme, options, ..Svc::default() });
        // The all-in-one machines ask for ½(f_y − f_c) ≥ 1 − ξ.
        let (base, factor) = match self.machine.as_str() {
            "cs" => {
                let machine = AllInOne::CrammerSinger;
                let svc = MulticlassSvc { machine, c: 4.0 * c, options, ..Default::default() };
                (BaseMachine::Multiclass(svc), 0.25)
            }
            "ovr" => (svc(Scheme::OneVsRest), 1.0),
            "ovo" => (svc(Scheme::OneVsOne), 1.0),
            _ => (BaseMachine::Svr(Svr { c, epsilon: 0.2, options, ..Svr::default() }), 1.0),
        };
        let machine = MultipleKernel {
            kernels,
            weights,
            jitter: self.jitter,
            unlabelled: Some(Label::Text("?".into())),
            ..MultipleKernel::new(base)
        };
        let model = machine.fit(&self.data(), &Context::new()).unwrap();
        let training = model.training.unwrap();
        assert_eq!(training.outcome.status, Status::Solved, "{:?}", training.outcome);
        let (primal, dual) = (training.outcome.primal, training.outcome.dual);
        (2.0 * factor * primal, 2.0 * factor * dual, training)
    }
}

fn reals(training: &Training, name: &str) -> Vec<f64> {
    match training.parameters.iter().find(|(known, _)| known == name) {
        Some((_, Value::Reals(values))) => values.clone(),
        found => panic!("{name}: {found:?}"),
    }
}

#[test]
fn signed_weights_reach_the_optimum_of_the_semidefinite_program() {
    let mut largest = 0.0_f64;
    for (case, problem) in Problem::all().iter().enumerate() {
        let (t, bound, training) = problem.learnt(problem.kernels(), WeightRule::Signed, 5e-7);
        let weights = reals(&training, "kernel-weights");
        let expected = problem.optimum;
        let place = format!("case {case}: {bound} to {t}, expected {expected}, {weights:?}");
        assert!((t - expected).abs() <= 1e-6 * expected, "{place}");
        assert!((bound - expected).abs() <= 1e-6 * expected, "{place}");
        // The recorded value is that of an interior-point method, right to about 1e-7.
        assert!(bound <= expected * (1.0 + 1e-7), "{place}");
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{place}");
        let shares = reals(&training, "kernel-contributions");
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{place}");
        largest = weights.iter().fold(largest, |most, weight| most.max(weight.abs()));
    }
    assert!(largest > 300.0, "nothing but the cone limits the weights: {largest}");
}

#[test]
fn more_weights_admitted_never_raise_the_optimum() {
    for (case, problem) in Problem::all().iter().enumerate().step_by(3) {
        let gap = 1e-6;
        let fit = |kernels: Vec<Kernel>, weights| problem.learnt(kernels, weights, gap).0;
        let kernels = problem.kernels();
        let signed = fit(kernels.clone(), WeightRule::Signed);
        let plain = fit(kernels.clone(), WeightRule::NonNegative);
        assert!(signed <= plain * (1.0 + 2.0 * gap), "case {case}: {signed}, {plain}");
        for kernel in kernels {
            let alone = fit(vec![kernel], WeightRule::Uniform);
            assert!(plain <= alone * (1.0 + 2.0 * gap), "case {case}: {plain}, {alone}");
        }
    }
}
