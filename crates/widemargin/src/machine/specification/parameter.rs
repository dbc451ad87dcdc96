//! A parameter of a machine: its name, what it may be, its default and what it means.

use super::value::Value;
use crate::data::Label;
use crate::error::{Error, Result};
use crate::kernel::MapRule;
use crate::machine::multiple_kernel::{WEIGHT_RULES, WeightsText};
use crate::machine::{KernelDefaults, KernelExpression, Links, ScalingRule};

/// What values a parameter may have.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Domain {
    /// A finite real number of a range, or one of some names.
    Real {
        /// Lower end.
        low: f64,
        /// Whether the lower end itself is excluded.
        above: bool,
        /// Upper end, included.
        high: f64,
        /// Names that stand for a rule instead of a number.
        names: &'static [&'static str],
    },
    /// A whole number of at least `low`, or one of some names.
    Integer {
        /// The smallest.
        low: u64,
        /// Names that stand for a rule instead of a number.
        names: &'static [&'static str],
    },
    /// On or off.
    Flag,
    /// One of some names.
    Choice(&'static [&'static str]),
    /// A kernel expression.
    Kernel,
    /// Several kernel expressions with commas between them.
    Kernels,
    /// A rule for the weights of kernels.
    KernelWeights,
    /// `none`, `balanced`, or a factor for every class named.
    ClassWeights,
    /// Several real numbers, or one of some names.
    Reals(&'static [&'static str]),
    /// A class label.
    Label,
    /// A rule for scaling the features.
    Scaling,
    /// A rule for features that approximate a kernel.
    Map,
    /// Pairs of rows that are in one cluster or in two.
    Links,
}

impl Domain {
    /// Finite numbers above 0.
    pub(super) const POSITIVE: Self =
        Self::Real { low: 0.0, above: true, high: f64::MAX, names: &[] };

    /// Finite numbers of at least 0.
    pub(super) const NOT_NEGATIVE: Self =
        Self::Real { low: 0.0, above: false, high: f64::MAX, names: &[] };

    /// Numbers above 0 and at most 1.
    pub(super) const SHARE: Self = Self::Real { low: 0.0, above: true, high: 1.0, names: &[] };

    /// Whole numbers of at least `low`.
    pub(super) const fn whole(low: u64) -> Self {
        Self::Integer { low, names: &[] }
    }

    fn names(&self) -> &'static [&'static str] {
        match self {
            Self::Real { names, .. } | Self::Integer { names, .. } => names,
            Self::Choice(names) | Self::Reals(names) => names,
            _ => &[],
        }
    }

    /// The smallest and largest number that it has, for numbers.
    pub fn limits(&self) -> Option<(f64, f64)> {
        match self {
            Self::Real { low, high, .. } => Some((*low, *high)),
            Self::Integer { low, .. } => Some((*low as f64, f64::MAX)),
            _ => None,
        }
    }

    /// What is expected of a value, in words.
    pub fn expected(&self) -> String {
        let numbers = match *self {
            Self::Real { low, above, high, .. } => match (above, high == f64::MAX) {
                (true, true) => format!("a finite number above {low}"),
                (false, true) if low == f64::MIN => "a finite number".into(),
                (false, true) => format!("a finite number of at least {low}"),
                (true, false) => format!("a number above {low} and at most {high}"),
                (false, false) => format!("a number from {low} to {high}"),
            },
            Self::Integer { low, .. } => format!("a whole number of at least {low}"),
            Self::Flag => "true or false".into(),
            Self::Choice(_) => return format!("one of {}", self.names().join(", ")),
            Self::Kernel => "a kernel".into(),
            Self::Kernels => "kernels with commas between them".into(),
            Self::KernelWeights => WEIGHT_RULES.into(),
            Self::ClassWeights => "none, balanced or LABEL=FACTOR,LABEL=FACTOR".into(),
            Self::Reals(_) => "finite numbers".into(),
            Self::Label => "a class label".into(),
            Self::Scaling => {
                "none, standard, minmax or minmax:LOWER,UPPER with LOWER < UPPER".into()
            }
            Self::Map => "rff:NUMBER or nystroem:NUMBER".into(),
            Self::Links => "none or ROW=ROW,ROW!ROW".into(),
        };
        match self.names() {
            [] => numbers,
            names => format!("{} or {numbers}", names.join(", ")),
        }
    }
}

/// What a parameter is by default.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Fallback {
    /// Nothing: the machine chooses, or does without.
    Unset,
    /// On or off.
    Flag(bool),
    /// A whole number.
    Integer(u64),
    /// A real number.
    Real(f64),
    /// A name.
    Text(&'static str),
}

