//! Hidden Markov models with inputs, known states, positions without observation and densities of the caller, each
//! against the sum over all paths; the machine that learns them from tags, and its files.

use widemargin::data::{Dense, Label, Matrix, NO_TAG, TaggedSequences};
use widemargin::machine::sequence::{
    BaumWelch, Emission, EmissionKind, EmissionPrior, HiddenMarkovMachine, Hmm, MISSING_SYMBOL,
    Observations, Sequences, Updates,
};
use widemargin::machine::{Body, Covariance, Model, Specification};
use widemargin::{Context, Status};

/// Numbers in [0, 1) by a linear congruence.
fn numbers(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    }
}

const STATES: usize = 3;
const SYMBOLS: usize = 4;

fn rows(count: usize, width: usize, next: &mut impl FnMut() -> f64) -> Vec<f64> {
    let row = |next: &mut dyn FnMut() -> f64| {
        let row: Vec<f64> = (0..width).map(|_| 0.05 + next()).collect();
        let total: f64 = row.iter().sum();
        row.iter().map(|p| p / total).collect::<Vec<f64>>()
    };
    (0..count).flat_map(|_| row(next)).collect()
}

/// A random model of symbols with so many inputs.
fn model(inputs: usize, next: &mut impl FnMut() -> f64) -> Hmm {
    let (start, transition) = (rows(1, STATES, next), rows(inputs * STATES, STATES, next));
    let probabilities = rows(STATES, SYMBOLS, next);
    Hmm::new(start, transition, Emission::Categorical { probabilities }).unwrap()
}

/// What is known of one sequence.
#[derive(Clone)]
struct Seen {
    /// Nothing where nothing was observed.
    symbols: Vec<Option<u32>>,
    /// The input that drives the transition into every position.
    drivers: Vec<u32>,
    known: Vec<Option<u32>>,
}

/// Every path with p(path, x); 0 where it misses a known state.
fn paths(hmm: &Hmm, seen: &Seen) -> Vec<(Vec<usize>, f64)> {
    let length = seen.symbols.len();
    let Emission::Categorical { probabilities } = hmm.emission() else { panic!() };
    (0..STATES.pow(length as u32))
        .map(|code| {
            let path: Vec<usize> =
                (0..length).map(|k| code / STATES.pow((length - 1 - k) as u32) % STATES).collect();
            let mut p = hmm.start()[path[0]];
            for k in 1..length {
                let row = seen.drivers[k] as usize * STATES + path[k - 1];
                p *= hmm.transition()[row * STATES + path[k]];
            }
            for (k, &state) in path.iter().enumerate() {
                p *= seen.symbols[k].map_or(1.0, |s| probabilities[state * SYMBOLS + s as usize]);
                p *= if seen.known[k].is_none_or(|known| known as usize == state) {
                    1.0
                } else {
                    0.0
                };
            }
            (path, p)
        })
        .collect()
}

/// The same for the library: inputs are moved back by the lag.
fn sequences(seen: &[Seen], inputs: bool, lag: usize) -> Sequences {
    let lengths = seen.iter().map(|one| one.symbols.len()).collect();
    let all = |part: &dyn Fn(&Seen) -> Vec<u32>| seen.iter().flat_map(part).collect::<Vec<u32>>();
    let symbols = all(&|one| one.symbols.iter().map(|s| s.unwrap_or(MISSING_SYMBOL)).collect());
    let known = all(&|one| one.known.iter().map(|s| s.unwrap_or(NO_TAG)).collect());
    let data = Sequences::of_symbols(symbols, Some(lengths)).unwrap();
    let data = data.with_known_states(known).unwrap();
    if !inputs {
        return data;
    }
    let moved = all(&|one| {
        let mut list = one.drivers[lag..].to_vec();
        list.resize(one.drivers.len(), 0);
        list
    });
    data.with_inputs(&moved, lag).unwrap()
}

fn draw(lengths: &[usize], inputs: usize, next: &mut impl FnMut() -> f64) -> Vec<Seen> {
    let mut below = |count: usize| (next() * count as f64) as u32;
    let mut one = |length: &usize| Seen {
        symbols: (0..*length).map(|_| (below(4) > 0).then(|| below(SYMBOLS))).collect(),
        drivers: (0..*length).map(|_| below(inputs)).collect(),
        known: (0..*length).map(|_| (below(4) == 0).then(|| below(STATES))).collect(),
    };
    lengths.iter().map(&mut one).collect()
}

