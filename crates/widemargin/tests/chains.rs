//! Large-margin chains against the quadratic program over all labellings, the factored one, enumeration and published
//! numbers.

use std::time::Duration;

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSolver, IPSolver, SolverStatus, SupportedConeT};
use widemargin::data::{Csr, Dense, Label, Matrix, NO_TAG, TaggedSequences};
use widemargin::kernel::Kernel;
use widemargin::machine::sequence::{Chain, ChainSvc, TagConstraints, TagLoss, TagScores};
use widemargin::machine::{Body, Model};
use widemargin::{Context, Status};

use crate::common::{Numbers, conic_settings};

/// Sequences as plain lists.
struct Case {
    rows: Vec<Vec<f64>>,
    lengths: Vec<usize>,
    tags: Vec<usize>,
    count: usize,
    c: f64,
}

impl Case {
    fn random(seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        let (count, features) = (2 + numbers.below(2), 1 + numbers.below(3));
        let lengths: Vec<usize> = (0..2 + numbers.below(2)).map(|_| 1 + numbers.below(4)).collect();
        let positions: usize = lengths.iter().sum();
        let value = |numbers: &mut Numbers| (4.0 * numbers.next()).floor() - 1.0;
        let rows = (0..positions).map(|_| (0..features).map(|_| value(&mut numbers)).collect());
        let rows = rows.collect();
        // Every tag occurs, so that codes are tags.
        let tags = (0..positions).map(|k| if k < count { k } else { numbers.below(count) });
        let tags: Vec<usize> = tags.collect();
        let count = tags.iter().max().unwrap() + 1;
        Self { rows, lengths, tags, count: count.max(2), c: [0.1, 1.0, 7.0][seed as usize % 3] }
    }

    fn data(&self) -> TaggedSequences {
        let features = self.rows[0].len();
        let rows = Dense::new(self.rows.len(), features, self.rows.concat()).unwrap();
        let tags: Vec<Label> = self.tags.iter().map(|&tag| Label::Int(tag as i64)).collect();
        let data = TaggedSequences::new(Matrix::DenseF64(rows), self.lengths.clone());
        data.unwrap().with_tags(&tags).unwrap()
    }

    fn dimension(&self) -> usize {
        self.count * (self.rows[0].len() + self.count)
    }

    /// Φ(x, u) of positions from `first` on.
    fn joint(&self, first: usize, tags: &[usize]) -> Vec<f64> {
        let features = self.rows[0].len();
        let mut joint = vec![0.0; self.dimension()];
        for (k, &tag) in tags.iter().enumerate() {
            for (j, value) in self.rows[first + k].iter().enumerate() {
                joint[tag * features + j] += value;
            }
        }
        for pair in tags.windows(2) {
            joint[self.count * features + pair[0] * self.count + pair[1]] += 1.0;
        }
        joint
    }

    /// First position and tags of every sequence.
    fn sequences(&self) -> Vec<(usize, &[usize])> {
        let mut first = 0;
        let spans = self.lengths.iter().map(|&length| {
            first += length;
            (first - length, &self.tags[first - length..first])
        });
        spans.collect()
    }

    /// All tags of a length.
    fn labellings(&self, length: usize) -> Vec<Vec<usize>> {
        let all = 0..self.count.pow(length as u32);
        let digit = |code: usize, k: usize| code / self.count.pow(k as u32) % self.count;
        all.map(|code| (0..length).map(|k| digit(code, k)).collect()).collect()
    }
}

fn losses(left: &[usize], right: &[usize]) -> f64 {
    left.iter().zip(right).filter(|(a, b)| a != b).count() as f64
}

/// A quadratic program with a diagonal matrix; rows are (coefficients, right-hand side).
struct Program {
    diagonal: Vec<f64>,
    linear: Vec<f64>,
    equal: Vec<(Vec<f64>, f64)>,
    at_most: Vec<(Vec<f64>, f64)>,
}

