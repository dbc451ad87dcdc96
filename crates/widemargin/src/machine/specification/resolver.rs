//! The values of a specification as its machine needs them: defaults filled in, rules resolved on data.

use std::str::FromStr;

use super::Specification;
use super::value::Value;
use crate::data::{ClassOrder, Label, Labels, Matrix};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::machine::jaakkola::{self, Distances};
use crate::machine::multiple_kernel::WeightsText;
use crate::machine::{
    BaseMachine, ClassWeights, Decoding, Epochs, Gamma, HARD_MARGIN, KernelDefaults,
    KernelExpression, Loss, Machine, MultipleKernel, OutputCode, Precision, SIGNED_JITTER, Scheme,
    SolverOptions, WeightRule, error_correcting_code,
};

/// Below this tolerance single precision no longer carries enough digits.
pub(super) const SMALLEST_SINGLE_TOLERANCE: f64 = 1e-5;

/// A specification with the data that rules such as `gamma=scale` look at.
#[derive(Clone, Copy)]
pub(super) struct Resolver<'a> {
    pub(super) specification: &'a Specification,
    /// The features, scaled.
    pub(super) features: &'a Matrix,
    pub(super) labels: &'a Labels,
    pub(super) seed: u64,
}

impl Resolver<'_> {
    /// A value, or its default.
    fn value(&self, name: &str) -> Option<Value> {
        self.specification.value(name)
    }

    fn some(&self, name: &'static str) -> Result<Value> {
        self.value(name).ok_or_else(|| Error::parameter(name, "a value", "none"))
    }

    pub(super) fn real(&self, name: &'static str) -> Result<f64> {
        if name == "c" && self.is("c", "inf") {
            return Ok(HARD_MARGIN);
        }
        self.some(name)?.number().ok_or_else(|| Error::parameter(name, "a number", "a name"))
    }

    /// A whole number, if it is set.
    pub(super) fn optional_whole(&self, name: &'static str) -> Option<usize> {
        match self.value(name) {
            Some(Value::Integer(number)) => usize::try_from(number).ok(),
            _ => None,
        }
    }

    /// A number, if it is set.
    pub(super) fn optional_real(&self, name: &'static str) -> Option<f64> {
        self.value(name).and_then(|value| value.number())
    }

    pub(super) fn whole(&self, name: &'static str) -> Result<usize> {
        self.optional_whole(name).ok_or_else(|| Error::parameter(name, "a whole number", "none"))
    }

    pub(super) fn flag(&self, name: &'static str) -> Result<bool> {
        Ok(self.some(name)? == Value::Flag(true))
    }

    /// A choice by name.
    pub(super) fn choice<T: FromStr<Err = Error>>(&self, name: &'static str) -> Result<T> {
        self.some(name)?.to_string().parse()
    }

    /// A number, or a rule by name.
    pub(super) fn number_or<T: FromStr<Err = Error>>(
        &self,
        name: &'static str,
        number: impl Fn(f64) -> T,
    ) -> Result<T> {
        match self.some(name)? {
            Value::Real(value) => Ok(number(value)),
            other => other.to_string().parse(),
        }
    }

    /// Several numbers, if they are set.
    pub(super) fn reals(&self, name: &'static str) -> Option<Vec<f64>> {
        match self.value(name) {
            Some(Value::Reals(numbers)) => Some(numbers),
            _ => None,
        }
    }

    /// Whether a parameter is one of some names.
    pub(super) fn is(&self, name: &'static str, text: &str) -> bool {
        matches!(self.value(name), Some(Value::Text(own)) if own == text)
    }

    pub(super) fn gamma(&self) -> Result<Gamma> {
        let distances = match self.value("gamma") {
            Some(Value::Text(rule)) if rule == "jaakkola" => Distances::AllPairs,
            Some(Value::Text(rule)) if rule == "jaakkola-nearest" => Distances::Nearest,
            _ => return self.number_or("gamma", Gamma::Value),
        };
        jaakkola::gamma(distances, self.features, self.labels, self.seed).map(Gamma::Value)
    }

    /// The kernel, its γ resolved.
    pub(super) fn kernel(&self) -> Result<Kernel> {
        let text = match self.value("kernel") {
            Some(text) => text.to_string(),
            None => "linear".to_owned(),
        };
        KernelExpression::parse(&text, self.kernel_defaults()?)?.resolve(self.features)
    }

    /// `gamma`, `coef0` and `degree`; a rule that looks at labels only where a kernel uses it.
    fn kernel_defaults(&self) -> Result<KernelDefaults> {
        let defaults = kernel_defaults(self.specification)?;
        let needs_labels = looks_at_labels(self.specification);
        match needs_labels && kernel_reads(self.specification, "gamma")? {
            true => Ok(KernelDefaults { gamma: self.gamma()?, ..defaults }),
            false => Ok(defaults),
        }
    }

    /// `machine`, or where there are several kernels the machine that learns their weights for it.
    pub(super) fn machine<M: Machine + 'static>(
        &self,
        machine: M,
        base: fn(M) -> BaseMachine,
    ) -> Result<Box<dyn Machine>> {
        let WeightsText(weights) = self.choice("weights")?;
        let jitter = self.value("jitter").and_then(|jitter| jitter.number());
        let unlabelled = self.unlabelled();
        let repair = match self.is("repair", "none") {
            true => None,
            false => Some(self.choice("repair")?),
        };
        let kernels = kernel_list(self.specification, kernel_defaults(self.specification)?)?;
        let kernels = match kernels.is_empty() {
            true => kernels,
            false => kernel_list(self.specification, self.kernel_defaults()?)?,
        };
        if kernels.is_empty() {
            let only_with_kernels = ["weights", "jitter", "repair", "approximate", "unlabelled"];
            return match only_with_kernels.iter().find(|name| self.specification.is_given(name)) {
                Some(name) => {
                    Err(Error::parameter("kernels", format!("kernels for {name}"), "none"))
                }
                None => Ok(Box::new(machine)),
            };
        }
        if self.specification.is_given("kernel") {
            let expected = "either one kernel or several (kernels)";
            return Err(Error::parameter("kernel", expected, "both"));
        }
        let kernels = kernels.iter().map(|kernel| kernel.resolve(self.features));
        let approximate = match self.value("approximate") {
            Some(rule) => Some(rule.to_string().parse()?),
            None => None,
        };
        let usual = if weights == WeightRule::Signed { SIGNED_JITTER } else { 0.0 };
        Ok(Box::new(MultipleKernel {
            kernels: kernels.collect::<Result<_>>()?,
            weights,
            jitter: jitter.unwrap_or(usual),
            repair,
            unlabelled,
            approximate,
            ..MultipleKernel::new(base(machine))
        }))
    }

    /// The label of rows without one.
    pub(super) fn unlabelled(&self) -> Option<Label> {
        match self.specification.value("unlabelled") {
            Some(Value::Text(label)) => Some(Label::Text(label)),
            _ => None,
        }
    }

    pub(super) fn class_weights(&self) -> Result<ClassWeights> {
        Ok(match self.some("class-weight")? {
            Value::Weights(weights) => ClassWeights::Given(weights),
            Value::Text(text) if text == "balanced" => ClassWeights::Balanced,
            _ => ClassWeights::Uniform,
        })
    }

    pub(super) fn class_order(&self) -> ClassOrder {
        match self.is("class-order", "first-seen") {
            true => ClassOrder::FirstSeen,
            false => ClassOrder::Sorted,
        }
    }

    pub(super) fn loss(&self) -> Loss {
        if self.is("loss", "squared-hinge") { Loss::SquaredHinge } else { Loss::Hinge }
    }

    pub(super) fn scheme(&self) -> Result<Scheme> {
        let (code, decoding) = (self.reals("code"), self.choice("decoding")?);
        if (code.is_some() || decoding != Decoding::default()) && !self.is("multiclass", "ecoc") {
            let expected = "ecoc with a code or a decoding";
            return Err(Error::parameter("multiclass", expected, self.some("multiclass")?));
        }
        Ok(match self.some("multiclass")?.to_string().as_str() {
            "ovr" => Scheme::OneVsRest,
            "dag" => Scheme::Dag,
            "ecoc" => {
                let classes = self.labels.classes(ClassOrder::Sorted)?.count();
                let rows = match code {
                    Some(entries) => code_rows(&entries, classes)?,
                    None => error_correcting_code(classes, self.seed),
                };
                Scheme::ErrorCorrecting(OutputCode { rows, decoding })
            }
            _ => Scheme::OneVsOne,
        })
    }

    pub(super) fn epochs(&self) -> Result<Epochs> {
        Ok(match self.some("epochs")? {
            Value::Integer(times) => Epochs::Times(times as usize),
            _ => Epochs::UntilOptimal,
        })
    }

    /// The number format asked for, or the one that the tolerance needs.
    pub(super) fn precision(&self) -> Result<Precision> {
        // The tolerance of a machine without `tol` is that of its duality gap.
        let name = if self.specification.has("tol") { "tol" } else { "gap" };
        let tol = self.some(name)?.number();
        match self.some("precision")?.to_string().as_str() {
            "auto" | "mixed" if tol.is_some_and(|tol| tol < SMALLEST_SINGLE_TOLERANCE) => {
                Ok(Precision::F64)
            }
            "mixed" if !self.features.is_exact_in_single() => Ok(Precision::F64),
            "auto" | "mixed" => Ok(Precision::F32),
            other => other.parse(),
        }
    }

    pub(super) fn max_iterations(&self) -> Option<u64> {
        self.optional_whole("max-iter").map(|most| most as u64)
    }

    pub(super) fn options(&self) -> Result<SolverOptions> {
        Ok(SolverOptions {
            tol: self.real("tol")?,
            precision: self.precision()?,
            shrinking: !self.specification.has("shrinking") || self.flag("shrinking")?,
            max_iterations: self.max_iterations(),
        })
    }
}

