//! Training with rows at several sites, or on random working sets.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use widemargin::operation::distribute::{Schedule, Topology};

use super::value::{value, whole};

/// How rows at several sites become one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MethodName {
    /// Sites exchange support vectors
    Exchange,
    /// Random working sets, violators drawn more often
    Prsvm,
}

/// What the user says about sites.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Several sites")]
pub(crate) struct DistributionArguments {
    /// Sites that DATA is divided among, or one for each of several data files; c-svc, epsilon-svr,
    /// one-class and linear machines with a smooth loss. With --site-method prsvm working sets of a round [default there: 1]
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    pub(crate) sites: Option<usize>,

    /// Who sends to whom: full, ring, tree, random:LINKS or links such as 0>1,1>2,2>0
    #[arg(long, value_name = "GRAPH", default_value = "full", requires = "sites",
          value_parser = value::<Topology>)]
    pub(crate) topology: Topology,

    /// When sites solve: parallel, sequential or async
    #[arg(long, value_name = "WHEN", default_value = "parallel", requires = "sites",
          value_parser = value::<Schedule>)]
    pub(crate) schedule: Schedule,

    /// Lead a training of which DATA is the first site: wait here for the others ('widemargin site')
    #[arg(long, value_name = "HOST:PORT", requires = "sites")]
    pub(crate) listen: Option<String>,

    /// With --listen: folder to keep a checkpoint in; a training that was broken off goes on from it
    #[arg(long, value_name = "FOLDER", requires = "listen")]
    pub(crate) checkpoint: Option<PathBuf>,

    /// Folder for pictures: objective, rows, vectors sent and work of every site, round by round
    #[arg(long, value_name = "FOLDER")]
    pub(crate) site_pictures: Option<PathBuf>,

    /// How the optimum is found
    #[arg(
        id = "site_method",
        long = "site-method",
        alias = "method",
        value_enum,
        default_value = "exchange"
    )]
    pub(crate) method: MethodName,

    /// Rows of a random working set; more if the training stalls [default: from the features]
    #[arg(long, value_name = "ROWS", value_parser = whole::<usize>)]
    pub(crate) working_set: Option<usize>,
}

impl DistributionArguments {
    /// Whether rows are not simply trained on at one place.
    pub(crate) fn is_given(&self) -> bool {
        self.sites.is_some() || self.method == MethodName::Prsvm
    }
}
