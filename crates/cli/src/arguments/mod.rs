//! Groups of options that several commands share.

mod distribution;
mod input;
mod machine;
mod parameter_options;
mod resources;
mod scale;
mod sequence_machine;
pub(crate) mod value;
mod view;

pub(crate) use distribution::{DistributionArguments, MethodName};
pub(crate) use input::{FormatName, InputArguments, first_index};
pub(crate) use machine::{MachineArguments, check_equals, linear_kind, machine_list, row_machine};
pub(crate) use parameter_options::parameter_help;
pub(crate) use resources::ResourceArguments;
pub(crate) use scale::{Scaling, scaling};
pub(crate) use sequence_machine::SequenceMachineArguments;
pub(crate) use view::{View, ViewFiles, view, view_files, with_files, with_views};