/// The rows of a code given entry by entry, a row per class.
fn code_rows(entries: &[f64], classes: usize) -> Result<Vec<Vec<i8>>> {
    let columns = entries.len() / classes.max(1);
    if columns == 0 || columns * classes != entries.len() {
        let expected = format!("a row of equal length for each of {classes} classes");
        return Err(Error::parameter("code", expected, format!("{} entries", entries.len())));
    }
    match entries.iter().find(|entry| ![-1.0, 0.0, 1.0].contains(*entry)) {
        Some(entry) => Err(Error::parameter("code", "entries -1, 0 and 1", entry)),
        None => {
            let rows = entries.chunks_exact(columns);
            Ok(rows.map(|row| row.iter().map(|&entry| entry as i8).collect()).collect())
        }
    }
}

/// The kernels whose weights are learnt, none unless they were given.
pub(super) fn kernel_list(
    specification: &Specification,
    defaults: KernelDefaults,
) -> Result<Vec<KernelExpression>> {
    match specification.value("kernels") {
        Some(text) => KernelExpression::parse_list(&text.to_string(), defaults),
        None => Ok(Vec::new()),
    }
}

/// Whether `gamma` is a rule that looks at labels.
pub(super) fn looks_at_labels(specification: &Specification) -> bool {
    matches!(specification.value("gamma"), Some(Value::Text(rule)) if rule.starts_with("jaakkola"))
}

