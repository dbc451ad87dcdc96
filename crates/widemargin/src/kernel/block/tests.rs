//! Blocks against double loops in double precision, for every kernel, storage and instruction set.

use proptest::prelude::*;

use super::super::{CustomKernel, Kernel};
use super::dense::Shape;
use super::{KernelBlocks, Queries};
use crate::data::{Dense, Layout, Matrix};
use crate::error::Error;
use crate::numeric::InstructionSet;
use crate::numeric::simd::{Real, available};

/// A table with about `density` of its values not zero, all of them in 0..1 or in ±1.
fn table(rows: usize, columns: usize, density: f64, signed: bool, seed: u64) -> Matrix {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut value = || {
        let kept = uniform() < density;
        let value = uniform();
        if !kept {
            0.0
        } else if signed {
            2.0 * value - 1.0
        } else {
            value
        }
    };
    let values = (0..rows * columns).map(|_| value() as f32 as f64).collect();
    Matrix::DenseF64(Dense::new(rows, columns, values).unwrap())
}

fn row(matrix: &Matrix, i: usize) -> Vec<f64> {
    let mut out = vec![0.0; matrix.columns()];
    matrix.copy_row(i, &mut out);
    out
}

/// The definition of a kernel.
fn exact(kernel: &Kernel, x: &[f64], z: &[f64]) -> f64 {
    let pairs = || x.iter().zip(z);
    let dot = || pairs().map(|(a, b)| a * b).sum::<f64>();
    match kernel {
        Kernel::Linear => dot(),
        Kernel::Polynomial { gamma, coef0, degree } => (gamma * dot() + coef0).powi(*degree as i32),
        Kernel::Gaussian { gamma } => {
            (-gamma * pairs().map(|(a, b)| (a - b).powi(2)).sum::<f64>()).exp()
        }
        Kernel::Sigmoid { gamma, coef0 } => (gamma * dot() + coef0).tanh(),
        Kernel::Laplacian { gamma } => {
            (-gamma * pairs().map(|(a, b)| (a - b).abs()).sum::<f64>()).exp()
        }
        Kernel::ChiSquared { gamma } => {
            let term = |(a, b): (&f64, &f64)| {
                if a + b == 0.0 { 0.0 } else { (a - b).powi(2) / (a + b) }
            };
            (-gamma * pairs().map(term).sum::<f64>()).exp()
        }
        Kernel::Cosine => {
            let norm = |v: &[f64]| v.iter().map(|a| a * a).sum::<f64>().sqrt();
            let norms = norm(x) * norm(z);
            if norms == 0.0 { 0.0 } else { dot() / norms }
        }
        Kernel::Custom(custom) => custom.evaluate(x, z),
        Kernel::Sum(terms) => terms.iter().map(|(w, k)| w * exact(k, x, z)).sum(),
        Kernel::Product(factors) => factors.iter().map(|k| exact(k, x, z)).product(),
        Kernel::View { columns, kernel } => {
            let seen = |row: &[f64]| -> Vec<f64> {
                columns.iter().flat_map(|range| row[range.clone()].to_vec()).collect()
            };
            exact(kernel, &seen(x), &seen(z))
        }
        _ => unreachable!("not a function of two rows"),
    }
}

