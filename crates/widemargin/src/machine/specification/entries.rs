//! The table of machines: what each takes and how it is made.

use super::parameter::Parameter;
use super::resolver::Resolver;
use super::{classic, kernel_machines, linear, online, sequences};
use crate::error::{Error, Result};
use crate::machine::{Machine, MachineKind};

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
    let tables = [kernel_machines::entry, linear::entry, classic::entry, sequences::entry];
    tables.iter().find_map(|table| table(kind)).ok_or_else(|| {
        Error::parameter("machine", "one with an entry in the table of machines", kind)
    })
}
