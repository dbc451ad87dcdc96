//! Hidden Markov models against enumeration of all paths, and Baum–Welch against its promises.

use widemargin::data::Dense;
use widemargin::machine::Covariance;
use widemargin::machine::sequence::{
    BaumWelch, Emission, EmissionPrior, Hmm, Observations, Sequences, Updates,
};
use widemargin::{CancelToken, Context, Error, Status};

use crate::common::numbers;

fn distribution(count: usize, next: &mut impl FnMut() -> f64) -> Vec<f64> {
    let row: Vec<f64> = (0..count).map(|_| 0.05 + next()).collect();
    let total: f64 = row.iter().sum();
    row.iter().map(|p| p / total).collect()
}

const STATES: usize = 3;
const FEATURES: usize = 2;

fn emissions(next: &mut impl FnMut() -> f64) -> Vec<Emission> {
    let means: Vec<f64> = (0..STATES * FEATURES).map(|_| 4.0 * next() - 2.0).collect();
    let matrix = |next: &mut dyn FnMut() -> f64| {
        let (a, b, c) = (0.5 + next(), next() - 0.5, 0.5 + next());
        vec![a * a, a * b, a * b, b * b + c * c]
    };
    let gaussian =
        |shape, covariances| Emission::Gaussian { means: means.clone(), shape, covariances };
    let full: Vec<f64> = (0..STATES).flat_map(|_| matrix(&mut *next)).collect();
    vec![
        Emission::Categorical {
            probabilities: (0..STATES).flat_map(|_| distribution(4, next)).collect(),
        },
        gaussian(Covariance::Spherical, (0..STATES).map(|_| 0.3 + next()).collect()),
        gaussian(Covariance::Diagonal, (0..STATES * FEATURES).map(|_| 0.3 + next()).collect()),
        gaussian(Covariance::Full, full),
        gaussian(Covariance::Tied, matrix(&mut *next)),
        Emission::Poisson { rates: (0..STATES * FEATURES).map(|_| 0.2 + 4.0 * next()).collect() },
    ]
}

fn model(emission: Emission, next: &mut impl FnMut() -> f64) -> Hmm {
    let transition = (0..STATES).flat_map(|_| distribution(STATES, next)).collect();
    Hmm::new(distribution(STATES, next), transition, emission).unwrap()
}

/// ln b_i(x) by its definition.
fn log_density(emission: &Emission, state: usize, observations: &Observations, k: usize) -> f64 {
    match (emission, observations) {
        (Emission::Categorical { probabilities }, Observations::Symbols(symbols)) => {
            probabilities[state * 4 + symbols[k] as usize].ln()
        }
        (Emission::Poisson { rates }, Observations::Rows { values, .. }) => (0..FEATURES)
            .map(|d| {
                let (x, rate) = (values[k * FEATURES + d], rates[state * FEATURES + d]);
                let factorial: f64 = (1..=x as u32).map(|n| f64::from(n).ln()).sum();
                x * rate.ln() - rate - factorial
            })
            .sum(),
        (Emission::Gaussian { means, shape, covariances }, Observations::Rows { values, .. }) => {
            let far: Vec<f64> = (0..FEATURES)
                .map(|d| values[k * FEATURES + d] - means[state * FEATURES + d])
                .collect();
            let [a, b, c] = match shape {
                Covariance::Spherical => [covariances[state], 0.0, covariances[state]],
                Covariance::Diagonal => [covariances[2 * state], 0.0, covariances[2 * state + 1]],
                Covariance::Full => {
                    [covariances[4 * state], covariances[4 * state + 1], covariances[4 * state + 3]]
                }
                _ => [covariances[0], covariances[1], covariances[3]],
            };
            let determinant = a * c - b * b;
            let square = (c * far[0] * far[0] - 2.0 * b * far[0] * far[1] + a * far[1] * far[1])
                / determinant;
            -0.5 * square - 0.5 * determinant.ln() - std::f64::consts::TAU.ln()
        }
        _ => panic!("another kind"),
    }
}

