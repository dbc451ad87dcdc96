//! String kernels against their definitions, written without any table.

use std::collections::HashMap;

use proptest::prelude::*;

use super::super::KernelBlocks;
use crate::context::Context;
use crate::data::{Layout, Matrix};
use crate::kernel::{Gram, Kernel, StringKernel, StringSimilarity};
use crate::numeric::InstructionSet;

const ALPHABET: [char; 3] = ['a', 'b', 'é'];

fn substrings(text: &[char], length: usize) -> Vec<&[char]> {
    text.windows(length).collect()
}

/// Σ over the strings of `length` symbols of the alphabet.
fn by_neighbours(s: &[char], t: &[char], length: usize, mismatches: usize) -> f64 {
    let mut words: Vec<Vec<char>> = vec![Vec::new()];
    for _ in 0..length {
        let longer = |word: &Vec<char>| {
            let word = word.clone();
            ALPHABET.into_iter().map(move |c| word.iter().copied().chain([c]).collect())
        };
        words = words.iter().flat_map(longer).collect();
    }
    let near = |word: &[char], text: &[char]| {
        let differ = |part: &[char]| part.iter().zip(word).filter(|(a, b)| a != b).count();
        substrings(text, length).into_iter().filter(|part| differ(part) <= mismatches).count()
    };
    words.iter().map(|word| (near(word, s) * near(word, t)) as f64).sum()
}

fn by_counts(s: &[char], t: &[char], length: usize) -> f64 {
    let mut counts: HashMap<&[char], f64> = HashMap::new();
    substrings(s, length).into_iter().for_each(|part| *counts.entry(part).or_default() += 1.0);
    substrings(t, length).iter().filter_map(|part| counts.get(part)).sum()
}

/// The subsequences of `length` symbols with the places that each spans.
fn subsequences(text: &[char], length: usize) -> Vec<(Vec<char>, usize)> {
    let n = text.len();
    (0_u32..1 << n)
        .filter(|chosen| chosen.count_ones() as usize == length)
        .map(|chosen| {
            let places: Vec<usize> = (0..n).filter(|i| chosen >> i & 1 == 1).collect();
            let span = places[length - 1] - places[0] + 1;
            (places.into_iter().map(|i| text[i]).collect(), span)
        })
        .collect()
}

fn by_subsequences(s: &[char], t: &[char], length: usize, decay: f64) -> f64 {
    let others = subsequences(t, length);
    let all = subsequences(s, length);
    let pairs = all.iter().flat_map(|a| others.iter().map(move |b| (a, b)));
    pairs.filter(|(a, b)| a.0 == b.0).map(|(a, b)| decay.powi((a.1 + b.1) as i32)).sum()
}

/// Σ over the alignments whose next pair is after (i, j), or is the first.
fn by_alignments(
    s: &[char],
    t: &[char],
    before: Option<(usize, usize)>,
    factor: &dyn Fn(char, char) -> f64,
    gap: &dyn Fn(usize) -> f64,
) -> f64 {
    let (from, beyond) = before.map_or((0, 0), |(i, j)| (i + 1, j + 1));
    let mut sum = 1.0;
    for i in from..s.len() {
        for j in beyond..t.len() {
            let gaps = if before.is_some() { gap(i - from) * gap(j - beyond) } else { 1.0 };
            sum += gaps * factor(s[i], t[j]) * by_alignments(s, t, Some((i, j)), factor, gap);
        }
    }
    sum
}

fn by_definition(similarity: StringSimilarity, s: &str, t: &str) -> f64 {
    let (s, t): (Vec<char>, Vec<char>) = (s.chars().collect(), t.chars().collect());
    match similarity {
        StringSimilarity::Spectrum { length, shortest } => {
            (shortest..=length).map(|k| by_counts(&s, &t, k as usize)).sum()
        }
        StringSimilarity::Mismatch { length, mismatches, .. } => {
            by_neighbours(&s, &t, length as usize, mismatches as usize)
        }
        StringSimilarity::Subsequence { length, decay } => {
            by_subsequences(&s, &t, length as usize, decay)
        }
        StringSimilarity::Alignment { reward, penalty, open, extend, beta, log } => {
            let factor = |a, b| (beta * if a == b { reward } else { penalty }).exp();
            let gap = |n: usize| match n {
                0 => 1.0,
                n => (-beta * (open + extend * (n - 1) as f64)).exp(),
            };
            let value = by_alignments(&s, &t, None, &factor, &gap);
            if log { value.ln() } else { value }
        }
    }
}

