//! Parameters of linear machines.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::machine::names::names;
use crate::machine::parameters::Precision;
use crate::solver::linear::DEFAULT_GAP;

/// What a row on the wrong side of its margin costs; m = y(⟨w, x⟩ + b).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinearLoss {
    /// max(0, 1 − m)
    Hinge,
    /// max(0, 1 − m)²
    #[default]
    SquaredHinge,
    /// log(1 + exp(−m)): logistic regression
    Logistic,
}

names!(LinearLoss, "loss", Hinge: "hinge", SquaredHinge: "squared-hinge", Logistic: "logistic");

/// What weights cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Penalty {
    /// ½‖w‖²
    #[default]
    L2,
    /// ‖w‖₁, which makes most weights 0
    L1,
}

names!(Penalty, "penalty", L2: "l2", L1: "l1");

/// How more than two classes are learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinearMulticlass {
    /// A function per class, learned against all other rows.
    #[default]
    OneVsRest,
    /// One problem for all classes (Crammer and Singer, 2001); loss and penalty are its own.
    CrammerSinger,
}

names!(LinearMulticlass, "multiclass", OneVsRest: "ovr", CrammerSinger: "crammer-singer");

/// Which algorithm is used; all lead to the same optimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinearSolver {
    /// Chosen by loss, penalty and shape of the data, never by the number of threads.
    #[default]
    Auto,
    /// Dual coordinate descent, one row after another.
    Dual,
    /// Block-partitioned dual coordinate descent, a thread for every block of rows.
    Blocks,
    /// Newton's method, for smooth losses.
    Newton,
}

names!(LinearSolver, "solver", Auto: "auto", Dual: "dual", Blocks: "blocks" | "buckets",
       Newton: "newton");

/// The constant b of ⟨w, x⟩ + b.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bias {
    /// b = 0
    None,
    /// LIBLINEAR's `-B`: a feature that has this value in every row, its weight penalised as the others.
    Appended(f64),
    /// Without a penalty.
    Free,
}

impl Default for Bias {
    fn default() -> Self {
        Self::Appended(1.0)
    }
}

impl Bias {
    /// The value of the appended feature, if there is one.
    pub(super) fn feature(self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Appended(value) => Some(value),
            Self::Free => Some(1.0),
        }
    }

    pub(super) fn validate(self) -> Result<()> {
        match self {
            Self::Appended(value) => Error::check_positive("bias", value),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Bias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Appended(value) => write!(f, "{value}"),
            Self::Free => f.write_str("free"),
        }
    }
}

impl FromStr for Bias {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "none" => Ok(Self::None),
            "free" => Ok(Self::Free),
            _ => match text.parse() {
                Ok(value) => {
                    let bias = Self::Appended(value);
                    bias.validate().map(|()| bias)
                }
                Err(_) => Err(Error::parameter("bias", "none, free or a number above 0", text)),
            },
        }
    }
}

/// Options of the solver of a linear machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearOptions {
    /// Where to stop, by LIBLINEAR's rule for the algorithm (its `-e`); `None` is LIBLINEAR's default
    /// for it.
    pub tol: Option<f64>,
    /// The largest duality gap, relative to the objective, of a solution (ℓ1: of what is predicted to be
    /// left to gain); held beside `tol`.
    pub gap: f64,
    /// Number format that sparse values are read in; sums and weights are always double.
    pub precision: Precision,
    /// Whether variables that stay at their bound become inactive.
    pub shrinking: bool,
    /// Limit on passes over the rows (Newton: steps).
    pub max_iterations: Option<u64>,
}

impl Default for LinearOptions {
    fn default() -> Self {
        let (tol, gap, max_iterations) = (None, DEFAULT_GAP, None);
        Self { tol, gap, precision: Precision::F32, shrinking: true, max_iterations }
    }
}

impl LinearOptions {
    pub(super) fn validate(&self) -> Result<()> {
        if self.gap.is_nan() || self.gap <= 0.0 {
            return Err(Error::parameter("gap", "a number above 0", self.gap));
        }
        self.tol.map_or(Ok(()), |tol| Error::check_positive("tol", tol))
    }
}
