//! Every machine finds the optima recorded from LIBSVM (`oracles/`, certified to f64 precision).
//!
//! Objectives and decision values are computed here, by a plain double loop over the kernel's
//! formula, from the model's coefficients alone.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use widemargin::Context;
use widemargin::Status;
use widemargin::data::read::{ReadOptions, read_dataset};
use widemargin::data::{Dataset, Dense, Label, Labels, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{
    ClassWeights, Machine, Model, NuSvc, NuSvr, OneClass, Precision, SolverOptions, Svc, Svr,
};

#[derive(Deserialize)]
struct Record {
    configurations: Vec<Configuration>,
}

#[derive(Deserialize)]
struct Configuration {
    data: String,
    stride: usize,
    machine: String,
    kernel: String,
    #[serde(default)]
    gamma: f64,
    #[serde(default)]
    coef0: f64,
    #[serde(default)]
    degree: u32,
    #[serde(default)]
    c: f64,
    #[serde(default)]
    nu: f64,
    #[serde(default)]
    epsilon: f64,
    #[serde(default)]
    class_weights: Vec<(String, f64)>,
    support_vectors: (usize, usize),
    probes: Vec<usize>,
    parts: Vec<Part>,
}

#[derive(Deserialize)]
struct Part {
    objective: f64,
    rho: f64,
    rho_unique: bool,
    #[serde(default = "one")]
    r: f64,
    values: Vec<f64>,
}

fn one() -> f64 {
    1.0
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn record() -> Vec<Configuration> {
    let text = fs::read_to_string(here().join("tests/oracles/libsvm_optima.json")).unwrap();
    serde_json::from_str::<Record>(&text).unwrap().configurations
}

impl Configuration {
    fn title(&self) -> String {
        format!("{} {} {} {:?}", self.data, self.machine, self.kernel, self.class_weights)
    }

    /// The rows as the record describes them: thinned, then scaled to [−1, 1].
    fn rows(&self) -> (Vec<Vec<f64>>, Labels) {
        let path = here().join("../../data").join(&self.data);
        let data = read_dataset(path, &ReadOptions::new()).unwrap();
        let kept: Vec<usize> = (0..data.rows()).step_by(self.stride).collect();
        let mut rows = vec![vec![0.0; data.columns()]; kept.len()];
        for (row, &i) in rows.iter_mut().zip(&kept) {
            data.features().copy_row(i, row);
        }
        for k in 0..data.columns() {
            let low = rows.iter().map(|row| row[k]).fold(f64::INFINITY, f64::min);
            let high = rows.iter().map(|row| row[k]).fold(f64::NEG_INFINITY, f64::max);
            for row in &mut rows {
                row[k] = if high > low { -1.0 + 2.0 * (row[k] - low) / (high - low) } else { 0.0 };
            }
        }
        (rows, data.labels().select(&kept))
    }

    fn kernel(&self) -> Kernel {
        match self.kernel.as_str() {
            "linear" => Kernel::Linear,
            "polynomial" => {
                Kernel::Polynomial { gamma: self.gamma, coef0: self.coef0, degree: self.degree }
            }
            "rbf" => Kernel::Gaussian { gamma: self.gamma },
            "sigmoid" => Kernel::Sigmoid { gamma: self.gamma, coef0: self.coef0 },
            other => panic!("kernel {other}"),
        }
    }

    fn evaluate(&self, a: &[f64], b: &[f64]) -> f64 {
        let product: f64 = a.iter().zip(b).map(|(x, z)| x * z).sum();
        let distance: f64 = a.iter().zip(b).map(|(x, z)| (x - z) * (x - z)).sum();
        match self.kernel.as_str() {
            "linear" => product,
            "polynomial" => (self.gamma * product + self.coef0).powi(self.degree as i32),
            "rbf" => (-self.gamma * distance).exp(),
            _ => (self.gamma * product + self.coef0).tanh(),
        }
    }

    fn machine(&self, kernel: Kernel, options: SolverOptions) -> Box<dyn Machine> {
        let (c, nu, epsilon) = (self.c, self.nu, self.epsilon);
        let class_weights = match self.class_weights.as_slice() {
            [] => ClassWeights::Uniform,
            given => ClassWeights::Given(
                given.iter().map(|(name, w)| (Label::Text(name.clone()), *w)).collect(),
            ),
        };
        match self.machine.as_str() {
            "c_svc" => Box::new(Svc { c, kernel, class_weights, options, ..Svc::default() }),
            "nu_svc" => Box::new(NuSvc { nu, kernel, options, ..NuSvc::default() }),
            "epsilon_svr" => Box::new(Svr { c, epsilon, kernel, options, ..Svr::default() }),
            "nu_svr" => Box::new(NuSvr { c, nu, kernel, options }),
            "one_class" => Box::new(OneClass { nu, kernel, options }),
            other => panic!("machine {other}"),
        }
    }

    fn fit(&self, rows: &[Vec<f64>], labels: &Labels, options: SolverOptions) -> Model {
        let dense = Dense::new(rows.len(), rows[0].len(), rows.concat()).unwrap();
        let data = Dataset::new(Matrix::DenseF64(dense), labels.clone()).unwrap();
        self.machine(self.kernel(), options).fit(&data, &Context::new()).unwrap()
    }

    /// The minimised dual of one function, as LIBSVM prints it.
    fn objective(&self, kernel: &[Vec<f64>], coefficients: &[f64], targets: &[f64]) -> f64 {
        let used: Vec<usize> =
            (0..coefficients.len()).filter(|&i| coefficients[i] != 0.0).collect();
        let mut energy = 0.0;
        for &i in &used {
            let sum: f64 = used.iter().map(|&j| kernel[i][j] * coefficients[j]).sum();
            energy += 0.5 * coefficients[i] * sum;
        }
        let size: f64 = coefficients.iter().map(|c| c.abs()).sum();
        let pull: f64 = coefficients.iter().zip(targets).map(|(c, y)| c * y).sum();
        match self.machine.as_str() {
            "c_svc" => energy - size,
            "epsilon_svr" => energy + self.epsilon * size - pull,
            "nu_svr" => energy - pull,
            _ => energy,
        }
    }
}

fn close(found: f64, expected: f64, tolerance: f64) -> bool {
    (found - expected).abs() <= tolerance * expected.abs().max(1.0)
}

/// Coefficients of every function over all training rows, and its offset.
fn spread(model: &Model, rows: usize) -> Vec<(Vec<f64>, f64)> {
    let spread_one = |function: &widemargin::machine::DecisionFunction| {
        let mut all = vec![0.0; rows];
        for part in &function.parts {
            for (s, c) in part.support.clone().zip(&part.coefficients) {
                all[model.support_rows()[s]] += c;
            }
        }
        (all, function.offset)
    };
    model.functions().iter().map(spread_one).collect()
}

fn check(configuration: &Configuration) {
    let title = configuration.title();
    let (rows, labels) = configuration.rows();
    let options =
        SolverOptions { tol: 1e-8, precision: Precision::F64, ..SolverOptions::default() };
    let model = configuration.fit(&rows, &labels, options);
    assert_eq!(model.training.as_ref().unwrap().outcome.status, Status::Solved, "{title}");
    let kernel: Vec<Vec<f64>> =
        rows.iter().map(|a| rows.iter().map(|b| configuration.evaluate(a, b)).collect()).collect();
    let targets = match &labels {
        Labels::Int(values) => values.iter().map(|&v| v as f64).collect(),
        Labels::Real(values) => values.clone(),
        _ => vec![0.0; rows.len()],
    };
    let (needed, allowed) = configuration.support_vectors;
    let count = model.support_count();
    assert!((needed..=allowed).contains(&count), "{title}: {count} not in {needed}..={allowed}");

    let functions = spread(&model, rows.len());
    assert_eq!(functions.len(), configuration.parts.len(), "{title}");
    for (p, ((coefficients, offset), part)) in
        functions.iter().zip(&configuration.parts).enumerate()
    {
        // ν-SVC divides by r, which the tolerance fixes only to 1e-8 / r.
        let slack = 1e-6 / part.r.min(1.0);
        let objective = configuration.objective(&kernel, coefficients, &targets);
        assert!(
            close(objective, part.objective, slack),
            "{title} part {p}: objective {objective}, LIBSVM's {}",
            part.objective
        );
        if part.rho_unique {
            assert!(close(*offset, part.rho, 10.0 * slack), "{title} part {p}: rho {offset}");
        }
        for (&probe, &expected) in configuration.probes.iter().zip(&part.values) {
            let sum: f64 = kernel[probe].iter().zip(coefficients).map(|(k, c)| k * c).sum();
            let value = sum - offset;
            assert!(
                !part.rho_unique || close(value, expected, 10.0 * slack),
                "{title} part {p} row {probe}: {value}, LIBSVM's {expected}"
            );
        }
    }
}

fn check_all(machine: &str) {
    let chosen: Vec<_> = record().into_iter().filter(|c| c.machine == machine).collect();
    assert!(!chosen.is_empty());
    chosen.iter().for_each(check);
}

#[test]
fn c_svc_finds_libsvms_optimum() {
    check_all("c_svc");
}

#[test]
fn nu_svc_finds_libsvms_optimum() {
    check_all("nu_svc");
}

#[test]
fn epsilon_svr_finds_libsvms_optimum() {
    check_all("epsilon_svr");
}

#[test]
fn nu_svr_finds_libsvms_optimum() {
    check_all("nu_svr");
}

#[test]
fn one_class_finds_libsvms_optimum() {
    check_all("one_class");
}

#[test]
fn single_precision_comes_within_its_tolerance_of_libsvms_optimum() {
    for configuration in record() {
        let title = configuration.title();
        let (rows, labels) = configuration.rows();
        let model = configuration.fit(&rows, &labels, SolverOptions::default());
        let training = model.training.as_ref().unwrap();
        assert_eq!(training.outcome.status, Status::Solved, "{title}");
        if configuration.machine == "nu_svc" {
            continue;
        }
        let best: f64 = -configuration.parts.iter().map(|part| part.objective).sum::<f64>();
        assert!(
            close(training.outcome.dual, best, 1e-3),
            "{title}: dual {}, LIBSVM's {best}",
            training.outcome.dual
        );
    }
}
