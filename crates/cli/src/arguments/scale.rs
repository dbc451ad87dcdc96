//! Scaling of the features before training.

use clap::Args;
use widemargin::data::Matrix;
use widemargin::data::scaling::Scaler;

use crate::failure::CommandResult;

/// How features are scaled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scaling {
    /// Not at all.
    None,
    /// To a range.
    Range(f64, f64),
    /// To mean 0 and deviation 1.
    Standard,
}

impl Scaling {
    /// Learns the scaling from a table.
    pub(crate) fn fit(self, features: &Matrix) -> CommandResult<Option<Scaler>> {
        Ok(match self {
            Self::None => None,
            Self::Range(lower, upper) => Some(Scaler::fit_range(features, lower, upper)?),
            Self::Standard => Some(Scaler::fit_standard(features)?),
        })
    }
}

/// The `--scale` option.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Scaling")]
pub(crate) struct ScaleArguments {
    /// none, standard (mean 0, deviation 1), minmax (to [-1, 1]) or minmax:LOWER,UPPER; kept in the
    /// model and applied again when it predicts
    #[arg(long, value_name = "HOW", default_value = "none", value_parser = scaling)]
    pub(crate) scale: Scaling,
}

/// Reads `none`, `standard`, `minmax` or `minmax:LOWER,UPPER`.
pub(crate) fn scaling(text: &str) -> Result<Scaling, String> {
    match text {
        "none" => return Ok(Scaling::None),
        "standard" => return Ok(Scaling::Standard),
        "minmax" => return Ok(Scaling::Range(-1.0, 1.0)),
        _ => {}
    }
    let limits = text.strip_prefix("minmax:").and_then(|limits| limits.split_once(','));
    let parse = |limit: &str| limit.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    match limits.map(|(lower, upper)| (parse(lower), parse(upper))) {
        Some((Some(lower), Some(upper))) if lower < upper => Ok(Scaling::Range(lower, upper)),
        _ => Err("expected none, standard, minmax or minmax:LOWER,UPPER with LOWER < UPPER".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_with_their_limits() {
        assert_eq!(scaling("minmax"), Ok(Scaling::Range(-1.0, 1.0)));
        assert_eq!(scaling("minmax:0, 2.5"), Ok(Scaling::Range(0.0, 2.5)));
        assert_eq!(scaling("standard"), Ok(Scaling::Standard));
        for bad in ["", "minmax:1,0", "minmax:1", "minmax:a,b", "maxmin", "minmax:0,inf"] {
            assert!(scaling(bad).is_err(), "{bad}");
        }
    }
}