/// Every path of a sequence with ln p(path, x).
fn paths(
    hmm: &Hmm,
    observations: &Observations,
    span: std::ops::Range<usize>,
) -> Vec<(Vec<usize>, f64)> {
    let length = span.len();
    (0..STATES.pow(length as u32))
        .map(|code| {
            let path: Vec<usize> =
                (0..length).map(|k| code / STATES.pow((length - 1 - k) as u32) % STATES).collect();
            let mut log = hmm.start()[path[0]].ln();
            for k in 1..length {
                log += hmm.transition()[path[k - 1] * STATES + path[k]].ln();
            }
            for (k, &state) in path.iter().enumerate() {
                log += log_density(hmm.emission(), state, observations, span.start + k);
            }
            (path, log)
        })
        .collect()
}

fn sequences(hmm: &Hmm, lengths: &[usize], seed: u64) -> Sequences {
    let context = Context::new().with_seed(seed);
    let (observations, _) = hmm.sample(lengths.iter().sum(), None, &context).unwrap();
    match observations {
        Observations::Symbols(symbols) => Sequences::of_symbols(symbols, Some(lengths.to_vec())),
        Observations::Rows { values, features } => {
            let rows = Dense::new(values.len() / features, features, values).unwrap();
            Sequences::of_rows(rows, Some(lengths.to_vec()))
        }
        _ => panic!("another kind"),
    }
    .unwrap()
}

#[test]
fn likelihood_posteriors_and_best_paths_are_those_of_all_paths() {
    let mut next = numbers(1);
    let lengths = [6, 1, 4];
    let context = Context::new();
    for round in 0..5 {
        for emission in emissions(&mut next) {
            let hmm = model(emission, &mut next);
            let data = sequences(&hmm, &lengths, round);
            let (mut total, mut best_total, mut at) = (0.0, 0.0, 0);
            let mut expected = Vec::new();
            let mut best_path = Vec::new();
            for length in lengths {
                let all = paths(&hmm, data.observations(), at..at + length);
                let evidence: f64 = all.iter().map(|(_, log)| log.exp()).sum();
                total += evidence.ln();
                for k in 0..length {
                    for state in 0..STATES {
                        let own = all.iter().filter(|(path, _)| path[k] == state);
                        expected.push(own.map(|(_, log)| log.exp()).sum::<f64>() / evidence);
                    }
                }
                let best = all.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
                best_total += best.1;
                best_path.extend(best.0.iter().map(|&state| state as u32));
                at += length;
            }
            let likelihood = hmm.log_likelihood(&data, &context).unwrap();
            assert!((likelihood - total).abs() < 1e-10, "{likelihood} for {total}");
            for logarithms in [false, true] {
                let found = hmm.posteriors(&data, logarithms, &context).unwrap();
                assert!((found.log_likelihoods.iter().sum::<f64>() - total).abs() < 1e-10);
                for (found, expected) in found.states.values().iter().zip(&expected) {
                    assert!((found - expected).abs() < 1e-10, "{found} for {expected}");
                }
            }
            let (path, log) = hmm.viterbi(&data, &context).unwrap();
            assert_eq!(path, best_path);
            assert!((log - best_total).abs() < 1e-10);
        }
    }
}

#[test]
fn one_maximisation_is_that_of_all_paths() {
    let mut next = numbers(4);
    let (lengths, context) = ([5, 3], Context::new());
    for emission in emissions(&mut next) {
        let hmm = model(emission, &mut next);
        let data = sequences(&hmm, &lengths, 3);
        let (mut start, mut pairs) = ([0.0; STATES], [0.0; STATES * STATES]);
        let mut at = 0;
        for length in lengths {
            let all = paths(&hmm, data.observations(), at..at + length);
            let evidence: f64 = all.iter().map(|(_, log)| log.exp()).sum();
            for (path, log) in &all {
                let weight = log.exp() / evidence;
                start[path[0]] += weight;
                path.windows(2).for_each(|pair| pairs[pair[0] * STATES + pair[1]] += weight);
            }
            at += length;
        }
        for logarithms in [false, true] {
            let trainer = BaumWelch { iterations: 1, logarithms, ..BaumWelch::default() };
            let fit = trainer.fit(&hmm, &data, &context).unwrap();
            for i in 0..STATES {
                assert!((fit.hmm.start()[i] - start[i] / 2.0).abs() < 1e-10);
                let row = &pairs[i * STATES..][..STATES];
                for j in 0..STATES {
                    let expected = row[j] / row.iter().sum::<f64>();
                    assert!((fit.hmm.transition()[i * STATES + j] - expected).abs() < 1e-10);
                }
            }
        }
    }
}