fn kernels() -> Vec<Kernel> {
    let asymmetric_rounding = |x: &[f64], z: &[f64]| {
        let weights = 0..x.len();
        weights.map(|k| (x[k] * 1.1) * (z[k] / 3.0) / (1.0 + k as f64)).sum()
    };
    vec![
        Kernel::Linear,
        Kernel::Polynomial { gamma: 0.3, coef0: 0.5, degree: 3 },
        Kernel::Polynomial { gamma: 0.3, coef0: 0.5, degree: 0 },
        Kernel::Gaussian { gamma: 0.4 },
        Kernel::Sigmoid { gamma: 0.2, coef0: -0.1 },
        Kernel::Laplacian { gamma: 0.2 },
        Kernel::ChiSquared { gamma: 0.3 },
        Kernel::Cosine,
        Kernel::Custom(CustomKernel::new("weighted", asymmetric_rounding)),
        Kernel::Sum(vec![(0.25, Kernel::Linear), (2.0, Kernel::Gaussian { gamma: 0.1 })]),
        Kernel::Product(vec![Kernel::Cosine, Kernel::Laplacian { gamma: 0.05 }]),
        Kernel::Sum(vec![
            (
                2.0,
                Kernel::View {
                    columns: std::iter::once(0..1).collect(),
                    kernel: Box::new(Kernel::Linear),
                },
            ),
            (0.5, Kernel::Gaussian { gamma: 0.03 }),
        ]),
    ]
}

fn takes_negative(kernel: &Kernel) -> bool {
    !matches!(kernel, Kernel::ChiSquared { .. })
}

fn full<T: Real>(blocks: &KernelBlocks<T>) -> Vec<Vec<T>> {
    let n = blocks.len();
    let mut out = vec![vec![T::ZERO; n]; n];
    let mut slices: Vec<&mut [T]> = out.iter_mut().map(Vec::as_mut_slice).collect();
    blocks.block(&(0..n).collect::<Vec<_>>(), 0..n, &mut slices);
    out
}

fn close<T: Real>(found: T, expected: f64, tolerance: f64, what: &str) {
    let error = (found.to_f64() - expected).abs();
    assert!(error <= tolerance * (1.0 + expected.abs()), "{what}: {found} instead of {expected}");
}

fn agrees_with_double_loops<T: Real>(tolerance: f64) {
    for kernel in kernels() {
        for set in available() {
            for (rows, columns, density) in
                [(1, 1, 1.0), (7, 3, 0.6), (50, 20, 1.0), (101, 37, 0.1), (53, 190, 0.3)]
            {
                let data = table(rows, columns, density, takes_negative(&kernel), 7);
                let what = format!("{kernel:?} {set} {rows} x {columns} at {density}");
                let blocks = KernelBlocks::<T>::on_cpu(&kernel, &data, None, set).unwrap();
                let values = full(&blocks);
                for i in 0..rows {
                    let x = row(&data, i);
                    for j in 0..rows {
                        let expected = exact(&kernel, &x, &row(&data, j));
                        close(values[i][j], expected, tolerance, &what);
                        assert_eq!(values[i][j], values[j][i], "{what}: ({i}, {j})");
                    }
                    assert_eq!(values[i][i], blocks.diagonal()[i], "{what}: diagonal {i}");
                }
            }
        }
    }
}

#[test]
fn single_precision_agrees_with_double_loops() {
    agrees_with_double_loops::<f32>(3e-6);
}

#[test]
fn double_precision_agrees_with_double_loops() {
    agrees_with_double_loops::<f64>(1e-14);
}

