//! Widths of Parzen windows, one a class, with the fewest leave-one-out errors.
//!
//! Each class has a width σ_j 2^(s/4), |s| ≤ 8, around its likeliest one. The best common s is where
//! single classes start to move, one after the other, until none can lower the number of errors or,
//! at equal errors, raise Π P(class | x).

use super::left_out::{LeftOut, sampled_rows};
use super::width::WindowWidth;
use crate::context::Context;
use crate::data::Matrix;
use crate::error::Result;
use crate::machine::probability::log_sum;

/// Widths tried on either side of the likeliest.
const SIDE: i32 = 8;

/// Rounds over the classes.
const ROUNDS: usize = 20;

/// The widths of classes, whose rows stand one after the other in `whole`.
pub(super) fn least_errors(
    classes: &[Matrix],
    whole: &Matrix,
    log_priors: &[f64],
    context: &Context,
) -> Result<Vec<f64>> {
    let starts: Vec<usize> = classes
        .iter()
        .scan(0, |end, rows| {
            *end += rows.rows();
            Some(*end - rows.rows())
        })
        .collect();
    let places = sampled_rows(whole.rows(), context);
    let queries = whole.select_rows(&places);
    let class_of = |place: usize| starts.partition_point(|&start| start <= place) - 1;
    let truth: Vec<usize> = places.iter().map(|&place| class_of(place)).collect();
    let features = whole.columns() as f64;
    let mut widths = Vec::with_capacity(classes.len());
    let mut scores = Vec::with_capacity(classes.len());
    for (class, rows) in classes.iter().enumerate() {
        let own =
            |(&place, &truth): (&usize, &usize)| (truth == class).then(|| place - starts[class]);
        let own: Vec<Option<usize>> = places.iter().zip(&truth).map(own).collect();
        let left_out = LeftOut::new(rows, &queries, own, context)?;
        let likeliest = WindowWidth::LeaveOneOut.resolve(rows, context)?;
        let tried: Vec<f64> =
            (-SIDE..=SIDE).map(|s| likeliest * 2.0_f64.powf(f64::from(s) / 4.0)).collect();
        let mut table = Vec::with_capacity(tried.len());
        for &width in &tried {
            let mut sums = left_out.log_sums(width)?;
            for (sum, &truth) in sums.iter_mut().zip(&truth) {
                let others = (rows.rows() - usize::from(truth == class)).max(1) as f64;
                *sum += log_priors[class] - others.ln() - features * width.ln();
            }
            table.push(sums);
        }
        widths.push(tried);
        scores.push(table);
    }
    let search = WidthSearch { scores, truth };
    let chosen = search.run();
    Ok(chosen.iter().zip(&widths).map(|(&s, widths)| widths[s]).collect())
}

struct WidthSearch {
    /// ln(prior · density) by class, width tried and row.
    scores: Vec<Vec<Vec<f64>>>,
    truth: Vec<usize>,
}

impl WidthSearch {
    fn run(&self) -> Vec<usize> {
        let (classes, tried) = (self.scores.len(), self.scores[0].len());
        // The likeliest widths win over others that are as good.
        let mut order: Vec<usize> = (0..tried).collect();
        order.sort_by_key(|&s| s.abs_diff(tried / 2));
        let mut best = (vec![tried / 2; classes], self.badness(&vec![tried / 2; classes]));
        for &s in &order {
            let badness = self.badness(&vec![s; classes]);
            if badness < best.1 {
                best = (vec![s; classes], badness);
            }
        }
        for _ in 0..ROUNDS {
            let before = best.1;
            for class in 0..classes {
                for &s in &order {
                    let mut chosen = best.0.clone();
                    chosen[class] = s;
                    let badness = self.badness(&chosen);
                    if badness < best.1 {
                        best = (chosen, badness);
                    }
                }
            }
            if best.1 == before {
                break;
            }
        }
        best.0
    }

    /// Errors, and −Σ ln P(class | x); rows that are alone in their class do not count.
    fn badness(&self, chosen: &[usize]) -> (usize, f64) {
        let (mut errors, mut loss) = (0, 0.0);
        let mut row = vec![0.0; chosen.len()];
        for (i, &truth) in self.truth.iter().enumerate() {
            for ((value, scores), &s) in row.iter_mut().zip(&self.scores).zip(chosen) {
                *value = scores[s][i];
            }
            if row[truth] == f64::NEG_INFINITY {
                continue;
            }
            errors += usize::from(row.iter().any(|value| *value > row[truth]));
            loss += log_sum(&row) - row[truth];
        }
        (errors, loss)
    }
}
