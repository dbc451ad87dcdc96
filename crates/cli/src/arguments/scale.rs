//! Scaling of the features before training.

use clap::Args;
use widemargin::machine::ScalingRule;

/// How features are scaled, if at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scaling(pub(crate) Option<ScalingRule>);

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
        "none" => return Ok(Scaling(None)),
        "standard" => return Ok(Scaling(Some(ScalingRule::Standard))),
        "minmax" => return Ok(range(-1.0, 1.0)),
        _ => {}
    }
    let limits = text.strip_prefix("minmax:").and_then(|limits| limits.split_once(','));
    let parse = |limit: &str| limit.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    match limits.map(|(lower, upper)| (parse(lower), parse(upper))) {
        Some((Some(lower), Some(upper))) if lower < upper => Ok(range(lower, upper)),
        _ => Err("expected none, standard, minmax or minmax:LOWER,UPPER with LOWER < UPPER".into()),
    }
}

fn range(lower: f64, upper: f64) -> Scaling {
    Scaling(Some(ScalingRule::Range { lower, upper }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_with_their_limits() {
        assert_eq!(scaling("minmax"), Ok(range(-1.0, 1.0)));
        assert_eq!(scaling("minmax:0, 2.5"), Ok(range(0.0, 2.5)));
        assert_eq!(scaling("standard"), Ok(Scaling(Some(ScalingRule::Standard))));
        for bad in ["", "minmax:1,0", "minmax:1", "minmax:a,b", "maxmin", "minmax:0,inf"] {
            assert!(scaling(bad).is_err(), "{bad}");
        }
    }
}