fn similarities() -> impl Strategy<Value = StringSimilarity> {
    let spectrum = (1..5_u32, 0..4_u32).prop_map(|(length, less)| StringSimilarity::Spectrum {
        length,
        shortest: length.saturating_sub(less).max(1),
    });
    let mismatch = (1..5_u32, 0..3_u32).prop_map(|(length, mismatches)| {
        let mismatches = mismatches.min(length - 1);
        StringSimilarity::Mismatch { length, mismatches, alphabet: ALPHABET.len() as u32 }
    });
    let subsequence = (1..5_u32, 0.05..=1.0_f64)
        .prop_map(|(length, decay)| StringSimilarity::Subsequence { length, decay });
    let scores = (0.0..3.0_f64, 0.0..4.0_f64, 0.0..3.0_f64, 0.0..1.0_f64, 0.1..1.5_f64);
    let alignment =
        (scores, any::<bool>()).prop_map(|((reward, less, open, extend, beta), log)| {
            StringSimilarity::Alignment { reward, penalty: reward - less, open, extend, beta, log }
        });
    prop_oneof![spectrum, mismatch, subsequence, alignment]
}

fn strings() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[abé]{0,6}", 1..6)
}

/// All values between strings and some more, by blocks of packed rows and of queries.
fn values(
    kernel: StringKernel,
    packed: &Matrix,
    queries: &Matrix,
    set: InstructionSet,
) -> Vec<f64> {
    let kernel = Kernel::String(kernel);
    let blocks = KernelBlocks::<f64>::on_cpu(&kernel, packed, None, set).expect("strings");
    let left = blocks.prepare(queries, 0..queries.rows()).expect("strings");
    let mut out = vec![0.0; queries.rows() * blocks.len()];
    blocks.query_block(&left, 0..queries.rows(), 0..blocks.len(), &mut out, blocks.len());
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn values_are_those_of_the_definitions(
        similarity in similarities(),
        packed in strings(),
        queries in strings(),
        normalize in any::<bool>(),
    ) {
        let own = |s: &str| by_definition(similarity, s, s);
        let kernel = StringKernel { similarity, normalize };
        let rows = Matrix::of_strings(&packed).unwrap();
        for layout in [Layout::Sparse, Layout::Dense] {
            let other = Matrix::of_strings(&queries).unwrap().into_layout(layout);
            let found = values(kernel, &rows, &other, InstructionSet::detect());
            for (i, s) in queries.iter().enumerate() {
                for (j, t) in packed.iter().enumerate() {
                    let value = by_definition(similarity, s, t);
                    let expected = match normalize {
                        true if own(s) == 0.0 || own(t) == 0.0 => 0.0,
                        true => value / (own(s) * own(t)).sqrt(),
                        false => value,
                    };
                    let found = found[i * packed.len() + j];
                    let close = (found - expected).abs() <= 1e-10 * (1.0 + expected.abs());
                    prop_assert!(close, "{kernel} of {s:?} and {t:?}: {found}, not {expected}");
                }
            }
        }
    }

    #[test]
    fn values_have_the_same_bits_from_both_sides_and_on_all_instruction_sets(
        similarity in similarities(),
        packed in prop::collection::vec("[abc]{0,40}", 1..24),
    ) {
        let rows = Matrix::of_strings(&packed).unwrap();
        let kernel = StringKernel { similarity, normalize: true };
        let blocks = |rows, set| {
            KernelBlocks::<f64>::on_cpu(&Kernel::String(kernel), rows, None, set).unwrap()
        };
        let n = packed.len();
        let all = blocks(&rows, InstructionSet::detect());
        let table = |blocks: &KernelBlocks<f64>| {
            let mut out = vec![0.0; n * n];
            let left = blocks.gather(&(0..n).collect::<Vec<_>>());
            blocks.query_block(&left, 0..n, 0..n, &mut out, n);
            out
        };
        let values = table(&all);
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            prop_assert_eq!(values[i * n + j].to_bits(), values[j * n + i].to_bits());
        }
        for i in 0..n {
            prop_assert_eq!(values[i * n + i].to_bits(), all.diagonal()[i].to_bits());
        }
        let portable = table(&blocks(&rows, InstructionSet::Portable));
        for (a, b) in values.iter().zip(portable) {
            prop_assert!((a - b).abs() <= 1e-12);
        }
        let backwards: Vec<usize> = (0..n).rev().collect();
        let turned = table(&all.subset(&backwards));
        let expected: Vec<f64> = values.iter().rev().copied().collect();
        prop_assert_eq!(turned, expected);
    }

    #[test]
    fn matrices_are_positive_semidefinite(
        similarity in similarities(),
        packed in prop::collection::vec("[abc]{0,12}", 2..16),
        normalize in any::<bool>(),
    ) {
        let kernel = Kernel::String(StringKernel { similarity, normalize });
        prop_assume!(kernel.is_semidefinite());
        let (rows, context) = (Matrix::of_strings(&packed).unwrap(), Context::new());
        let gram = Gram::of(&kernel, &rows, &context).unwrap();
        let found = gram.definiteness(&context).unwrap();
        prop_assert!(found.smallest >= -1e-9 * found.largest.abs(), "{kernel}: {found:?}");
    }
}

