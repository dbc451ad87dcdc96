//! Threads, memory, time and randomness of a command.

use std::time::Duration;

use clap::Args;
use widemargin::Context;
use widemargin::InstructionSet;

use super::value::{value, whole};
use crate::failure::CommandResult;
use crate::interrupt::Interrupt;
use crate::session::Session;

/// How much of the machine a command may use.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Resources")]
pub(crate) struct ResourceArguments {
    /// Worker threads; 0 means one per processor
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u16).range(0..=1024))]
    pub(crate) threads: u16,

    /// Memory for cached kernel rows, in megabytes
    #[arg(long, value_name = "MB", default_value_t = 1024, value_parser = whole::<usize>)]
    pub(crate) cache_mb: usize,

    /// Stop after this many seconds and keep the best model so far
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) max_time: Option<Duration>,

    /// Seed of everything random (folds, output codes)
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<u64>)]
    pub(crate) seed: u64,

    /// Force a SIMD path: portable, sse2, avx2 or avx512 (default: the best of this processor)
    #[arg(long, value_name = "SET", value_parser = value::<InstructionSet>)]
    pub(crate) instruction_set: Option<InstructionSet>,

    /// Print no progress and no summary, only warnings and errors
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Print the stages of the computation and the steps of the solver to standard error
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|limit| !limit.is_zero())
        .ok_or_else(|| "expected a number of seconds above 0".to_owned())
}

impl ResourceArguments {
    /// Starts the threads.
    pub(crate) fn session<'a>(&'a self, interrupt: &'a Interrupt) -> CommandResult<Session<'a>> {
        let mut context = Context::new()
            .with_threads(self.threads.into())?
            .with_cache_bytes(self.cache_mb.saturating_mul(1 << 20))
            .with_seed(self.seed)
            .with_cancel_token(interrupt.token());
        if let Some(set) = self.instruction_set {
            context = context.with_instruction_set(set)?;
        }
        if let Some(limit) = self.max_time {
            context = context.with_time_limit(limit);
        }
        Ok(Session { context, interrupt, quiet: self.quiet, verbose: self.verbose })
    }
}
