//! Which machine is trained, with which kernel and parameters.

use clap::{Args, ValueEnum};
use widemargin::data::{ClassOrder, Dataset, Label, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{
    AllInOne, CalibrationMethod, ClassWeights, Epochs, Gamma, KernelDefaults, KernelExpression,
    Lasvm, Loss, Machine, MachineKind, MulticlassSvc, NuSvc, NuSvr, OneClass, OnlineSvc, Precision,
    Scaled, Scheme, SolverOptions, Svc, Svdd, Svr, WorkingSetStrategy, error_correcting_code,
};
use widemargin::operation::tune::Value;

use super::linear::LinearArguments;
use super::value::{number, value, whole};
use super::{ClassicArguments, Scaling};
use crate::failure::{CommandResult, Failure};

/// Below this tolerance single precision no longer carries enough digits.
const SMALLEST_SINGLE_TOLERANCE: f64 = 1e-5;

/// How margin errors are charged.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LossName {
    /// C times the error
    Hinge,
    /// C times the squared error
    SquaredHinge,
    /// C times log(1 + exp(-margin)), for linear machines
    Logistic,
}

/// How several classes are reduced to pairs of sets.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Multiclass {
    /// One function per pair of classes; most votes win
    Ovo,
    /// One function per class against all others
    Ovr,
    /// The pairs of ovo, asked along a decision graph
    Dag,
    /// Error-correcting output codes
    Ecoc,
    /// All classes in one problem, for linear machines
    CrammerSinger,
}

/// How probabilities are learnt.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ProbabilityName {
    /// Platt's sigmoid, as LIBSVM's -b 1
    Sigmoid,
    /// A non-decreasing step function
    Isotonic,
}

impl From<ProbabilityName> for CalibrationMethod {
    fn from(name: ProbabilityName) -> Self {
        match name {
            ProbabilityName::Sigmoid => Self::Sigmoid,
            ProbabilityName::Isotonic => Self::Isotonic,
        }
    }
}

