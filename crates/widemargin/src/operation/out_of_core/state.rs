//! The state of a training on chunks, on disk: CRC-32, fingerprint of the problem, place in the
//! passes, weights and dual variables, all little-endian.

use std::path::{Path, PathBuf};

use crate::data::write::write_atomically;
use crate::error::{Error, Result};
use crate::solver::linear::Violation;

/// One decision function under way.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Function {
    pub(super) weights: Vec<f64>,
    pub(super) dual: Vec<f64>,
}

/// All of a training that is under way.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    pub(super) fingerprint: u32,
    /// Passes finished, and chunks of the one under way.
    pub(super) pass: u64,
    pub(super) position: u64,
    /// What the pass under way has met.
    pub(super) report: Violation,
    pub(super) steps: u64,
    pub(super) functions: Vec<Function>,
}

const CHECKSUM: usize = 4;

impl State {
    pub(super) fn new(fingerprint: u32, functions: usize, width: usize, rows: usize) -> Self {
        let function = Function { weights: vec![0.0; width], dual: vec![0.0; rows] };
        Self {
            fingerprint,
            pass: 0,
            position: 0,
            report: Violation::default(),
            steps: 0,
            functions: vec![function; functions],
        }
    }

    pub(super) fn path(folder: &Path) -> PathBuf {
        folder.join("state.bin")
    }

    pub(super) fn save(&self, folder: &Path) -> Result<()> {
        let mut bytes = vec![0; CHECKSUM];
        bytes.extend_from_slice(&self.fingerprint.to_le_bytes());
        for count in [self.pass, self.position, self.steps, self.report.steps] {
            bytes.extend_from_slice(&count.to_le_bytes());
        }
        let report = [self.report.highest, self.report.lowest, self.report.sum];
        let all = self.functions.iter().flat_map(|f| f.weights.iter().chain(&f.dual));
        for number in report.iter().chain(all) {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let sum = crc32fast::hash(&bytes[CHECKSUM..]);
        bytes[..CHECKSUM].copy_from_slice(&sum.to_le_bytes());
        write_atomically(&Self::path(folder), |out| out.write_all(&bytes))
    }

    /// The state kept in `folder`, if it is intact and one of the same problem as `fresh`.
    pub(super) fn load(folder: &Path, fresh: &Self) -> Option<Self> {
        let bytes = std::fs::read(Self::path(folder)).ok()?;
        let (sum, body) = bytes.split_at_checked(CHECKSUM)?;
        let (mark, rest) = body.split_at_checked(4)?;
        if sum != crc32fast::hash(body).to_le_bytes() || mark != fresh.fingerprint.to_le_bytes() {
            return None;
        }
        let (words, odd) = rest.as_chunks::<8>();
        let per_function = fresh.functions.first().map_or(0, |f| f.weights.len() + f.dual.len());
        if !odd.is_empty() || words.len() != 7 + per_function * fresh.functions.len() {
            return None;
        }
        let count = |at: usize| u64::from_le_bytes(words[at]);
        let number = |at: usize| f64::from_le_bytes(words[at]);
        let mut state = Self {
            pass: count(0),
            position: count(1),
            steps: count(2),
            report: Violation {
                steps: count(3),
                highest: number(4),
                lowest: number(5),
                sum: number(6),
            },
            ..fresh.clone()
        };
        let mut at = 7;
        for function in &mut state.functions {
            for value in function.weights.iter_mut().chain(&mut function.dual) {
                *value = number(at);
                at += 1;
            }
        }
        Some(state)
    }

    /// Removes the state of a training that has ended.
    pub(super) fn remove(folder: &Path) -> Result<()> {
        let path = Self::path(folder);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io(path, error))
            }
            _ => Ok(()),
        }
    }
}