impl Program {
    fn optimum(&self) -> f64 {
        let size = self.diagonal.len();
        let square: Vec<Vec<f64>> = (0..size)
            .map(|i| (0..size).map(|j| if i == j { self.diagonal[i] } else { 0.0 }).collect())
            .collect();
        let rows: Vec<Vec<f64>> =
            self.equal.iter().chain(&self.at_most).map(|(row, _)| row.clone()).collect();
        let right: Vec<f64> = self.equal.iter().chain(&self.at_most).map(|(_, b)| *b).collect();
        let cones = [
            SupportedConeT::ZeroConeT(self.equal.len()),
            SupportedConeT::NonnegativeConeT(self.at_most.len()),
        ];
        let settings = conic_settings(1e-11);
        let (square, rows) = (CscMatrix::from(&square).to_triu(), CscMatrix::from(&rows));
        let mut solver =
            DefaultSolver::new(&square, &self.linear, &rows, &right, &cones, settings).unwrap();
        solver.solve();
        let status = solver.solution.status;
        assert!(matches!(status, SolverStatus::Solved | SolverStatus::AlmostSolved), "{status:?}");
        solver.solution.obj_val
    }
}

/// minimise ½‖w‖² + C Σ ξᵢ subject to ⟨w, ψᵢ(u)⟩ ≥ Δ(u) − ξᵢ for all labellings.
fn exponential(case: &Case) -> f64 {
    let (size, blocks) = (case.dimension(), case.lengths.len());
    let mut program = Program {
        diagonal: [vec![1.0; size], vec![0.0; blocks]].concat(),
        linear: [vec![0.0; size], vec![case.c; blocks]].concat(),
        equal: Vec::new(),
        at_most: Vec::new(),
    };
    for (i, (first, truth)) in case.sequences().into_iter().enumerate() {
        let real = case.joint(first, truth);
        for other in case.labellings(truth.len()) {
            let joint = case.joint(first, &other);
            let mut row: Vec<f64> = joint.iter().zip(&real).map(|(a, b)| a - b).collect();
            row.extend((0..blocks).map(|j| if i == j { -1.0 } else { 0.0 }));
            program.at_most.push((row, -losses(&other, truth)));
        }
    }
    program.optimum()
}

/// The dual over marginals μ of positions and ν of pairs, with the marginals of ν on both sides or on one.
fn factored(case: &Case, both: bool) -> f64 {
    let (size, count, positions) = (case.dimension(), case.count, case.rows.len());
    let features = case.rows[0].len();
    let mu = |k: usize, u: usize| size + k * count + u;
    let nu = |k: usize, before: usize, u: usize| {
        size + positions * count + (k * count + before) * count + u
    };
    let width = size + positions * count + positions * count * count;
    let mut program = Program {
        diagonal: (0..width).map(|at| if at < size { 1.0 } else { 0.0 }).collect(),
        linear: vec![0.0; width],
        equal: Vec::new(),
        at_most: (size..width)
            .map(|at| ((0..width).map(|j| if j == at { -1.0 } else { 0.0 }).collect(), 0.0))
            .collect(),
    };
    // w + C Σ μ φ + C Σ ν = C Σ Φ(x, y).
    let mut weights: Vec<(Vec<f64>, f64)> = (0..size)
        .map(|at| ((0..width).map(|j| if j == at { 1.0 } else { 0.0 }).collect(), 0.0))
        .collect();
    let row = |entries: &[(usize, f64)]| {
        let mut row = vec![0.0; width];
        entries.iter().for_each(|(at, value)| row[*at] += value);
        row
    };
    for (first, truth) in case.sequences() {
        for (weight, value) in weights.iter_mut().zip(case.joint(first, truth)) {
            weight.1 += case.c * value;
        }
        for k in first..first + truth.len() {
            for u in 0..count {
                program.linear[mu(k, u)] = if u == case.tags[k] { 0.0 } else { -case.c };
                for j in 0..features {
                    weights[u * features + j].0[mu(k, u)] += case.c * case.rows[k][j];
                }
            }
            let ones: Vec<(usize, f64)> = (0..count).map(|u| (mu(k, u), 1.0)).collect();
            program.equal.push((row(&ones), 1.0));
            for u in (0..count).filter(|_| k > first) {
                for before in 0..count {
                    let at = count * features + before * count + u;
                    weights[at].0[nu(k, before, u)] += case.c;
                }
                let mut here: Vec<(usize, f64)> = (0..count).map(|b| (nu(k, b, u), 1.0)).collect();
                here.push((mu(k, u), -1.0));
                program.equal.push((row(&here), 0.0));
                let mut last: Vec<(usize, f64)> = (0..count).map(|v| (nu(k, u, v), 1.0)).collect();
                last.push((mu(k - 1, u), -1.0));
                if both {
                    program.equal.push((row(&last), 0.0));
                }
            }
        }
    }
    program.equal.extend(weights);
    -program.optimum()
}