#[test]
fn iterations_never_lose_likelihood_and_threads_change_nothing() {
    let mut next = numbers(9);
    for (round, emission) in emissions(&mut next).into_iter().enumerate() {
        let truth = model(emission, &mut next);
        let data = sequences(&truth, &[40; 110], round as u64);
        // Without a prior the likelihood itself is what grows.
        let prior = EmissionPrior { covariance: 0.0, ..EmissionPrior::default() };
        let trainer = BaumWelch { iterations: 8, tol: 0.0, prior, ..BaumWelch::default() };
        let first = Hmm::random(STATES, truth.emission(), &data, 7).unwrap();
        let fit = trainer.fit(&first, &data, &Context::new()).unwrap();
        for pair in fit.history.windows(2) {
            assert!(pair[1] >= pair[0] - 1e-7 * pair[0].abs(), "{round}: {pair:?}");
        }
        let threads = Context::new().with_threads(3).unwrap();
        assert_eq!(trainer.fit(&first, &data, &threads).unwrap(), fit);
        let reached = fit.hmm.log_likelihood(&data, &threads).unwrap();
        assert!(reached >= fit.history[0]);
    }
}

#[test]
fn gaussian_maximisation_has_the_moments_of_known_states() {
    let mut next = numbers(11);
    let context = Context::new();
    let emissions = emissions(&mut next);
    for emission in &emissions[1..5] {
        let hmm = model(emission.clone(), &mut next);
        let lengths = [50; 4];
        let data = sequences(&hmm, &lengths, 2);
        let path: Vec<u32> = (0..200).map(|k| (k / 7 % 3) as u32).collect();
        let prior = EmissionPrior { covariance: 0.0, ..EmissionPrior::default() };
        let learnt = Hmm::from_states(&path, &data, &hmm, 0.0, &prior, &context).unwrap();
        let Emission::Gaussian { means, shape, covariances } = learnt.emission() else { panic!() };
        let Observations::Rows { values, .. } = data.observations() else { panic!() };
        let rows = |state: u32| (0..200).filter(move |&k| (k / 7 % 3) as u32 == state);
        let mut pooled = [0.0; 3];
        for state in 0..3 {
            let count = rows(state).count() as f64;
            let mean = |d: usize| rows(state).map(|k| values[2 * k + d]).sum::<f64>() / count;
            let scatter = |d: usize, e: usize| {
                let far = |k: usize, d: usize| values[2 * k + d] - mean(d);
                rows(state).map(|k| far(k, d) * far(k, e)).sum::<f64>()
            };
            let (s, close) = (state as usize, |a: f64, b: f64| (a - b).abs() < 1e-10);
            assert!(close(means[2 * s], mean(0)) && close(means[2 * s + 1], mean(1)));
            let [a, b, c] = [scatter(0, 0), scatter(0, 1), scatter(1, 1)];
            pooled.iter_mut().zip([a, b, c]).for_each(|(sum, value)| *sum += value);
            assert!(match shape {
                Covariance::Spherical => close(covariances[s], (a + c) / 2.0 / count),
                Covariance::Diagonal =>
                    close(covariances[2 * s], a / count) && close(covariances[2 * s + 1], c / count),
                Covariance::Full =>
                    close(covariances[4 * s], a / count)
                        && close(covariances[4 * s + 1], b / count)
                        && close(covariances[4 * s + 3], c / count),
                _ => true,
            });
        }
        if *shape == Covariance::Tied {
            assert!((covariances[1] - pooled[1] / 200.0).abs() < 1e-10);
        }
    }
}