impl Fallback {
    /// As a value.
    pub fn value(self) -> Option<Value> {
        Some(match self {
            Self::Unset => return None,
            Self::Flag(flag) => Value::Flag(flag),
            Self::Integer(number) => Value::Integer(number),
            Self::Real(number) => Value::Real(number),
            Self::Text(text) => Value::Text(text.to_owned()),
        })
    }
}

/// A parameter of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parameter {
    /// Name, as on the command line.
    pub name: &'static str,
    /// What it may be.
    pub domain: Domain,
    /// Its default.
    pub default: Fallback,
    /// One line of documentation.
    pub about: &'static str,
}

impl Parameter {
    /// The same parameter with another default.
    pub(super) const fn or(self, default: Fallback) -> Self {
        Self { default, ..self }
    }

    /// The same parameter with other values.
    pub(super) const fn within(self, domain: Domain) -> Self {
        Self { domain, ..self }
    }

    fn refuse(&self, found: impl ToString) -> Error {
        Error::parameter(self.name, self.domain.expected(), found)
    }

    /// The value, made the type that the parameter has.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a value of another type or out of range.
    pub fn check(&self, value: Value) -> Result<Value> {
        let known = |text: &str| self.domain.names().contains(&text);
        let fits = match (self.domain, &value) {
            (_, Value::Text(text)) if known(text) => true,
            (Domain::Real { low, above, high, .. }, Value::Integer(_) | Value::Real(_)) => {
                let number = value.number().unwrap_or(f64::NAN);
                let inside = number >= low && number <= high && !(above && number == low);
                return if inside { Ok(Value::Real(number)) } else { Err(self.refuse(value)) };
            }
            (Domain::Integer { low, .. }, Value::Integer(number)) => *number >= low,
            (Domain::Integer { low, .. }, Value::Real(number)) => {
                let whole = number.fract() == 0.0 && *number >= low as f64 && *number < 9e15;
                return if whole {
                    Ok(Value::Integer(*number as u64))
                } else {
                    Err(self.refuse(value))
                };
            }
            (Domain::Flag, Value::Flag(_)) => true,
            (Domain::Kernel, Value::Text(text)) => {
                KernelExpression::parse(text, KernelDefaults::default())?;
                true
            }
            (Domain::Kernels, Value::Text(text)) => {
                KernelExpression::parse_list(text, KernelDefaults::default())?;
                true
            }
            (Domain::KernelWeights, Value::Text(text)) => text.parse::<WeightsText>().is_ok(),
            (Domain::ClassWeights, Value::Text(text)) => text == "none" || text == "balanced",
            (Domain::ClassWeights, Value::Weights(_)) => true,
            (Domain::Reals(_), Value::Reals(numbers)) => numbers.iter().all(|n| n.is_finite()),
            (Domain::Label, Value::Text(_)) => true,
            (Domain::Scaling, Value::Text(text)) => ScalingRule::parse(text).is_ok(),
            (Domain::Map, Value::Text(text)) => text.parse::<MapRule>().is_ok(),
            (Domain::Links, Value::Text(text)) => text.parse::<Links>().is_ok(),
            _ => false,
        };
        if fits { Ok(value) } else { Err(self.refuse(value)) }
    }

    /// The value that a text stands for.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn parse(&self, text: &str) -> Result<Value> {
        let whole = text;
        let text = text.trim();
        let value = match self.domain {
            // Messages name places in the expression.
            Domain::Kernel | Domain::Kernels => whole.into(),
            // A name may read as a number: inf.
            _ if self.domain.names().contains(&text) => text.into(),
            Domain::Real { .. } | Domain::Integer { .. } => match number(text) {
                Some(value) => value,
                None => text.into(),
            },
            Domain::Flag => match text {
                "true" => true.into(),
                "false" => false.into(),
                _ => text.into(),
            },
            Domain::Reals(_) => {
                let numbers = text.split(',').map(|word| word.trim().parse().ok());
                Value::Reals(numbers.collect::<Option<_>>().ok_or_else(|| self.refuse(text))?)
            }
            Domain::ClassWeights if text != "none" && text != "balanced" => {
                let pairs = text.split(',').map(|pair| {
                    let (label, factor) = pair.rsplit_once('=')?;
                    Some((Label::Text(label.trim().to_owned()), factor.trim().parse().ok()?))
                });
                Value::Weights(pairs.collect::<Option<_>>().ok_or_else(|| self.refuse(text))?)
            }
            _ => text.into(),
        };
        self.check(value)
    }
}

/// Reads a whole number, a real number, or a power of two such as `2^-5`.
pub fn number(text: &str) -> Option<Value> {
    if let Ok(whole) = text.parse() {
        return Some(Value::Integer(whole));
    }
    match text.strip_prefix("2^") {
        Some(exponent) => exponent.parse().ok().map(|e: f64| Value::Real(e.exp2())),
        None => text.parse().ok().map(Value::Real),
    }
}