fn chain(model: &Model) -> &Chain {
    let Body::Chain(chain) = &model.body else { panic!("{}", model.body.name()) };
    chain
}

fn fit(case: &Case, tol: f64) -> Model {
    let machine = ChainSvc { c: case.c, tol, max_iterations: 20_000, ..ChainSvc::default() };
    machine.fit(&case.data(), &Context::new()).unwrap()
}

#[test]
fn the_optimum_is_that_of_both_quadratic_programs() {
    let mut different = 0;
    for seed in 0..24 {
        let case = Case::random(seed);
        let model = fit(&case, 1e-8);
        let outcome = model.training.as_ref().unwrap().outcome;
        let (all, both) = (exponential(&case), factored(&case, true));
        let place = format!("case {seed}: {outcome:?}, {all}, {both}");
        assert_eq!(outcome.status, Status::Solved, "{place}");
        for value in [outcome.primal, outcome.dual, both] {
            assert!((value - all).abs() <= 1e-6 * all.abs().max(1e-2), "{place}");
        }
        assert!(outcome.dual <= outcome.primal, "{place}");
        different += usize::from(factored(&case, false) > all + 1e-4 * all.abs());
    }
    // Without the second marginal the program is another one wherever sequences have neighbours.
    assert!(different >= 6, "{different}");
}

#[test]
fn the_published_fixture_is_reproduced() {
    // Two sequences over two symbols; β‖w‖²/2 + losses is β times ours at C = 1/β.
    let symbols = [0, 1, 0, 1, 1, 0];
    for (beta, optimum) in [(0.1, 0.7), (1.0, 27.0 / 11.0)] {
        let case = Case {
            rows: symbols.iter().map(|&s| vec![f64::from(1 - s), f64::from(s)]).collect(),
            lengths: vec![3, 3],
            tags: vec![0, 1, 0, 1, 0, 0],
            count: 2,
            c: 1.0 / beta,
        };
        let model = fit(&case, 1e-9);
        let outcome = model.training.as_ref().unwrap().outcome;
        assert!((beta * outcome.primal - optimum).abs() < 1e-7, "{outcome:?}");
        assert!((beta * outcome.dual - optimum).abs() < 1e-7, "{outcome:?}");
        let chain = chain(&model);
        let TagScores::Weights(weights) = &chain.scores else { panic!() };
        let mut own = [0.0; 4];
        weights.copy_row(0, &mut own[..2]);
        weights.copy_row(1, &mut own[2..]);
        // Emissions by (symbol, state) and transitions by (to, from); ours by (state, symbol), (from, to).
        let (expected, pairs) = match beta == 1.0 {
            true => (
                [6.0, -6.0, -6.0, 6.0].map(|v: f64| v / 11.0),
                [1.0, -1.0, 2.0, -2.0].map(|v: f64| v / 11.0),
            ),
            false => ([1.0, -1.0, -1.0, 1.0], [1.0, -1.0, 2.0, -2.0]),
        };
        for (own, expected) in own.iter().chain(&chain.pairs).zip(expected.iter().chain(&pairs)) {
            assert!((own - expected).abs() < 1e-3, "{own} {expected} at {beta}");
        }
    }
}

#[test]
fn kernels_on_observations_have_the_same_optimum() {
    for seed in [2, 5, 8] {
        let case = Case::random(seed);
        let linear = fit(&case, 1e-7);
        // A polynomial of degree 1 is the linear kernel, by way of kernel values.
        let kernel = Kernel::Polynomial { gamma: 1.0, coef0: 0.0, degree: 1 };
        let machine = ChainSvc {
            c: case.c,
            tol: 1e-7,
            max_iterations: 20_000,
            kernel,
            ..ChainSvc::default()
        };
        let context = Context::new();
        let model = machine.fit(&case.data(), &context).unwrap();
        let [a, b] = [&linear, &model].map(|m| m.training.as_ref().unwrap().outcome);
        assert!((a.primal - b.primal).abs() <= 1e-6 * a.primal.max(1e-2), "{a:?} {b:?}");
        let [a, b] = [&linear, &model]
            .map(|m| chain(m).labeller(&context).unwrap().label(&case.data()).unwrap());
        for (a, b) in a.iter().zip(&b) {
            assert!((a.score - b.score).abs() <= 1e-3 * (1.0 + a.score.abs()), "{a:?} {b:?}");
        }
    }
}

