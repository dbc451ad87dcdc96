//! Training with rows at several sites, or on random working sets.

use std::path::Path;

use serde_json::{Value, json};
use widemargin::data::read::{Format, read};
use widemargin::data::{Census, Dataset};
use widemargin::machine::{
    CalibrationMethod, Machine, MachineKind, Model, Preparation, Specification,
};
use widemargin::operation::calibrate::calibrate;
use widemargin::operation::distribute::{
    Distributed, DistributedPlan, Distribution, Ending, Randomized, RandomizedFunction, Report,
    Schedule, TcpHub, TrainingRequest, agree, sends_sums, split, train_parts, train_processes,
};
use widemargin::{Context, Result};

use super::prepare::{TrainingData, complete, training_rows};
use super::site_pictures;
use super::train::{Arguments, Shape};
use crate::arguments::MethodName;
use crate::failure::{CommandResult, Failure};
use crate::session::Session;
use crate::table::{Summary, bytes, count};
use crate::usage::{Stopwatch, UsedTime};

/// The report of a training, without its model.
pub(super) enum DistributedReport {
    Exchange(Box<Report>),
    Randomized(Vec<RandomizedFunction>),
}

/// Refuses what goes with one place only, before anything is read.
pub(super) fn check(arguments: &Arguments, specification: &Specification) -> CommandResult<()> {
    let distribution = &arguments.distribution;
    let several = !arguments.more.is_empty();
    if !distribution.is_given() {
        return match (several, distribution.working_set) {
            (true, _) => Err(Failure::usage(format!(
                "several data files are one for each site: add --sites {}",
                1 + arguments.more.len()
            ))),
            (_, Some(_)) => Err(Failure::usage("--working-set goes with --site-method prsvm")),
            _ if distribution.site_pictures.is_some() => {
                Err(Failure::usage("--site-pictures goes with --sites or --site-method prsvm"))
            }
            _ => Ok(()),
        };
    }
    let randomized = distribution.method == MethodName::Prsvm;
    let refused = [
        (arguments.machine.choice.memory.is_some(), "--memory"),
        (arguments.machine.choice.online, "--online"),
        (several && arguments.sample_weights.is_some(), "--sample-weights with several files"),
        (several && arguments.input.labels.is_some(), "--labels with several files"),
    ];
    if let Some((_, option)) = refused.iter().find(|(given, _)| *given) {
        return Err(Failure::usage(format!("{option} does not go with training at several sites")));
    }
    if !randomized && distribution.working_set.is_some() {
        return Err(Failure::usage("--working-set goes with --site-method prsvm"));
    }
    let files = 1 + arguments.more.len();
    let listens = distribution.listen.is_some();
    if listens && (several || randomized) {
        return Err(Failure::usage(
            "--listen goes with one data file and not with --site-method prsvm",
        ));
    }
    if listens && arguments.machine.choice.probability.is_some() {
        return Err(Failure::usage(
            "--listen has no --probability: calibrate the model with rows at one place",
        ));
    }
    if several && !randomized && distribution.sites != Some(files) {
        return Err(Failure::usage(format!(
            "{files} data files need --sites {files}, one for each"
        )));
    }
    match specification.kind() {
        MachineKind::CSvc | MachineKind::EpsilonSvr | MachineKind::OneClass => Ok(()),
        kind if sends_sums(kind) && !randomized => Ok(()),
        other => Err(Failure::usage(format!(
            "--sites and --site-method are for c-svc, epsilon-svr and one-class, --sites also for \
             linear-svc, logistic and linear-svr, not for {other}"
        ))),
    }
}

/// Reads all rows, trains, and reports what the sites did.
pub(super) fn train(
    arguments: &Arguments,
    specification: &Specification,
    method: Option<CalibrationMethod>,
    session: &Session<'_>,
) -> CommandResult<(Model, Shape, UsedTime, DistributedReport)> {
    let (data, preparation, files) = session.read("reading", || rows(arguments, specification))?;
    if let Some(address) = &arguments.distribution.listen {
        return lead(arguments, specification, address, data, preparation, session);
    }
    if sends_sums(specification.kind()) {
        if method.is_some() {
            return Err(Failure::usage("linear machines at several sites have no --probability"));
        }
        return sums(arguments, specification, &data, preparation, &files, session);
    }
    let machine = specification.build(&data, arguments.resources.seed)?;
    let watch = Stopwatch::start();
    let (mut model, report) = session.run("training", |context| {
        let (model, report) = fit(arguments, machine.as_ref(), &data, &files, context)?;
        let model = match method {
            Some(method) => calibrate(machine.as_ref(), &data, model, method, context)?,
            None => model,
        };
        Ok((model, report))
    })?;
    let spent = watch.stop();
    complete(&mut model, preparation, specification);
    Ok((model, Shape::of(&data), spent, report))
}

