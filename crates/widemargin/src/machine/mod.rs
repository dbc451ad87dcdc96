//! The machines: what they learn from labelled rows and the models they return.

mod model;
mod parameters;

pub use model::{
    Calibration, ClassTable, DecisionFunction, MachineKind, Model, Part, Scheme, Training,
};
pub use parameters::{ClassWeights, Gamma, Loss, Precision, SolverOptions};