/// The score of tags by the parts of a model.
fn score(case: &Case, chain: &Chain, first: usize, tags: &[usize]) -> f64 {
    let TagScores::Weights(weights) = &chain.scores else { panic!() };
    let mut own = Vec::new();
    for tag in 0..case.count {
        let mut row = vec![0.0; case.rows[0].len()];
        weights.copy_row(tag, &mut row);
        own.extend(row);
    }
    own.extend(&chain.pairs);
    own.iter().zip(case.joint(first, tags)).filter(|(_, x)| *x != 0.0).map(|(w, x)| w * x).sum()
}

#[test]
fn the_best_labellings_are_those_of_enumeration() {
    for seed in 0..12 {
        let case = Case::random(seed);
        let (model, context) = (fit(&case, 1e-3), Context::new());
        let chain = chain(&model);
        let labeller = chain.labeller(&context).unwrap();
        let (best, lists) =
            (labeller.label(&case.data()).unwrap(), labeller.n_best(&case.data(), 5).unwrap());
        for (i, (first, truth)) in case.sequences().into_iter().enumerate() {
            let all = case.labellings(truth.len());
            let mut scores: Vec<f64> = all.iter().map(|u| score(&case, chain, first, u)).collect();
            scores.sort_by(|a, b| b.total_cmp(a));
            assert!((best[i].score - scores[0]).abs() < 1e-9);
            assert_eq!(lists[i].len(), scores.len().min(5));
            for (found, expected) in lists[i].iter().zip(&scores) {
                assert!((found.score - expected).abs() < 1e-9, "{found:?} {expected}");
                let tags: Vec<usize> = found.tags.iter().map(|&tag| tag as usize).collect();
                assert!((score(&case, chain, first, &tags) - expected).abs() < 1e-9);
            }
            let distinct: std::collections::HashSet<_> =
                lists[i].iter().map(|labelling| &labelling.tags).collect();
            assert_eq!(distinct.len(), lists[i].len());
        }
    }
}

#[test]
fn losses_of_the_user_are_those_of_the_program() {
    // Losses twice as large are weights twice as large: the optimum at C is 4 times that at C / 2.
    let case = Case::random(4);
    let count = case.count;
    let table =
        (0..count * count).map(|at| if at % count == at / count { 0.0 } else { 2.0 }).collect();
    let machine = ChainSvc {
        c: case.c / 2.0,
        loss: TagLoss::Table(table),
        tol: 1e-8,
        max_iterations: 20_000,
        ..ChainSvc::default()
    };
    let model = machine.fit(&case.data(), &Context::new()).unwrap();
    let found = model.training.unwrap().outcome;
    let half = Case { c: case.c / 4.0, ..case };
    let expected = 4.0 * exponential(&half);
    assert!((found.primal - expected).abs() <= 1e-6 * expected, "{found:?} {expected}");
}

