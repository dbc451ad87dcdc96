//! `svm-train`: LIBSVM's options, model file and summary lines.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use widemargin::Status;
use widemargin::data::read::IndexBase;
use widemargin::data::write::general;
use widemargin::data::{ClassOrder, Dataset, Label, Layout, read};
use widemargin::machine::specification::Value;
use widemargin::machine::{
    CalibrationMethod, Machine, MachineKind, Model, Preparation, Specification,
};
use widemargin::operation::calibrate::calibrate;
use widemargin::operation::cross_validate::{Quality, cross_validate};
use widemargin::operation::folds::Folds;
use widemargin::{Context, Event, SolvedFunction};

use super::options::{Words, switch, unknown};
use super::{read_data, threads};
use crate::data_file::check_outputs;
use crate::failure::{CommandResult, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::model_file;
use crate::session::Session;
use crate::terminal;

/// Printed when there is nothing to do.
pub(super) const USAGE: &str = "\
Usage: svm-train [options] training_set_file [model_file]
options:
-s svm_type : machine to train (default 0)
	0 -- C-SVC		(classification into any number of classes)
	1 -- nu-SVC		(classification into any number of classes)
	2 -- one-class SVM
	3 -- epsilon-SVR	(regression)
	4 -- nu-SVR		(regression)
-t kernel_type : kernel (default 2)
	0 -- linear: u'*v
	1 -- polynomial: (gamma*u'*v + coef0)^degree
	2 -- radial basis function: exp(-gamma*|u-v|^2)
	3 -- sigmoid: tanh(gamma*u'*v + coef0)
	4 -- precomputed kernel (kernel values in training_set_file)
-d degree : degree of the polynomial kernel (default 3)
-g gamma : gamma of the kernel (default 1/num_features)
-r coef0 : coef0 of the kernel (default 0)
-c cost : penalty C of C-SVC, epsilon-SVR and nu-SVR (default 1)
-n nu : nu of nu-SVC, one-class SVM and nu-SVR (default 0.5)
-p epsilon : half width of the tube of epsilon-SVR (default 0.1)
-m cachesize : megabytes for cached kernel rows (default 100)
-e epsilon : tolerance of the stopping rule (default 0.001)
-h shrinking : use the shrinking heuristics, 0 or 1 (default 1)
-b probability_estimates : learn probabilities, 0 or 1 (default 0)
-wi weight : multiply C of class i by weight, for C-SVC (default 1)
-v n : n-fold cross-validation instead of a model
-q : print nothing
";

struct Options {
    machine: MachineKind,
    kernel: u32,
    degree: u32,
    gamma: f64,
    coef0: f64,
    cost: f64,
    nu: f64,
    tube: f64,
    cache_mb: f64,
    tolerance: f64,
    shrinking: bool,
    probability: bool,
    weights: Vec<(Label, f64)>,
    folds: Option<usize>,
    quiet: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            machine: MachineKind::CSvc,
            kernel: 2,
            degree: 3,
            gamma: 0.0,
            coef0: 0.0,
            cost: 1.0,
            nu: 0.5,
            tube: 0.1,
            cache_mb: 100.0,
            tolerance: 1e-3,
            shrinking: true,
            probability: false,
            weights: Vec::new(),
            folds: None,
            quiet: false,
        }
    }
}

impl Options {
    fn read(arguments: &[OsString]) -> CommandResult<(Self, &[OsString])> {
        let mut options = Self::default();
        let mut words = Words::new(arguments);
        while let Some(option) = words.option() {
            match option.letter {
                's' => options.machine = machine(words.number(&option)?)?,
                't' => options.kernel = words.number(&option)?,
                'd' => options.degree = words.number(&option)?,
                'g' => options.gamma = words.number(&option)?,
                'r' => options.coef0 = words.number(&option)?,
                'c' => options.cost = words.number(&option)?,
                'n' => options.nu = words.number(&option)?,
                'p' => options.tube = words.number(&option)?,
                'm' => options.cache_mb = words.number(&option)?,
                'e' => options.tolerance = words.number(&option)?,
                'h' => options.shrinking = switch(&mut words, &option)?,
                'b' => options.probability = switch(&mut words, &option)?,
                'q' => options.quiet = true,
                'v' => options.folds = Some(folds(words.number(&option)?)?),
                'w' => {
                    let class: i64 = option.rest.parse().map_err(|_| unknown(&option))?;
                    options.weights.push((Label::Int(class), words.next_number('w')?));
                }
                _ => return Err(unknown(&option)),
            }
        }
        Ok((options, words.files()))
    }

    /// The machine; as in LIBSVM, options that it does not have are without effect.
    fn specification(&self) -> CommandResult<Specification> {
        let kernel = match self.kernel {
            0 => "linear",
            1 => "poly",
            2 => "rbf",
            3 => "sigmoid",
            4 => "precomputed",
            _ => return Err(Failure::Message("unknown kernel type".into())),
        };
        let mut specification = Specification::new(self.machine);
        let values: [(&str, Value); 10] = [
            ("c", self.cost.into()),
            ("nu", self.nu.into()),
            ("epsilon", self.tube.into()),
            ("tol", self.tolerance.into()),
            ("shrinking", self.shrinking.into()),
            ("kernel", kernel.into()),
            // LIBSVM takes 0 for "not given".
            ("gamma", if self.gamma == 0.0 { "auto".into() } else { self.gamma.into() }),
            ("degree", u64::from(self.degree).into()),
            ("coef0", self.coef0.into()),
            ("class-order", "first-seen".into()),
        ];
        for (name, value) in values {
            if specification.parameter(name).is_ok() {
                specification.set(name, value)?;
            }
        }
        Ok(specification)
    }
}

/// Weights of classes that occur; others are warned of as LIBSVM does.
pub(crate) fn class_weights(weights: &[(Label, f64)], data: &Dataset) -> CommandResult<Value> {
    let classes = data.labels().classes(ClassOrder::FirstSeen)?;
    let names: Vec<String> = classes.names.iter().map(ToString::to_string).collect();
    let known = |(label, _): &&(Label, f64)| names.contains(&label.to_string());
    for (label, _) in weights.iter().filter(|weight| !known(weight)) {
        let message = format!("WARNING: class label {label} specified in weight is not found");
        terminal::note(&message);
    }
    Ok(Value::Weights(weights.iter().filter(known).cloned().collect()))
}

fn machine(number: i64) -> CommandResult<MachineKind> {
    usize::try_from(number)
        .ok()
        .and_then(|index| MachineKind::LIBSVM.get(index).copied())
        .ok_or_else(|| Failure::Message("unknown svm type".into()))
}

pub(crate) fn folds(number: i64) -> CommandResult<usize> {
    usize::try_from(number)
        .ok()
        .filter(|folds| *folds >= 2)
        .ok_or_else(|| Failure::usage("n-fold cross validation: n must >= 2"))
}

/// Trains or cross-validates.
pub(super) fn run(arguments: &[OsString], interrupt: &Interrupt) -> CommandResult {
    let (options, files) = Options::read(arguments)?;
    let (data_path, model_path) = training_files(files)?;
    let session = Session {
        context: Context::new()
            .with_threads(threads())?
            .with_cache_bytes(cache_bytes(options.cache_mb)?)
            .with_cancel_token(interrupt.token()),
        interrupt,
        quiet: true,
        verbose: false,
    };
    let mut specification = options.specification()?;
    let (data, preparation) = session.read("reading", || {
        let precomputed = options.kernel == 4;
        let loaded =
            read_data(data_path, precomputed, None, Layout::Auto, read::StoredPrecision::Auto)?;
        let preparation = Preparation::of_file(&loaded);
        Ok((model_file::kernel_values(precomputed, loaded)?, preparation))
    })?;
    // LIBSVM counts features by the largest index, which is one less when indices start at 0.
    if preparation.index_base == Some(IndexBase::Zero) && options.gamma == 0.0 {
        let features = data.columns().saturating_sub(1).max(1);
        specification.set("gamma", 1.0 / features as f64)?;
    }
    if options.machine == MachineKind::CSvc && !options.weights.is_empty() {
        specification.set("class-weight", class_weights(&options.weights, &data)?)?;
    }
    let machine = specification.build(&data, 0)?;
    if let Some(folds) = options.folds {
        return validate(&session, machine.as_ref(), &data, options.machine, folds);
    }
    let solved = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&solved);
    let observer = move |event: &Event| {
        if let Event::Solved(function) = event {
            record.lock().unwrap_or_else(PoisonError::into_inner).push(*function);
        }
    };
    let mut model =
        session.run_observed("training", observer, |context| machine.fit(&data, context))?;
    if options.probability {
        model = session.run("calibrating", |context| {
            calibrate(machine.as_ref(), &data, model, CalibrationMethod::Sigmoid, context)
        })?;
    }
    model.preparation = preparation;
    session.save(|| model.save_libsvm(&model_path))?;
    if !options.quiet {
        let solved = solved.lock().unwrap_or_else(PoisonError::into_inner);
        terminal::print(&summary(&model, &solved))?;
    }
    Ok(print_status(&model))
}

