//! What several tests use: reproducible numbers, an exact conic solver, the page of messages.

#![allow(dead_code)]

use std::path::Path;

use clarabel::solver::{DefaultSettings, DefaultSettingsBuilder};

/// Numbers in [0, 1) by a linear congruential generator (Knuth's MMIX).
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() * limit as f64) as usize
    }
}

/// The same as a function.
pub(crate) fn numbers(seed: u64) -> impl FnMut() -> f64 {
    let mut numbers = Numbers(seed);
    move || numbers.next()
}

/// Numbers in [−1, 1) of the same kind.
pub(crate) fn signed_numbers(seed: u64) -> impl FnMut() -> f64 {
    let mut next = numbers(seed);
    move || 2.0 * next() - 1.0
}

/// The first of these numbers.
pub(crate) fn random(count: usize, seed: u64) -> Vec<f64> {
    let mut next = numbers(seed);
    (0..count).map(|_| next()).collect()
}

/// Clarabel, quiet, with one tolerance for gaps and feasibility.
pub(crate) fn conic_settings(tolerance: f64) -> DefaultSettings<f64> {
    DefaultSettingsBuilder::default()
        .verbose(false)
        .tol_gap_abs(tolerance)
        .tol_gap_rel(tolerance)
        .tol_feas(tolerance)
        .build()
        .unwrap()
}

/// Checks that the page of messages has every row of `table`.
pub(crate) fn assert_documented(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    let missing: Vec<&str> = table.lines().filter(|row| !page.contains(row)).collect();
    assert!(
        missing.is_empty(),
        "docs/errors.md lacks these rows:\n{}\nwhole table:\n{table}",
        missing.join("\n")
    );
}
