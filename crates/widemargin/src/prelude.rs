//! The names that most programs use, those of all fields of its machines among them: `use widemargin::prelude::*;`.

pub use crate::context::{CancelToken, Context, Event, Observer};
pub use crate::data::read::{ReadOptions, read_dataset};
pub use crate::data::{Csr, Dataset, Dense, Label, Labels, Matrix};
pub use crate::error::Error;
pub use crate::kernel::Kernel;
pub use crate::machine::{
    AllInOne, Bias, ClassWeights, LinearLoss, LinearMulticlass, LinearOptions, LinearSolver,
    LinearSvc, LinearSvr, Loss, Machine, Model, MulticlassSvc, NuSvc, NuSvr, OneClass, Penalty,
    Precision, Predictor, Scaled, ScalingRule, Scheme, SolverOptions, Specification, Svc, Svr,
};
pub use crate::outcome::{Outcome, Status};
