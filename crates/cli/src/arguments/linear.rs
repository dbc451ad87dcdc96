//! Options of linear machines.

use std::path::PathBuf;

use clap::Args;
use widemargin::data::ClassOrder;
use widemargin::kernel::MapRule;
use widemargin::machine::{
    Approximated, Bias, LinearLoss, LinearMulticlass, LinearOneClass, LinearOptions, LinearSolver,
    LinearSvc, LinearSvr, Machine, MachineKind, Penalty,
};
use widemargin::operation::out_of_core::OutOfCoreMachine;

use super::machine::{LossName, MachineArguments, Multiclass};
use super::value::value;
use crate::failure::{CommandResult, Failure};

/// What only linear machines are asked.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Linear machines")]
pub(crate) struct LinearArguments {
    /// Learn weights of the features instead of a kernel expansion, for wide and sparse data
    #[arg(long, conflicts_with_all = ["online", "kernel"])]
    pub(crate) linear: bool,

    /// What weights cost: l2, or l1, which makes most of them 0
    #[arg(long, value_name = "NAME", value_parser = value::<Penalty>)]
    penalty: Option<Penalty>,

    /// auto, dual (coordinate descent), buckets (the same on two threads) or newton; the
    /// optimum is the same
    #[arg(long, value_name = "NAME", value_parser = value::<LinearSolver>)]
    solver: Option<LinearSolver>,

    /// The constant of linear functions: none, free of charge, or the value of an appended feature
    /// as LIBLINEAR's -B [default: 1]
    #[arg(long, value_name = "none|free|NUM", value_parser = value::<Bias>)]
    intercept: Option<Bias>,

    /// Learn on features that approximate a Gaussian kernel of --gamma: rff:2000 (random Fourier
    /// features) or nystroem:1000 (that many rows of the data)
    #[arg(long, value_name = "RULE", value_parser = value::<MapRule>, conflicts_with = "memory")]
    pub(crate) approximate: Option<MapRule>,

    /// Train from disk with rows in at most this much memory, such as 1GB or 500MB; DATA may then be
    /// a folder of files
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) memory: Option<usize>,

    /// Folder for the rows on disk and for going on after an interruption [default: the name of the
    /// data with .chunks, here]
    #[arg(long, value_name = "FOLDER", requires = "memory")]
    pub(crate) work: Option<PathBuf>,
}

/// Reads a number of bytes with a unit.
pub(super) fn bytes(text: &str) -> Result<usize, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: usize = match text[number.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        _ => return Err("expected a size such as 500MB or 1GB".to_owned()),
    };
    let value: f64 =
        number.parse().map_err(|_| "expected a size such as 500MB or 1GB".to_owned())?;
    if value.is_finite() && value > 0.0 {
        Ok((value * factor as f64) as usize)
    } else {
        Err("expected a size above 0".to_owned())
    }
}

impl LinearArguments {
    /// The kind of machine that `--linear` makes of another.
    pub(crate) fn kind(&self, machine: MachineKind, loss: Option<LossName>) -> MachineKind {
        let logistic = matches!(loss, Some(LossName::Logistic));
        match machine {
            MachineKind::LinearSvc if logistic => MachineKind::Logistic,
            MachineKind::CSvc if self.linear && logistic => MachineKind::Logistic,
            MachineKind::CSvc if self.linear => MachineKind::LinearSvc,
            MachineKind::EpsilonSvr if self.linear => MachineKind::LinearSvr,
            MachineKind::OneClass if self.linear => MachineKind::LinearOneClass,
            other => other,
        }
    }

    /// Refuses options that a machine with a kernel does not have.
    pub(super) fn refuse_without(&self, kind: MachineKind) -> CommandResult<()> {
        if self.linear {
            return Err(Failure::usage(format!(
                "--linear goes with c-svc, epsilon-svr and one-class, not with {kind}"
            )));
        }
        let own = self.penalty.is_some() || self.solver.is_some() || self.intercept.is_some();
        if own || self.approximate.is_some() {
            return Err(Failure::usage(
                "--penalty, --solver, --intercept and --approximate are for linear machines: add --linear",
            ));
        }
        Ok(())
    }

    /// The linear machine of the arguments.
    pub(super) fn build(
        &self,
        kind: MachineKind,
        all: &MachineArguments,
    ) -> CommandResult<Box<dyn Machine>> {
        let machine: Box<dyn Machine> = match kind {
            MachineKind::LinearSvr => Box::new(self.regressor(all)?),
            MachineKind::LinearOneClass => {
                Box::new(LinearOneClass { nu: all.nu, options: options(all) })
            }
            _ => Box::new(self.classifier(kind, all)?),
        };
        Ok(match self.approximate {
            Some(rule) => Box::new(Approximated { rule, gamma: all.gamma, machine }),
            None => machine,
        })
    }

    /// The machine to train from disk.
    pub(crate) fn out_of_core(&self, all: &MachineArguments) -> CommandResult<OutOfCoreMachine> {
        let kind = all.kind();
        match kind {
            MachineKind::LinearSvc | MachineKind::Logistic => {
                Ok(OutOfCoreMachine::Classifier(self.classifier(kind, all)?))
            }
            MachineKind::LinearSvr => Ok(OutOfCoreMachine::Regressor(self.regressor(all)?)),
            other => Err(Failure::usage(format!(
                "--memory is for linear-svc and linear-svr, not for {other}: add --linear"
            ))),
        }
    }

    fn regressor(&self, all: &MachineArguments) -> CommandResult<LinearSvr> {
        let squared = match all.loss {
            None | Some(LossName::Hinge) => false,
            Some(LossName::SquaredHinge) => true,
            Some(LossName::Logistic) => {
                return Err(Failure::usage("--loss logistic is for classes"));
            }
        };
        let (bias, solver) = (self.intercept.unwrap_or_default(), self.solver.unwrap_or_default());
        let (c, epsilon) = (all.c, all.epsilon);
        Ok(LinearSvr { c, epsilon, squared, bias, solver, options: options(all) })
    }

    fn classifier(&self, kind: MachineKind, all: &MachineArguments) -> CommandResult<LinearSvc> {
        Ok(LinearSvc {
            c: all.c,
            loss: match (kind, all.loss) {
                (MachineKind::Logistic, _) => LinearLoss::Logistic,
                (_, Some(LossName::Hinge)) => LinearLoss::Hinge,
                _ => LinearLoss::SquaredHinge,
            },
            penalty: self.penalty.unwrap_or_default(),
            multiclass: multiclass(all.multiclass)?,
            bias: self.intercept.unwrap_or_default(),
            solver: self.solver.unwrap_or_default(),
            class_weights: all.class_weight.clone().unwrap_or_default(),
            class_order: ClassOrder::Sorted,
            options: options(all),
        })
    }
}

fn options(all: &MachineArguments) -> LinearOptions {
    LinearOptions {
        tol: Some(all.tol()),
        precision: all.precision(),
        shrinking: !all.no_shrinking,
        max_iterations: all.max_iter,
    }
}

fn multiclass(name: Option<Multiclass>) -> CommandResult<LinearMulticlass> {
    match name {
        None | Some(Multiclass::Ovr) => Ok(LinearMulticlass::OneVsRest),
        Some(Multiclass::CrammerSinger) => Ok(LinearMulticlass::CrammerSinger),
        Some(_) => Err(Failure::usage("linear machines have --multiclass ovr and crammer-singer")),
    }
}