fn distribution(arguments: &Arguments) -> Distribution {
    let choice = &arguments.distribution;
    Distribution {
        topology: choice.topology.clone(),
        schedule: choice.schedule,
        ..Distribution::default()
    }
}

/// Waits for the other sites and leads the training.
fn lead(
    arguments: &Arguments,
    specification: &Specification,
    address: &str,
    data: Dataset,
    preparation: Preparation,
    session: &Session<'_>,
) -> CommandResult<(Model, Shape, UsedTime, DistributedReport)> {
    let shape = Shape::of(&data);
    let sites = arguments.distribution.sites.unwrap_or(1);
    let request = TrainingRequest {
        specification: specification.clone(),
        distribution: distribution(arguments),
        seed: arguments.resources.seed,
        preparation: preparation.clone(),
    };
    let mut transport = session
        .run("waiting for the other sites", |context| TcpHub::listen(address, sites, context))?;
    let watch = Stopwatch::start();
    let result = session.run("training", |context| {
        let request = agree(&mut transport, Some(request), context)?;
        let folder = arguments.distribution.checkpoint.as_deref();
        train_processes(&mut transport, &request, data, folder, context)
    })?;
    let spent = watch.stop();
    let Distributed { mut model, report, .. } =
        result.ok_or_else(|| Failure::Message("the first site has no model".into()))?;
    complete(&mut model, preparation, specification);
    let rows = model.training.as_ref().map_or(shape.rows, |training| training.rows);
    Ok((model, Shape { rows, ..shape }, spent, DistributedReport::Exchange(Box::new(report))))
}

/// Trains a linear machine on sites in this process.
fn sums(
    arguments: &Arguments,
    specification: &Specification,
    data: &Dataset,
    preparation: Preparation,
    files: &[Vec<usize>],
    session: &Session<'_>,
) -> CommandResult<(Model, Shape, UsedTime, DistributedReport)> {
    let parts = parts(arguments, data, files)?;
    let parts: Vec<Dataset> = parts.iter().map(|rows| data.select_rows(rows)).collect();
    let classes = specification.kind() != MachineKind::LinearSvr;
    let census = Census::of(data, classes)?;
    let seed = arguments.resources.seed;
    let plan = DistributedPlan::new(
        specification.clone(),
        census,
        distribution(arguments),
        parts.len(),
        seed,
    )?;
    let watch = Stopwatch::start();
    let Distributed { mut model, report, .. } =
        session.run("training", |context| train_parts(&plan, parts, context))?;
    let spent = watch.stop();
    complete(&mut model, preparation, specification);
    Ok((model, Shape::of(data), spent, DistributedReport::Exchange(Box::new(report))))
}

/// Which rows belong to which site.
fn parts(arguments: &Arguments, data: &Dataset, files: &[Vec<usize>]) -> Result<Vec<Vec<usize>>> {
    match files {
        [_] => {
            let sites = arguments.distribution.sites.unwrap_or(1);
            split(data.rows(), sites, arguments.resources.seed)
        }
        files => Ok(files.to_vec()),
    }
}

/// The rows of all files one below the other, and which belong to each.
fn rows(
    arguments: &Arguments,
    specification: &Specification,
) -> CommandResult<(Dataset, Preparation, Vec<Vec<usize>>)> {
    let weights = arguments.sample_weights.as_deref();
    let TrainingData { mut data, preparation, report } =
        training_rows(&arguments.input, &arguments.data, weights, &[], specification)?;
    report.warn();
    let mut files = vec![(0..data.rows()).collect::<Vec<usize>>()];
    for path in &arguments.more {
        let loaded = read(path, &preparation.read_options(arguments.input.options()))?;
        let is_text = loaded.format == Format::Libsvm;
        let first = data.rows();
        data = below(data, loaded.dataset, is_text, path)?;
        files.push((first..data.rows()).collect());
    }
    Ok((data, preparation, files))
}

/// LIBSVM text has no number of columns; other files have to have the same.
fn below(above: Dataset, new: Dataset, is_text: bool, path: &Path) -> CommandResult<Dataset> {
    let widest = above.columns().max(new.columns());
    let widened = |data: Dataset| -> Result<Dataset> {
        match is_text && data.columns() < widest {
            true => {
                let features = data.features().clone().resized_columns(widest);
                data.with_features(features)
            }
            false => Ok(data),
        }
    };
    let (above, new) = (widened(above)?, widened(new)?);
    above.stacked(&new).map_err(|error| Failure::Message(format!("{}: {error}", path.display())))
}

