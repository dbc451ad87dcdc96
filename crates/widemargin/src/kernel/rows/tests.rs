//! Sums of kernels with changing weights against kernels that are packed one by one.

use super::{KernelRows, MatrixRows, RowCaching};
use crate::Context;
use crate::data::{Dense, Matrix};
use crate::error::Error;
use crate::kernel::{Kernel, KernelBlocks};
use crate::numeric::random::Generator;
use crate::numeric::simd::Real;

const ROWS: usize = 150;

fn table() -> Matrix {
    let mut random = Generator::new(5);
    let values = (0..ROWS * 9).map(|_| random.unit()).collect();
    Matrix::DenseF64(Dense::new(ROWS, 9, values).unwrap())
}

fn kernels() -> [Kernel; 3] {
    [
        Kernel::Linear,
        Kernel::Gaussian { gamma: 0.7 },
        Kernel::Polynomial { gamma: 0.5, coef0: 1.0, degree: 2 },
    ]
}

fn sum(weights: &[f64]) -> Kernel {
    Kernel::Sum(weights.iter().copied().zip(kernels()).collect())
}

fn rows<T: Real>(kernel: &Kernel, context: &Context) -> KernelRows<T> {
    let blocks = KernelBlocks::new(kernel, &table(), None, context).unwrap();
    KernelRows::new(blocks, vec![0, 60, ROWS], RowCaching::All, 1 << 20)
}

fn coefficients() -> Vec<f64> {
    let mut random = Generator::new(7);
    (0..ROWS).map(|i| if i % 4 == 0 { 0.0 } else { random.normal() }).collect()
}

fn entries<T: Real>(rows: &KernelRows<T>, context: &Context) -> Vec<T> {
    let view = rows.view(&[0, 1], context);
    let variables: Vec<u32> = (0..ROWS as u32).collect();
    let fetched = view.fetch(&variables);
    fetched.iter().flatten().flat_map(|piece| piece.iter().copied()).collect()
}

fn new_weights_are_those_of_a_fresh_sum<T: Real>() {
    for threads in [1, 2] {
        let context = Context::new().with_threads(threads).unwrap();
        let mut changing = rows::<T>(&sum(&[1.0, 2.0, 0.5]), &context);
        for weights in [[1.0, 2.0, 0.5], [0.3, 1e-3, 4.0], [2.0, 1.0, 1.0]] {
            changing.reweight(&weights).unwrap();
            let fresh = rows::<T>(&sum(&weights), &context);
            // Twice, so that the second time they come out of the cache.
            for _ in 0..2 {
                assert_eq!(entries(&changing, &context), entries(&fresh, &context));
            }
            assert_eq!(changing.blocks().diagonal(), fresh.blocks().diagonal());
            let product =
                |rows: &KernelRows<T>| rows.view(&[1, 0], &context).product(&coefficients());
            assert_eq!(product(&changing), product(&fresh));
        }
    }
}

#[test]
fn reweighted_single_precision_has_the_bits_of_a_fresh_sum() {
    new_weights_are_those_of_a_fresh_sum::<f32>();
}

#[test]
fn reweighted_double_precision_has_the_bits_of_a_fresh_sum() {
    new_weights_are_those_of_a_fresh_sum::<f64>();
}

#[test]
fn forms_by_kernel_are_those_of_kernels_packed_alone() {
    for threads in [1, 2] {
        let context = Context::new().with_threads(threads).unwrap();
        let weights = [0.25, 3.0, 0.5];
        let together = rows::<f64>(&sum(&weights), &context);
        let beta = coefficients();
        let view = together.view(&[0, 1], &context);
        let forms = view.term_forms(&beta, 1, &context).unwrap();
        assert_eq!(forms.len(), 3);
        let form =
            |product: Vec<f64>| -> f64 { product.iter().zip(&beta).map(|(p, b)| p * b).sum() };
        let is_near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * (1.0 + b.abs());
        for (kernel, found) in kernels().iter().zip(&forms) {
            let alone = rows::<f64>(kernel, &context);
            let expected = form(alone.view(&[0, 1], &context).product(&beta));
            assert!(is_near(*found, expected), "{kernel:?}: {found} {expected}");
        }
        let (sum, total): (f64, f64) =
            (forms.iter().zip(weights).map(|(own, w)| w * own).sum(), form(view.product(&beta)));
        assert!(is_near(sum, total), "{sum} {total}");
        let subset = together.blocks().subset(&[3, 80, 81]);
        assert_eq!(subset.terms().len(), 3);
    }
}

#[test]
fn a_kernel_with_weight_zero_is_left_out() {
    let context = Context::new();
    let mut changing = rows::<f64>(&sum(&[1.0, 1.0, 1.0]), &context);
    changing.reweight(&[0.0, 1.0, 0.0]).unwrap();
    let gaussian = rows::<f64>(&kernels()[1], &context);
    assert_eq!(entries(&changing, &context), entries(&gaussian, &context));
}

#[test]
fn unsuitable_weights_are_refused_and_change_nothing() {
    let context = Context::new();
    let mut changing = rows::<f32>(&sum(&[1.0, 2.0, 0.5]), &context);
    let before = entries(&changing, &context);
    for (weights, expected) in [
        (vec![1.0; 2], "length"),
        (vec![1.0, f64::NAN, 1.0], "parameter"),
        (vec![1e38; 3], "overflow"),
    ] {
        let error = changing.reweight(&weights).unwrap_err();
        let kind = match error {
            Error::Length { .. } => "length",
            Error::Parameter { .. } => "parameter",
            Error::Overflow { .. } => "overflow",
            _ => "another",
        };
        assert_eq!(kind, expected, "{error}");
    }
    assert_eq!(entries(&changing, &context), before);
    let mut alone = rows::<f32>(&Kernel::Linear, &context);
    assert!(matches!(alone.reweight(&[2.0]), Err(Error::Kernel { .. })));
    assert!(alone.view(&[0], &context).term_forms(&[1.0; 60], 1, &context).unwrap().is_empty());
}

#[test]
fn weights_may_be_negative() {
    let context = Context::new();
    let mut changing = rows::<f64>(&sum(&[1.0, 1.0, 1.0]), &context);
    changing.reweight(&[0.0, -2.0, 0.0]).unwrap();
    let gaussian = rows::<f64>(&kernels()[1], &context);
    let expected: Vec<f64> =
        entries(&gaussian, &context).iter().map(|value| -2.0 * value).collect();
    assert_eq!(entries(&changing, &context), expected);
}

#[test]
fn forms_of_terms_equal_products_with_their_rows() {
    let context = Context::new();
    let packed = rows::<f64>(&sum(&[1.0, 2.0, 0.5]), &context);
    let view = packed.view(&[0], &context);
    let beta: Vec<f64> = (0..60).map(|i| f64::from(i % 7) - 3.0).collect();
    let forms = view.term_forms(&beta, 1, &context).unwrap();
    assert_eq!(forms.len(), 3);
    for (form, kernel) in forms.iter().zip(kernels()) {
        let alone = rows::<f64>(&kernel, &context);
        let product = alone.view(&[0], &context).product(&beta);
        let expected: f64 = product.iter().zip(&beta).map(|(a, b)| a * b).sum();
        assert!((form - expected).abs() <= 1e-10 * expected.abs().max(1.0));
    }
    let doubled: Vec<f64> = beta.iter().flat_map(|b| [*b, 2.0 * b]).collect();
    for (two, one) in view.term_forms(&doubled, 2, &context).unwrap().iter().zip(&forms) {
        assert!((two - 5.0 * one).abs() <= 1e-10 * one.abs().max(1.0));
    }
}