#[test]
fn forbidden_neighbours_never_occur() {
    let mut numbers = Numbers(3);
    let names = ["B-X", "I-X", "B-Y", "I-Y", "O"];
    let (mut tags, mut values) = (Vec::new(), Vec::new());
    let lengths: Vec<usize> = (0..30).map(|_| 2 + numbers.below(6)).collect();
    for &length in &lengths {
        let mut last = 4;
        for _ in 0..length {
            let mut tag = numbers.below(5);
            if (tag == 1 && last > 1) || (tag == 3 && last != 2 && last != 3) {
                tag = 4;
            }
            last = tag;
            tags.push(Label::Text(names[tag].into()));
            values.extend([numbers.next() + tag as f64, 3.0 * numbers.next()]);
        }
    }
    let rows = Matrix::DenseF64(Dense::new(tags.len(), 2, values).unwrap());
    let data = TaggedSequences::new(rows, lengths).unwrap().with_tags(&tags).unwrap();
    let context = Context::new();
    let free = ChainSvc { c: 1.0, ..ChainSvc::default() };
    let bound = ChainSvc { constraints: TagConstraints::Bio, ..free.clone() };
    let model = bound.fit(&data, &context).unwrap();
    let chain = chain(&model);
    let is_inside = |tag: u32| chain.tags[tag as usize].to_string().starts_with('I');
    let kind = |tag: u32| chain.tags[tag as usize].to_string()[1..].to_owned();
    let lists = chain.labeller(&context).unwrap().n_best(&data, 20).unwrap();
    for labelling in lists.iter().flatten() {
        assert!(!is_inside(labelling.tags[0]));
        for pair in labelling.tags.windows(2).filter(|pair| is_inside(pair[1])) {
            assert_eq!(kind(pair[0]), kind(pair[1]));
        }
    }
    // Fewer rivals cannot make the optimum worse.
    let outcome = |model: &Model| model.training.as_ref().unwrap().outcome;
    assert!(outcome(&model).dual <= outcome(&free.fit(&data, &context).unwrap()).primal + 1e-9);
    let mut broken = tags;
    broken[0] = Label::Text("I-Y".into());
    let broken = data.clone().with_tags(&broken).unwrap();
    let error = bound.fit(&broken, &context).unwrap_err().to_string();
    assert_eq!(
        error,
        "labels: expected tags that the constraints allow, found 'I-Y' at the beginning of sequence 1"
    );
}

#[test]
fn any_number_of_threads_gives_the_same_model() {
    let mut numbers = Numbers(11);
    let lengths: Vec<usize> = (0..300).map(|_| 1 + numbers.below(8)).collect();
    let positions = lengths.iter().sum();
    let (mut values, mut tags) = (Vec::new(), Vec::new());
    for _ in 0..positions {
        let tag = numbers.below(3);
        tags.push(Label::Int(tag as i64));
        values.extend([numbers.next() + tag as f64, numbers.next() - tag as f64, 1.0]);
    }
    let rows = Matrix::DenseF64(Dense::new(positions, 3, values).unwrap());
    let data = TaggedSequences::new(rows, lengths).unwrap().with_tags(&tags).unwrap();
    let machine = ChainSvc { max_iterations: 5, tol: 1e-9, ..ChainSvc::default() };
    let bodies: Vec<Body> = [1, 3]
        .map(|threads| Context::new().with_threads(threads).unwrap())
        .map(|context| machine.fit(&data, &context).unwrap().body)
        .into();
    assert_eq!(bodies[0], bodies[1]);
}

#[test]
fn a_file_keeps_the_chain() {
    let case = Case::random(1);
    let kernel = Kernel::Gaussian { gamma: 0.5 };
    let context = Context::new();
    for machine in [ChainSvc::default(), ChainSvc { kernel, ..ChainSvc::default() }] {
        let model = machine.fit(&case.data(), &context).unwrap();
        let again = Model::load_from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(model, again);
        let error = model.predictor(&context).err().unwrap().to_string();
        assert!(error.contains("labels sequences, not rows"), "{error}");
    }
}

#[test]
fn what_cannot_be_learnt_says_why() {
    let case = Case::random(3);
    let (data, context) = (case.data(), Context::new());
    let message = |machine: ChainSvc, data: &TaggedSequences| {
        machine.fit(data, &context).unwrap_err().to_string()
    };
    let usual = ChainSvc::default;
    assert!(message(ChainSvc { c: 0.0, ..usual() }, &data).contains("parameter c"));
    assert!(message(ChainSvc { max_iterations: 0, ..usual() }, &data).contains("at least 1"));
    let short = TagLoss::Table(vec![0.0]);
    assert!(message(ChainSvc { loss: short, ..usual() }, &data).contains("every pair of tags"));
    let mut tags = data.tags().unwrap().clone();
    tags.codes[1] = NO_TAG;
    let partly = data.clone().with_classes(tags).unwrap();
    assert!(message(usual(), &partly).contains("found none at position"));
    assert!(ChainSvc { cut_at_unknown: true, ..usual() }.fit(&partly, &context).is_ok());
    let one = data.clone().with_tags(&vec![Label::Int(1); case.tags.len()]).unwrap();
    assert_eq!(message(usual(), &one), "expected at least two classes, found only '1'");
    let rows = Matrix::DenseF64(Dense::new(1, 1, vec![f64::NAN]).unwrap());
    assert!(TaggedSequences::new(rows.clone(), vec![1, 0]).is_err());
    assert!(TaggedSequences::new(rows, vec![2]).is_err());
}