/// The kernel expression of a specification with its `gamma`, `coef0` and `degree` as defaults.
pub(super) fn kernel_expression(specification: &Specification) -> Result<KernelExpression> {
    let text = match specification.value("kernel") {
        Some(text) => text.to_string(),
        None => "linear".to_owned(),
    };
    KernelExpression::parse(&text, kernel_defaults(specification)?)
}

/// `gamma`, `coef0` and `degree` of a specification.
fn kernel_defaults(specification: &Specification) -> Result<KernelDefaults> {
    let gamma = match specification.value("gamma") {
        Some(Value::Real(gamma)) => Gamma::Value(gamma),
        // Known with the data: see `Resolver::gamma`.
        Some(_) if looks_at_labels(specification) => Gamma::Scale,
        Some(rule) => rule.to_string().parse()?,
        None => Gamma::Scale,
    };
    let coef0 = specification.value("coef0").and_then(|value| value.number()).unwrap_or(0.0);
    let degree = match specification.value("degree") {
        Some(Value::Integer(degree)) => u32::try_from(degree)
            .map_err(|_| Error::parameter("degree", "a smaller exponent", degree))?,
        _ => 3,
    };
    Ok(KernelDefaults { gamma, coef0, degree })
}

/// Whether the kernel of a specification, or one of its kernels, depends on its `gamma`, `degree` or `coef0`.
pub(super) fn kernel_reads(specification: &Specification, name: &str) -> Result<bool> {
    let text = specification.value("kernel").map_or_else(String::new, |text| text.to_string());
    let one = KernelDefaults { gamma: Gamma::Value(1.0), coef0: 1.0, degree: 1 };
    let other = match name {
        "gamma" => KernelDefaults { gamma: Gamma::Value(2.0), ..one },
        "coef0" => KernelDefaults { coef0: 2.0, ..one },
        _ => KernelDefaults { degree: 2, ..one },
    };
    let nothing = Matrix::DenseF64(crate::data::Dense::new(0, 0, Vec::new())?);
    let kernels = |defaults| -> Result<Vec<Kernel>> {
        let list = match specification.has("kernels") {
            true => kernel_list(specification, defaults)?,
            false => vec![KernelExpression::parse(&text, defaults)?],
        };
        list.iter().map(|kernel| kernel.resolve(&nothing)).collect()
    };
    Ok(kernels(one)? != kernels(other)?)
}