#[test]
fn any_cut_of_a_block_has_the_same_bits() {
    for kernel in kernels() {
        for set in available() {
            for density in [1.0, 0.15] {
                let data = table(131, 45, density, takes_negative(&kernel), 3);
                let blocks = KernelBlocks::<f32>::on_cpu(&kernel, &data, None, set).unwrap();
                let whole = full(&blocks);
                let left = [3, 130, 64, 64, 0, 17, 18, 19, 20, 99, 5, 6, 7];
                let queries = blocks.gather(&left);
                for columns in [0..131, 1..2, 47..49, 5..100, 130..131, 96..96, 63..129] {
                    for rows in [0..13, 1..4, 5..13, 12..13, 7..9] {
                        let mut out = vec![-1.0; 13 * 140];
                        blocks.query_block(&queries, rows.clone(), columns.clone(), &mut out, 140);
                        for (r, row) in rows.clone().enumerate() {
                            let found = &out[r * 140..][..columns.len()];
                            let expected = &whole[left[row]][columns.clone()];
                            assert_eq!(found, expected, "{kernel:?} {set} {rows:?} {columns:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn rows_longer_than_a_depth_block_have_the_same_bits_and_value() {
    for set in available() {
        let data = table(30, 2500, 1.0, true, 5);
        let blocks = KernelBlocks::<f32>::on_cpu(&Kernel::Linear, &data, None, set).unwrap();
        let values = full(&blocks);
        for i in 0..30 {
            for j in 0..30 {
                let expected = exact(&Kernel::Linear, &row(&data, i), &row(&data, j));
                close(values[i][j], expected, 1e-4, "2500 features");
                assert_eq!(values[i][j], values[j][i]);
            }
        }
    }
}

#[test]
fn wide_sparse_rows_agree_with_double_loops() {
    for set in available() {
        for (columns, density) in [(3000, 0.002), (3000, 0.05), (60_000, 0.001)] {
            for kernel in [Kernel::Gaussian { gamma: 0.05 }, Kernel::Laplacian { gamma: 0.02 }] {
                let data = table(70, columns, density, true, 11);
                let blocks = KernelBlocks::<f32>::on_cpu(&kernel, &data, None, set).unwrap();
                let mut out = vec![0.0; 3 * 70];
                let queries = blocks.gather(&[0, 33, 69]);
                blocks.query_block(&queries, 0..3, 0..70, &mut out, 70);
                for (r, i) in [0, 33, 69].into_iter().enumerate() {
                    for j in 0..70 {
                        let expected = exact(&kernel, &row(&data, i), &row(&data, j));
                        let what = format!("{kernel:?} {set} {columns} at {density}");
                        close(out[r * 70 + j], expected, 1e-5, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn storage_does_not_change_a_bit() {
    for kernel in kernels() {
        for density in [0.2, 0.9] {
            let dense = table(40, 30, density, takes_negative(&kernel), 9);
            let sparse = dense.clone().into_layout(Layout::Sparse);
            let set = InstructionSet::detect();
            let of_dense = KernelBlocks::<f32>::on_cpu(&kernel, &dense, None, set).unwrap();
            let of_sparse = KernelBlocks::<f32>::on_cpu(&kernel, &sparse, None, set).unwrap();
            assert_eq!(full(&of_dense), full(&of_sparse), "{kernel:?}");
        }
    }
}

#[test]
fn sparse_rows_against_dense_ones_agree_with_double_loops() {
    for kernel in kernels() {
        for set in available() {
            let signed = takes_negative(&kernel);
            let data = table(61, 45, 1.0, signed, 3);
            let queries = table(9, 45, 0.2, signed, 8).into_layout(Layout::Sparse);
            let single = KernelBlocks::<f32>::on_cpu(&kernel, &data, None, set).unwrap();
            let double = KernelBlocks::<f64>::on_cpu(&kernel, &data, None, set).unwrap();
            let double = double.subset(&(0..61).rev().collect::<Vec<_>>());
            for columns in [0..61, 1..2, 47..50, 5..61] {
                let width = columns.len();
                let (mut one, mut two) = (vec![0.0; 9 * width], vec![0.0; 9 * width]);
                let ready = single.prepare(&queries, 0..9).unwrap();
                single.query_block(&ready, 0..9, columns.clone(), &mut one, width);
                let ready = double.prepare(&queries, 0..9).unwrap();
                double.query_block(&ready, 0..9, columns.clone(), &mut two, width);
                for i in 0..9 {
                    for (at, j) in columns.clone().enumerate() {
                        let what = format!("{kernel:?} {set} {i} {j}");
                        let x = row(&queries, i);
                        let expected = exact(&kernel, &x, &row(&data, j));
                        close(one[i * width + at], expected, 3e-6, &what);
                        let expected = exact(&kernel, &x, &row(&data, 60 - j));
                        close(two[i * width + at], expected, 1e-13, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn subsets_and_orders_keep_every_bit() {
    for kernel in kernels() {
        for set in available() {
            for density in [1.0, 0.2] {
                let data = table(90, 25, density, takes_negative(&kernel), 13);
                let blocks = KernelBlocks::<f32>::on_cpu(&kernel, &data, None, set).unwrap();
                let whole = full(&blocks);
                let keep: Vec<usize> = (0..90).rev().filter(|i| i % 3 != 1).collect();
                let subset = blocks.subset(&keep);
                let part = full(&subset);
                for (i, &from_i) in keep.iter().enumerate() {
                    assert_eq!(subset.diagonal()[i], blocks.diagonal()[from_i]);
                    for (j, &from_j) in keep.iter().enumerate() {
                        assert_eq!(part[i][j], whole[from_i][from_j], "{kernel:?} {set}");
                    }
                }
                let again = full(&subset.subset(&[4, 2]));
                assert_eq!(again[0][1], whole[keep[4]][keep[2]]);
            }
        }
    }
}

#[test]
fn an_order_selects_rows() {
    let data = table(20, 6, 1.0, true, 1);
    let kernel = Kernel::Polynomial { gamma: 1.0, coef0: 0.0, degree: 2 };
    let order = [19, 3, 4];
    let set = InstructionSet::detect();
    let blocks = KernelBlocks::<f64>::on_cpu(&kernel, &data, Some(&order), set).unwrap();
    let values = full(&blocks);
    for (i, &from_i) in order.iter().enumerate() {
        for (j, &from_j) in order.iter().enumerate() {
            let expected = exact(&kernel, &row(&data, from_i), &row(&data, from_j));
            close(values[i][j], expected, 1e-14, "ordered");
        }
    }
}

#[test]
fn queries_agree_with_double_loops_also_where_training_rows_are_zero() {
    for kernel in kernels() {
        for set in available() {
            for density in [1.0, 0.15] {
                let signed = takes_negative(&kernel);
                // The first column is zero in every training row, and in no query.
                let mut values = Vec::new();
                let train = table(61, 33, density, signed, 17);
                for i in 0..61 {
                    let mut x = row(&train, i);
                    x[0] = 0.0;
                    values.extend(x);
                }
                let train = Matrix::DenseF64(Dense::new(61, 33, values).unwrap());
                let test = table(19, 33, 1.0, signed, 23);
                let blocks = KernelBlocks::<f32>::on_cpu(&kernel, &train, None, set).unwrap();
                let queries = blocks.prepare(&test, 2..19).unwrap();
                let own = queries.self_similarities().unwrap();
                let mut out = vec![0.0; 17 * 61];
                blocks.query_block(&queries, 0..17, 0..61, &mut out, 61);
                for q in 0..17 {
                    let x = row(&test, q + 2);
                    let what = format!("{kernel:?} {set} at {density}");
                    close(own[q], exact(&kernel, &x, &x), 3e-6, &what);
                    for j in 0..61 {
                        let expected = exact(&kernel, &x, &row(&train, j));
                        close(out[q * 61 + j], expected, 3e-6, &what);
                    }
                }
                let again = blocks.prepare(&train, 0..61).unwrap();
                let mut out = vec![0.0; 61 * 61];
                blocks.query_block(&again, 0..61, 0..61, &mut out, 61);
                assert_eq!(out, full(&blocks).concat(), "{kernel:?} {set}: own rows as queries");
            }
        }
    }
}

#[test]
fn centring_keeps_the_digits_of_far_away_data() {
    let near = table(40, 10, 1.0, true, 29);
    let far: Vec<f64> = (0..40).flat_map(|i| row(&near, i)).map(|v| v + 1024.0).collect();
    let far = Matrix::DenseF64(Dense::new(40, 10, far).unwrap());
    let kernel = Kernel::Gaussian { gamma: 0.5 };
    let set = InstructionSet::detect();
    let values = full(&KernelBlocks::<f32>::on_cpu(&kernel, &far, None, set).unwrap());
    for i in 0..40 {
        for j in 0..40 {
            let expected = exact(&kernel, &row(&near, i), &row(&near, j));
            close(values[i][j], expected, 3e-6, "far from the origin");
        }
    }
}

#[test]
fn precomputed_values_are_read_back() {
    let data = table(30, 4, 1.0, true, 31);
    let kernel = Kernel::Gaussian { gamma: 0.3 };
    let values: Vec<f64> = (0..30)
        .flat_map(|i| (0..30).map(move |j| (i, j)))
        .map(|(i, j)| exact(&kernel, &row(&data, i), &row(&data, j)))
        .collect();
    let matrix = Matrix::DenseF64(Dense::new(30, 30, values.clone()).unwrap());
    let set = InstructionSet::detect();
    let order = [5, 29, 0, 7];
    let blocks =
        KernelBlocks::<f64>::on_cpu(&Kernel::Precomputed, &matrix, Some(&order), set).unwrap();
    let found = full(&blocks);
    for (i, &from_i) in order.iter().enumerate() {
        for (j, &from_j) in order.iter().enumerate() {
            assert_eq!(found[i][j], values[from_i * 30 + from_j]);
        }
    }
    let support = blocks.subset(&[1, 3]);
    let columns = KernelBlocks::<f64>::precomputed_columns(30, &[29, 7]).unwrap();
    for blocks in [support, columns] {
        let queries = blocks.prepare(&matrix, 10..12).unwrap();
        assert!(queries.self_similarities().is_err());
        let mut out = [0.0; 4];
        blocks.query_block(&queries, 0..2, 0..2, &mut out, 2);
        let at = |i: usize, j: usize| values[i * 30 + j];
        assert_eq!(out, [at(10, 29), at(10, 7), at(11, 29), at(11, 7)]);
    }
    assert!(KernelBlocks::<f64>::precomputed_columns(5, &[5]).is_err());
}

#[test]
fn unsuitable_data_is_refused() {
    let set = InstructionSet::detect();
    let data = |values: &[f64]| {
        Matrix::DenseF64(Dense::new(values.len() / 2, 2, values.to_vec()).unwrap())
    };
    let negative = data(&[1.0, 2.0, 3.0, -4.0]);
    let chi = Kernel::ChiSquared { gamma: 1.0 };
    let error = KernelBlocks::<f32>::on_cpu(&chi, &negative, None, set).unwrap_err();
    assert!(error.to_string().contains("-4 in row 2, feature 2"), "{error}");
    let blocks = KernelBlocks::<f32>::on_cpu(&chi, &data(&[1.0, 2.0]), None, set).unwrap();
    assert!(matches!(blocks.prepare(&negative, 0..2), Err(Error::Kernel { .. })));
    let narrow = Matrix::DenseF64(Dense::new(1, 1, vec![1.0]).unwrap());
    assert!(matches!(blocks.prepare(&narrow, 0..1), Err(Error::Length { .. })));
    let oblong = data(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let error = KernelBlocks::<f32>::on_cpu(&Kernel::Precomputed, &oblong, None, set).unwrap_err();
    assert!(matches!(error, Error::Kernel { .. }));
    let huge = data(&[1e30, 1.0, 2.0, 3.0]);
    let error = KernelBlocks::<f32>::on_cpu(&Kernel::Linear, &huge, None, set).unwrap_err();
    assert!(error.to_string().contains("row 1"), "{error}");
    assert!(KernelBlocks::<f64>::on_cpu(&Kernel::Linear, &huge, None, set).is_ok());
}

#[test]
fn queries_packed_for_other_rows_are_refused() {
    let (data, other) = (table(20, 6, 1.0, true, 41), table(20, 5, 1.0, true, 43));
    let sparse = table(20, 6, 0.2, true, 47);
    let sets: Vec<InstructionSet> = available().collect();
    let pack = |kernel: &Kernel, data: &Matrix, set: InstructionSet| {
        KernelBlocks::<f32>::on_cpu(kernel, data, None, set).unwrap()
    };
    let gaussian = Kernel::Gaussian { gamma: 0.5 };
    let blocks = pack(&gaussian, &data, sets[sets.len() - 1]);
    let mut foreign = vec![pack(&gaussian, &other, sets[sets.len() - 1]).gather(&[0, 1])];
    foreign.push(pack(&kernels()[8], &data, sets[0]).gather(&[0, 1]));
    foreign.push(pack(&kernels()[9], &data, sets[0]).gather(&[0, 1]));
    for &set in &sets {
        let same = Shape::of::<f32>(set).group == Shape::of::<f32>(sets[sets.len() - 1]).group;
        if !same {
            foreign.push(pack(&gaussian, &data, set).gather(&[0, 1]));
        }
    }
    let multiply = |blocks: &KernelBlocks<f32>, queries: &Queries<f32>| {
        let product = || blocks.query_block(queries, 0..2, 0..20, &mut [0.0; 40], 20);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(product)).is_ok()
    };
    for queries in &foreign {
        assert!(!multiply(&blocks, queries));
    }
    let dense = blocks.gather(&[0, 1]);
    assert!(multiply(&blocks, &dense));
    assert!(!multiply(&pack(&gaussian, &sparse, sets[0]), &dense));
}

#[test]
fn empty_sides_are_fine() {
    let data = table(5, 3, 1.0, true, 37);
    let set = InstructionSet::detect();
    for kernel in kernels().into_iter().filter(takes_negative) {
        let blocks = KernelBlocks::<f32>::on_cpu(&kernel, &data, Some(&[]), set).unwrap();
        assert_eq!(blocks.len(), 0);
        let queries = blocks.prepare(&data, 0..5).unwrap();
        blocks.query_block(&queries, 0..5, 0..0, &mut [], 0);
        let blocks = KernelBlocks::<f32>::on_cpu(&kernel, &data, None, set).unwrap();
        blocks.block(&[], 0..5, &mut []);
        let zeros = Matrix::DenseF64(Dense::new(3, 2, vec![0.0; 6]).unwrap());
        let blocks = KernelBlocks::<f32>::on_cpu(&kernel, &zeros, None, set).unwrap();
        close(full(&blocks)[0][2], exact(&kernel, &[0.0; 2], &[0.0; 2]), 1e-6, "zeros");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_shapes_and_ranges_agree(
        rows in 1_usize..90,
        columns in 1_usize..70,
        density in 0.0_f64..1.0,
        seed in 1_u64..1000,
        which in 0_usize..11,
        cut in (0.0_f64..1.0, 0.0_f64..1.0),
    ) {
        let kernel = &kernels()[which];
        let data = table(rows, columns, density, takes_negative(kernel), seed);
        let at = |share: f64| (share * (rows + 1) as f64) as usize;
        let range = at(cut.0.min(cut.1))..at(cut.0.max(cut.1)).min(rows);
        for set in available() {
            let blocks = KernelBlocks::<f32>::on_cpu(kernel, &data, None, set).unwrap();
            let left: Vec<usize> = (0..rows).rev().collect();
            let mut out = vec![0.0; rows * range.len().max(1)];
            let queries = blocks.gather(&left);
            blocks.query_block(&queries, 0..rows, range.clone(), &mut out, range.len());
            for (r, &i) in left.iter().enumerate() {
                for (c, j) in range.clone().enumerate() {
                    let expected = exact(kernel, &row(&data, i), &row(&data, j));
                    let found = out[r * range.len() + c].to_f64();
                    prop_assert!((found - expected).abs() <= 1e-5 * (1.0 + expected.abs()));
                }
            }
        }
    }
}
