//! How decision values become a class, scheme by scheme.

use super::model::Scheme;

/// The class that the values of all decision functions elect.
pub(super) fn elect(scheme: &Scheme, classes: usize, values: &[f64]) -> usize {
    match scheme {
        Scheme::OneVsOne => most_votes(classes, values),
        Scheme::OneVsRest => first_largest(values.iter().copied()),
        Scheme::Dag => decision_graph(classes, values),
        Scheme::ErrorCorrecting(codes) => {
            first_largest((0..codes.len()).map(|class| -codes.cost(class, values)))
        }
    }
}

/// A score of every class; see [`Predictor::class_scores`](super::Predictor::class_scores).
pub(super) fn scores(scheme: &Scheme, classes: usize, values: &[f64]) -> Vec<f64> {
    match scheme {
        Scheme::OneVsOne | Scheme::Dag => {
            let mut votes = vec![0.0; classes];
            let mut confidence = vec![0.0; classes];
            let pairs = (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j)));
            for ((i, j), &value) in pairs.zip(values) {
                votes[if value < 0.0 { j } else { i }] += 1.0;
                confidence[i] += value;
                confidence[j] -= value;
            }
            let score = |(vote, sum): (f64, f64)| vote + sum / (3.0 * (sum.abs() + 1.0));
            votes.into_iter().zip(confidence).map(score).collect()
        }
        Scheme::OneVsRest => values.to_vec(),
        Scheme::ErrorCorrecting(codes) => {
            (0..codes.len()).map(|class| -codes.cost(class, values)).collect()
        }
    }
}

fn first_largest(values: impl Iterator<Item = f64>) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (class, value) in values.enumerate() {
        if value > best.1 {
            best = (class, value);
        }
    }
    best.0
}

/// Position of the function of pair i < j.
pub(super) fn pair_index(classes: usize, i: usize, j: usize) -> usize {
    i * (2 * classes - i - 1) / 2 + j - i - 1
}

fn most_votes(classes: usize, values: &[f64]) -> usize {
    let mut votes = vec![0_u32; classes];
    let mut values = values.iter();
    for i in 0..classes {
        for j in i + 1..classes {
            let winner = if values.next().is_some_and(|&v| v > 0.0) { i } else { j };
            votes[winner] += 1;
        }
    }
    first_largest(votes.into_iter().map(f64::from))
}

fn decision_graph(classes: usize, values: &[f64]) -> usize {
    let (mut first, mut last) = (0, classes - 1);
    while first < last {
        if values[pair_index(classes, first, last)] > 0.0 {
            last -= 1;
        } else {
            first += 1;
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_numbered_in_order() {
        for classes in 2..6 {
            let mut expected = 0;
            for i in 0..classes {
                for j in i + 1..classes {
                    assert_eq!(pair_index(classes, i, j), expected);
                    expected += 1;
                }
            }
        }
    }

    #[test]
    fn a_tied_vote_goes_to_the_lower_class() {
        // 0 beats 1, 2 beats 0, 1 beats 2: one vote each.
        assert_eq!(elect(&Scheme::OneVsOne, 3, &[1.0, -1.0, 1.0]), 0);
        // A value of exactly zero votes for the second class of its pair.
        assert_eq!(elect(&Scheme::OneVsOne, 2, &[0.0]), 1);
    }

    #[test]
    fn the_graph_agrees_with_a_class_that_wins_all_its_pairs() {
        for winner in 0..4 {
            let mut values = Vec::new();
            for i in 0..4 {
                for j in i + 1..4 {
                    values.push(if i == winner {
                        1.0
                    } else if j == winner || (i + j) % 2 == 0 {
                        -1.0
                    } else {
                        1.0
                    });
                }
            }
            assert_eq!(elect(&Scheme::Dag, 4, &values), winner);
            assert_eq!(elect(&Scheme::OneVsOne, 4, &values), winner);
        }
    }

    #[test]
    fn codes_correct_one_wrong_function() {
        let codes = super::super::codes::error_correcting_code(5, 0);
        for class in 0..5 {
            let mut values: Vec<f64> = codes[class].iter().map(|&side| f64::from(side)).collect();
            values[3] = -values[3];
            assert_eq!(elect(&Scheme::ErrorCorrecting(codes.clone().into()), 5, &values), class);
        }
    }
}
