//! What residuals and one-class values say about probability, as LIBSVM's `-b 1` does it.
//!
//! Regression: Laplace noise exp(−|z|/σ)/(2σ), whose σ is the mean |residual| after residuals beyond
//! five standard deviations are left out. One-class: marks that cut the sorted decision values into
//! bins of equal mass, five on each side of 0 (Lin & Weng, "Simple probabilistic predictions for
//! support vector regression", 2004; Que & Lin, "One-class SVM probabilistic outputs", 2022).

/// Scale σ of the Laplace distribution of held-out residuals; 0 when there are none.
pub(crate) fn fit_laplace_scale(residuals: &[f64]) -> f64 {
    let mean = |list: &mut dyn Iterator<Item = f64>| {
        let (count, sum) = list.fold((0.0, 0.0), |(count, sum), size| (count + 1.0, sum + size));
        if count > 0.0 { sum / count } else { 0.0 }
    };
    let first = mean(&mut residuals.iter().map(|z| z.abs()));
    // The standard deviation of a Laplace distribution is √2 σ.
    let limit = 5.0 * (2.0 * first * first).sqrt();
    mean(&mut residuals.iter().map(|z| z.abs()).filter(|size| *size <= limit))
}

/// Number of density marks.
pub(crate) const DENSITY_MARKS: usize = 10;

/// Marks between bins of equal mass; `None` when fewer than five rows lie on either side of 0.
pub(crate) fn fit_density_marks(values: &[f64]) -> Option<Vec<f64>> {
    let mut sorted: Vec<f64> = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = DENSITY_MARKS / 2;
    let below = sorted.iter().take_while(|value| **value < 0.0).count();
    let above = sorted.len() - below;
    if below < half || above < half {
        return None;
    }
    let lower = (0..half).map(|i| sorted[i * below / half]);
    let upper = (1..=half).map(|i| sorted[below + i * above / half - 1]);
    let borders: Vec<f64> = lower.chain([0.0]).chain(upper).collect();
    Some(borders.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect())
}

/// Probability that a row with decision value `f` belongs to the distribution.
pub(crate) fn density_probability(marks: &[f64], f: f64) -> f64 {
    match (marks.first(), marks.last()) {
        (Some(&lowest), _) if f < lowest => 0.001,
        (_, Some(&highest)) if f > highest => 0.999,
        _ => match marks.iter().position(|mark| f < *mark) {
            Some(bin) => bin as f64 / marks.len() as f64,
            None => 0.999,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_residuals_are_left_out_of_the_scale() {
        assert_eq!(fit_laplace_scale(&[]), 0.0);
        assert_eq!(fit_laplace_scale(&[1.0, -3.0]), 2.0);
        // 99 residuals of 1 and one of 1000: the mean is 10.99, the limit 77.7.
        let mut residuals = vec![1.0; 99];
        residuals.push(-1000.0);
        assert_eq!(fit_laplace_scale(&residuals), 1.0);
    }

    #[test]
    fn marks_lie_between_bins_of_equal_mass() {
        let values: Vec<f64> = (-10..10).map(f64::from).collect();
        let marks = fit_density_marks(&values).unwrap();
        // Bin borders: -10, -8, -6, -4, -2, 0, 1, 3, 5, 7, 9.
        assert_eq!(marks, [-9.0, -7.0, -5.0, -3.0, -1.0, 0.5, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(fit_density_marks(&values[7..]), None);
        assert_eq!(density_probability(&marks, -20.0), 0.001);
        assert_eq!(density_probability(&marks, -8.0), 0.1);
        assert_eq!(density_probability(&marks, 0.0), 0.5);
        assert_eq!(density_probability(&marks, 7.0), 0.9);
        assert_eq!(density_probability(&marks, 8.5), 0.999);
    }
}
