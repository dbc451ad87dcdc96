//! Structures of the user: a set of labels with pairwise scores, classes in a tree, matchings and segments, against the
//! quadratic program over all outputs.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettingsBuilder, DefaultSolver, IPSolver, SolverStatus, SupportedConeT,
};
use widemargin::machine::{StructuredProblem, StructuredSvm};
use widemargin::{Context, Result, Status};

/// A structure with few enough outputs to try them all.
trait Enumerable: StructuredProblem {
    fn outputs(&self) -> Vec<Self::Output>;

    fn best(
        &self,
        input: &Self::Input,
        w: &[f64],
        truth: Option<&Self::Output>,
    ) -> Result<Self::Output> {
        let mut best: Option<(f64, Self::Output)> = None;
        for output in self.outputs() {
            let features = self.joint_features(input, &output)?;
            let loss = truth.map_or(Ok(0.0), |truth| self.loss(truth, &output))?;
            let value = loss + features.iter().map(|(j, v)| w[*j] * v).sum::<f64>();
            if best.as_ref().is_none_or(|(highest, _)| value > *highest) {
                best = Some((value, output));
            }
        }
        Ok(best.unwrap().1)
    }
}

/// Three labels that a row has or not: a weight vector each, and a score of every pair that a row has both of.
struct LabelSets;

const LABELS: usize = 3;
const FEATURES: usize = 2;

impl StructuredProblem for LabelSets {
    type Input = [f64; FEATURES];
    type Output = [bool; LABELS];

    fn dimension(&self) -> usize {
        LABELS * FEATURES + LABELS * LABELS
    }

    fn joint_features(&self, x: &Self::Input, y: &Self::Output) -> Result<Vec<(usize, f64)>> {
        let mut list = Vec::new();
        for a in (0..LABELS).filter(|&a| y[a]) {
            list.extend((0..FEATURES).map(|j| (a * FEATURES + j, x[j])));
            let pairs = (0..a).filter(|&b| y[b]);
            list.extend(pairs.map(|b| (LABELS * FEATURES + a * LABELS + b, 1.0)));
        }
        Ok(list)
    }

    fn loss(&self, truth: &Self::Output, other: &Self::Output) -> Result<f64> {
        Ok(truth.iter().zip(other).filter(|(a, b)| a != b).count() as f64)
    }

    fn decode(&self, x: &Self::Input, w: &[f64], y: Option<&Self::Output>) -> Result<Self::Output> {
        self.best(x, w, y)
    }
}

impl Enumerable for LabelSets {
    fn outputs(&self) -> Vec<Self::Output> {
        (0..1 << LABELS).map(|set| std::array::from_fn(|a| set >> a & 1 == 1)).collect()
    }
}

/// Four classes, two under each of two nodes: a weight vector for every node and class, and the loss is the number
/// of steps up to the common node.
struct Tree;

impl Tree {
    /// The nodes above a class and the class itself.
    fn path(class: usize) -> [usize; 2] {
        [class / 2, 2 + class]
    }
}

impl StructuredProblem for Tree {
    type Input = [f64; FEATURES];
    type Output = usize;

    fn dimension(&self) -> usize {
        6 * FEATURES
    }

    fn joint_features(&self, x: &Self::Input, y: &usize) -> Result<Vec<(usize, f64)>> {
        let nodes = Self::path(*y).into_iter();
        Ok(nodes.flat_map(|node| (0..FEATURES).map(move |j| (node * FEATURES + j, x[j]))).collect())
    }

    fn loss(&self, truth: &usize, other: &usize) -> Result<f64> {
        Ok(match truth {
            truth if truth == other => 0.0,
            truth if truth / 2 == other / 2 => 1.0,
            _ => 2.0,
        })
    }

    fn decode(&self, x: &Self::Input, w: &[f64], truth: Option<&usize>) -> Result<usize> {
        self.best(x, w, truth)
    }
}

impl Enumerable for Tree {
    fn outputs(&self) -> Vec<usize> {
        (0..4).collect()
    }
}

