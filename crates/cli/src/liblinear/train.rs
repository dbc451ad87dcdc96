//! `ll-train`: LIBLINEAR's options, model file and summary lines.

use std::ffi::OsString;

use widemargin::data::write::general;
use widemargin::data::{Dataset, Label, Layout, read};
use widemargin::machine::specification::Value;
use widemargin::machine::{MachineKind, Precision, Preparation, Specification};
use widemargin::operation::penalty_search::{PenaltySearch, search_classifier, search_regressor};

use super::solver::Solver;
use crate::failure::{CommandResult, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::libsvm::{
    Words, class_weights, folds, print_status, read_data, session, training_files, unknown,
    validate,
};
use crate::session::Session;
use crate::terminal;

/// Printed when there is nothing to do.
pub(crate) const USAGE: &str = "\
Usage: ll-train [options] training_set_file [model_file]
options:
-s type : solver (default 1)
  for classification into any number of classes
	 0 -- l2-regularized logistic regression (primal)
	 1 -- l2-regularized squared hinge loss (dual)
	 2 -- l2-regularized squared hinge loss (primal)
	 3 -- l2-regularized hinge loss (dual)
	 4 -- Crammer and Singer's machine
	 5 -- l1-regularized squared hinge loss
	 6 -- l1-regularized logistic regression
	 7 -- l2-regularized logistic regression (dual)
  for regression
	11 -- l2-regularized squared tube loss (primal)
	12 -- l2-regularized squared tube loss (dual)
	13 -- l2-regularized tube loss (dual)
  for novelty detection
	21 -- one-class machine (dual)
-c cost : penalty C (default 1)
-p epsilon : half width of the tube of -s 11, 12, 13 (default 0.1)
-n nu : nu of -s 21 (default 0.5)
-e epsilon : tolerance of the stopping rule (default 0.01 for -s 0, 2, 5, 6 and 21, 0.0001 for
	-s 11, 0.1 for the others)
-B bias : append a feature of value bias to every row; -1 for none (default -1)
-R : do not penalise the bias (with -B 1; -s 0, 2, 5, 6, 11)
-wi weight : multiply C of class i by weight (default 1)
-v n : n-fold cross-validation instead of a model
-C : search C (and p of -s 11) by cross-validation (-s 0, 2, 11)
-q : print nothing
";

/// Below this tolerance values are read in double precision.
const SMALLEST_SINGLE_TOLERANCE: f64 = 1e-3;

struct Options {
    solver: Solver,
    cost: f64,
    given_cost: bool,
    tube: f64,
    given_tube: bool,
    nu: f64,
    tolerance: Option<f64>,
    bias: f64,
    free_bias: bool,
    weights: Vec<(Label, f64)>,
    folds: Option<usize>,
    search: bool,
    quiet: bool,
}

impl Options {
    fn read(arguments: &[OsString]) -> CommandResult<(Self, &[OsString])> {
        let mut options = Self {
            solver: Solver::numbered(1)?,
            cost: 1.0,
            given_cost: false,
            tube: 0.1,
            given_tube: false,
            nu: 0.5,
            tolerance: None,
            bias: -1.0,
            free_bias: false,
            weights: Vec::new(),
            folds: None,
            search: false,
            quiet: false,
        };
        let mut words = Words::new(arguments);
        while let Some(option) = words.option() {
            match option.letter {
                's' => options.solver = Solver::numbered(words.number(&option)?)?,
                'c' => (options.cost, options.given_cost) = (words.number(&option)?, true),
                'p' => (options.tube, options.given_tube) = (words.number(&option)?, true),
                'n' => options.nu = words.number(&option)?,
                'e' => options.tolerance = Some(words.number(&option)?),
                'B' => options.bias = words.number(&option)?,
                'R' => options.free_bias = true,
                'v' => options.folds = Some(folds(words.number(&option)?)?),
                'C' => options.search = true,
                'q' => options.quiet = true,
                'w' => {
                    let class: i64 = option.rest.parse().map_err(|_| unknown(&option))?;
                    options.weights.push((Label::Int(class), words.next_number('w')?));
                }
                _ => return Err(unknown(&option)),
            }
        }
        options.check()?;
        Ok((options, words.files()))
    }

    /// LIBLINEAR's own complaints, in its words.
    fn check(&self) -> CommandResult<()> {
        let fail = |message: &str| Err(Failure::Message(message.into()));
        if self.free_bias && self.bias != 1.0 {
            return fail("option -R needs -B 1");
        }
        if self.free_bias && !self.solver.may_free_bias() {
            return fail("option -R is for -s 0, 2, 5, 6 and 11");
        }
        if self.search && !self.solver.has_search() {
            return fail("option -C is for -s 0, 2 and 11");
        }
        Ok(())
    }

    /// The number format of values.
    fn precision(&self) -> Precision {
        match self.tolerance {
            Some(tol) if tol < SMALLEST_SINGLE_TOLERANCE => Precision::F64,
            _ => Precision::F32,
        }
    }

    /// The machine; as in LIBLINEAR, options that it does not have are without effect.
    fn specification(&self, data: &Dataset) -> CommandResult<Specification> {
        let mut specification = self.solver.specification(self.tolerance)?;
        let bias = match self.bias {
            _ if self.free_bias => "free".into(),
            bias if bias < 0.0 => "none".into(),
            bias => Value::Real(bias),
        };
        let values = [
            ("c", self.cost.into()),
            ("epsilon", self.tube.into()),
            ("nu", self.nu.into()),
            ("intercept", bias),
            ("precision", self.precision().to_string().into()),
        ];
        for (name, value) in values {
            if specification.parameter(name).is_ok() {
                specification.set(name, value)?;
            }
        }
        if self.solver.kind().is_classifier() && !self.weights.is_empty() {
            specification.set("class-weight", class_weights(&self.weights, data)?)?;
        }
        Ok(specification)
    }
}

/// Trains, cross-validates or searches.
pub(crate) fn run(arguments: &[OsString], interrupt: &Interrupt) -> CommandResult {
    let (options, files) = Options::read(arguments)?;
    let (data_path, model_path) = training_files(files)?;
    let session = session(interrupt)?;
    let precision = match options.precision() {
        Precision::F32 => read::StoredPrecision::F32,
        Precision::F64 => read::StoredPrecision::F64,
    };
    let loaded =
        session.read("reading", || read_data(data_path, false, None, Layout::Auto, precision))?;
    let preparation = Preparation::of_file(&loaded);
    let data = loaded.dataset;
    let specification = options.specification(&data)?;
    if options.search {
        return search(&options, &specification, &data, &session);
    }
    let machine = specification.build(&data, 0)?;
    if let Some(folds) = options.folds {
        return validate(&session, machine.as_ref(), &data, options.solver.kind(), folds);
    }
    let mut model = session.run("training", |context| machine.fit(&data, context))?;
    model.preparation = preparation;
    if let Some(training) = &mut model.training {
        training.parameters.push(("solver_type".into(), options.solver.name().into()));
    }
    session.save(|| model.save_liblinear(&model_path))?;
    if let (false, Some(training)) = (options.quiet, &model.training) {
        let outcome = training.outcome;
        let objective = if outcome.primal.is_finite() { outcome.primal } else { -outcome.dual };
        let mut text = format!("optimization finished, #iter = {}\n", outcome.blocks);
        text.push_str(&format!("Objective value = {objective:.6}\n"));
        if options.solver.kind() != MachineKind::LinearOneClass {
            let width = model.vectors().columns() * model.outputs();
            let used = model.vectors().nonzeros();
            text.push_str(&format!("#nonzeros/#features = {used}/{width}\n"));
        }
        terminal::print(&text)?;
    }
    Ok(print_status(&model))
}

/// Prints the best C (and p), as LIBLINEAR's `-C`.
fn search(
    options: &Options,
    specification: &Specification,
    data: &Dataset,
    session: &Session<'_>,
) -> CommandResult {
    let plan = PenaltySearch {
        folds: options.folds.unwrap_or(5),
        first_c: options.given_cost.then_some(options.cost),
        epsilon: options.given_tube.then_some(options.tube),
        ..PenaltySearch::default()
    };
    let found = session.run("searching", |context| match options.solver.kind() {
        MachineKind::LinearSvr => {
            search_regressor(&specification.linear_svr()?, &plan, data, context)
        }
        _ => search_classifier(&specification.linear_svc()?, &plan, data, context),
    })?;
    if !options.quiet {
        for tried in &found.tried {
            let c = general(tried.c, 6);
            match tried.epsilon {
                Some(epsilon) => terminal::print(&format!(
                    "log2c={:7.2}\tp={:.2}\tMean squared error={}\n",
                    tried.c.log2(),
                    epsilon,
                    general(tried.score, 6)
                ))?,
                None => terminal::print(&format!(
                    "log2c={:7.2}\trate={}\t(C={c})\n",
                    tried.c.log2(),
                    general(100.0 * tried.score, 6)
                ))?,
            }
        }
    }
    let (c, score) = (general(found.c, 6), found.score);
    terminal::print(&match found.epsilon {
        Some(epsilon) => format!(
            "Best C = {c} Best p = {}  CV MSE = {}\n",
            general(epsilon, 6),
            general(score, 6)
        ),
        None => format!("Best C = {c}  CV accuracy = {}%\n", general(100.0 * score, 6)),
    })?;
    Ok(Outcome::Done)
}