fn fit(
    arguments: &Arguments,
    machine: &dyn Machine,
    data: &Dataset,
    files: &[Vec<usize>],
    context: &Context,
) -> Result<(Model, DistributedReport)> {
    let choice = &arguments.distribution;
    if choice.method == MethodName::Prsvm {
        let method = Randomized {
            sites: choice.sites.unwrap_or(1),
            working_set: choice.working_set,
            ..Randomized::default()
        };
        let result = method.train(machine, data, context)?;
        return Ok((result.model, DistributedReport::Randomized(result.functions)));
    }
    let parts = parts(arguments, data, files)?;
    let result = distribution(arguments).train(machine, data, &parts, context)?;
    Ok((result.model, DistributedReport::Exchange(Box::new(result.report))))
}

impl DistributedReport {
    /// Lines of the summary.
    pub(super) fn lines(&self, summary: &mut Summary, schedule: Schedule) {
        match self {
            Self::Exchange(report) => exchange_lines(report, schedule, summary),
            Self::Randomized(functions) => {
                let rounds: usize = functions.iter().map(|f| f.violators.len()).sum();
                let sum =
                    |of: fn(&RandomizedFunction) -> u32| functions.iter().map(of).sum::<u32>();
                let largest = functions.iter().map(|f| f.working_set).max().unwrap_or(0);
                let vectors: u64 = functions.iter().map(|f| f.vectors).sum();
                summary
                    .line("rounds", format!("{rounds}, {} functions", functions.len()))
                    .line(
                        "updates",
                        format!(
                            "{} succeeded, {} failed",
                            sum(|f| f.successes),
                            sum(|f| f.failures)
                        ),
                    )
                    .line("working set", format!("{} rows at most", count(largest as u64)))
                    .line("rows drawn", count(vectors))
                    .line(
                        "certificate",
                        match functions.iter().all(|f| f.verified) {
                            true => "no row violates the model: the optimum over all rows",
                            false => "none: the training ended before the last violator",
                        },
                    );
            }
        }
    }

    /// Draws what the sites did into a folder.
    pub(super) fn draw(&self, folder: &Path) -> CommandResult<()> {
        match self {
            Self::Exchange(report) => site_pictures::draw(folder, &report.history),
            Self::Randomized(functions) => site_pictures::draw_working_sets(folder, functions),
        }
    }

    pub(super) fn json(&self) -> Value {
        match self {
            Self::Exchange(report) => {
                let (traffic, certificate) = (&report.traffic, &report.certificate);
                json!({
                    "sites": report.sites,
                    "links": report.links,
                    "rounds": report.rounds,
                    "vectors": traffic.vectors,
                    "bytes": traffic.bytes,
                    "verification_vectors": traffic.verification_vectors,
                    "verification_bytes": traffic.verification_bytes,
                    "control_bytes": traffic.control_bytes,
                    "largest_site": report.largest_site,
                    "verified": report.ending == Ending::Verified,
                    "verifications": certificate.verifications,
                    "violators": certificate.violators,
                    "largest_violation": certificate.largest_violation,
                    "objectives": report.history.iter().map(|r| &r.duals).collect::<Vec<_>>(),
                    "held": report.history.iter().map(|r| &r.held).collect::<Vec<_>>(),
                    "support": report.history.iter().map(|r| &r.support).collect::<Vec<_>>(),
                    "sent": report.history.iter().map(|r| &r.sent).collect::<Vec<_>>(),
                    "steps": report.history.iter().map(|r| &r.steps).collect::<Vec<_>>(),
                })
            }
            Self::Randomized(functions) => {
                let function = |f: &RandomizedFunction| {
                    json!({
                        "verified": f.verified,
                        "violators": f.violators,
                        "support": f.support,
                        "successes": f.successes,
                        "failures": f.failures,
                        "dimension": f.dimension,
                        "working_set": f.working_set,
                        "vectors": f.vectors,
                    })
                };
                json!({ "functions": functions.iter().map(function).collect::<Vec<_>>() })
            }
        }
    }
}

fn exchange_lines(report: &Report, schedule: Schedule, summary: &mut Summary) {
    let traffic = &report.traffic;
    let rounds = match schedule {
        Schedule::Sequential => "updates",
        _ => "rounds",
    };
    let sent = |vectors: u64, size: u64| format!("{} vectors, {}", count(vectors), bytes(size));
    let certificate = &report.certificate;
    let proof = match &report.ending {
        Ending::Verified => format!(
            "no row of {} sites violates the model by more than {:.1e} (verification {})",
            report.sites, certificate.largest_violation, certificate.verifications
        ),
        Ending::Inaccurate => format!(
            "rows violate the model by up to {:.1e}: more accuracy is out of reach",
            certificate.largest_violation
        ),
        _ => "none: the training ended before a verification".to_owned(),
    };
    summary
        .line("sites", format!("{}, {} links", report.sites, report.links))
        .line(rounds, report.rounds)
        .line("sent", sent(traffic.vectors, traffic.bytes))
        .line("to verify", sent(traffic.verification_vectors, traffic.verification_bytes))
        .line("largest site", format!("{} rows", count(report.largest_site as u64)))
        .line("certificate", proof);
}