/// The machine to train.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Machine")]
pub(crate) struct MachineArguments {
    /// c-svc, nu-svc (classes); ww, cs, llw, adm (or dgi), atm, ats, mmr, ova, reinforced (all
    /// classes in one problem); epsilon-svr, nu-svr (numbers); one-class or svdd (novelty);
    /// linear-svc, logistic, linear-svr, linear-one-class (weights instead of a kernel); and the
    /// classical fisher, kernel-fisher, gmm-bayes, knn, parzen, pnn (classes), knn-regressor
    /// (numbers), gmm, kmeans, spectral (clusters), density
    #[arg(long, short = 's', value_name = "KIND", default_value = "c-svc",
          value_parser = value::<MachineKind>)]
    pub(crate) machine: MachineKind,

    /// Penalty C of an error, for all but nu-svc, one-class and svdd
    #[arg(long, short, value_name = "NUM", default_value_t = 1.0, allow_negative_numbers = true, value_parser = number)]
    pub(crate) c: f64,

    /// Bound on the share of errors, for nu-svc, nu-svr, one-class and svdd; in (0, 1]
    #[arg(long, value_name = "NUM", default_value_t = 0.5, allow_negative_numbers = true, value_parser = number)]
    pub(crate) nu: f64,

    /// Half the width of the tube in which epsilon-svr forgives errors
    #[arg(long, value_name = "NUM", default_value_t = 0.1, allow_negative_numbers = true, value_parser = number)]
    pub(crate) epsilon: f64,

    /// How margin errors are charged [default: hinge; linear classifiers: squared-hinge]
    #[arg(long, value_enum)]
    pub(crate) loss: Option<LossName>,

    /// How more than two classes are reduced to pairs of sets [default: ovo; linear machines: ovr]
    #[arg(long, value_enum)]
    pub(crate) multiclass: Option<Multiclass>,

    /// Give the scores of ww, cs, llw, ... an offset per class
    #[arg(long, conflicts_with = "online")]
    pub(crate) bias: bool,

    /// Learn from one row after another and keep only support vectors: ww, cs, llw, ..., and c-svc
    /// with two classes (LASVM)
    #[arg(long)]
    pub(crate) online: bool,

    /// Passes over the rows with --online; inf: until the optimum of the batch machine
    #[arg(long, value_name = "NUM|inf", default_value = "1", requires = "online",
          value_parser = value::<Epochs>)]
    pub(crate) epochs: Epochs,

    /// How --online chooses variables: blocks, all, random-all, random-pattern, whole-pattern or
    /// larank (cs)
    #[arg(long, value_name = "NAME", default_value = "blocks", requires = "online",
          value_parser = value::<WorkingSetStrategy>)]
    pub(crate) strategy: WorkingSetStrategy,

    /// Most support vectors that --online keeps
    #[arg(long, value_name = "NUM", requires = "online", value_parser = whole::<usize>)]
    pub(crate) budget: Option<usize>,

    /// Factors on C: 'balanced', or LABEL=FACTOR,LABEL=FACTOR (others have 1)
    #[arg(long, value_name = "WEIGHTS", value_parser = class_weights)]
    pub(crate) class_weight: Option<ClassWeights>,

    /// Learn probabilities by an internal cross-validation
    #[arg(long, value_enum, value_name = "METHOD", num_args = 0..=1, require_equals = true,
          default_missing_value = "sigmoid")]
    pub(crate) probability: Option<ProbabilityName>,

    /// linear, poly, rbf, sigmoid, laplacian, chi2, cosine, precomputed, or a combination such as
    /// "0.5*rbf(gamma=0.1) + poly(degree=2)*cosine"
    #[arg(
        long,
        short,
        value_name = "KERNEL",
        default_value = "rbf",
        allow_hyphen_values = true,
        help_heading = "Kernel"
    )]
    pub(crate) kernel: String,

    /// scale: 1/(features * variance); auto: 1/features; or a number
    #[arg(
        long,
        short,
        value_name = "GAMMA",
        default_value = "scale",
        help_heading = "Kernel",
        allow_negative_numbers = true, value_parser = value::<Gamma>
    )]
    pub(crate) gamma: Gamma,

    /// Exponent of the polynomial kernel
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<u32>, allow_negative_numbers = true, help_heading = "Kernel")]
    pub(crate) degree: u32,

    /// Constant of the polynomial and sigmoid kernels
    #[arg(
        long,
        value_name = "NUM",
        default_value_t = 0.0,
        allow_negative_numbers = true, value_parser = number,
        help_heading = "Kernel"
    )]
    pub(crate) coef0: f64,

    /// Stop when the optimality conditions hold to this tolerance, or (gmm, gmm-bayes, kmeans) a
    /// step changes less [default: 1e-3; gmm: 1e-6; kmeans: 1e-4]
    #[arg(
        long,
        short = 'e',
        value_name = "NUM",
        allow_negative_numbers = true, value_parser = number,
        help_heading = "Solver"
    )]
    pub(crate) tol: Option<f64>,

    /// Number format of kernel values: f32 (fast, sound down to --tol 1e-5) or f64
    /// [default: f32, below --tol 1e-5 f64]
    #[arg(long, value_name = "FORMAT", value_parser = value::<Precision>, help_heading = "Solver")]
    pub(crate) precision: Option<Precision>,

    /// Never set variables aside that seem settled
    #[arg(long, help_heading = "Solver")]
    pub(crate) no_shrinking: bool,

    /// Stop each sub-problem after this many steps and keep the best model so far
    #[arg(long, value_name = "N", value_parser = whole::<u64>, allow_negative_numbers = true, help_heading = "Solver")]
    pub(crate) max_iter: Option<u64>,

    #[command(flatten)]
    pub(crate) classic: ClassicArguments,
    #[command(flatten)]
    pub(crate) linear: LinearArguments,
}

impl MachineArguments {
    /// The kind of machine, `--linear` taken into account.
    pub(crate) fn kind(&self) -> MachineKind {
        self.linear.kind(self.machine, self.loss)
    }

