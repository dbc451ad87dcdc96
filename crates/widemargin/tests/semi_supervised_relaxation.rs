//! The relaxation of semi-supervised classification against all labels of few rows.

use widemargin::data::{Dataset, Dense, Label, Labels, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{ClassShares, Machine, SemiSupervisedMethod, SemiSupervisedSvc};
use widemargin::{Context, Status};

use crate::common::random;

/// max Σ cᵢλᵢ − ½ Σ Kᵢⱼ cᵢcⱼ yᵢyⱼ λᵢλⱼ over the box, by coordinate ascent.
fn objective(k: &[f64], y: &[f64], costs: &[f64]) -> f64 {
    let n = y.len();
    let mut alpha = vec![0.0; n];
    for _ in 0..100_000 {
        let mut change = 0.0_f64;
        for i in 0..n {
            let f: f64 = (0..n).map(|j| k[i * n + j] * y[j] * alpha[j]).sum();
            let next = (alpha[i] + (1.0 - y[i] * f) / k[i * n + i]).clamp(0.0, costs[i]);
            change = change.max((next - alpha[i]).abs());
            alpha[i] = next;
        }
        if change < 1e-13 {
            break;
        }
    }
    let mut value: f64 = alpha.iter().sum();
    for i in 0..n {
        for j in 0..n {
            value -= 0.5 * k[i * n + j] * y[i] * y[j] * alpha[i] * alpha[j];
        }
    }
    value
}

#[test]
fn the_bound_is_below_the_optimum_of_all_labels_and_the_labels_above_it() {
    let (n, labelled) = (12, 4);
    let mut exact = 0;
    for seed in 0..6 {
        let noise = random(2 * n, 17 + seed);
        let side = |i: usize| if i.is_multiple_of(2) { 1.0 } else { -1.0 };
        let rows: Vec<f64> = (0..2 * n).map(|at| 3.0 * noise[at] + 0.8 * side(at / 2)).collect();
        let labels: Vec<i64> =
            (0..n).map(|i| if i < labelled { i as i64 % 2 } else { -1 }).collect();
        let dense = Dense::new(n, 2, rows.clone()).unwrap();
        let data = Dataset::new(Matrix::DenseF64(dense), Labels::Int(labels.clone())).unwrap();
        let kernel = match seed % 2 {
            0 => Kernel::Linear,
            _ => Kernel::Gaussian { gamma: 0.3 },
        };
        let c = 1.5;
        let machine = SemiSupervisedSvc {
            c: Some(c),
            kernel: kernel.clone(),
            shares: ClassShares::Given(vec![0.5]),
            method: SemiSupervisedMethod::Relaxation,
            unlabelled: Some(Label::Int(-1)),
            tol: 1e-5,
            ..SemiSupervisedSvc::default()
        };
        let model = machine.fit(&data, &Context::new()).unwrap();
        let training = model.training.unwrap();
        let number = |name: &str| {
            let found = training.parameters.iter().find(|(own, _)| own == name);
            found.unwrap().1.number().unwrap()
        };
        // The squared offset is priced as a feature whose value is the rows' deviation from their mean.
        let plain = |a: usize, b: usize| -> f64 {
            let (a, b) = (&rows[2 * a..][..2], &rows[2 * b..][..2]);
            match kernel {
                Kernel::Linear => a[0] * b[0] + a[1] * b[1],
                _ => (-0.3 * ((a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2))).exp(),
            }
        };
        let all = (0..n).flat_map(|a| (0..n).map(move |b| (a, b)));
        let mean = all.clone().map(|(a, b)| plain(a, b)).sum::<f64>() / (n * n) as f64;
        let scale = (0..n).map(|a| plain(a, a)).sum::<f64>() / n as f64 - mean;
        let k: Vec<f64> = all.map(|(a, b)| plain(a, b) + scale).collect();
        let unknown = n - labelled;
        let price = |i: usize| if i < labelled { c } else { c * labelled as f64 / unknown as f64 };
        let costs: Vec<f64> = (0..n).map(price).collect();
        let mut least = f64::INFINITY;
        for mask in (0_u32..1 << unknown).filter(|mask| mask.count_ones() == unknown as u32 / 2) {
            let y: Vec<f64> = (0..n)
                .map(|i| match labels[i] {
                    0 => 1.0,
                    1 => -1.0,
                    _ if mask >> (i - labelled) & 1 == 1 => 1.0,
                    _ => -1.0,
                })
                .collect();
            least = least.min(objective(&k, &y, &costs));
        }
        let (primal, dual) = (training.outcome.primal, training.outcome.dual);
        let case = format!("{seed}: {dual} ≤ {} ≤ {least} ≤ {primal}", number("relaxation"));
        assert_eq!(training.outcome.status, Status::Solved, "{case}");
        assert!(dual <= least * (1.0 + 1e-9), "{case}");
        assert!(number("relaxation") <= least * (1.0 + 1e-5), "{case}");
        assert!(number("relaxation") - dual <= 1e-5 * dual.abs() * 1.1, "{case}");
        // Kernels other than the linear one are rounded to single precision in the landmarks alone.
        assert!(primal >= least * (1.0 - 1e-5) && primal <= 1.2 * least, "{case}");
        // Unlabelled rows only add to the objective.
        let known: Vec<f64> = (0..labelled).map(|i| 1.0 - 2.0 * labels[i] as f64).collect();
        let part: Vec<f64> = (0..labelled).flat_map(|a| k[a * n..][..labelled].to_vec()).collect();
        let alone = objective(&part, &known, &vec![c; labelled]);
        assert!(dual >= alone * (1.0 - 1e-4), "{case}: {alone}");
        exact += u32::from(primal <= least * (1.0 + 1e-5));
    }
    assert!(exact >= 4, "{exact} of 6");
}