#[test]
fn logarithms_of_alignments_are_not_positive_semidefinite() {
    let similarity = StringSimilarity::named("alignment").unwrap();
    let StringSimilarity::Alignment { reward, open, extend, beta, .. } = similarity else {
        panic!("an alignment")
    };
    let log = StringSimilarity::Alignment { reward, penalty: -1.0, open, extend, beta, log: true };
    let kernel = Kernel::String(StringKernel { similarity: log, normalize: true });
    assert!(!kernel.is_semidefinite());
    let words = (0..64).map(|i| {
        let letter = |place: u32| if i >> place & 1 == 1 { 'a' } else { 'b' };
        (0..6).map(letter).collect::<String>()
    });
    let (rows, context) = (Matrix::of_strings(words).unwrap(), Context::new());
    let gram = Gram::of(&kernel, &rows, &context).unwrap();
    assert!(!gram.definiteness(&context).unwrap().is_semidefinite());
}

#[test]
fn rows_that_are_no_strings_are_refused_with_their_place() {
    let kernel = StringKernel {
        similarity: StringSimilarity::Spectrum { length: 2, shortest: 2 },
        normalize: true,
    };
    let dense = |values: Vec<f64>| {
        Matrix::DenseF64(crate::data::Dense::new(2, 3, values).expect("six values"))
    };
    for (values, message) in [
        (vec![1.0, 2.0, 0.0, 3.0, 0.5, 0.0], "0.5 in row 2, feature 2"),
        (vec![1.0, 2.0, 0.0, -3.0, 1.0, 0.0], "-3 in row 2, feature 1"),
        (vec![1.0, 0.0, 1.0, 3.0, 1.0, 0.0], "a gap before row 1, feature 3"),
        (vec![1.0, 2e6, 0.0, 3.0, 1.0, 0.0], "2000000 in row 1, feature 2"),
    ] {
        let table = dense(values);
        for text in ["spectrum", "mismatch", "subsequence", "alignment"] {
            let similarity = match StringSimilarity::named(text).unwrap() {
                StringSimilarity::Mismatch { length, mismatches, .. } => {
                    StringSimilarity::Mismatch { length, mismatches, alphabet: 4 }
                }
                other => other,
            };
            let kernel = Kernel::String(StringKernel { similarity, ..kernel });
            let error = KernelBlocks::<f64>::new(&kernel, &table, None, &Context::new());
            let error = error.unwrap_err().to_string();
            assert!(error.contains(message) && error.contains(text), "{error}");
        }
    }
}

#[test]
fn long_strings_neither_overflow_nor_take_quadratic_time() {
    let long = |seed: usize, length: usize| -> String {
        let mut state = seed as u64;
        (0..length)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                char::from(b"acgt"[(state >> 62) as usize])
            })
            .collect()
    };
    // A million symbols: 10¹² pairs would take hours.
    let rows = Matrix::of_strings([long(1, 1 << 20), long(2, 1 << 20), String::new()]).unwrap();
    let spectrum = StringSimilarity::Spectrum { length: 6, shortest: 6 };
    let kernel = StringKernel { similarity: spectrum, normalize: true };
    let found = values(kernel, &rows, &rows, InstructionSet::detect());
    assert!((found[0] - 1.0).abs() < 1e-12 && found[1] > 0.99 && found[1] < 1.0 && found[8] == 0.0);
    // exp(600) alignments of 600 equal symbols and more: beyond any double precision number.
    let rows = Matrix::of_strings([long(3, 900), long(3, 900), long(4, 800)]).unwrap();
    let similarity = StringSimilarity::named("alignment").unwrap();
    let kernel = StringKernel { similarity, normalize: true };
    let found = values(kernel, &rows, &rows, InstructionSet::detect());
    assert!(found[0] == 1.0 && found[1] == 1.0 && found[2] > 0.0 && found[2] < 1e-30);
    let raw = Kernel::String(StringKernel { similarity, normalize: false });
    let error = KernelBlocks::<f64>::new(&raw, &rows, None, &Context::new()).unwrap_err();
    assert!(matches!(error, crate::Error::Overflow { .. }), "{error}");
    let similarity = StringSimilarity::Subsequence { length: 40, decay: 1e-9 };
    let kernel = StringKernel { similarity, normalize: true };
    let found = values(kernel, &rows, &rows, InstructionSet::detect());
    assert!(found[0] == 1.0 && found.iter().all(|value| (0.0..=1.0).contains(value)));
}

#[test]
fn parameters_out_of_range_are_refused() {
    let normalize = true;
    for (similarity, name) in [
        (StringSimilarity::Spectrum { length: 0, shortest: 0 }, "length"),
        (StringSimilarity::Spectrum { length: 3, shortest: 4 }, "shortest"),
        (StringSimilarity::Spectrum { length: 5000, shortest: 5000 }, "length"),
        (StringSimilarity::Mismatch { length: 3, mismatches: 3, alphabet: 4 }, "mismatches"),
        (StringSimilarity::Mismatch { length: 40, mismatches: 4, alphabet: 4 }, "mismatches"),
        (StringSimilarity::Mismatch { length: 3, mismatches: 1, alphabet: 1 }, "alphabet"),
        (StringSimilarity::Subsequence { length: 2, decay: 0.0 }, "decay"),
        (StringSimilarity::Subsequence { length: 2, decay: f64::NAN }, "decay"),
    ] {
        let error = StringKernel { similarity, normalize }.validate().unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}
