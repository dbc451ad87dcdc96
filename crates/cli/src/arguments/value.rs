//! Values of options, with messages that say what was expected.

use std::str::FromStr;

use widemargin::Error;

/// Reads a value of the library's; its error says what was expected.
pub(crate) fn value<T: FromStr<Err = Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| match error {
        Error::Parameter { expected, .. } => format!("expected {expected}"),
        other => other.to_string(),
    })
}

/// Reads any number; whether it is in range the library knows.
pub(crate) fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "expected a number".to_owned())
}

/// Reads a whole number.
pub(crate) fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "expected a whole number of at least 0".to_owned())
}
