//! Axes: where a value lies and which values are written beside them.

/// How values lie along an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scale {
    /// From low to high at equal differences.
    Linear(f64, f64),
    /// From low to high at equal ratios.
    Log(f64, f64),
    /// Values 0, 1, 2, … that stand for words.
    Words(Vec<String>),
}

impl Scale {
    /// A linear axis that holds the values with a little room.
    pub(crate) fn linear(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = ends(values);
        let room = match high - low {
            width if width > 0.0 => 0.05 * width,
            _ => (0.05 * low.abs()).max(0.005),
        };
        Self::Linear(low - room, high + room)
    }

    /// A logarithmic axis for positive values that differ by a factor of ten or more, else a linear one.
    pub(crate) fn fitting(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = ends(values);
        if low > 0.0 && high / low >= 10.0 {
            let room = (high / low).powf(0.05);
            Self::Log(low / room, high * room)
        } else {
            Self::linear([low, high])
        }
    }

    /// Where a value lies, 0 at the low end and 1 at the high one.
    pub(super) fn share(&self, value: f64) -> f64 {
        match self {
            Self::Linear(low, high) => (value - low) / (high - low),
            Self::Log(low, high) => (value / low).ln() / (high / low).ln(),
            Self::Words(words) => (value + 0.5) / words.len().max(1) as f64,
        }
    }

    /// Values to write, with their words.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        match self {
            Self::Linear(low, high) => linear_ticks(*low, *high),
            Self::Log(low, high) => log_ticks(*low, *high),
            Self::Words(words) => {
                words.iter().enumerate().map(|(i, word)| (i as f64, word.clone())).collect()
            }
        }
    }
}

fn ends(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let finite = values.into_iter().filter(|value| value.is_finite());
    let (low, high) =
        finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if low > high { (0.0, 1.0) } else { (low, high) }
}

/// Multiples of 1, 2 or 5 times a power of ten, about six of them.
fn linear_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let rough = (high - low) / 6.0;
    let power = 10.0_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    if !step.is_normal() {
        return vec![(low, low.to_string())];
    }
    let digits = (-(step * 1.0001).log10().floor()).max(0.0) as usize;
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    let words = |value: f64| match value.abs() {
        size if size >= 1e6 || (digits > 6 && size > 0.0) => format!("{value:.2e}"),
        _ => format!("{value:.digits$}"),
    };
    (first..=last).take(20).map(|i| (i as f64 * step, words(i as f64 * step))).collect()
}

/// Powers of ten, at most eight of them; with 2 and 5 between them when there are few.
fn log_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let between: &[f64] = if last - first <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let stride = ((last - first) / 8 + 1).max(1) as usize;
    let inside = |value: &f64| *value >= 0.999 * low && *value <= 1.001 * high;
    let powers = (first..=last).filter(|power| power.rem_euclid(stride as i32) == 0);
    let values = powers.flat_map(|power| between.iter().map(move |m| m * 10.0_f64.powi(power)));
    values.filter(inside).map(|value| (value, plain(value))).collect()
}

/// A number without needless digits.
pub(super) fn plain(value: f64) -> String {
    match value.abs() {
        size if size != 0.0 && !(1e-3..1e5).contains(&size) => {
            let words = format!("{value:.3e}");
            let (number, power) = words.split_once('e').unwrap_or((&words, "0"));
            let number = number.trim_end_matches('0').trim_end_matches('.');
            format!("{number}e{power}")
        }
        _ => {
            let words = format!("{value:.4}");
            words.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_inside() {
        let words = |scale: &Scale| scale.ticks().into_iter().map(|t| t.1).collect::<Vec<_>>();
        assert_eq!(words(&Scale::Linear(0.0, 1.0)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(
            words(&Scale::Linear(0.93, 0.96)),
            ["0.930", "0.935", "0.940", "0.945", "0.950", "0.955", "0.960"]
        );
        assert_eq!(words(&Scale::Log(0.5, 60.0)), ["0.5", "1", "2", "5", "10", "20", "50"]);
        assert_eq!(
            words(&Scale::Log(1e-5, 1e5)),
            ["1e-4", "0.01", "1", "100", "1e4"].map(|w| if w == "1e4" { "10000" } else { w })
        );
        assert_eq!(words(&Scale::Words(vec!["rbf".into()])), ["rbf"]);
    }

    #[test]
    fn equal_ratios_are_equally_far_on_a_logarithmic_axis() {
        let scale = Scale::fitting([0.01, 100.0]);
        let [a, b, c] = [0.1, 1.0, 10.0].map(|value| scale.share(value));
        assert!((b - a - (c - b)).abs() < 1e-12 && (b - 0.5).abs() < 1e-12);
        assert!(matches!(Scale::fitting([1.0, 5.0]), Scale::Linear(..)));
        assert!(matches!(Scale::fitting([0.0, 100.0]), Scale::Linear(..)));
        let Scale::Linear(low, high) = Scale::fitting([3.0]) else { panic!() };
        assert!(low < 3.0 && high > 3.0);
    }
}
