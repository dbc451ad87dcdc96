//! Ridge regression as the training problem: J(µ) = ½ yᵀ(K(µ) + ηI)⁻¹y in closed form.

use super::*;
use crate::numeric::algebra::{Cholesky, add};
use crate::numeric::random::Generator;

const RIDGE: f64 = 0.3;

struct Ridge {
    candidates: Vec<Gram>,
    targets: Vec<f64>,
}

impl Ridge {
    fn new(seed: u64, rows: usize, kernels: usize) -> Self {
        let mut generator = Generator::new(seed);
        let mut normal =
            |count: usize| -> Vec<f64> { (0..count).map(|_| generator.normal()).collect() };
        let gram = |x: Vec<f64>, rank: usize| {
            let row = |i: usize| &x[i * rank..(i + 1) * rank];
            let value = |i: usize, j: usize| dot(row(i), row(j)) + if i == j { 0.05 } else { 0.0 };
            let values = (0..rows * rows).map(|at| value(at / rows, at % rows)).collect();
            let mut gram = Gram::new(rows, values).unwrap();
            gram.scale_to_trace(rows as f64).unwrap();
            gram
        };
        let candidates = (0..kernels).map(|k| gram(normal(rows * (k + 1)), k + 1)).collect();
        Self { candidates, targets: normal(rows) }
    }

    fn objective(&self, weights: &[f64]) -> f64 {
        self.solution(weights).1
    }

    /// β = (K(µ) + ηI)⁻¹y and the objective, which is infinite outside the cone.
    fn solution(&self, weights: &[f64]) -> (Vec<f64>, f64) {
        let order = self.targets.len();
        let mut matrix = vec![0.0; order * order];
        for (gram, weight) in self.candidates.iter().zip(weights) {
            add(&mut matrix, gram.values(), *weight);
        }
        (0..order).for_each(|i| matrix[i * order + i] += RIDGE);
        let Some(factor) = Cholesky::new(matrix, order, &Context::new()) else {
            return (Vec::new(), f64::INFINITY);
        };
        let mut beta = self.targets.clone();
        factor.solve(&mut beta);
        let value = 0.5 * dot(&beta, &self.targets);
        (beta, value)
    }
}

impl WeightedDual for Ridge {
    fn solve(&mut self, weights: &[f64], _gap: f64) -> Result<Solved> {
        let (beta, primal) = self.solution(weights);
        let form = |gram: &Gram| {
            let rows = (0..gram.order()).map(|i| beta[i] * dot(gram.row(i), &beta));
            0.5 * rows.sum::<f64>()
        };
        Ok(Solved {
            linear: dot(&beta, &self.targets) - 0.5 * RIDGE * dot(&beta, &beta),
            forms: self.candidates.iter().map(form).collect(),
            primal,
            status: Status::Solved,
        })
    }
}

fn gap(found: &Weights) -> f64 {
    relative(found.objective - found.bound, found.objective)
}

fn minimised(problem: &mut Ridge, rule: WeightRule, gap: f64) -> Weights {
    let candidates = problem.candidates.clone();
    let options = Options { gap, ..Options::default() };
    minimise(problem, candidates.len(), rule, &candidates, &options, &Context::new()).unwrap()
}

#[test]
fn the_gradient_is_minus_half_the_quadratic_form() {
    let mut problem = Ridge::new(1, 12, 3);
    let weights = [0.5, 0.2, 0.3];
    let solved = problem.solve(&weights, 0.0).unwrap();
    for i in 0..3 {
        let at = |step: f64| {
            let mut moved = weights;
            moved[i] += step;
            problem.objective(&moved)
        };
        let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
        assert!((difference + solved.forms[i]).abs() < 1e-8 * solved.forms[i].max(1.0));
    }
}

