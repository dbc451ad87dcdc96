//! A rule for scaling, as an option of its own.

use widemargin::Error;
use widemargin::machine::ScalingRule;

/// How features are scaled, if at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scaling(pub(crate) Option<ScalingRule>);

/// Reads `none`, `standard`, `minmax` or `minmax:LOWER,UPPER`.
pub(crate) fn scaling(text: &str) -> Result<Scaling, String> {
    ScalingRule::parse(text).map(Scaling).map_err(|error| match error {
        Error::Parameter { expected, .. } => format!("expected {expected}"),
        other => other.to_string(),
    })
}
