//! Online training on rows as they arrive: LIBSVM text on standard input, never held whole.

use widemargin::data::read::{IndexBase, ReadOptions, is_standard_stream, read_bytes};
use widemargin::data::{Layout, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::specification::Value;
use widemargin::machine::{
    MachineKind, Model, OnlineLearner, OnlineSvc, Preparation, Specification,
};
use widemargin::{CancelToken, Context, Error};

use super::train::{Arguments, Shape};
use crate::arguments::FormatName;
use crate::failure::{CommandResult, Failure};
use crate::input_lines::InputLines;
use crate::model_file;
use crate::session::{LAST_MOMENTS, Session};
use crate::usage::{Stopwatch, UsedTime};

/// Bytes of text learnt at once.
const BATCH: usize = 1 << 18;

/// Whether the arguments ask for training on a stream: one pass of an all-in-one machine over LIBSVM
/// text on standard input.
pub(super) fn is_streamed(arguments: &Arguments, specification: &Specification) -> bool {
    specification.is_online()
        && matches!(specification.kind(), MachineKind::AllInOne(_))
        && is_one_pass(specification)
        && reads_stream(arguments)
        && arguments.sample_weights.is_none()
        && arguments.machine.choice.probability.is_none()
}

/// Whether the data is LIBSVM text on standard input.
fn reads_stream(arguments: &Arguments) -> bool {
    is_standard_stream(&arguments.data)
        && arguments.input.format.is_some_and(|format| matches!(format, FormatName::Libsvm))
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
) -> CommandResult<(Model, Shape, UsedTime)> {
    let options = arguments.input.options();
    let begin =
        |features: &Matrix, context: &Context| specification.online_svc(features)?.learner(context);
    let (mut model, shape, spent) = learn(&options, arguments.input.index_base, session, begin)?;
    specification.record(&mut model);
    Ok((model, shape, spent))
}

/// Learns from standard input, batch by batch, with the learner that `begin` makes for the first one.
///
/// A limit or Ctrl-C ends it with what was learnt. Lines that had arrived by then, but were fewer than a
/// batch, get [`LAST_MOMENTS`].
fn learn(
    options: &ReadOptions,
    mut base: Option<IndexBase>,
    session: &Session<'_>,
    begin: impl Fn(&Matrix, &Context) -> widemargin::Result<OnlineLearner>,
) -> CommandResult<(Model, Shape, UsedTime)> {
    let watch = Stopwatch::start();
    let input = InputLines::start(BATCH);
    let mut rows = 0;
    let mut model = session.run("learning", |context| {
        let mut learner: Option<OnlineLearner> = None;
        let mut stopped = None;
        while stopped.is_none() {
            let text = input.next(|| context.stop_request().is_some());
            let text = text.map_err(|source| Error::io("-", source))?;
            stopped = context.stop_request();
            if text.is_empty() {
                break;
            }
            let mut options = options.clone().layout(Layout::Sparse);
            if let Some(base) = base {
                options = options.index_base(base);
            }
            let loaded = read_bytes(&text, &options)?;
            base = Some(base.or(loaded.index_base).unwrap_or(IndexBase::One));
            rows += loaded.dataset.rows();
            let context = match stopped {
                Some(_) => context
                    .clone()
                    .with_cancel_token(CancelToken::new())
                    .with_time_limit(LAST_MOMENTS),
                None => context.clone(),
            };
            let mut own = match learner.take() {
                Some(learner) => learner,
                None => begin(loaded.dataset.features(), &context)?,
            };
            stopped = stopped.or(own.partial_fit_in_time(&loaded.dataset, &context)?);
            learner = Some(own);
        }
        let Some(learner) = learner else {
            return Err(match stopped {
                Some(_) => Error::Interrupted,
                None => Error::Empty { what: "row" },
            });
        };
        let mut model = learner.model()?;
        if let (Some(training), Some(status)) = (&mut model.training, stopped) {
            training.outcome.status = status;
        }
        Ok(model)
    })?;
    model.preparation = Preparation { index_base: base, ..Preparation::default() };
    let shape = Shape { rows, columns: model.features(), is_sparse: true, report: None };
    Ok((model, shape, watch.stop()))
}

/// Goes on from the model of --resume with the rows of the data file, each once.
pub(super) fn resume(
    arguments: &Arguments,
    specification: &Specification,
    mut start: Model,
    session: &Session<'_>,
) -> CommandResult<(Model, Shape, UsedTime)> {
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
    if start.preparation.scaler.is_some() || start.preparation.map.is_some() {
        return Err(Failure::usage(
            "the model of --resume scales or maps its rows; --resume needs one of rows as they are",
        ));
    }
    let begin = |start: &Model, features: &Matrix, context: &Context| {
        let online = specification.online_svc(features)?;
        OnlineSvc { kernel: kernel.clone(), ..online }.resume(start, context)
    };
    let (mut model, shape, spent) = if reads_stream(arguments) {
        let options = start.preparation.read_options(arguments.input.options());
        let base = start.preparation.index_base.or(arguments.input.index_base);
        learn(&options, base, session, |features, context| begin(&start, features, context))?
    } else {
        let data = session.read("reading", || {
            model_file::read_for(&mut start, &arguments.input, &arguments.data)
        })?;
        let watch = Stopwatch::start();
        let model = session.run("learning", |context| {
            let mut learner = begin(&start, data.features(), context)?;
            learner.partial_fit_in_time(&data, context)?;
            learner.model()
        })?;
        (model, Shape::of(&data), watch.stop())
    };
    model.preparation = start.preparation;
    specification.record(&mut model);
    Ok((model, shape, spent))
}
