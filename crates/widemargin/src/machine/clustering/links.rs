//! What is known of clusters beforehand: pairs of rows that are in one cluster or in two, and shares of the rows.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::solver::elliptope::Ties;

/// Pairs of rows of which it is known whether they are in one cluster.
///
/// Written `0=3,1!5`: rows 0 and 3 are in one cluster, rows 1 and 5 are not. `none` is no pair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Links {
    /// Rows that are in one cluster, numbered from 0.
    pub together: Vec<(usize, usize)>,
    /// Rows that are in two.
    pub apart: Vec<(usize, usize)>,
}

impl Links {
    /// Links of rows numbered from 0.
    pub fn new(together: Vec<(usize, usize)>, apart: Vec<(usize, usize)>) -> Self {
        Self { together, apart }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.together.is_empty() && self.apart.is_empty()
    }

    /// The ties of so many rows in two clusters.
    pub(super) fn ties(&self, rows: usize) -> Result<Ties> {
        let together = self.together.iter().map(|&(a, b)| (a, b, 1));
        let all: Vec<(usize, usize, i8)> =
            together.chain(self.apart.iter().map(|&(a, b)| (a, b, -1))).collect();
        let beyond = all.iter().flat_map(|&(a, b, _)| [a, b]).find(|&row| row >= rows);
        if let Some(row) = beyond {
            let expected = format!("rows from 0 to {}", rows.saturating_sub(1));
            return Err(Error::parameter("links", expected, row));
        }
        Ties::new(rows, &all).map_err(|(a, b)| {
            let found = format!("one of rows {a} and {b} that others contradict");
            Error::parameter("links", "links that two clusters can satisfy", found)
        })
    }
}

impl FromStr for Links {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut links = Self::default();
        if text == "none" {
            return Ok(links);
        }
        for word in text.split(',') {
            let pair = word.split_once(['=', '!']).and_then(|(a, b)| {
                Some((a.trim().parse::<usize>().ok()?, b.trim().parse::<usize>().ok()?))
            });
            let Some(pair) = pair else {
                return Err(Error::parameter("links", EXPECTED, word));
            };
            if word.contains('=') { links.together.push(pair) } else { links.apart.push(pair) }
        }
        Ok(links)
    }
}

/// How links are written.
const EXPECTED: &str = "none, or pairs of rows from 0 such as 0=3 (one cluster) and 1!5 (two), with commas between them";

impl fmt::Display for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        let together = self.together.iter().map(|(a, b)| format!("{a}={b}"));
        let apart = self.apart.iter().map(|(a, b)| format!("{a}!{b}"));
        f.write_str(&together.chain(apart).collect::<Vec<_>>().join(","))
    }
}

/// Which numbers of rows one of two clusters may have, for every number from 0: those of which the difference to the
/// other's is within `imbalance` of that of a share of the rows; both clusters have rows.
pub(super) fn allowed_counts(rows: usize, imbalance: f64, share: Option<f64>) -> Vec<bool> {
    let n = rows as f64;
    let wanted = share.map_or(0.0, |share| (2.0 * share - 1.0).abs() * n);
    let allowed = |count: usize| {
        let difference = (2 * count).abs_diff(rows) as f64;
        (1..rows).contains(&count) && (difference - wanted).abs() <= imbalance + ROUNDING * n
    };
    (0..=rows).map(allowed).collect()
}

/// Rounding of shares of the rows.
const ROUNDING: f64 = 1e-12;

/// The largest difference of the sizes of two clusters.
pub(super) fn largest_difference(rows: usize, imbalance: f64, share: Option<f64>) -> f64 {
    let wanted = share.map_or(0.0, |share| (2.0 * share - 1.0).abs() * rows as f64);
    (wanted + imbalance).min(rows as f64 - 2.0)
}
