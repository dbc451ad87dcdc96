//! LIBLINEAR's numbers for what it solves and how.

use widemargin::machine::{MachineKind, Specification};

use crate::failure::{CommandResult, Failure};

/// One of LIBLINEAR's solvers (`-s`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Solver(u32);

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

    /// Whether a bias can be left unpenalised (`-R`).
    pub(super) fn may_free_bias(self) -> bool {
        matches!(self.0, 0 | 2 | 5 | 6 | 11)
    }

    /// Whether `-C` can search its parameters.
    pub(super) fn has_search(self) -> bool {
        matches!(self.0, 0 | 2 | 11)
    }

    /// The machine that solves the same problem; where the algorithm is the dual one and no tolerance
    /// is given, that would have to mean the same, whichever is quickest on the data.
    pub(super) fn specification(self, tolerance: Option<f64>) -> widemargin::Result<Specification> {
        let algorithm = match (self.0, tolerance) {
            (0 | 2 | 11, _) => "newton",
            (4..=6, _) | (_, None) => "auto",
            _ => "dual",
        };
        let mut specification = Specification::new(self.kind());
        match tolerance {
            Some(tolerance) => specification.set("tol", tolerance)?,
            None => specification.set("tol", "auto")?,
        }
        if self.0 != 21 {
            specification.set("solver", algorithm)?;
        }
        match self.0 {
            3 => specification.set("loss", "hinge")?,
            4 => specification.set("multiclass", "crammer-singer")?,
            5 | 6 => specification.set("penalty", "l1")?,
            11 | 12 => specification.set("loss", "squared-hinge")?,
            _ => {}
        }
        if self.kind().is_classifier() {
            specification.set("class-order", "first-seen")?;
        }
        Ok(specification)
    }
}
