//! The machines: what they learn from labelled rows and the models they return.

mod fit;
mod kernel_expression;
mod model;
mod parameters;

pub use fit::Machine;
pub use kernel_expression::{KernelDefaults, KernelExpression};
pub use model::{
    Calibration, ClassTable, DecisionFunction, MachineKind, Model, Part, Scheme, Training,
};
pub use parameters::{CalibrationMethod, ClassWeights, Gamma, Loss, Precision, SolverOptions};