#[test]
fn counts_of_known_states_are_relative_frequencies() {
    let context = Context::new();
    let emission = Emission::Categorical { probabilities: vec![0.5; 4] };
    let like = Hmm::new(vec![0.5, 0.5], vec![0.5; 4], emission).unwrap();
    let data = Sequences::of_symbols(vec![0, 1, 1, 0, 1], Some(vec![3, 2])).unwrap();
    let learn = |smoothing| {
        let prior = EmissionPrior::default();
        Hmm::from_states(&[0, 0, 1, 1, 1], &data, &like, smoothing, &prior, &context).unwrap()
    };
    let plain = learn(0.0);
    assert_eq!(plain.start(), [0.5, 0.5]);
    assert_eq!(plain.transition(), [0.5, 0.5, 0.0, 1.0]);
    let Emission::Categorical { probabilities } = plain.emission() else { panic!() };
    assert_eq!(probabilities[..2], [0.5, 0.5]);
    assert!((probabilities[2] - 1.0 / 3.0).abs() < 1e-15);
    let smooth = learn(1.0);
    assert_eq!(smooth.transition()[2..], [1.0 / 3.0, 2.0 / 3.0]);
    let Emission::Categorical { probabilities } = smooth.emission() else { panic!() };
    assert!((probabilities[2] - 2.0 / 5.0).abs() < 1e-15);
}

#[test]
fn densities_that_vanish_are_summed_by_logarithms() {
    // Only the second state can follow, and its density at the second row is below e^−1000 of the first's.
    let emission = Emission::Gaussian {
        means: vec![0.0, 100.0],
        shape: Covariance::Spherical,
        covariances: vec![1.0, 1.0],
    };
    let hmm = Hmm::new(vec![1.0, 0.0], vec![0.0, 1.0, 0.0, 1.0], emission).unwrap();
    let rows = Dense::new(2, 1, vec![0.0, 1.0]).unwrap();
    let data = Sequences::of_rows(rows, None).unwrap();
    let expected = -std::f64::consts::TAU.ln() - 0.5 * 99.0 * 99.0;
    let context = Context::new();
    let likelihood = hmm.log_likelihood(&data, &context).unwrap();
    assert!((likelihood - expected).abs() < 1e-9, "{likelihood} for {expected}");
    let posteriors = hmm.posteriors(&data, false, &context).unwrap();
    assert_eq!(posteriors.states.values(), [1.0, 0.0, 0.0, 1.0]);
}

#[test]
fn samples_have_the_frequencies_of_the_model() {
    let mut next = numbers(2);
    let hmm = model(emissions(&mut next).remove(0), &mut next);
    let (_, path) = hmm.sample(60_000, Some(1), &Context::new().with_seed(5)).unwrap();
    assert_eq!(path[0], 1);
    for i in 0..STATES {
        let from: Vec<&[u32]> = path.windows(2).filter(|pair| pair[0] as usize == i).collect();
        for j in 0..STATES {
            let share = from.iter().filter(|pair| pair[1] as usize == j).count() as f64;
            let p = hmm.transition()[i * STATES + j];
            // Six standard deviations.
            let allowed = 6.0 * (p * (1.0 - p) / from.len() as f64).sqrt();
            assert!((share / from.len() as f64 - p).abs() < allowed, "{i} {j}");
        }
    }
}

#[test]
fn restarts_keep_the_best_and_stops_are_told() {
    let mut next = numbers(8);
    let truth = model(emissions(&mut next).remove(2), &mut next);
    let data = sequences(&truth, &[60; 5], 1);
    let first = Hmm::random(STATES, truth.emission(), &data, 0).unwrap();
    let trainer = BaumWelch { starts: 4, iterations: 15, ..BaumWelch::default() };
    let fit = trainer.fit(&first, &data, &Context::new()).unwrap();
    let most = fit.starts.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert_eq!((fit.starts.len(), fit.history.last()), (4, Some(&most)));
    let cancel = CancelToken::new();
    cancel.cancel();
    let stopped = trainer.fit(&first, &data, &Context::new().with_cancel_token(cancel));
    assert!(matches!(stopped, Err(Error::Interrupted)));
    let fixed = Updates { start: false, transition: false, emission: true, covariance: false };
    let fit = BaumWelch { updates: fixed, iterations: 3, tol: 0.0, ..BaumWelch::default() }
        .fit(&first, &data, &Context::new())
        .unwrap();
    assert_eq!((fit.hmm.transition(), fit.status), (first.transition(), Status::IterationLimit));
}

