//! `widemargin-mpi`: trains machines with MPI, each process on its own rows.
//!
//! A process that dies ends the whole job: `mpirun` says which and how. With `--checkpoint` the next run
//! goes on from where that one was.

mod transport;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use mpi::Threading;
use mpi::traits::Communicator;
use widemargin::data::Dataset;
use widemargin::data::read::{ReadOptions, read};
use widemargin::machine::{MachineKind, Preparation, Specification};
use widemargin::operation::distribute::{
    Distributed, Distribution, Ending, Schedule, Topology, TrainingRequest, Transport, agree,
    train_processes,
};
use widemargin::{Context, Error, Result};

use crate::transport::MpiTransport;

/// Train support vector machines with MPI.
#[derive(Parser)]
#[command(name = "widemargin-mpi", version)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Train(TrainArguments),
}

/// Train a machine on rows that the processes of an MPI job read
#[derive(Args)]
#[command(after_help = "\
Examples:
  mpirun -n 4 widemargin-mpi train rows.csv --set c=10 -o model.wm   # every process its part
  mpirun -n 2 widemargin-mpi train north.csv south.csv -o all.wm     # every process its file
  mpirun -n 4 widemargin-mpi train rows.txt --machine logistic --checkpoint /scratch/run")]
struct TrainArguments {
    /// One data file that is divided among the processes, or one for each
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// c-svc, epsilon-svr, one-class, linear-svc, logistic or linear-svr
    #[arg(long, default_value = "c-svc")]
    machine: String,

    /// A parameter of the machine, such as c=10; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Who sends to whom: full, ring, tree, random:LINKS or links such as 0>1,1>2,2>0
    #[arg(long, default_value = "full")]
    topology: String,

    /// When sites solve: parallel, sequential or async
    #[arg(long, default_value = "parallel")]
    schedule: String,

    /// Threads of every process
    #[arg(long, default_value_t = 1)]
    threads: usize,

    /// Stop after so many seconds with the best model so far
    #[arg(long, value_name = "SECONDS")]
    max_time: Option<f64>,

    /// Seed of everything random
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Folder for checkpoints; a training that was broken off goes on from them
    #[arg(long, value_name = "FOLDER")]
    checkpoint: Option<PathBuf>,

    /// Where to write the model
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

fn main() -> ExitCode {
    let Command::Train(arguments) = CommandLine::parse().command;
    // The threads of a training call no MPI function.
    let Some((universe, _)) = mpi::initialize_with_threading(Threading::Funneled) else {
        eprintln!("error: MPI cannot be initialised; start with mpirun -n N widemargin-mpi …");
        return ExitCode::FAILURE;
    };
    let mut transport = MpiTransport::new(universe.world());
    let (rank, size) = (transport.rank(), transport.size());
    match train(&arguments, &mut transport) {
        Ok(text) => {
            transport.finish();
            if let Some(text) = text {
                println!("{text}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error in process {rank} of {size}: {error}");
            // The others would wait for this one.
            universe.world().abort(1)
        }
    }
}

fn specification(arguments: &TrainArguments) -> Result<Specification> {
    let kind: MachineKind = arguments.machine.parse()?;
    let mut specification = Specification::new(kind);
    for word in &arguments.set {
        let (name, value) =
            word.split_once('=').ok_or_else(|| Error::parameter("set", "NAME=VALUE", word))?;
        specification.parse(name.trim(), value.trim())?;
    }
    specification.check_kernel_parameters()?;
    Ok(specification)
}

/// Trains; what process 0 has to say.
fn train(arguments: &TrainArguments, transport: &mut MpiTransport) -> Result<Option<String>> {
    let mut context = Context::new().with_threads(arguments.threads)?.with_seed(arguments.seed);
    if let Some(seconds) = arguments.max_time {
        let limit = Duration::try_from_secs_f64(seconds)
            .map_err(|_| Error::parameter("max-time", "seconds above 0", seconds))?;
        context = context.with_time_limit(limit);
    }
    let (rank, size) = (transport.rank(), transport.size());
    let files = arguments.files.len();
    if files != 1 && files != size {
        let expected = format!("one data file, or one for each of {size} processes");
        return Err(Error::parameter("FILE", expected, files));
    }
    let request = match rank {
        0 => {
            let loaded = read(&arguments.files[0], &ReadOptions::new())?;
            Some(TrainingRequest {
                specification: specification(arguments)?,
                distribution: Distribution {
                    topology: arguments.topology.parse::<Topology>()?,
                    schedule: arguments.schedule.parse::<Schedule>()?,
                    ..Distribution::default()
                },
                seed: arguments.seed,
                preparation: Preparation::of_file(&loaded),
            })
        }
        _ => None,
    };
    let request = agree(transport, request, &context)?;
    let data = rows(arguments, &request.preparation, rank, size)?;
    let folder = arguments.checkpoint.as_deref();
    let result = train_processes(transport, &request, data, folder, &context)?;
    let Some(Distributed { mut model, report, .. }) = result else { return Ok(None) };
    model.preparation = request.preparation;
    model.save(&arguments.output)?;
    let verified = match report.ending {
        Ending::Verified => "verified".to_owned(),
        other => format!("not verified: {other:?}"),
    };
    let (rounds, traffic) = (report.rounds, report.traffic);
    let outcome = model.training.as_ref().map(|training| training.outcome);
    let objective = outcome.map_or(f64::NAN, |outcome| outcome.primal);
    Ok(Some(format!(
        "{size} processes, {rounds} rounds, {} vectors and {} bytes sent, objective {objective}, \
         {verified}; {}",
        traffic.vectors,
        traffic.bytes,
        arguments.output.display()
    )))
}

/// The rows of this process: its file, or every `size`th row of the only one.
fn rows(
    arguments: &TrainArguments,
    preparation: &Preparation,
    rank: usize,
    size: usize,
) -> Result<Dataset> {
    let options = preparation.read_options(ReadOptions::new());
    match arguments.files.as_slice() {
        [file] => {
            let all = read(file, &options)?.dataset;
            let own: Vec<usize> = (rank..all.rows()).step_by(size).collect();
            Ok(all.select_rows(&own))
        }
        files => Ok(read(&files[rank], &options)?.dataset),
    }
}
