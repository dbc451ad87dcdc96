//! Online training on rows as they arrive: LIBSVM text on standard input, never held whole.

use std::io::{BufRead, stdin};

use widemargin::data::Layout;
use widemargin::data::read::source::is_standard_stream;
use widemargin::data::read::{IndexBase, read_bytes};
use widemargin::machine::{AllInOne, Epochs, MachineKind, Model, OnlineLearner, Preparation};

use super::train::{Arguments, Shape};
use crate::arguments::FormatName;
use crate::failure::{CommandResult, Failure};
use crate::model_file;
use crate::session::Session;
use crate::usage::{Spent, Stopwatch};

/// Bytes of text learnt at once.
const BATCH: usize = 1 << 18;

/// The machine to train on a stream, if that is what the arguments ask for: one pass of an all-in-one
/// machine over LIBSVM text on standard input.
pub(super) fn machine(arguments: &Arguments) -> Option<AllInOne> {
    let (machine, input) = (&arguments.machine, &arguments.input);
    let streams = machine.online
        && machine.epochs == Epochs::Times(1)
        && is_standard_stream(&arguments.data)
        && input.format.is_some_and(|format| matches!(format, FormatName::Libsvm))
        && arguments.scale.scale.0.is_none()
        && arguments.sample_weights.is_none()
        && machine.probability.is_none();
    match machine.machine {
        MachineKind::AllInOne(machine) if streams => Some(machine),
        _ => None,
    }
}

/// Learns from standard input; the kernel's width, if it depends on the data, is that of the first
/// batch.
pub(super) fn train(
    arguments: &Arguments,
    machine: AllInOne,
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
        let kernel = match &learner {
            None => Some(arguments.machine.kernel(loaded.dataset.features())?),
            Some(_) => None,
        };
        learner = Some(session.run("learning", |context| {
            let mut learner = match (learner.take(), kernel) {
                (Some(learner), _) => learner,
                (None, kernel) => {
                    let kernel = kernel.unwrap_or(widemargin::kernel::Kernel::Linear);
                    arguments.machine.online_svc(machine, kernel).learner(context)?
                }
            };
            learner.partial_fit(&loaded.dataset)?;
            Ok(learner)
        })?);
    }
    let learner = learner.ok_or(widemargin::Error::Empty { what: "row" })?;
    let mut model = learner.model()?;
    model.preparation = Preparation { index_base: Some(base), ..Preparation::default() };
    let shape = Shape { rows, columns: model.features(), is_sparse: true };
    Ok((model, shape, watch.stop()))
}

/// Goes on from the model of --resume with the rows of the data file, each once.
pub(super) fn resume(
    arguments: &Arguments,
    session: &Session<'_>,
) -> CommandResult<(Model, Shape, Spent)> {
    let path = arguments.resume.as_deref().unwrap_or(&arguments.data);
    let mut start = Model::load(path)?;
    let (MachineKind::AllInOne(machine), Some(kernel)) = (start.kind, start.kernel().cloned())
    else {
        return Err(Failure::usage("--resume is for models of ww, cs, llw, ..."));
    };
    if arguments.machine.epochs != Epochs::Times(1) || arguments.scale.scale.0.is_some() {
        return Err(Failure::usage("--resume goes through the rows once and takes no --scale"));
    }
    let data = session
        .read("reading", || model_file::read_for(&mut start, &arguments.input, &arguments.data))?;
    let watch = Stopwatch::start();
    let mut model = session.run("learning", |context| {
        let online = arguments.machine.online_svc(machine, kernel.clone());
        let mut learner = online.resume(&start, context)?;
        learner.partial_fit(&data)?;
        learner.model()
    })?;
    model.preparation = start.preparation;
    Ok((model, Shape::of(&data), watch.stop()))
}