/// Who of three belongs to whom of three others: a feature vector for every pair, and a wrong partner costs 1.
struct Matching;

const PARTNERS: usize = 3;

impl StructuredProblem for Matching {
    type Input = [[[f64; FEATURES]; PARTNERS]; PARTNERS];
    type Output = [usize; PARTNERS];

    fn dimension(&self) -> usize {
        FEATURES
    }

    fn joint_features(&self, x: &Self::Input, y: &Self::Output) -> Result<Vec<(usize, f64)>> {
        let pairs = y.iter().zip(x).map(|(&partner, row)| row[partner]);
        Ok(pairs.flat_map(|pair| pair.into_iter().enumerate()).collect())
    }

    fn loss(&self, truth: &Self::Output, other: &Self::Output) -> Result<f64> {
        Ok(truth.iter().zip(other).filter(|(a, b)| a != b).count() as f64)
    }

    fn decode(&self, x: &Self::Input, w: &[f64], y: Option<&Self::Output>) -> Result<Self::Output> {
        self.best(x, w, y)
    }
}

impl Enumerable for Matching {
    fn outputs(&self) -> Vec<Self::Output> {
        let all = (0..27).map(|code| [code / 9, code / 3 % 3, code % 3]);
        all.filter(|[a, b, c]| a != b && b != c && a != c).collect()
    }
}

/// Segments of two kinds, each as the number of its positions: features of the positions for each kind, and a price of
/// every segment. A wrong position costs 1.
struct Segments;

const LENGTH: usize = 4;

impl Segments {
    /// The kind of every position; a bit says whether it differs from that before.
    fn kinds(code: usize) -> [usize; LENGTH] {
        let mut kind = 0;
        std::array::from_fn(|k| {
            kind = (kind + (code >> k & 1)) % 2;
            kind
        })
    }

    /// The best segmentation by dynamic programming over the ends of segments.
    fn last_segments(values: &[[f64; 2]; LENGTH], price: f64) -> usize {
        // best[k][kind]: value of the positions up to k, the last of them of that kind, and their bits.
        let mut best = [(values[0][0] + price, 0), (values[0][1] + price, 1)];
        for (k, value) in values.iter().enumerate().skip(1) {
            let stay = |kind: usize| (best[kind].0 + value[kind], best[kind].1);
            let turn = |kind: usize| {
                let other = best[1 - kind];
                (other.0 + value[kind] + price, other.1 | 1 << k)
            };
            let better = |kind| {
                let (stay, turn): ((f64, usize), (f64, usize)) = (stay(kind), turn(kind));
                if turn.0 > stay.0 { turn } else { stay }
            };
            best = [better(0), better(1)];
        }
        if best[1].0 > best[0].0 { best[1].1 } else { best[0].1 }
    }
}

impl StructuredProblem for Segments {
    type Input = [[f64; FEATURES]; LENGTH];
    type Output = usize;

    fn dimension(&self) -> usize {
        2 * FEATURES + 1
    }

    fn joint_features(&self, x: &Self::Input, y: &usize) -> Result<Vec<(usize, f64)>> {
        let kinds = Self::kinds(*y);
        let turns = kinds.windows(2).filter(|pair| pair[0] != pair[1]).count();
        let rows = kinds.into_iter().zip(x);
        let mut list: Vec<(usize, f64)> = rows
            .flat_map(|(kind, row)| {
                row.iter().enumerate().map(move |(j, v)| (kind * FEATURES + j, *v))
            })
            .collect();
        list.push((2 * FEATURES, 1.0 + turns as f64));
        Ok(list)
    }

    fn loss(&self, truth: &usize, other: &usize) -> Result<f64> {
        let (truth, other) = (Self::kinds(*truth), Self::kinds(*other));
        Ok(truth.iter().zip(&other).filter(|(a, b)| a != b).count() as f64)
    }

