//! What a machine is, before it has seen data: its name and its parameters, typed and checked.
//!
//! The command line, Python, searches and comparisons translate options into a
//! [`Specification`], and only that builds machines. Which parameters a machine has, with their
//! ranges, defaults and default search grids, stands in one table ([`Entry`]); a parameter that the
//! machine does not have is refused by name.
//!
//! ```
//! use widemargin::machine::{MachineKind, Specification};
//!
//! let mut specification = Specification::new(MachineKind::CSvc);
//! specification.set("c", 10.0)?;
//! specification.parse("gamma", "2^-3")?;
//! assert_eq!(specification.to_string(), "c-svc c=10 gamma=0.125");
//! let error = specification.set("bias", true).unwrap_err();
//! assert!(error.to_string().starts_with("c-svc has no parameter 'bias'; it has c, loss, "));
//! # Ok::<(), widemargin::Error>(())
//! ```

mod classic;
mod entries;
mod kernel_machines;
mod linear;
mod online;
mod parameter;
mod resolver;
mod sequences;
mod shared;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use entries::Entry;
pub use parameter::{Domain, Fallback, Parameter, number};
use resolver::{
    Resolver, SMALLEST_SINGLE_TOLERANCE, kernel_expression, kernel_list, kernel_reads,
    looks_at_labels,
};
pub use value::Value;

use super::mixed_precision::{MixedPrecision, Rounding};
use super::{
    Approximated, KernelDefaults, KernelExpression, LinearSvc, LinearSvr, Machine, MachineKind,
    Model, OnlineSvc, Precision, Scaled, ScalingRule,
};
use crate::data::{Dataset, Dense, Labels, Matrix};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::machine::sequence::{ChainSvc, HiddenMarkovMachine};

/// A machine by name with the parameters that were given; all others have their defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Specification {
    kind: MachineKind,
    online: bool,
    given: BTreeMap<&'static str, Value>,
}

/// A specification in a file.
#[derive(Serialize, Deserialize)]
struct Stored {
    machine: MachineKind,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    online: bool,
    #[serde(default)]
    parameters: BTreeMap<String, Value>,
}

impl From<Specification> for Stored {
    fn from(specification: Specification) -> Self {
        let Specification { kind, online, given } = specification;
        let parameters = given.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self { machine: kind, online, parameters }
    }
}

impl TryFrom<Stored> for Specification {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Self> {
        let mut specification = match stored.online {
            true => Self::online(stored.machine)?,
            false => Self::new(stored.machine),
        };
        for (name, value) in stored.parameters {
            specification.set(&name, value)?;
        }
        Ok(specification)
    }
}

impl Specification {
    /// A machine with its defaults, trained on all rows at once.
    pub fn new(kind: MachineKind) -> Self {
        Self { kind, online: false, given: BTreeMap::new() }
    }

    /// A machine with its defaults, trained online.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a machine that cannot be trained online.
    pub fn online(kind: MachineKind) -> Result<Self> {
        entries::entry(kind, true)?;
        Ok(Self { kind, online: true, given: BTreeMap::new() })
    }

    /// Every machine that is trained on rows with its defaults, online ones last.
    pub fn all() -> impl Iterator<Item = Self> {
        let online = MachineKind::all().filter_map(|kind| Self::online(kind).ok());
        MachineKind::all().map(Self::new).chain(online)
    }

    /// The machine.
    pub fn kind(&self) -> MachineKind {
        self.kind
    }

    /// Whether it is trained online.
    pub fn is_online(&self) -> bool {
        self.online
    }