#[test]
fn restarts_keep_what_is_not_learnt_what_is_given_and_zeros() {
    let context = Context::new();
    let table = vec![0.7, 0.2, 0.1, 0.0, 0.5, 0.5];
    let chain = vec![0.6, 0.4, 0.0, 1.0];
    let emission = Emission::Categorical { probabilities: table.clone() };
    let first = Hmm::new(vec![1.0, 0.0], chain.clone(), emission).unwrap();
    let data = sequences(&first, &[30; 6], 4);
    let all = Updates::default();
    let starts = |updates, redrawn| {
        let trainer = BaumWelch { starts: 8, updates, redrawn, tol: 0.0, ..BaumWelch::default() };
        trainer.fit(&first, &data, &context).unwrap()
    };
    let probabilities = |hmm: &Hmm| match hmm.emission() {
        Emission::Categorical { probabilities } => probabilities.clone(),
        other => panic!("{other:?}"),
    };
    let fixed = starts(Updates { emission: false, ..all }, all);
    assert_eq!(probabilities(&fixed.hmm), table);
    assert!(fixed.starts.iter().all(|found| found.is_finite()), "{:?}", fixed.starts);
    let fixed = starts(Updates { transition: false, ..all }, all);
    assert_eq!(fixed.hmm.transition(), chain);
    let free = starts(all, all);
    assert!(free.starts.iter().any(|found| *found != free.starts[0]));
    assert_eq!((free.hmm.start(), free.hmm.transition()[2]), (&[1.0, 0.0][..], 0.0));
    assert_eq!(probabilities(&free.hmm)[3], 0.0);
    // All starts are the same where nothing is drawn anew.
    let none = Updates { start: false, transition: false, emission: false, covariance: false };
    let same = starts(all, none);
    assert_eq!(same.starts, vec![same.starts[0]; 8]);
}