    fn decode(&self, x: &Self::Input, w: &[f64], truth: Option<&usize>) -> Result<usize> {
        let truth = truth.map(|code| Self::kinds(*code));
        let value = |k: usize, kind: usize| {
            let own = &w[kind * FEATURES..][..FEATURES];
            let loss = truth.map_or(0.0, |truth| f64::from(u8::from(truth[k] != kind)));
            loss + own.iter().zip(&x[k]).map(|(w, x)| w * x).sum::<f64>()
        };
        let values = std::array::from_fn(|k| [value(k, 0), value(k, 1)]);
        Ok(Self::last_segments(&values, w[2 * FEATURES]))
    }
}

impl Enumerable for Segments {
    fn outputs(&self) -> Vec<usize> {
        (0..1 << LENGTH).collect()
    }
}

/// minimise ½‖w‖² + C Σ ξᵢ subject to ⟨w, Φ(x, y) − Φ(x, u)⟩ ≥ Δ(y, u) − ξᵢ.
fn optimum<P: Enumerable>(problem: &P, examples: &[(P::Input, P::Output)], c: f64) -> f64 {
    let (size, count) = (problem.dimension(), examples.len());
    let joint = |x: &P::Input, y: &P::Output| {
        let mut dense = vec![0.0; size];
        problem.joint_features(x, y).unwrap().iter().for_each(|(j, v)| dense[*j] += v);
        dense
    };
    let (mut rows, mut right) = (Vec::new(), Vec::new());
    for (i, (x, y)) in examples.iter().enumerate() {
        let real = joint(x, y);
        for u in problem.outputs() {
            let mut row: Vec<f64> = joint(x, &u).iter().zip(&real).map(|(a, b)| a - b).collect();
            row.extend((0..count).map(|j| if i == j { -1.0 } else { 0.0 }));
            rows.push(row);
            right.push(-problem.loss(y, &u).unwrap());
        }
    }
    let width = size + count;
    let square: Vec<Vec<f64>> = (0..width)
        .map(|i| (0..width).map(|j| if i == j && i < size { 1.0 } else { 0.0 }).collect())
        .collect();
    let linear = [vec![0.0; size], vec![c; count]].concat();
    let settings = DefaultSettingsBuilder::default()
        .verbose(false)
        .tol_gap_abs(1e-11)
        .tol_gap_rel(1e-11)
        .build()
        .unwrap();
    let cones = [SupportedConeT::NonnegativeConeT(rows.len())];
    let (square, rows) = (CscMatrix::from(&square).to_triu(), CscMatrix::from(&rows));
    let mut solver = DefaultSolver::new(&square, &linear, &rows, &right, &cones, settings).unwrap();
    solver.solve();
    assert!(matches!(solver.solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved));
    solver.solution.obj_val
}

fn agrees<P: Enumerable>(problem: &P, examples: &[(P::Input, P::Output)]) {
    for c in [0.05, 1.0, 20.0] {
        let machine = StructuredSvm { c, tol: 1e-8, max_iterations: 50_000 };
        let fit = machine.fit(problem, examples, &Context::new()).unwrap();
        let best = optimum(problem, examples, c);
        assert_eq!(fit.outcome.status, Status::Solved, "{:?}", fit.outcome);
        for value in [fit.outcome.primal, fit.outcome.dual] {
            assert!((value - best).abs() <= 1e-6 * best, "C {c}: {:?}, {best}", fit.outcome);
        }
    }
}

/// Rows on a spiral.
fn rows(count: usize) -> Vec<[f64; FEATURES]> {
    let angle = |k: usize| 2.4 * k as f64;
    (0..count).map(|k| [angle(k).cos() + 0.1 * k as f64, angle(k).sin()]).collect()
}

#[test]
fn sets_of_labels_reach_the_optimum() {
    let set =
        |k: usize| [k.is_multiple_of(2), k.is_multiple_of(3), k.is_multiple_of(2) && k % 3 != 1];
    let examples: Vec<_> = rows(8).into_iter().enumerate().map(|(k, x)| (x, set(k))).collect();
    agrees(&LabelSets, &examples);
}