/// Prints how good the machine is in `count`-fold cross-validation.
pub(crate) fn validate(
    session: &Session<'_>,
    machine: &dyn Machine,
    data: &Dataset,
    kind: MachineKind,
    count: usize,
) -> CommandResult {
    let count = if count > data.rows() {
        terminal::note(
            "WARNING: # folds > # data. Will use # folds = # data instead (i.e., leave-one-out \
             cross validation)",
        );
        data.rows()
    } else {
        count
    };
    let folds = Folds::usual(kind, count);
    let result = session
        .run("cross-validating", |context| cross_validate(machine, data, &folds, context))?;
    let text = match &result.quality {
        None => String::new(),
        Some(Quality::Classes(confusion)) => {
            format!("Cross Validation Accuracy = {}%\n", general(100.0 * confusion.accuracy(), 6))
        }
        Some(Quality::Orders(orders)) => {
            format!("Cross Validation Kendall tau-b = {}\n", general(orders.kendall_tau, 6))
        }
        Some(Quality::Numbers(errors)) => format!(
            "Cross Validation Mean squared error = {}\n\
             Cross Validation Squared correlation coefficient = {}\n",
            general(errors.mean_squared_error, 6),
            general(errors.squared_correlation, 6)
        ),
    };
    terminal::print(&text)?;
    Ok(if result.status == Status::Interrupted { Outcome::Interrupted } else { Outcome::Done })
}