#[test]
fn a_start_that_cannot_have_made_the_sequences_is_left_out() {
    let mut next = numbers(9);
    let truth = model(emissions(&mut next).remove(2), &mut next);
    let data = sequences(&truth, &[40; 3], 1);
    let like = Hmm::random(STATES, truth.emission(), &data, 0).unwrap();
    let Emission::Gaussian { means, shape, covariances } = like.emission().clone() else {
        panic!()
    };
    let far = Emission::Gaussian { means: vec![1e200; means.len()], shape, covariances };
    let first = Hmm::new(like.start().to_vec(), like.transition().to_vec(), far).unwrap();
    let context = Context::new();
    let trainer = BaumWelch { starts: 3, ..BaumWelch::default() };
    let fit = trainer.fit(&first, &data, &context).unwrap();
    assert_eq!(fit.starts[0], f64::NEG_INFINITY);
    assert!(fit.starts[1].is_finite() && fit.history.last().unwrap().is_finite());
    let kept = Updates { emission: false, ..Updates::default() };
    let none = BaumWelch { updates: kept, ..trainer }.fit(&first, &data, &context);
    let message = none.unwrap_err().to_string();
    assert!(message.contains("can have made") && message.contains("iteration 1"), "{message}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let context = Context::new();
    let table = |probabilities| Emission::Categorical { probabilities };
    let refuse = |start: Vec<f64>, transition: Vec<f64>, emission| {
        Hmm::new(start, transition, emission).unwrap_err().to_string()
    };
    let half = vec![0.5, 0.5];
    assert!(refuse(vec![0.5, 0.6], vec![0.5; 4], table(vec![0.5; 4])).contains("add up to 1"));
    assert!(refuse(half.clone(), vec![0.5; 3], table(vec![0.5; 4])).contains("transition"));
    assert!(refuse(half.clone(), vec![0.5; 4], table(vec![0.5; 3])).contains("emission"));
    assert!(refuse(vec![], vec![], table(vec![])).contains("state"));
    let hmm = Hmm::new(half.clone(), vec![0.5; 4], table(vec![0.5; 4])).unwrap();
    let unseen = Sequences::of_symbols(vec![0, 2], None).unwrap();
    let message = hmm.log_likelihood(&unseen, &context).unwrap_err().to_string();
    assert!(message.contains("symbols from 0 to 1") && message.contains("position 2"), "{message}");
    assert!(Sequences::of_symbols(vec![0, 1], Some(vec![3])).is_err());
    assert!(Sequences::of_symbols(vec![], None).is_err());
    // A row that is not a number was not observed.
    let rows = Dense::new(2, 1, vec![0.0, f64::INFINITY]).unwrap();
    assert!(matches!(Sequences::of_rows(rows, None), Err(Error::NonFinite { row: 2, .. })));
    let rates = Emission::Poisson { rates: vec![1.0, 2.0] };
    let counts = Hmm::new(half.clone(), vec![0.5; 4], rates).unwrap();
    let rows = Sequences::of_rows(Dense::new(1, 1, vec![0.5]).unwrap(), None).unwrap();
    assert!(counts.log_likelihood(&rows, &context).is_err());
    let flat = Emission::Gaussian {
        means: vec![0.0, 1.0],
        shape: Covariance::Full,
        covariances: vec![1.0, 0.0],
    };
    let flat = Hmm::new(half, vec![0.5; 4], flat).unwrap();
    assert!(flat.log_likelihood(&rows, &context).is_err());
}

#[test]
fn counts_of_large_rates_are_those_of_the_distribution() {
    let draw = |rate: f64, length: usize| {
        let hmm = Hmm::new(vec![1.0], vec![1.0], Emission::Poisson { rates: vec![rate] }).unwrap();
        match hmm.sample(length, None, &Context::new().with_seed(5)).unwrap().0 {
            Observations::Rows { values, .. } => values,
            other => panic!("{other:?}"),
        }
    };
    // On both sides of the rate where the method changes, against the probabilities themselves.
    for rate in [450.0, 550.0] {
        let counts = draw(rate, 20_000);
        let mut log_probability = -rate;
        let (mut below, mut edge) = (0.0, 0);
        for k in 0..1500 {
            below += log_probability.exp();
            log_probability += rate.ln() - f64::from(k + 1).ln();
            if edge == 9 || below < 0.1 * f64::from(edge + 1) {
                continue;
            }
            edge += 1;
            let share = counts.iter().filter(|count| **count <= f64::from(k)).count() as f64 / 2e4;
            // Four standard deviations.
            let deviation = (below * (1.0 - below) / 2e4).sqrt();
            assert!((share - below).abs() <= 4.0 * deviation, "{rate}: {share} {below}");
        }
        assert_eq!(edge, 9);
    }
    for rate in [1e9, 1e15] {
        let counts = draw(rate, 20_000);
        let scaled: Vec<f64> = counts.iter().map(|count| (count - rate) / rate.sqrt()).collect();
        let mean = scaled.iter().sum::<f64>() / 2e4;
        let variance = scaled.iter().map(|x| x * x).sum::<f64>() / 2e4;
        assert!(mean.abs() < 4.0 / 2e4_f64.sqrt(), "{rate}: {mean}");
        assert!((variance - 1.0).abs() < 4.0 * (2.0 / 2e4_f64).sqrt(), "{rate}: {variance}");
    }
    // No time that grows with the rate.
    assert!(draw(1e300, 100).iter().all(|count| (count / 1e300 - 1.0).abs() < 1e-9));
}

#[test]
fn rows_whose_squares_overflow_are_refused_with_the_remedy() {
    let rows = Dense::new(4, 1, vec![1e200, -1e200, 2e200, 0.0]).unwrap();
    let sequences = Sequences::of_rows(rows, None).unwrap();
    let emission = Emission::Gaussian {
        means: vec![0.0, 1e200],
        shape: Covariance::Diagonal,
        covariances: vec![1e300; 2],
    };
    let hmm = Hmm::new(vec![0.5; 2], vec![0.5; 4], emission.clone()).unwrap();
    let random = Hmm::random(2, &emission, &sequences, 0).unwrap_err();
    let prior = EmissionPrior::default();
    let counted = Hmm::from_states(&[0, 1, 0, 1], &sequences, &hmm, 0.0, &prior, &Context::new());
    for error in [random, counted.unwrap_err()] {
        assert!(error.to_string().contains("scale the features"), "{error}");
    }
}