#[test]
fn classes_in_a_tree_reach_the_optimum() {
    let examples: Vec<_> = rows(9).into_iter().enumerate().map(|(k, x)| (x, k % 4)).collect();
    agrees(&Tree, &examples);
}

#[test]
fn matchings_reach_the_optimum() {
    let points = rows(9);
    let input = |k: usize| -> <Matching as StructuredProblem>::Input {
        std::array::from_fn(|i| {
            std::array::from_fn(|j| points[(k + 3 * i + 5 * j + i * j * k) % 9])
        })
    };
    let all = Matching.outputs();
    let examples: Vec<_> = (0..7).map(|k| (input(k), all[5 * k % 6])).collect();
    agrees(&Matching, &examples);
}

#[test]
fn segments_reach_the_optimum_by_dynamic_programming() {
    let points = rows(12);
    let input = |k: usize| -> <Segments as StructuredProblem>::Input {
        std::array::from_fn(|i| points[(5 * k + 7 * i) % 12])
    };
    let examples: Vec<_> = (0..8).map(|k| (input(k), 7 * k % 16)).collect();
    agrees(&Segments, &examples);
    for (k, (x, y)) in examples.iter().enumerate() {
        let w: Vec<f64> = (0..5).map(|j| ((7 * k + 3 * j) % 11) as f64 - 5.0).collect();
        for truth in [None, Some(y)] {
            let value = |u: &usize| {
                let features = Segments.joint_features(x, u).unwrap();
                let loss = truth.map_or(0.0, |y| Segments.loss(y, u).unwrap());
                loss + features.iter().map(|(j, v)| w[*j] * v).sum::<f64>()
            };
            let best = Segments.best(x, &w, truth).unwrap();
            let found = Segments.decode(x, &w, truth).unwrap();
            assert!((value(&found) - value(&best)).abs() < 1e-12);
        }
    }
}

/// A decoder that never finds anything but the first class.
struct Blind;

impl StructuredProblem for Blind {
    type Input = [f64; FEATURES];
    type Output = usize;

    fn dimension(&self) -> usize {
        Tree.dimension()
    }

    fn joint_features(&self, x: &Self::Input, y: &usize) -> Result<Vec<(usize, f64)>> {
        Tree.joint_features(x, y)
    }

    fn loss(&self, _truth: &usize, _other: &usize) -> Result<f64> {
        Ok(0.0)
    }

    fn decode(&self, _: &Self::Input, w: &[f64], _: Option<&usize>) -> Result<usize> {
        Ok(if w.iter().all(|w| *w == 0.0) { 1 } else { 0 })
    }
}

#[test]
fn a_decoder_that_misses_the_truth_is_told() {
    struct Half;
    impl StructuredProblem for Half {
        type Input = [f64; FEATURES];
        type Output = usize;
        fn dimension(&self) -> usize {
            Tree.dimension()
        }
        fn joint_features(&self, x: &Self::Input, y: &usize) -> Result<Vec<(usize, f64)>> {
            Tree.joint_features(x, y)
        }
        fn loss(&self, truth: &usize, other: &usize) -> Result<f64> {
            if *other == 2 { Ok(0.0) } else { Tree.loss(truth, other) }
        }
        fn decode(&self, _: &Self::Input, w: &[f64], _: Option<&usize>) -> Result<usize> {
            // Class 2 costs nothing, and is below the truth once there are weights.
            Ok(if w.iter().all(|w| *w == 0.0) { 3 } else { 2 })
        }
    }
    let examples = [([1.0, 0.0], 0), ([0.0, 1.0], 1)];
    let error = StructuredSvm { c: 10.0, ..StructuredSvm::default() }
        .fit(&Half, &examples, &Context::new())
        .unwrap_err()
        .to_string();
    assert!(error.contains("does not find the largest value for example"), "{error}");
    let fit = StructuredSvm::default().fit(&Blind, &examples, &Context::new()).unwrap();
    assert_eq!(fit.outcome.primal, 0.0);
    let none: &[([f64; FEATURES], usize)] = &[];
    assert!(StructuredSvm::default().fit(&Tree, none, &Context::new()).is_err());
}
