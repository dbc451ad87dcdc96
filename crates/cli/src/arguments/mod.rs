//! Groups of options that several commands share.

mod classic;
mod input;
mod linear;
mod machine;
mod resources;
mod scale;
pub(crate) mod value;

pub(crate) use classic::ClassicArguments;
pub(crate) use input::{FormatName, InputArguments, first_index};
pub(crate) use machine::MachineArguments;
pub(crate) use resources::ResourceArguments;
pub(crate) use scale::{ScaleArguments, Scaling, scaling};
