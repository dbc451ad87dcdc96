//! The plan of a training, which all participants receive before it starts.

use serde::{Deserialize, Serialize};

use crate::data::{Census, Dataset};
use crate::error::{Error, Result};
use crate::machine::{FitInput, Specification};
use crate::operation::distribute::coordinator::Schedule;
use crate::operation::distribute::problem::MachineProblem;
use crate::operation::distribute::sums::LinearTask;
use crate::operation::distribute::topology::Topology;
use crate::operation::distribute::{Distribution, check_sites, not_at_several_places, sends_sums};

/// The plan of a training, which all participants receive before it starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DistributedPlan {
    pub(super) specification: Specification,
    pub(super) census: Census,
    pub(super) distribution: Distribution,
    pub(super) sites: usize,
    pub(super) seed: u64,
}

impl DistributedPlan {
    /// A training of a machine on the rows that `census` counted at all sites.
    ///
    /// # Errors
    /// Machines other than C-SVC, ε-SVR, one-class and the linear ones with a smooth loss, a scaling that is
    /// to be learnt, bad links.
    pub fn new(
        specification: Specification,
        census: Census,
        distribution: Distribution,
        sites: usize,
        seed: u64,
    ) -> Result<Self> {
        if specification.scaling()?.is_some() {
            let expected = "none where rows are in different processes: scale the files before";
            return Err(Error::parameter("scale", expected, "a scaling"));
        }
        if let Some(rule) = specification.value("approximate") {
            return Err(Error::parameter("approximate", "none with rows at several sites", rule));
        }
        check_sites(sites)?;
        distribution.topology.links(sites, seed)?;
        let plan = Self { specification, census, distribution, sites, seed };
        if plan.is_linear() {
            plan.check_linear()?;
        } else {
            plan.problem(plan.census.no_rows()?)?;
        }
        Ok(plan)
    }

    /// Whether sites send sums to the coordinator, and not support vectors to each other.
    pub(super) fn is_linear(&self) -> bool {
        sends_sums(self.specification.kind())
    }

    fn check_linear(&self) -> Result<()> {
        let star = "full for a linear machine, whose sites send sums to the coordinator alone";
        if self.distribution.topology != Topology::Full {
            return Err(Error::parameter("topology", star, "another"));
        }
        if self.distribution.schedule != Schedule::Parallel {
            return Err(Error::parameter("schedule", "parallel for a linear machine", "another"));
        }
        self.linear().map(|_| ())
    }

    pub(super) fn linear(&self) -> Result<LinearTask> {
        LinearTask::new(&self.specification, &self.census)
    }

    /// The plan as bytes.
    ///
    /// # Errors
    /// [`Error::Message`] for numbers that cannot be written.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self)
            .map_err(|error| Error::message("a plan that can be written", error))
    }

    /// The plan that bytes are.
    ///
    /// # Errors
    /// [`Error::Message`] for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).map_err(|error| Error::message("a plan", error))
    }

    /// Number of sites.
    pub fn sites(&self) -> usize {
        self.sites
    }

    /// The counts of all sites.
    pub fn census(&self) -> &Census {
        &self.census
    }

    pub(super) fn problem(&self, data: Dataset) -> Result<MachineProblem> {
        let (stand_in, names) = (self.census.stand_in()?, self.census.class_names());
        let machine = self.specification.build_scaled(&stand_in, &names, self.seed)?;
        let input = FitInput::of_part(&data, &self.census);
        machine.local_duals(&input).unwrap_or_else(not_at_several_places).map(MachineProblem::new)
    }
}
