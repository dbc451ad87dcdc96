//! Every closed form against numerical optimisation, on random small problems.

use proptest::prelude::*;

use super::*;

const FEATURES: usize = 3;

fn dot(u: &[f64], v: &[f64]) -> f64 {
    u.iter().zip(v).map(|(a, b)| a * b).sum()
}

fn value(kernel: &Kernel, u: &[f64], v: &[f64]) -> f64 {
    match *kernel {
        Kernel::Gaussian { gamma } => {
            (-gamma * u.iter().zip(v).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).exp()
        }
        Kernel::Polynomial { gamma, coef0, degree } => {
            (gamma * dot(u, v) + coef0).powi(degree as i32)
        }
        _ => unreachable!("kernels of these tests"),
    }
}

/// The largest value that a pattern search finds from `start`.
fn maximise(start: Vec<f64>, f: impl Fn(&[f64]) -> f64) -> f64 {
    let (mut point, mut step) = (start, 0.25);
    let mut best = f(&point);
    while step > 1e-7 {
        let mut improved = false;
        for i in 0..point.len() {
            for by in [step, -step] {
                point[i] += by;
                let found = f(&point);
                if found > best {
                    (best, improved) = (found, true);
                } else {
                    point[i] -= by;
                }
            }
        }
        if !improved {
            step *= 0.5;
        }
    }
    best
}

/// ‖Σ wᵢΦ(vᵢ)‖²
fn norm(kernel: &Kernel, vectors: &[Vec<f64>], weights: &[f64]) -> f64 {
    let mut sum = 0.0;
    for (u, a) in vectors.iter().zip(weights) {
        sum += vectors.iter().zip(weights).map(|(v, b)| a * b * value(kernel, u, v)).sum::<f64>();
    }
    sum
}

/// What `rule` makes of two vectors costs what it says, and no vector that a search finds is better.
fn check_merge(kernel: &Kernel, pair: &[Vec<f64>], weights: &[f64], starts: &[Vec<f64>]) {
    let rule = MergeKernel::of(kernel).unwrap();
    let own = (rule.own_base(&pair[0]), rule.own_base(&pair[1]));
    let base = rule.base_of(&pair[0], &pair[1]);
    let merged = rule.merge(weights[0], weights[1], own, base);
    let k = merged.position;
    let z: Vec<f64> = pair[0].iter().zip(&pair[1]).map(|(x, y)| k * x + (1.0 - k) * y).collect();
    let total = norm(kernel, pair, weights);
    let three = [pair[0].clone(), pair[1].clone(), z];
    let by_hand = norm(kernel, &three, &[weights[0], weights[1], -merged.weight]);
    assert!((merged.cost - by_hand).abs() < 1e-9 * total, "{} {by_hand}", merged.cost);
    let gain = |z: &[f64]| {
        let product =
            weights[0] * value(kernel, &pair[0], z) + weights[1] * value(kernel, &pair[1], z);
        let own = value(kernel, z, z);
        if own > 1e-12 { product * product / own } else { 0.0 }
    };
    for start in starts.iter().chain(pair) {
        let best = maximise(start.clone(), gain);
        assert!(merged.cost <= total - best + 1e-8 * total, "{} {}", merged.cost, total - best);
    }
}

fn vectors(count: usize, low: f64) -> impl Strategy<Value = Vec<Vec<f64>>> {
    prop::collection::vec(prop::collection::vec(low..1.5, FEATURES), count)
}

