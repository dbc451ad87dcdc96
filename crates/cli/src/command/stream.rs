//! Online training on rows as they arrive: LIBSVM text on standard input, never held whole.

use std::io::{BufRead, stdin};

use widemargin::data::Layout;
use widemargin::data::read::is_standard_stream;
use widemargin::data::read::{IndexBase, read_bytes};
use widemargin::kernel::Kernel;
use widemargin::machine::specification::Value;
use widemargin::machine::{
    MachineKind, Model, OnlineLearner, OnlineSvc, Preparation, Specification,
};

use super::train::{Arguments, Shape};
use crate::arguments::FormatName;
use crate::failure::{CommandResult, Failure};
use crate::model_file;
use crate::session::Session;
use crate::usage::{Spent, Stopwatch};

/// Bytes of text learnt at once.
const BATCH: usize = 1 << 18;

/// Whether the arguments ask for training on a stream: one pass of an all-in-one machine over LIBSVM
/// text on standard input.
pub(super) fn is_streamed(arguments: &Arguments, specification: &Specification) -> bool {
    let input = &arguments.input;
    specification.is_online()
        && matches!(specification.kind(), MachineKind::AllInOne(_))
        && is_one_pass(specification)
        && is_standard_stream(&arguments.data)
        && input.format.is_some_and(|format| matches!(format, FormatName::Libsvm))
        && arguments.sample_weights.is_none()
        && arguments.machine.choice.probability.is_none()
}

fn is_one_pass(specification: &Specification) -> bool {
    specification.value("epochs") == Some(Value::Integer(1))
        && matches!(specification.scaling(), Ok(None))
}

/// Learns from standard input; the kernel's width, if it depends on the data, is that of the first
/// batch.
pub(super) fn train(
    arguments: &Arguments,
    specification: &Specification,
    session: &Session<'_>,
) -> CommandResult<(Model, Shape, Spent)> {
    let watch = Stopwatch::start();
    let mut learner: Option<OnlineLearner> = None;
    let mut base = arguments.input.index_base.unwrap_or(IndexBase::One);
    let mut input = stdin().lock();
    let mut rows = 0;
    loop {
        let mut text = Vec::new();
        while text.len() < BATCH {
            let read = input.read_until(b'\n', &mut text);
            if read.map_err(|source| widemargin::Error::io("-", source))? == 0 {
                break;
            }
        }
        if text.is_empty() {
            break;
        }
        let mut options = arguments.input.options().layout(Layout::Sparse);
        if learner.is_some() || arguments.input.index_base.is_some() {
            options = options.index_base(base);
        }
        let loaded = read_bytes(&text, &options)?;
        base = loaded.index_base.unwrap_or(base);
        rows += loaded.dataset.rows();
        learner = Some(session.run("learning", |context| {
            let mut learner = match learner.take() {
                Some(learner) => learner,
                None => specification.online_svc(loaded.dataset.features())?.learner(context)?,
            };
            learner.partial_fit(&loaded.dataset)?;
            Ok(learner)
        })?);
    }
    let learner = learner.ok_or(widemargin::Error::Empty { what: "row" })?;
    let mut model = learner.model()?;
    model.preparation = Preparation { index_base: Some(base), ..Preparation::default() };
    specification.record(&mut model);
    let shape = Shape { rows, columns: model.features(), is_sparse: true, report: None };
    Ok((model, shape, watch.stop()))
}

/// Goes on from the model of --resume with the rows of the data file, each once.
pub(super) fn resume(
    arguments: &Arguments,
    specification: &Specification,
    mut start: Model,
    session: &Session<'_>,
) -> CommandResult<(Model, Shape, Spent)> {
    let kernel = start.kernel().cloned().unwrap_or(Kernel::Linear);
    if !is_one_pass(specification) {
        return Err(Failure::usage("--resume goes through the rows once and takes no --scale"));
    }
    let ignored = [
        (arguments.sample_weights.is_some(), "--sample-weights"),
        (arguments.machine.choice.probability.is_some(), "--probability"),
        (specification.is_given("kernel"), "--kernel"),
        (specification.is_given("gamma"), "--gamma"),
        (specification.is_given("degree"), "--degree"),
        (specification.is_given("coef0"), "--coef0"),
    ];
    if let Some((_, option)) = ignored.iter().find(|(given, _)| *given) {
        return Err(Failure::usage(format!("--resume takes no {option}")));
    }
    let data = session
        .read("reading", || model_file::read_for(&mut start, &arguments.input, &arguments.data))?;
    let watch = Stopwatch::start();
    let mut model = session.run("learning", |context| {
        let online = specification.online_svc(data.features())?;
        let online = OnlineSvc { kernel: kernel.clone(), ..online };
        let mut learner = online.resume(&start, context)?;
        learner.partial_fit(&data)?;
        learner.model()
    })?;
    model.preparation = start.preparation;
    specification.record(&mut model);
    Ok((model, Shape::of(&data), watch.stop()))
}
