//! Numbers of equal ratios.

/// `count` numbers from `low` to `high`, both positive, with equal ratios; powers of two stay powers of two.
pub(crate) fn logarithmic(low: f64, high: f64, count: usize) -> Vec<f64> {
    let (first, step) =
        (low.log2(), (high.log2() - low.log2()) / count.max(2).saturating_sub(1) as f64);
    let value = |i: usize| match i {
        0 => low,
        i if i + 1 == count => high,
        i => (first + step * i as f64).exp2(),
    };
    (0..count).map(value).collect()
}