fn weights(count: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(0.05_f64..2.0, count)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_vector_stands_better_for_two_under_the_gaussian_kernel(
        pair in vectors(2, -1.5), weights in weights(2), starts in vectors(3, -1.5),
        gamma in 0.05_f64..2.0, negative in any::<bool>(),
    ) {
        let sign = if negative { -1.0 } else { 1.0 };
        let weights: Vec<f64> = weights.iter().map(|w| sign * w).collect();
        check_merge(&Kernel::Gaussian { gamma }, &pair, &weights, &starts);
    }

    #[test]
    fn no_vector_stands_better_for_two_under_a_homogeneous_polynomial(
        pair in vectors(2, 0.0), weights in weights(2), starts in vectors(3, 0.0), degree in 1_u32..6,
    ) {
        prop_assume!(pair.iter().all(|v| dot(v, v) > 0.05));
        let kernel = Kernel::Polynomial { gamma: 0.7, coef0: 0.0, degree };
        check_merge(&kernel, &pair, &weights, &starts);
    }

    #[test]
    fn no_weights_are_better_than_those_of_least_residual(
        many in vectors(7, -1.5), few in vectors(3, -1.5), alpha in weights(7),
        signs in prop::collection::vec(any::<bool>(), 7), gamma in 0.2_f64..2.0,
    ) {
        let kernel = Kernel::Gaussian { gamma };
        let signed = alpha.iter().zip(&signs).map(|(a, s)| if *s { *a } else { -a }).collect();
        let original = VectorPool::single(Expansion { vectors: many.clone(), weights: signed });
        let start = Expansion { vectors: few.clone(), weights: vec![1.0; 3] };
        let mut reduced = VectorPool::single(start);
        reweigh::<f64>(&kernel, &mut reduced, &original, &Context::new()).unwrap();
        let all: Vec<Vec<f64>> = many.iter().chain(&few).cloned().collect();
        let residual = |beta: &[f64]| {
            let minus = beta.iter().map(|b| -b);
            let both: Vec<f64> = original.weights[0].iter().copied().chain(minus).collect();
            norm(&kernel, &all, &both)
        };
        let found = residual(&reduced.weights[0]);
        let best = -maximise(vec![0.0; 3], |beta| -residual(beta));
        prop_assert!(found <= best + 1e-8 * (1.0 + best), "{found} {best}");
    }

    #[test]
    fn nothing_replaces_a_pruned_vector_better_than_its_price(
        all in vectors(5, -1.5), alpha in weights(5), gamma in 0.3_f64..2.0,
    ) {
        let kernel = Kernel::Gaussian { gamma };
        let context = Context::new();
        let pool = VectorPool::single(Expansion { vectors: all.clone(), weights: alpha });
        let gram = gram(&kernel, &all, &context).unwrap();
        let (keep, costs) = prune(&pool, &gram, 4, &context).unwrap();
        let cheapest = (0..5).map(|gone| {
            let others: Vec<usize> = (0..5).filter(|&v| v != gone).collect();
            -maximise(vec![0.0; 4], |beta| {
                let mut d = vec![0.0; 5];
                d[gone] = pool.weights[0][gone];
                others.iter().zip(beta).for_each(|(&v, b)| d[v] = -b);
                -norm(&kernel, &all, &d)
            })
        });
        let cheapest = cheapest.fold(f64::INFINITY, f64::min);
        prop_assert_eq!(keep.len(), 4);
        prop_assert!((costs[0] - cheapest).abs() < 1e-6 * (1.0 + cheapest), "{} {cheapest}", costs[0]);
    }

    #[test]
    fn a_quadratic_machine_keeps_its_values_with_a_vector_per_feature(
        many in vectors(9, -1.5), alpha in weights(9), coef0 in prop::sample::select(vec![0.0, 0.5]),
        signs in prop::collection::vec(any::<bool>(), 9), probes in vectors(4, -1.5),
    ) {
        let kernel = Kernel::Polynomial { gamma: 0.7, coef0, degree: 2 };
        let signed: Vec<f64> =
            alpha.iter().zip(&signs).map(|(a, s)| if *s { *a } else { -a }).collect();
        let pool = VectorPool::single(Expansion { vectors: many.clone(), weights: signed.clone() });
        let exact = lossless::reduce(&kernel, &pool, &Context::new()).unwrap();
        prop_assert!(exact.len() <= FEATURES + 1);
        let at = |vectors: &[Vec<f64>], weights: &[f64], x: &[f64]| -> f64 {
            vectors.iter().zip(weights).map(|(v, w)| w * value(&kernel, v, x)).sum()
        };
        for probe in &probes {
            let before = at(&many, &signed, probe);
            let after = at(&exact.vectors, &exact.weights[0], probe);
            prop_assert!((before - after).abs() < 1e-8 * (1.0 + before.abs()), "{before} {after}");
        }
    }
}