fn cache_bytes(megabytes: f64) -> CommandResult<usize> {
    if megabytes > 0.0 {
        Ok((megabytes * 1_048_576.0) as usize)
    } else {
        Err(Failure::Message("cache_size <= 0".into()))
    }
}

/// The data and the model file: `FOLDER/heart_scale` makes `heart_scale.model` here.
pub(crate) fn training_files(files: &[OsString]) -> CommandResult<(&Path, PathBuf)> {
    let data =
        Path::new(files.first().ok_or_else(|| Failure::usage("a training file is missing"))?);
    let model = files.get(1).map_or_else(
        || {
            let mut name = data.file_name().unwrap_or_default().to_owned();
            name.push(".model");
            PathBuf::from(name)
        },
        PathBuf::from,
    );
    check_outputs(&[("model_file", Some(&model))], &[Some(data)])?;
    Ok((data, model))
}

/// The lines LIBSVM prints, one group per decision function.
fn summary(model: &Model, solved: &[SolvedFunction]) -> String {
    let mut functions: Vec<&SolvedFunction> = solved.iter().collect();
    functions.sort_by_key(|function| function.index);
    let mut text = String::new();
    for function in functions {
        let SolvedFunction { outcome, offset, support, bounded, determined, .. } = function;
        let _ = writeln!(text, "*\noptimization finished, #iter = {}", outcome.iterations);
        if let Some((name, value)) = determined {
            let _ = writeln!(text, "{name} = {value:.6}");
        }
        let _ = writeln!(text, "obj = {:.6}, rho = {offset:.6}", -outcome.dual);
        let _ = writeln!(text, "nSV = {support}, nBSV = {bounded}");
    }
    if model.classes.is_some() {
        let _ = writeln!(text, "Total nSV = {}", model.support_count());
    }
    text
}

/// As LIBSVM, a limit reached is a warning and no failure.
pub(crate) fn print_status(model: &Model) -> Outcome {
    let Some(training) = &model.training else { return Outcome::Done };
    match training.outcome.status {
        Status::Solved | Status::AlmostSolved => Outcome::Done,
        Status::Interrupted => {
            terminal::note("WARNING: interrupted; the best model so far was saved");
            Outcome::Interrupted
        }
        status => {
            let violation = training.outcome.violation;
            terminal::note(&format!("WARNING: {status} at KKT violation {violation:.1e}"));
            Outcome::Done
        }
    }
}
