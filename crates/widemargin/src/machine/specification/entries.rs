//! The table of machines: what each takes and how it is made.

use super::parameter::Parameter;
use super::resolver::Resolver;
use super::{classic, kernel_machines, linear, online};
use crate::error::{Error, Result};
use crate::machine::{Classic, Machine, MachineKind};

/// One machine of the table.
pub struct Entry {
    /// One line that says what it is for.
    pub summary: &'static str,
    pub(super) groups: &'static [&'static [Parameter]],
    pub(super) grid: &'static [&'static str],
    pub(super) build: fn(&Resolver<'_>) -> Result<Box<dyn Machine>>,
}

impl Entry {
    /// Its parameters.
    pub fn parameters(&self) -> impl Iterator<Item = &'static Parameter> + use<> {
        self.groups.iter().copied().flatten()
    }
}

/// The entry of a machine, trained on all rows at once or online.
pub(super) fn entry(kind: MachineKind, is_online: bool) -> Result<&'static Entry> {
    if is_online {
        return match kind {
            MachineKind::CSvc => Ok(&online::LASVM),
            MachineKind::AllInOne(_) => Ok(&online::ONLINE),
            _ => Err(Error::parameter("online", "c-svc, ww, cs, llw, ...", kind)),
        };
    }
    Ok(match kind {
        MachineKind::CSvc => &kernel_machines::C_SVC,
        MachineKind::NuSvc => &kernel_machines::NU_SVC,
        MachineKind::EpsilonSvr => &kernel_machines::EPSILON_SVR,
        MachineKind::NuSvr => &kernel_machines::NU_SVR,
        MachineKind::OneClass => &kernel_machines::ONE_CLASS,
        MachineKind::Svdd => &kernel_machines::SVDD,
        MachineKind::AllInOne(_) => &kernel_machines::ALL_IN_ONE,
        MachineKind::LinearSvc => &linear::LINEAR_SVC,
        MachineKind::Logistic => &linear::LOGISTIC,
        MachineKind::LinearSvr => &linear::LINEAR_SVR,
        MachineKind::LinearOneClass => &linear::LINEAR_ONE_CLASS,
        MachineKind::Classic(Classic::Fisher) => &classic::FISHER,
        MachineKind::Classic(Classic::KernelFisher) => &classic::KERNEL_FISHER,
        MachineKind::Classic(Classic::Mixture) => &classic::MIXTURE,
        MachineKind::Classic(Classic::MixtureBayes) => &classic::MIXTURE_BAYES,
        MachineKind::Classic(Classic::Neighbours) => &classic::NEIGHBOURS,
        MachineKind::Classic(Classic::NeighboursRegression) => &classic::NEIGHBOURS_REGRESSION,
        MachineKind::Classic(Classic::Parzen) => &classic::PARZEN,
        MachineKind::Classic(Classic::ProbabilisticNetwork) => &classic::PROBABILISTIC_NETWORK,
        MachineKind::Classic(Classic::Density) => &classic::DENSITY,
        MachineKind::Classic(Classic::KMeans) => &classic::K_MEANS,
        MachineKind::Classic(Classic::Spectral) => &classic::SPECTRAL,
    })
}
