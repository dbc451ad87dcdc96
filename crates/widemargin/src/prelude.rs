//! The names that most programs use: `use widemargin::prelude::*;`.

pub use crate::context::{CancelToken, Context};
pub use crate::data::read::{ReadOptions, read_dataset};
pub use crate::data::{Dataset, Dense, Label, Labels, Matrix};
pub use crate::error::Error;
pub use crate::kernel::Kernel;
pub use crate::machine::{
    LinearSvc, LinearSvr, Machine, Model, NuSvc, NuSvr, OneClass, Scaled, ScalingRule,
    Specification, Svc, Svr,
};
pub use crate::outcome::Status;
