//! Relaxations against recorded optima of an interior-point solver, and their bounds against all labels or choices of
//! few rows (`oracles/relaxations.py`).

use std::fs;
use std::path::Path;

use serde::Deserialize;
use widemargin::Context;
use widemargin::data::{Dataset, Dense, Label, Labels, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{
    Balance, Bias, Body, ClassShares, ClusteringMethod, Machine, MaxMarginClustering, Model,
    RobustLoss, RobustMethod, RobustSvc, SemiSupervisedMethod, SemiSupervisedSvc,
};

#[derive(Deserialize)]
struct Problem {
    kind: String,
    rows: Vec<f64>,
    #[serde(default)]
    labels: Vec<i64>,
    gamma: f64,
    #[serde(default)]
    beta: f64,
    #[serde(default)]
    balance: f64,
    #[serde(default)]
    c: f64,
    /// Least value of the relaxation.
    optimum: f64,
    /// Least objective of all labels or choices of rows.
    least: Option<f64>,
}

/// What a machine says of a problem.
struct Found {
    relaxation: f64,
    bound: f64,
    objective: f64,
}

impl Problem {
    fn all() -> Vec<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracles/relaxations.json");
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    }

    fn size(&self) -> usize {
        self.rows.len() / 2
    }

    fn fit(&self, machine: &dyn Machine) -> Model {
        let rows = Matrix::DenseF64(Dense::new(self.size(), 2, self.rows.clone()).unwrap());
        let labels = match self.labels.is_empty() {
            true => Labels::None,
            false => Labels::Int(self.labels.clone()),
        };
        machine.fit(&Dataset::new(rows, labels).unwrap(), &Context::new()).unwrap()
    }

    fn kernel(&self) -> Kernel {
        Kernel::Gaussian { gamma: self.gamma }
    }

    fn clustering(&self, method: ClusteringMethod) -> Found {
        let machine = MaxMarginClustering {
            kernel: self.kernel(),
            beta: self.beta,
            balance: Balance::Most(self.balance),
            method,
            tol: 1e-7,
            ..MaxMarginClustering::default()
        };
        let model = self.fit(&machine);
        let Body::MarginClusters(found) = &model.body else { panic!() };
        let relaxation = found.relaxation.unwrap();
        Found { relaxation, bound: found.bound, objective: found.objective }
    }

    fn robust(&self, loss: RobustLoss) -> Found {
        let machine = RobustSvc {
            kernel: self.kernel(),
            c: 1.0 / self.beta,
            intercept: Bias::None,
            method: RobustMethod::Relaxation,
            loss,
            keep: 0.75,
            tol: 1e-7,
            ..RobustSvc::default()
        };
        trained(&self.fit(&machine))
    }

    fn semi_supervised(&self) -> Found {
        let machine = SemiSupervisedSvc {
            kernel: self.kernel(),
            c: Some(self.c),
            shares: ClassShares::Given(vec![0.5]),
            method: SemiSupervisedMethod::Relaxation,
            unlabelled: Some(Label::Int(0)),
            tol: 1e-7,
            ..SemiSupervisedSvc::default()
        };
        trained(&self.fit(&machine))
    }

    fn found(&self) -> Found {
        match self.kind.as_str() {
            "clustering" => self.clustering(ClusteringMethod::Relaxation),
            "ramp" => self.robust(RobustLoss::Ramp),
            "trimmed" => self.robust(RobustLoss::Trimmed),
            "semi-supervised" => self.semi_supervised(),
            other => panic!("{other}"),
        }
    }
}

fn trained(model: &Model) -> Found {
    let training = model.training.as_ref().unwrap();
    let relaxation = training.parameters.iter().find(|(name, _)| name == "relaxation");
    let relaxation = relaxation.unwrap().1.number().unwrap();
    let outcome = training.outcome;
    Found { relaxation, bound: outcome.dual, objective: outcome.primal }
}

#[test]
fn relaxations_have_the_optima_of_an_interior_point_solver_and_bound_all_labels() {
    let problems = Problem::all();
    assert!(problems.len() >= 40, "{}", problems.len());
    for problem in &problems {
        let found = problem.found();
        let Found { relaxation, bound, objective } = found;
        let optimum = problem.optimum;
        let case = format!(
            "{} of {} rows: {bound} ≤ {relaxation} (recorded {optimum}) ≤ {objective}",
            problem.kind,
            problem.size()
        );
        let digits = 1e-6;
        assert!((relaxation - optimum).abs() <= digits * optimum.abs(), "{case}");
        assert!(bound <= optimum * (1.0 + digits), "{case}");
        if let Some(least) = problem.least {
            assert!(bound <= least * (1.0 + digits), "{case}, least {least}");
            assert!(objective >= least * (1.0 - digits), "{case}, least {least}");
        }
    }
}

#[test]
fn complete_searches_find_the_least_of_all_labels() {
    for problem in Problem::all() {
        if let (Some(least), "clustering", ..=14) =
            (problem.least, problem.kind.as_str(), problem.size())
        {
            let found = problem.clustering(ClusteringMethod::Enumeration);
            let case = format!("{} rows: {} {least}", problem.size(), found.objective);
            assert!((found.objective - least).abs() <= 1e-6 * least, "{case}");
        }
    }
}
