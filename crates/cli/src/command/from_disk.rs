//! Training on files larger than memory.

use std::path::PathBuf;

use widemargin::machine::{MachineKind, Model, Specification};
use widemargin::operation::out_of_core::{OutOfCore, OutOfCoreMachine, train as train_out_of_core};

use super::train::{Arguments, Shape};
use crate::failure::{CommandResult, Failure};
use crate::model_file;
use crate::session::Session;
use crate::usage::{Stopwatch, UsedTime};

/// Converts the data to chunks on disk, once, and trains from them.
pub(super) fn train(
    arguments: &Arguments,
    specification: &Specification,
    memory: usize,
    session: &Session<'_>,
) -> CommandResult<(Model, Shape, UsedTime)> {
    let given = [
        (specification.scaling()?.is_some(), "--scale"),
        (arguments.sample_weights.is_some(), "--sample-weights"),
        (arguments.machine.choice.probability.is_some(), "--probability"),
    ];
    if let Some((_, option)) = given.iter().find(|(is_given, _)| *is_given) {
        return Err(Failure::usage(format!("{option} needs the rows in memory, not --memory")));
    }
    let machine = match specification.kind() {
        MachineKind::LinearSvc | MachineKind::Logistic => {
            OutOfCoreMachine::Classifier(specification.linear_svc()?)
        }
        MachineKind::LinearSvr => OutOfCoreMachine::Regressor(specification.linear_svr()?),
        other => {
            return Err(Failure::usage(format!(
                "--memory is for linear-svc and linear-svr, not for {other}: add --linear"
            )));
        }
    };
    let folder = match &arguments.machine.choice.work {
        Some(folder) => folder.clone(),
        None => default_folder(arguments)?,
    };
    let job = OutOfCore {
        inputs: vec![arguments.data.clone()],
        folder,
        memory,
        read: arguments.input.options(),
    };
    let watch = Stopwatch::start();
    let mut model =
        session.run("training", |context| train_out_of_core(&machine, &job, context))?;
    specification.record(&mut model);
    let rows = model.training.as_ref().map_or(0, |training| training.rows);
    let shape = Shape { rows, columns: model.features(), is_sparse: true, report: None };
    Ok((model, shape, watch.stop()))
}

fn default_folder(arguments: &Arguments) -> CommandResult<PathBuf> {
    let name = model_file::target(None, &arguments.data)?;
    Ok(name.with_extension("chunks"))
}