    /// Its line of the table of machines.
    pub fn entry(&self) -> &'static Entry {
        match entries::entry(self.kind, self.online) {
            Ok(entry) => entry,
            // `online` has looked, and every other kind has an entry.
            Err(_) => unreachable!("{} has no entry", self.name()),
        }
    }

    /// A parameter of the machine.
    ///
    /// # Errors
    /// [`Error::UnknownParameter`] when the machine does not have it.
    pub fn parameter(&self, name: &str) -> Result<&'static Parameter> {
        let entry = self.entry();
        entry.parameters().find(|parameter| parameter.name == name).ok_or_else(|| {
            let known: Vec<&str> = entry.parameters().map(|parameter| parameter.name).collect();
            Error::UnknownParameter {
                machine: self.name(),
                parameter: name.to_owned(),
                known: known.join(", "),
            }
        })
    }

    /// Sets a parameter.
    ///
    /// # Errors
    /// [`Error::UnknownParameter`] when the machine does not have it, [`Error::Parameter`] for a
    /// value of another type or out of range.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) -> Result<()> {
        let parameter = self.parameter(name)?;
        self.given.insert(parameter.name, parameter.check(value.into())?);
        Ok(())
    }

    /// Sets a parameter to the value that a text stands for.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn parse(&mut self, name: &str, text: &str) -> Result<()> {
        let parameter = self.parameter(name)?;
        self.given.insert(parameter.name, parameter.parse(text)?);
        Ok(())
    }

    /// The value of a parameter: the one given, or the default.
    pub fn value(&self, name: &str) -> Option<Value> {
        #[cfg(test)]
        tests::note_read(name);
        match self.given.get(name) {
            Some(value) => Some(value.clone()),
            None => self.parameter(name).ok()?.default.value(),
        }
    }

    /// Whether a parameter was given.
    pub fn is_given(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// Whether a parameter has a value, given or by default.
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// The parameters that were given.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.given.iter().map(|(name, value)| (*name, value))
    }

    /// The name of the machine in messages.
    pub fn name(&self) -> String {
        if self.online { format!("online {}", self.kind) } else { self.kind.to_string() }
    }

    /// The kernel for a table, `gamma=scale` and `gamma=auto` resolved; linear without one.
    ///
    /// # Errors
    /// Kernel parameters out of range.
    pub fn kernel(&self, features: &Matrix) -> Result<Kernel> {
        if looks_at_labels(self) && kernel_reads(self, "gamma")? {
            return Err(Error::parameter("gamma", "scale, auto or a number here", "jaakkola"));
        }
        kernel_expression(self)?.resolve(features)
    }

    /// Whether rows are rows of kernel values instead of features.
    ///
    /// # Errors
    /// As [`kernel`](Self::kernel).
    pub fn takes_kernel_values(&self, features: &Matrix) -> Result<bool> {
        Ok(kernel_expression(self)?.resolve(features)? == Kernel::Precomputed)
    }

    /// Refuses a `gamma`, `degree` or `coef0` that was given and that the kernel does not have.
    ///
    /// # Errors
    /// [`Error::Parameter`] naming it.
    pub fn check_kernel_parameters(&self) -> Result<()> {
        if !self.has("kernel") {
            return Ok(());
        }
        for name in ["gamma", "degree", "coef0"] {
            if self.is_given(name) && !kernel_reads(self, name)? {
                let kernel = self.value("kernel").map_or_else(String::new, |k| k.to_string());
                let parameter = self.parameter(name)?;
                let expected = format!("a kernel with {name}");
                return Err(Error::parameter(parameter.name, expected, format!("kernel {kernel}")));
            }
        }
        Ok(())
    }

    /// Whether its kernel, or one of several, compares strings.
    ///
    /// # Errors
    /// A kernel that cannot be read.
    pub fn compares_strings(&self) -> Result<bool> {
        Ok(kernel_expression(self)?.compares_strings()
            || kernel_list(self, KernelDefaults::default())?
                .iter()
                .any(KernelExpression::compares_strings))
    }

    /// How the features are scaled.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a scaling of strings.
    pub fn scaling(&self) -> Result<Option<ScalingRule>> {
        let Some(Value::Text(text)) = self.value("scale") else { return Ok(None) };
        let rule = ScalingRule::parse(&text)?;
        if rule.is_some() && self.compares_strings()? {
            let expected = "none, because the characters of strings cannot be scaled";
            return Err(Error::parameter("scale", expected, text));
        }
        Ok(rule)
    }

    /// The machine for a data set; `seed` decides the code of `multiclass=ecoc`.
    ///
    /// # Errors
    /// Parameters that do not go together, labels that do not suit them, or a machine that is
    /// trained on sequences ([`chain_svc`](Self::chain_svc)).
    pub fn build(&self, data: &Dataset, seed: u64) -> Result<Box<dyn Machine>> {
        let Some(rule) = self.scaling()? else {
            return self.build_scaled(data.features(), data.labels(), seed);
        };
        let machine = match self.looks_at_features() {
            true => {
                let scaled = rule.fit(data.features())?.transform(data.features().clone())?;
                self.build_scaled(&scaled, data.labels(), seed)?
            }
            false => self.build_scaled(data.features(), data.labels(), seed)?,
        };
        Ok(Box::new(Scaled { rule, machine }))
    }

    /// Whether building the machine looks at the features: for a γ that is not given as a number, or for
    /// whether single precision holds them.
    fn looks_at_features(&self) -> bool {
        if self.is_mixed() {
            return true;
        }
        let kernel = self.value("kernel").map_or_else(String::new, |kernel| kernel.to_string());
        let rule = !matches!(self.value("gamma"), None | Some(Value::Real(_)));
        let kernels = self.value("kernels").map_or_else(String::new, |list| list.to_string());
        let own_rule = [kernel, kernels].iter().any(|k| k.contains("scale") || k.contains("auto"));
        !MachineKind::LINEAR.contains(&self.kind) && (rule || own_rule)
    }

    /// The machine for features that were scaled already, without the scaling.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub(crate) fn build_scaled(
        &self,
        features: &Matrix,
        labels: &Labels,
        seed: u64,
    ) -> Result<Box<dyn Machine>> {
        let values = Resolver { specification: self, features, labels, seed };
        let machine = (self.entry().build)(&values)?;
        match self.value("approximate") {
            // Machines that learn the weights of several kernels approximate each of them.
            Some(Value::Text(rule)) if MachineKind::LINEAR.contains(&self.kind) => {
                let gamma = values.gamma()?;
                Ok(Box::new(Approximated { rule: rule.parse()?, gamma, machine }))
            }
            _ => self.in_mixed_precision(machine, &values),
        }
    }

    /// A machine whose precision was left to the data, as one that is in both.
    fn in_mixed_precision(
        &self,
        machine: Box<dyn Machine>,
        values: &Resolver<'_>,
    ) -> Result<Box<dyn Machine>> {
        // What online machines learn depends on how long they do.
        let is_auto = !self.online && self.value("precision") == Some(Value::Text("auto".into()));
        let computes_values =
            machine.kernel().is_some_and(|kernel| !kernel.has_only_given_values());
        let is_open = (self.is_mixed() || is_auto) && self.has("tol");
        if !is_open || self.is_given("kernels") || !computes_values {
            return Ok(machine);
        }
        let tol = values.real("tol")?;
        if tol < SMALLEST_SINGLE_TOLERANCE {
            return Ok(machine);
        }
        let in_precision = |name: &str| -> Result<Box<dyn Machine>> {
            let mut specification = self.clone();
            specification.set("precision", name)?;
            (self.entry().build)(&Resolver { specification: &specification, ..*values })
        };
        let (single, double, rounding) = match machine.precision() {
            Precision::F64 => (in_precision("f32")?, machine, Rounding::Unwanted),
            // Only machines that can go on from a solution take part in what nobody asked for.
            Precision::F32 if machine.warm_start().is_none() => return Ok(machine),
            Precision::F32 => {
                let double = in_precision("f64")?;
                (machine, double, Rounding::Tolerated)
            }
        };
        Ok(Box::new(MixedPrecision { single, double, tol, rounding }))
    }

    fn is_mixed(&self) -> bool {
        self.value("precision") == Some(Value::Text("mixed".into()))
    }

    /// Writes itself into the training record of a model that its machine learnt.
    pub fn record(&self, model: &mut Model) {
        if let Some(training) = &mut model.training {
            training.specification = Some(self.clone());
        }
    }

    /// The linear classifier itself, for operations that need more of it than [`Machine`] has.
    ///
    /// # Errors
    /// [`Error::Parameter`] for another machine.
    pub fn linear_svc(&self) -> Result<LinearSvc> {
        self.check_kind(&[MachineKind::LinearSvc, MachineKind::Logistic])?;
        self.without_data(linear::classifier)
    }

    /// The linear regressor itself.
    ///
    /// # Errors
    /// [`Error::Parameter`] for another machine.
    pub fn linear_svr(&self) -> Result<LinearSvr> {
        self.check_kind(&[MachineKind::LinearSvr])?;
        self.without_data(linear::regressor)
    }

    /// The online machine itself, its kernel resolved on a table.
    ///
    /// # Errors
    /// [`Error::Parameter`] for another machine.
    pub fn online_svc(&self, features: &Matrix) -> Result<OnlineSvc> {
        if !(self.online && matches!(self.kind, MachineKind::AllInOne(_))) {
            return Err(Error::parameter("machine", "ww, cs, llw, ... online", self.name()));
        }
        let labels = &Labels::None;
        online::online_svc(&Resolver { specification: self, features, labels, seed: 0 })
    }

    /// The chain for sequences whose positions have these features, its kernel resolved on them.
    ///
    /// # Errors
    /// [`Error::Parameter`] for another machine.
    pub fn chain_svc(&self, features: &Matrix) -> Result<ChainSvc> {
        self.check_kind(&[MachineKind::ChainSvc])?;
        let labels = &Labels::None;
        sequences::chain_svc(&Resolver { specification: self, features, labels, seed: 0 })
    }

    /// The hidden Markov model for sequences.
    ///
    /// # Errors
    /// [`Error::Parameter`] for another machine.
    pub fn hidden_markov(&self) -> Result<HiddenMarkovMachine> {
        self.check_kind(&[MachineKind::HiddenMarkov])?;
        self.without_data(sequences::hidden_markov)
    }

    fn check_kind(&self, kinds: &[MachineKind]) -> Result<()> {
        if kinds.contains(&self.kind) {
            return Ok(());
        }
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        Err(Error::parameter("machine", names.join(" or "), self.name()))
    }

    fn without_data<T>(&self, build: impl Fn(&Resolver<'_>) -> Result<T>) -> Result<T> {
        let features = Matrix::DenseF64(Dense::new(0, 0, Vec::new())?);
        let labels = &Labels::None;
        build(&Resolver { specification: self, features: &features, labels, seed: 0 })
    }

    /// What is searched by default, as `NAME=VALUES`: nothing where no prediction can be
    /// judged.
    pub fn default_grid(&self) -> Vec<&'static str> {
        let varies = |axis: &&&'static str| match axis.split_once('=') {
            Some(("gamma", _)) if MachineKind::LINEAR.contains(&self.kind) => {
                self.has("approximate")
            }
            Some(("gamma", _)) => kernel_reads(self, "gamma").unwrap_or(false),
            _ => true,
        };
        self.entry().grid.iter().filter(varies).copied().collect()
    }
}

impl fmt::Display for Specification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())?;
        self.given.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}