    /// The kernel for a table.
    pub(crate) fn kernel(&self, features: &Matrix) -> CommandResult<Kernel> {
        if MachineKind::LINEAR.contains(&self.kind()) {
            return Ok(Kernel::Linear);
        }
        let defaults = KernelDefaults { gamma: self.gamma, coef0: self.coef0, degree: self.degree };
        Ok(KernelExpression::parse(&self.kernel, defaults)?.resolve(features)?)
    }

    /// The tolerance of support vector machines.
    pub(super) fn tol(&self) -> f64 {
        self.tol.unwrap_or(1e-3)
    }

    /// The number format asked for, or the one that the tolerance needs.
    pub(super) fn precision(&self) -> Precision {
        match self.precision {
            Some(precision) => precision,
            None if self.tol() < SMALLEST_SINGLE_TOLERANCE => Precision::F64,
            None => Precision::F32,
        }
    }

    fn options(&self) -> SolverOptions {
        SolverOptions {
            tol: self.tol(),
            precision: self.precision(),
            shrinking: !self.no_shrinking,
            max_iterations: self.max_iter,
        }
    }

    fn scheme(&self, data: &Dataset, seed: u64) -> CommandResult<Scheme> {
        Ok(match self.multiclass.unwrap_or(Multiclass::Ovo) {
            Multiclass::Ovo => Scheme::OneVsOne,
            Multiclass::CrammerSinger => {
                return Err(Failure::usage(
                    "--multiclass crammer-singer is for --linear; with kernels use --machine cs",
                ));
            }
            Multiclass::Ovr => Scheme::OneVsRest,
            Multiclass::Dag => Scheme::Dag,
            Multiclass::Ecoc => {
                let classes = data.labels().classes(ClassOrder::Sorted)?.count();
                Scheme::ErrorCorrecting(error_correcting_code(classes, seed))
            }
        })
    }

    /// Replaces a parameter by a value of a search.
    pub(crate) fn set(&mut self, name: &str, value: &Value) -> CommandResult<()> {
        let wrong = |expected: &str| {
            Failure::usage(format!("--grid {name}: expected {expected}, found '{value}'"))
        };
        let number = || match value {
            Value::Number(number) => Ok(*number),
            Value::Text(_) => Err(wrong("a number")),
        };
        match name {
            "c" => self.c = number()?,
            "nu" => self.nu = number()?,
            "epsilon" => self.epsilon = number()?,
            "coef0" => self.coef0 = number()?,
            "gamma" => {
                self.gamma =
                    value.to_string().parse().map_err(|_| wrong("scale, auto or a number"))?;
            }
            "degree" => {
                self.degree = value.to_string().parse().map_err(|_| wrong("a whole number"))?;
            }
            "kernel" => self.kernel = value.to_string(),
            "class-weight" => {
                self.class_weight = match value.to_string().as_str() {
                    "none" => None,
                    "balanced" => Some(ClassWeights::Balanced),
                    _ => return Err(wrong("none or balanced")),
                };
            }
            _ if ClassicArguments::SEARCHED.contains(&name) => {
                let set = self.classic.set(name, &value.to_string());
                set.map_err(|why| wrong(why.trim_start_matches("expected ")))?;
            }
            _ => {
                let known = "c, nu, epsilon, gamma, degree, coef0, kernel, class-weight";
                let classic = ClassicArguments::SEARCHED.join(", ");
                let message = format!("--grid: expected one of {known}, {classic}, found '{name}'");
                return Err(Failure::usage(message));
            }
        }
        Ok(())
    }

    /// The machine, its parameters set for a data set and after the scaling of its features.
    pub(crate) fn build(
        &self,
        data: &Dataset,
        scaling: Scaling,
        seed: u64,
    ) -> CommandResult<Box<dyn Machine>> {
        let Scaling(Some(rule)) = scaling else {
            return self.unscaled(data, self.kernel(data.features())?, seed);
        };
        let scaled = rule.fit(data.features())?.transform(data.features().clone())?;
        let machine = self.unscaled(data, self.kernel(&scaled)?, seed)?;
        Ok(Box::new(Scaled { rule, machine }))
    }