/// A chain of two tags over some features, with weights of the first feature alone.
fn chain_of(features: usize, weights: [f64; 2]) -> Model {
    let machine = ChainSvc { max_iterations: 1, ..ChainSvc::default() };
    let mut model = machine.fit(&Case::random(2).data(), &Context::new()).unwrap();
    let Body::Chain(chain) = &mut model.body else { panic!("a chain") };
    let weights = Csr::new(features, vec![0, 1, 2], vec![0, 0], weights.to_vec()).unwrap();
    chain.tags = vec![Label::Text("a".into()), Label::Text("b".into())];
    chain.scores = TagScores::Weights(Matrix::SparseF64(weights));
    (chain.pairs, chain.first_forbidden) = (vec![0.0; 4], vec![false; 2]);
    model
}

#[test]
fn a_small_model_of_absurdly_many_features_is_refused() {
    let model = chain_of(u32::MAX as usize, [1.0, -1.0]);
    let error = chain(&model).labeller(&Context::new()).err().unwrap().to_string();
    assert!(error.starts_with("weights of all features and tags needs "), "{error}");
}

#[test]
fn scores_that_are_not_finite_are_errors_that_say_where() {
    let context = Context::new();
    let data = |last: f64| {
        let rows = Matrix::DenseF64(Dense::new(4, 1, vec![1.0, 1.0, 2.0, last]).unwrap());
        TaggedSequences::new(rows, vec![2, 2]).unwrap()
    };
    let model = chain_of(1, [1e200, -1e200]);
    let labeller = chain(&model).labeller(&context).unwrap();
    assert_eq!(labeller.label(&data(-1.0)).unwrap()[1].tags, [0, 1]);
    let expected = "model: the score of tag 'a' at position 2 of sequence 2 is inf, not a finite number: \
                    scale the features";
    for error in [labeller.label(&data(1e200)).err(), labeller.n_best(&data(1e200), 2).err()] {
        assert_eq!(error.unwrap().to_string(), expected);
    }
    // Finite scores whose sum is not.
    let model = chain_of(1, [1e308, 0.0]);
    let labeller = chain(&model).labeller(&context).unwrap();
    let rows = Matrix::DenseF64(Dense::new(3, 1, vec![1.0; 3]).unwrap());
    let data = TaggedSequences::new(rows, vec![1, 2]).unwrap();
    for error in [labeller.label(&data).err(), labeller.n_best(&data, 2).err()] {
        let error = error.unwrap().to_string();
        assert!(
            error.starts_with("model: the score of the best tags of sequence 2 is inf"),
            "{error}"
        );
    }
}

#[test]
fn training_on_features_that_overflow_is_an_error() {
    let case = Case::random(5);
    let rows = case.data().rows().rows();
    let values = (0..rows).map(|k| if k % 2 == 0 { 1e200 } else { -1e200 }).collect();
    let huge = Matrix::DenseF64(Dense::new(rows, 1, values).unwrap());
    let lengths = case.data().lengths().collect();
    let data = TaggedSequences::new(huge, lengths).unwrap();
    let data = data.with_classes(case.data().tags().unwrap().clone()).unwrap();
    for c in [1e-3, 1.0, 1e150] {
        let error = ChainSvc { c, ..ChainSvc::default() }.fit(&data, &Context::new()).unwrap_err();
        assert!(error.to_string().contains("scale the features"), "{error}");
    }
}

#[test]
fn a_time_limit_leaves_a_model_with_its_dual_bound() {
    let case = Case::random(7);
    let context = Context::new().with_time_limit(Duration::ZERO);
    let model = ChainSvc::default().fit(&case.data(), &context).unwrap();
    let outcome = model.training.unwrap().outcome;
    assert_eq!(outcome.status, Status::TimeLimit);
    assert!(outcome.dual <= exponential(&case));
}
