//! Values of parameters, typed.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::data::Label;
use crate::machine::Bias;

/// The value of a parameter.
///
/// In files it is the plain JSON value: a number, a name, a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// On or off.
    Flag(bool),
    /// A whole number.
    Integer(u64),
    /// A real number.
    Real(f64),
    /// A name, such as that of a loss, or a kernel expression.
    Text(String),
    /// Several real numbers.
    Reals(Vec<f64>),
    /// A factor for every class named.
    Weights(Vec<(Label, f64)>),
}

impl Value {
    /// It as a real number, if it is a number.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Real(number) => Some(*number),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |parts: Vec<String>| parts.join(",");
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Real(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
            Self::Reals(numbers) => {
                f.write_str(&join(numbers.iter().map(ToString::to_string).collect()))
            }
            Self::Weights(weights) => f.write_str(&join(
                weights.iter().map(|(label, factor)| format!("{label}={factor}")).collect(),
            )),
        }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Integer(number)
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Integer(number as u64)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Bias> for Value {
    fn from(bias: Bias) -> Self {
        match bias {
            Bias::Appended(value) => Self::Real(value),
            other => Self::Text(other.to_string()),
        }
    }
}

impl From<Vec<f64>> for Value {
    fn from(numbers: Vec<f64>) -> Self {
        Self::Reals(numbers)
    }
}