    fn unscaled(
        &self,
        data: &Dataset,
        kernel: Kernel,
        seed: u64,
    ) -> CommandResult<Box<dyn Machine>> {
        let options = self.options();
        let class_weights = self.class_weight.clone().unwrap_or_default();
        let kind = self.kind();
        if MachineKind::LINEAR.contains(&kind) {
            return self.linear.build(kind, self);
        }
        self.linear.refuse_without(kind)?;
        if self.online {
            let all_in_one = matches!(self.machine, MachineKind::AllInOne(_));
            if self.machine == MachineKind::CSvc && self.budget.is_none() {
                let epochs = self.epochs;
                let tol = self.tol();
                return Ok(Box::new(Lasvm { c: self.c, kernel, epochs, tol, ..Lasvm::default() }));
            } else if !all_in_one {
                let message = "--online is for ww, cs, llw, ... and, without --budget, c-svc";
                return Err(Failure::usage(message));
            }
        }
        let class_order = ClassOrder::Sorted;
        let (c, nu, epsilon) = (self.c, self.nu, self.epsilon);
        let loss = match self.loss {
            None | Some(LossName::Hinge) => Loss::Hinge,
            Some(LossName::SquaredHinge) => Loss::SquaredHinge,
            Some(LossName::Logistic) => {
                return Err(Failure::usage("--loss logistic is for linear machines: add --linear"));
            }
        };
        Ok(match kind {
            MachineKind::CSvc => {
                let scheme = self.scheme(data, seed)?;
                Box::new(Svc { c, kernel, loss, class_weights, scheme, class_order, options })
            }
            MachineKind::NuSvc => {
                let scheme = self.scheme(data, seed)?;
                Box::new(NuSvc { nu, kernel, class_weights, scheme, class_order, options })
            }
            MachineKind::EpsilonSvr => Box::new(Svr { c, epsilon, loss, kernel, options }),
            MachineKind::NuSvr => Box::new(NuSvr { c, nu, kernel, options }),
            MachineKind::OneClass => Box::new(OneClass { nu, kernel, options }),
            MachineKind::Svdd => Box::new(Svdd { nu, kernel, options }),
            MachineKind::Classic(kind) => {
                let limits = (self.tol, self.max_iter.and_then(|most| usize::try_from(most).ok()));
                self.classic.build(kind, data.features(), kernel, self.gamma, limits)?
            }
            MachineKind::AllInOne(machine) if self.online => {
                Box::new(self.online_svc(machine, kernel))
            }
            MachineKind::AllInOne(machine) => Box::new(MulticlassSvc {
                machine,
                c,
                kernel,
                bias: self.bias,
                class_weights,
                classes: None,
                class_order,
                options,
            }),
            MachineKind::LinearSvc
            | MachineKind::Logistic
            | MachineKind::LinearSvr
            | MachineKind::LinearOneClass => self.linear.build(kind, self)?,
        })
    }
}

impl MachineArguments {
    /// The online machine of the arguments.
    pub(crate) fn online_svc(&self, machine: AllInOne, kernel: Kernel) -> OnlineSvc {
        OnlineSvc {
            machine,
            c: self.c,
            kernel,
            epochs: self.epochs,
            strategy: self.strategy,
            budget: self.budget,
            tol: self.tol(),
            ..OnlineSvc::default()
        }
    }
}

/// Reads `balanced` or `LABEL=FACTOR,...`.
fn class_weights(text: &str) -> Result<ClassWeights, String> {
    if text == "balanced" {
        return Ok(ClassWeights::Balanced);
    }
    let pairs = text.split(',').map(|pair| {
        let (label, factor) = pair.rsplit_once('=')?;
        Some((Label::Text(label.trim().to_owned()), factor.trim().parse().ok()?))
    });
    pairs
        .collect::<Option<Vec<_>>>()
        .map(ClassWeights::Given)
        .ok_or_else(|| "expected 'balanced' or LABEL=FACTOR,LABEL=FACTOR".to_owned())
}