#[test]
fn inputs_known_states_and_missing_symbols_are_those_of_all_paths() {
    let mut next = numbers(3);
    let context = Context::new();
    for round in 0..12 {
        let inputs = 1 + round % 3;
        let hmm = model(inputs, &mut next);
        let seen = draw(&[5, 1, 4], inputs, &mut next);
        let data = sequences(&seen, inputs > 1, round % 2);
        let (mut total, mut best_total) = (0.0, 0.0);
        let (mut expected, mut best_path) = (Vec::new(), Vec::new());
        for one in &seen {
            let all = paths(&hmm, one);
            let evidence: f64 = all.iter().map(|(_, p)| p).sum();
            total += evidence.ln();
            for k in 0..one.symbols.len() {
                for state in 0..STATES {
                    let own = all.iter().filter(|(path, _)| path[k] == state);
                    expected.push(own.map(|(_, p)| p).sum::<f64>() / evidence);
                }
            }
            let best = all.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
            best_total += best.1.ln();
            best_path.extend(best.0.iter().map(|&state| state as u32));
        }
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

#[test]
fn a_maximisation_with_inputs_is_that_of_all_paths() {
    let mut next = numbers(5);
    let (hmm, context) = (model(2, &mut next), Context::new());
    let seen = draw(&[5, 4], 2, &mut next);
    let data = sequences(&seen, true, 1);
    let mut pairs = [0.0; 2 * STATES * STATES];
    for one in &seen {
        let all = paths(&hmm, one);
        let evidence: f64 = all.iter().map(|(_, p)| p).sum();
        for (path, p) in &all {
            for k in 1..path.len() {
                let row = one.drivers[k] as usize * STATES + path[k - 1];
                pairs[row * STATES + path[k]] += p / evidence;
            }
        }
    }
    for logarithms in [false, true] {
        let trainer = BaumWelch { iterations: 1, logarithms, ..BaumWelch::default() };
        let fit = trainer.fit(&hmm, &data, &context).unwrap();
        for (row, found) in pairs.chunks(STATES).zip(fit.hmm.transition().chunks(STATES)) {
            let visits: f64 = row.iter().sum();
            for (count, found) in row.iter().zip(found) {
                assert!(visits == 0.0 || (count / visits - found).abs() < 1e-10);
            }
        }
    }
}

#[test]
fn likelihood_grows_with_inputs_and_rows_that_are_not_visited_become_uniform() {
    let mut next = numbers(8);
    let truth = model(3, &mut next);
    let context = Context::new();
    // Input 2 never comes.
    let inputs: Vec<u32> = (0..400).map(|_| (next() * 2.0) as u32).collect();
    let (observed, _) = truth.sample_with(&inputs, None, &context).unwrap();
    let Observations::Symbols(symbols) = observed else { panic!() };
    let data = Sequences::of_symbols(symbols, None).unwrap().with_inputs(&inputs, 0).unwrap();
    let first = Hmm::random_with(STATES, 3, truth.emission(), &data, 1).unwrap();
    for uniform_below in [0.0, 1e-3] {
        let trainer = BaumWelch { iterations: 30, tol: 0.0, uniform_below, ..BaumWelch::default() };
        let fit = trainer.fit(&first, &data, &context).unwrap();
        for pair in fit.history.windows(2) {
            assert!(pair[1] >= pair[0] - 1e-9 * pair[0].abs(), "{pair:?}");
        }
        let unvisited = &fit.hmm.transition()[2 * STATES * STATES..];
        let kept = &first.transition()[2 * STATES * STATES..];
        match uniform_below > 0.0 {
            true => assert!(unvisited.iter().all(|p| (p - 1.0 / 3.0).abs() < 1e-15)),
            false => assert_eq!(unvisited, kept),
        }
    }
}

#[test]
fn transitions_of_well_separated_levels_are_recovered() {
    // Levels with 0, 4 and 32 counts on average, and two inputs that raise and lower them.
    let transition = vec![
        0.7, 0.2, 0.1, 0.1, 0.6, 0.3, 0.05, 0.15, 0.8, // rising
        0.9, 0.08, 0.02, 0.5, 0.4, 0.1, 0.3, 0.5, 0.2, // falling
    ];
    let emission = Emission::Poisson { rates: vec![0.0, 4.0, 32.0] };
    let truth = Hmm::new(vec![1.0, 0.0, 0.0], transition.clone(), emission.clone()).unwrap();
    let (mut next, context) = (numbers(2), Context::new());
    let inputs: Vec<u32> = (0..20_000).map(|_| (next() * 2.0) as u32).collect();
    let (observed, _) = truth.sample_with(&inputs, None, &context).unwrap();
    let Observations::Rows { values, .. } = observed else { panic!() };
    let data = Sequences::of_rows(Dense::new(20_000, 1, values).unwrap(), None).unwrap();
    let data = data.with_inputs(&inputs, 0).unwrap();
    let updates = Updates { emission: false, ..Updates::default() };
    let drawn = Hmm::random_with(STATES, 2, &emission, &data, 4).unwrap();
    let first = Hmm::new(drawn.start().to_vec(), drawn.transition().to_vec(), emission).unwrap();
    let trainer = BaumWelch { iterations: 40, tol: 1e-3, updates, ..BaumWelch::default() };
    let fit = trainer.fit(&first, &data, &context).unwrap();
    assert_eq!(fit.hmm.emission(), first.emission());
    for (found, expected) in fit.hmm.transition().iter().zip(&transition) {
        assert!((found - expected).abs() < 0.05, "{found} for {expected}");
    }
}

#[test]
fn densities_of_the_caller_are_those_of_the_emissions() {
    let mut next = numbers(6);
    let (hmm, context) = (model(1, &mut next), Context::new());
    let (observed, _) = hmm.sample(60, None, &context).unwrap();
    let Observations::Symbols(symbols) = observed else { panic!() };
    let Emission::Categorical { probabilities } = hmm.emission() else { panic!() };
    let log = |symbol: &u32| -> Vec<f64> {
        (0..STATES).map(|i| probabilities[i * SYMBOLS + *symbol as usize].ln()).collect()
    };
    let mut values: Vec<f64> = symbols.iter().flat_map(log).collect();
    // State 1 excludes the first observation.
    values[1] = f64::NEG_INFINITY;
    let lengths = Some(vec![20, 40]);
    let densities = Dense::new(60, STATES, values).unwrap();
    let given = Sequences::of_log_densities(densities, lengths.clone()).unwrap();
    let data = Sequences::of_symbols(symbols, lengths).unwrap();
    let own = Hmm::new(hmm.start().to_vec(), hmm.transition().to_vec(), Emission::Given).unwrap();
    let found = own.posteriors(&given, false, &context).unwrap().states;
    let plain = hmm.posteriors(&data, false, &context).unwrap().states;
    assert_eq!(found.row(0)[1], 0.0);
    for k in 20..60 {
        for (a, b) in found.row(k).iter().zip(plain.row(k)) {
            assert!((a - b).abs() < 1e-12);
        }
    }
    let updates = Updates { emission: false, ..Updates::default() };
    let trainer = BaumWelch { iterations: 5, tol: 0.0, updates, ..BaumWelch::default() };
    let fit = trainer.fit(&own, &given, &context).unwrap();
    assert!(fit.history.windows(2).all(|pair| pair[1] >= pair[0]));
    assert!(own.sample(3, None, &context).is_err());
    let finite = Dense::new(1, 1, vec![f64::INFINITY]).unwrap();
    assert!(Sequences::of_log_densities(finite, None).is_err());
}

#[test]
fn the_published_example_has_its_likelihood_and_path() {
    let emission = Emission::Categorical { probabilities: vec![0.5, 0.4, 0.1, 0.1, 0.3, 0.6] };
    let hmm = Hmm::new(vec![0.6, 0.4], vec![0.7, 0.3, 0.4, 0.6], emission).unwrap();
    let data = Sequences::of_symbols(vec![0, 1, 2], None).unwrap();
    let context = Context::new();
    let likelihood = hmm.log_likelihood(&data, &context).unwrap();
    assert!((likelihood.exp() - 0.03628).abs() < 1e-15);
    let (path, log) = hmm.viterbi(&data, &context).unwrap();
    assert_eq!(path, [0, 0, 1]);
    assert!((log.exp() - 0.01512).abs() < 1e-15);
}

#[test]
fn a_hundred_thousand_positions_neither_vanish_nor_overflow() {
    let mut next = numbers(12);
    let (hmm, context) = (model(1, &mut next), Context::new());
    let (observed, _) = hmm.sample(100_000, None, &context).unwrap();
    let Observations::Symbols(symbols) = observed else { panic!() };
    let data = Sequences::of_symbols(symbols, None).unwrap();
    let scaled = hmm.log_likelihood(&data, &context).unwrap();
    let logs = hmm.posteriors(&data, true, &context).unwrap().log_likelihoods[0];
    assert!(scaled < -1e5 && (scaled - logs).abs() < 1e-9 * scaled.abs(), "{scaled} {logs}");
    let (path, best) = hmm.viterbi(&data, &context).unwrap();
    assert!(path.len() == 100_000 && best.is_finite() && best < scaled);
}

#[test]
fn rows_that_were_not_observed_do_not_count() {
    let context = Context::new();
    let gaussian = |means: Vec<f64>| Emission::Gaussian {
        means,
        shape: Covariance::Diagonal,
        covariances: vec![1.0; 2],
    };
    let hmm = Hmm::new(vec![0.5; 2], vec![0.9, 0.1, 0.1, 0.9], gaussian(vec![0.0, 5.0])).unwrap();
    let of = |values: Vec<f64>| {
        let rows = Dense::new(values.len(), 1, values).unwrap();
        Sequences::of_rows(rows, None).unwrap()
    };
    // Two unobserved steps are one transition of the squared matrix.
    let gap = hmm.log_likelihood(&of(vec![0.3, f64::NAN, 5.2]), &context).unwrap();
    let squared =
        Hmm::new(vec![0.5; 2], vec![0.82, 0.18, 0.18, 0.82], gaussian(vec![0.0, 5.0])).unwrap();
    let direct = squared.log_likelihood(&of(vec![0.3, 5.2]), &context).unwrap();
    assert!((gap - direct).abs() < 1e-12);
    let prior = EmissionPrior { covariance: 0.0, ..EmissionPrior::default() };
    let data = of(vec![1.0, f64::NAN, 3.0, 10.0, f64::NAN]);
    let learnt = Hmm::from_states(&[0, 0, 0, 1, 1], &data, &hmm, 0.0, &prior, &context).unwrap();
    let Emission::Gaussian { means, covariances, .. } = learnt.emission() else { panic!() };
    for (found, expected) in [(means[0], 2.0), (covariances[0], 1.0), (means[1], 10.0)] {
        assert!((found - expected).abs() < 1e-12, "{found} for {expected}");
    }
}

fn words(names: &[&str]) -> Vec<Label> {
    names.iter().map(|name| Label::Text((*name).into())).collect()
}

/// Two sequences of symbols as indicators; the third feature stands for an unseen word when it is dropped.
fn indicators(symbols: &[usize], features: usize) -> Matrix {
    let mut values = vec![0.0; symbols.len() * features];
    for (k, &symbol) in symbols.iter().enumerate().filter(|(_, symbol)| **symbol < features) {
        values[k * features + symbol] = 1.0;
    }
    Matrix::DenseF64(Dense::new(symbols.len(), features, values).unwrap())
}

#[test]
fn tags_become_relative_frequencies_and_files_keep_them() {
    let context = Context::new();
    let tags = words(&["a", "a", "b", "b", "a"]);
    let data = TaggedSequences::new(indicators(&[0, 0, 1, 0, 0], 2), vec![3, 2]).unwrap();
    let data = data.with_tags(&tags).unwrap();
    let machine = HiddenMarkovMachine { smoothing: 0.0, ..Default::default() };
    let model = machine.fit(&data, &context).unwrap();
    let Body::HiddenMarkov(body) = &model.body else { panic!() };
    assert_eq!(body.names(), words(&["a", "b"]));
    assert_eq!(body.hmm().start(), [0.5, 0.5]);
    assert_eq!(body.hmm().transition(), [0.5, 0.5, 1.0, 0.0]);
    let expected = Emission::Categorical { probabilities: vec![1.0, 0.0, 0.5, 0.5] };
    assert_eq!(body.hmm().emission(), &expected);
    let again = Model::load_from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again, model);
    // A position without a known symbol is labelled by its neighbours.
    let new = TaggedSequences::new(indicators(&[1, 7], 2), vec![2]).unwrap();
    let found = body.label(&new, &context).unwrap();
    assert_eq!(found[0].tags, [1, 0]);
    assert!((found[0].score - 0.25_f64.ln()).abs() < 1e-12);
    let positions = body.label_positions(&new, &context).unwrap();
    assert_eq!(positions[0].tags, [1, 0]);
    assert!(model.predictor(&context).is_err());
}

#[test]
fn partly_known_and_unknown_tags_are_learnt() {
    let mut next = numbers(21);
    let mut truth = Vec::new();
    let mut values = Vec::new();
    for k in 0..120 {
        let state = k / 6 % 2;
        truth.push(if state == 0 { "low" } else { "high" });
        values.push(4.0 * state as f64 + next());
    }
    let data = |known: &dyn Fn(usize) -> bool| {
        let rows = Matrix::DenseF64(Dense::new(120, 1, values.clone()).unwrap());
        let names = words(&["high", "low"]);
        let code = |k: usize| if known(k) { u32::from(truth[k] == "low") } else { NO_TAG };
        let codes = (0..120).map(code).collect();
        TaggedSequences::new(rows, vec![60, 60])
            .unwrap()
            .with_classes(widemargin::data::Classes { names, codes })
            .unwrap()
    };
    let machine = HiddenMarkovMachine { emissions: EmissionKind::Gaussian, ..Default::default() };
    let context = Context::new();
    let partly = data(&|k| k % 10 == 0);
    let model = machine.fit(&partly, &context).unwrap();
    let Body::HiddenMarkov(body) = &model.body else { panic!() };
    let found = body.label(&partly, &context).unwrap();
    let tags: Vec<String> = found
        .iter()
        .flat_map(|one| &one.tags)
        .map(|&i| body.names()[i as usize].to_string())
        .collect();
    assert_eq!(tags, truth);
    let rows = partly.rows().clone();
    let untagged = TaggedSequences::new(rows, vec![60, 60]).unwrap();
    let machine = HiddenMarkovMachine { states: Some(2), starts: 3, ..machine };
    let model = machine.fit(&untagged, &context).unwrap();
    assert_eq!(model.training.as_ref().unwrap().outcome.status, Status::Solved);
    let Body::HiddenMarkov(body) = &model.body else { panic!() };
    assert_eq!(body.names(), words(&["state0", "state1"]));
    let found = body.label(&untagged, &context).unwrap();
    let changes = |path: &[u32]| path.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(changes(&found[0].tags), 9);
}

#[test]
fn what_a_markov_machine_cannot_learn_is_told() {
    let context = Context::new();
    let data = TaggedSequences::new(indicators(&[0, 1], 2), vec![2]).unwrap();
    let message = |machine: &HiddenMarkovMachine, data: &TaggedSequences| {
        machine.fit(data, &context).unwrap_err().to_string()
    };
    let machine = HiddenMarkovMachine::default();
    assert!(message(&machine, &data).contains("or tags to take them from"));
    let tagged = data.clone().with_tags(&words(&["a", "b"])).unwrap();
    let few = HiddenMarkovMachine { states: Some(1), ..machine.clone() };
    assert!(message(&few, &tagged).contains("one for every tag"));
    let two =
        TaggedSequences::new(Matrix::DenseF64(Dense::new(1, 2, vec![1.0, 1.0]).unwrap()), vec![1]);
    let one = HiddenMarkovMachine { states: Some(2), ..machine };
    assert!(message(&one, &two.unwrap()).contains("2 features at position 1 of sequence 1"));
    let hmm = model(2, &mut numbers(1));
    let plain = Sequences::of_symbols(vec![0, 1], None).unwrap();
    let error = hmm.viterbi(&plain, &context).unwrap_err().to_string();
    assert!(error.contains("an input below 2"), "{error}");
    let far = plain.clone().with_inputs(&[2, 0], 1).unwrap();
    assert!(hmm.viterbi(&far, &context).is_err());
    let known = plain.with_known_states(vec![5, NO_TAG]).unwrap();
    let error = model(1, &mut numbers(1)).viterbi(&known, &context).unwrap_err().to_string();
    assert!(error.contains("states from 0 to 2"), "{error}");
    let specification = Specification::new(widemargin::machine::MachineKind::HiddenMarkov);
    assert_eq!(specification.hidden_markov().unwrap(), HiddenMarkovMachine::default());
}