#[test]
fn non_negative_weights_reach_the_minimum_of_a_fine_grid() {
    for seed in 0..6 {
        let mut problem = Ridge::new(seed, 15, 3);
        let found = minimised(&mut problem, WeightRule::NonNegative, 1e-8);
        let mut lowest = f64::INFINITY;
        for i in 0..=100 {
            for j in 0..=100 - i {
                let (a, b) = (f64::from(i) / 100.0, f64::from(j) / 100.0);
                lowest = lowest.min(problem.objective(&[a, b, 1.0 - a - b]));
            }
        }
        assert_eq!(found.status, Status::Solved);
        assert!(found.objective <= lowest * (1.0 + 1e-8), "{seed}: {found:?}");
        assert!(found.bound >= lowest * (1.0 - 1e-3) && gap(&found) <= 1e-8);
        assert!(found.rounds < 60, "{seed}: {} rounds", found.rounds);
        assert!((found.weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
}

#[test]
fn signed_weights_reach_the_minimum_over_the_cone() {
    for seed in 0..4 {
        let mut problem = Ridge::new(seed, 10, 2);
        let signed = minimised(&mut problem, WeightRule::Signed, 1e-7);
        let plain = minimised(&mut problem, WeightRule::NonNegative, 1e-7);
        let context = Context::new();
        let mut lowest = f64::INFINITY;
        for step in -200..=200 {
            let a = f64::from(step) / 100.0;
            let values = problem.candidates[0].values().iter().zip(problem.candidates[1].values());
            let values = values.map(|(x, y)| a * x + (1.0 - a) * y).collect();
            let gram = Gram::new(10, values).unwrap();
            if gram.definiteness(&context).unwrap().smallest >= 0.0 {
                lowest = lowest.min(problem.objective(&[a, 1.0 - a]));
            }
        }
        assert_eq!(signed.status, Status::Solved, "{signed:?}");
        assert!(signed.rounds < 60, "{seed}: {} rounds", signed.rounds);
        assert!(signed.objective <= lowest * (1.0 + 1e-6), "{seed}: {signed:?}, grid {lowest}");
        assert!(signed.bound <= lowest && signed.objective <= plain.objective * (1.0 + 1e-7));
        assert!(signed.smallest_eigenvalue.unwrap() > -1e-8);
    }
}

#[test]
fn weights_of_a_norm_are_optimal_in_their_ball() {
    for (seed, p) in [(0, 2.0), (1, 1.5), (2, 4.0)] {
        let mut problem = Ridge::new(seed, 12, 3);
        let found = minimised(&mut problem, WeightRule::Norm(p), 1e-8);
        assert!(gap(&found) <= 1e-8 && (found.weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let size =
            |weights: &[f64]| weights.iter().map(|w: &f64| w.powf(p)).sum::<f64>().powf(1.0 / p);
        let radius = size(&found.weights);
        let mut generator = Generator::new(seed);
        for _ in 0..2000 {
            let direction: Vec<f64> = (0..3).map(|_| generator.normal().abs()).collect();
            let factor = radius / size(&direction);
            let other: Vec<f64> = direction.iter().map(|d| d * factor).collect();
            assert!(problem.objective(&other) >= found.objective * (1.0 - 1e-7));
        }
    }
}

#[test]
fn uniform_weights_and_a_single_kernel_need_one_solution() {
    let mut problem = Ridge::new(3, 8, 4);
    let found = minimised(&mut problem, WeightRule::Uniform, 1e-6);
    assert_eq!((found.weights, found.solves), (vec![0.25; 4], 1));
    let mut single = Ridge::new(3, 8, 1);
    let found = minimised(&mut single, WeightRule::Signed, 1e-6);
    assert!(gap(&found).abs() < 1e-12);
    assert_eq!((found.weights, found.solves), (vec![1.0], 1));
}

#[test]
fn candidates_without_a_definite_combination_are_refused() {
    let indefinite = Gram::new(2, vec![1.0, 2.0, 2.0, 1.0]).unwrap();
    let candidates = vec![indefinite.clone(), indefinite];
    let mut problem = Ridge { candidates: candidates.clone(), targets: vec![1.0, -1.0] };
    let options = Options::default();
    let rule = WeightRule::Signed;
    let error = minimise(&mut problem, 2, rule, &candidates, &options, &Context::new());
    assert!(error.unwrap_err().to_string().contains("positive definite combination"));
}
