//! Training on files larger than memory.

use std::path::PathBuf;

use widemargin::machine::Model;
use widemargin::operation::out_of_core::{OutOfCore, train as train_out_of_core};

use super::train::{Arguments, Shape};
use crate::failure::{CommandResult, Failure};
use crate::model_file;
use crate::session::Session;
use crate::usage::{Spent, Stopwatch};

/// Converts the data to chunks on disk, once, and trains from them.
pub(super) fn train(
    arguments: &Arguments,
    memory: usize,
    session: &Session<'_>,
) -> CommandResult<(Model, Shape, Spent)> {
    let told = [
        (arguments.scale.scale.0.is_some(), "--scale"),
        (arguments.sample_weights.is_some(), "--sample-weights"),
        (arguments.machine.probability.is_some(), "--probability"),
    ];
    if let Some((_, option)) = told.iter().find(|(given, _)| *given) {
        return Err(Failure::usage(format!("{option} needs the rows in memory, not --memory")));
    }
    let linear = &arguments.machine.linear;
    let machine = linear.out_of_core(&arguments.machine)?;
    let folder = match &linear.work {
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
    let model = session.run("training", |context| train_out_of_core(&machine, &job, context))?;
    let rows = model.training.as_ref().map_or(0, |training| training.rows);
    let shape = Shape { rows, columns: model.features(), is_sparse: true };
    Ok((model, shape, watch.stop()))
}

fn default_folder(arguments: &Arguments) -> CommandResult<PathBuf> {
    let name = model_file::target(None, &arguments.data)?;
    Ok(name.with_extension("chunks"))
}
