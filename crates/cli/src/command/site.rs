//! `site`: takes part with the rows of a file in a training that another process leads.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use widemargin::data::read::read;
use widemargin::operation::distribute::{TcpMember, Transport, agree, train_processes};

use crate::arguments::{InputArguments, ResourceArguments};
use crate::failure::{CommandResult, Outcome};
use crate::interrupt::Interrupt;
use crate::table::count;
use crate::terminal;

/// Time in which the process that leads has to be there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// Take part with the rows of a file in a training that 'train --listen' leads
#[derive(Args, Debug)]
#[command(after_help = "\
Example, in three terminals:
  widemargin train north.csv --sites 3 --listen 127.0.0.1:7000 -o all.wm
  widemargin site south.csv --connect 127.0.0.1:7000
  widemargin site west.csv --connect 127.0.0.1:7000

Support vectors leave the site; of linear machines only sums do. There is no encryption.")]
pub(crate) struct Arguments {
    /// Data file of this site, of the same columns as those of the others
    data: PathBuf,

    /// Where the process that leads listens
    #[arg(long, value_name = "HOST:PORT")]
    connect: String,

    /// Folder to keep a checkpoint in; a training that was broken off goes on from it
    #[arg(long, value_name = "FOLDER")]
    checkpoint: Option<PathBuf>,

    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    resources: ResourceArguments,
}

/// Connects, reads, takes part and reports.
pub(crate) fn run(arguments: &Arguments, interrupt: &Interrupt) -> CommandResult {
    let session = arguments.resources.session(interrupt)?;
    let (mut transport, request) = session.run("connecting", |context| {
        let mut transport =
            TcpMember::connect(arguments.connect.as_str(), CONNECT_TIMEOUT, context)?;
        let request = agree(&mut transport, None, context)?;
        Ok((transport, request))
    })?;
    let data = session.read("reading", || {
        let options = request.preparation.read_options(arguments.input.options());
        Ok(read(&arguments.data, &options)?.dataset)
    })?;
    let rows = data.rows();
    session.run("training", |context| {
        let folder = arguments.checkpoint.as_deref();
        train_processes(&mut transport, &request, data, folder, context)
    })?;
    if !arguments.resources.quiet {
        let (rank, size) = (transport.rank() + 1, transport.size());
        let rows = count(rows as u64);
        terminal::print(&format!("site {rank} of {size}: {rows} rows took part\n"))?;
    }
    Ok(Outcome::Done)
}
