//! LIBLINEAR's numbers for what it solves and how.

use widemargin::data::ClassOrder;
use widemargin::machine::{
    Bias, ClassWeights, LinearLoss, LinearMulticlass, LinearOneClass, LinearOptions, LinearSolver,
    LinearSvc, LinearSvr, Machine, MachineKind, Penalty,
};

use crate::failure::{CommandResult, Failure};

/// One of LIBLINEAR's solvers (`-s`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Solver(u32);

/// What a machine is built from.
pub(super) struct Settings {
    pub(super) cost: f64,
    pub(super) tube: f64,
    pub(super) nu: f64,
    pub(super) bias: Bias,
    pub(super) options: LinearOptions,
    pub(super) class_weights: ClassWeights,
}

impl Solver {
    /// The solver of that number.
    pub(super) fn numbered(number: u32) -> CommandResult<Self> {
        match number {
            0..=7 | 11..=13 | 21 => Ok(Self(number)),
            _ => Err(Failure::Message("unknown solver type".into())),
        }
    }

    /// Its name in LIBLINEAR's model files.
    pub(super) fn name(self) -> &'static str {
        match self.0 {
            0 => "L2R_LR",
            1 => "L2R_L2LOSS_SVC_DUAL",
            2 => "L2R_L2LOSS_SVC",
            3 => "L2R_L1LOSS_SVC_DUAL",
            4 => "MCSVM_CS",
            5 => "L1R_L2LOSS_SVC",
            6 => "L1R_LR",
            7 => "L2R_LR_DUAL",
            11 => "L2R_L2LOSS_SVR",
            12 => "L2R_L2LOSS_SVR_DUAL",
            13 => "L2R_L1LOSS_SVR_DUAL",
            _ => "ONECLASS_SVM",
        }
    }

    pub(super) fn kind(self) -> MachineKind {
        match self.0 {
            0 | 6 | 7 => MachineKind::Logistic,
            11..=13 => MachineKind::LinearSvr,
            21 => MachineKind::LinearOneClass,
            _ => MachineKind::LinearSvc,
        }
    }

    /// Whether a bias can be free of charge (`-R`).
    pub(super) fn may_free_bias(self) -> bool {
        matches!(self.0, 0 | 2 | 5 | 6 | 11)
    }

    /// Whether `-C` can search its parameters.
    pub(super) fn has_search(self) -> bool {
        matches!(self.0, 0 | 2 | 11)
    }

    /// The algorithm of the number; where it is the dual one and no tolerance is given, that would
    /// have to mean the same, whichever is quickest on the data.
    fn algorithm(self, settings: &Settings) -> LinearSolver {
        match (self.0, settings.options.tol) {
            (0 | 2 | 11, _) => LinearSolver::Newton,
            (5 | 6, _) | (_, None) => LinearSolver::Auto,
            _ => LinearSolver::Dual,
        }
    }

    pub(super) fn classifier(self, settings: &Settings) -> LinearSvc {
        LinearSvc {
            c: settings.cost,
            loss: match self.0 {
                3 => LinearLoss::Hinge,
                0 | 6 | 7 => LinearLoss::Logistic,
                _ => LinearLoss::SquaredHinge,
            },
            penalty: if matches!(self.0, 5 | 6) { Penalty::L1 } else { Penalty::L2 },
            multiclass: match self.0 {
                4 => LinearMulticlass::CrammerSinger,
                _ => LinearMulticlass::OneVsRest,
            },
            bias: settings.bias,
            solver: self.algorithm(settings),
            class_weights: settings.class_weights.clone(),
            class_order: ClassOrder::FirstSeen,
            options: settings.options,
        }
    }

    pub(super) fn regressor(self, settings: &Settings) -> LinearSvr {
        LinearSvr {
            c: settings.cost,
            epsilon: settings.tube,
            squared: self.0 != 13,
            bias: settings.bias,
            solver: self.algorithm(settings),
            options: settings.options,
        }
    }

    /// The machine that solves the same problem.
    pub(super) fn machine(self, settings: &Settings) -> Box<dyn Machine> {
        match self.kind() {
            MachineKind::LinearSvr => Box::new(self.regressor(settings)),
            MachineKind::LinearOneClass => {
                Box::new(LinearOneClass { nu: settings.nu, options: settings.options })
            }
            _ => Box::new(self.classifier(settings)),
        }
    }
}
