//! Groups of options that several commands share.

mod chain;
mod distribution;
mod input;
mod machine;
mod parameter_options;
mod resources;
mod scale;
pub(crate) mod value;

pub(crate) use chain::ChainArguments;
pub(crate) use distribution::{DistributionArguments, MethodName};
pub(crate) use input::{FormatName, InputArguments, first_index};
pub(crate) use machine::check_equals;
pub(crate) use machine::{
    MachineArguments, View, linear_kind, machine_list, row_machine, view, with_views,
};
pub(crate) use parameter_options::parameter_help;
pub(crate) use resources::ResourceArguments;
pub(crate) use scale::{Scaling, scaling};
