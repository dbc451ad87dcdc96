//! What a search has found so far, on disk, so that an interrupted one goes on where it was.
//!
//! The first line names the search (a checksum of rows, labels, splits and metric, and what is fixed of
//! the machine), every other line is one finished split as JSON. A last line that was cut off is
//! forgotten; a file of another search is refused.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::Identity;
use crate::error::{Error, Result};
use crate::solver::Status;

/// What one machine made of one split.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The score; `None` when the machine refused the rows.
    pub score: Option<f64>,
    /// Seconds of training.
    pub fit_seconds: f64,
    /// Seconds of prediction.
    pub predict_seconds: f64,
    /// Steps of the solver.
    pub iterations: u64,
    /// How the training ended.
    pub status: Status,
}

/// Version of the file: the first one did not know the machine.
const VERSION: u32 = 2;

/// Which search a journal belongs to.
#[derive(Serialize, Deserialize)]
pub(super) struct Heading {
    widemargin_tune: u32,
    search: u32,
    #[serde(default)]
    family: Identity,
}

impl Heading {
    /// The heading of a search of a family, named by a checksum of everything else.
    pub(super) fn new(search: u32, family: Identity) -> Self {
        Self { widemargin_tune: VERSION, search, family }
    }

    /// In which way the search of a file is another one.
    fn difference(&self, file: &Self) -> Option<String> {
        if file.widemargin_tune != VERSION {
            return Some("one of another version of widemargin".into());
        }
        let value = |family: &Identity, name: &str| {
            family.get(name).cloned().unwrap_or_else(|| "nothing".to_owned())
        };
        // Other parameters follow from another machine.
        let names = std::iter::once("machine")
            .chain(self.family.keys().chain(file.family.keys()).map(String::as_str));
        for name in names {
            let (own, other) = (value(&self.family, name), value(&file.family, name));
            if own != other {
                return Some(format!("one with {name} {other} where this search has {own}"));
            }
        }
        let another = "one of other rows, labels, weights, folds, scaling or metric";
        (self.search != file.search).then(|| another.into())
    }
}

#[derive(Serialize, Deserialize)]
struct Line {
    point: String,
    rows: usize,
    split: usize,
    #[serde(flatten)]
    record: Record,
}

/// A point, the rows it learns from and the split.
type Key = (String, usize, usize);

/// A file of finished splits, being written.
pub(super) struct Journal {
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    /// `None` for a journal that is kept in memory.
    file: Option<File>,
    known: HashMap<Key, Record>,
}

impl Journal {
    /// A journal without a file.
    pub(super) fn in_memory() -> Self {
        let state = State { file: None, known: HashMap::new() };
        Self { path: PathBuf::new(), state: Mutex::new(state) }
    }

    /// Opens the file of a search, or begins it.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be read or written; [`Error::Journal`] when it belongs to
    /// another search or is no journal.
    pub(super) fn open(path: &Path, search: &Heading) -> Result<Self> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).open(path).map_err(io)?;
        let refuse = |found: &str| Error::Journal { path: path.to_owned(), found: found.into() };
        let mut known = HashMap::new();
        let mut whole = 0;
        let mut lines = BufReader::new(&file);
        let mut text = String::new();
        while lines.read_line(&mut text).map_err(io)? > 0 {
            let complete = text.ends_with('\n');
            if whole == 0 {
                match serde_json::from_str::<Heading>(&text) {
                    Ok(heading) if complete => {
                        if let Some(difference) = search.difference(&heading) {
                            return Err(refuse(&difference));
                        }
                    }
                    _ => return Err(refuse("something else")),
                }
            } else if complete {
                let line: Line =
                    serde_json::from_str(&text).map_err(|_| refuse("a damaged line"))?;
                known.insert((line.point, line.rows, line.split), line.record);
            } else {
                break;
            }
            whole += text.len() as u64;
            text.clear();
        }
        file.set_len(whole).map_err(io)?;
        file.seek(std::io::SeekFrom::End(0)).map_err(io)?;
        if whole == 0 {
            write_line(&mut file, search).map_err(io)?;
        }
        let state = Mutex::new(State { file: Some(file), known });
        Ok(Self { path: path.to_owned(), state })
    }

    /// What is known of a point on a split of so many rows.
    pub(super) fn get(&self, point: &str, rows: usize, split: usize) -> Option<Record> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.known.get(&(point.to_owned(), rows, split)).copied()
    }

    /// Adds a record.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be written.
    pub(super) fn add(&self, point: &str, rows: usize, split: usize, record: Record) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let point = point.to_owned();
        if let Some(file) = &mut state.file {
            let line = Line { point: point.clone(), rows, split, record };
            write_line(file, &line)
                .map_err(|source| Error::Io { path: self.path.clone(), source })?;
        }
        state.known.insert((point, rows, split), record);
        Ok(())
    }
}

fn write_line(file: &mut File, value: &impl Serialize) -> std::io::Result<()> {
    let mut text = serde_json::to_string(value)?;
    text.push('\n');
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_survives_a_cut_and_refuses_another_search() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("search.jsonl");
        let record = Record {
            score: Some(0.1 + 0.2),
            fit_seconds: 1.5,
            predict_seconds: 0.25,
            iterations: 7,
            status: Status::Solved,
        };
        let family = |kernel: &str| -> Identity {
            [("machine", "c-svc"), ("kernel", kernel)].map(|(n, v)| (n.into(), v.into())).into()
        };
        let search = Heading::new(42, family("rbf"));
        let journal = Journal::open(&path, &search).unwrap();
        journal.add("c = 1", 100, 0, record).unwrap();
        journal.add("c = 1", 100, 1, Record { score: None, ..record }).unwrap();
        drop(journal);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 5]).unwrap();
        let journal = Journal::open(&path, &search).unwrap();
        assert_eq!(journal.get("c = 1", 100, 0), Some(record));
        assert_eq!(journal.get("c = 1", 100, 1), None);
        journal.add("c = 1", 100, 1, record).unwrap();
        drop(journal);
        assert_eq!(Journal::open(&path, &search).unwrap().get("c = 1", 100, 1), Some(record));
        let refused = |search: &Heading| match Journal::open(&path, search) {
            Err(Error::Journal { found, .. }) => found,
            _ => panic!("the journal was taken"),
        };
        let other_rows = refused(&Heading::new(43, family("rbf")));
        assert!(other_rows.starts_with("one of other rows"), "{other_rows}");
        let other_kernel = refused(&Heading::new(42, family("linear")));
        assert_eq!(other_kernel, "one with kernel rbf where this search has linear");
        let other_machine: Identity = [("machine".into(), "knn".into())].into();
        let other_machine = refused(&Heading::new(42, other_machine));
        assert_eq!(other_machine, "one with machine c-svc where this search has knn");
        std::fs::write(&path, "{\"widemargin_tune\":1,\"search\":42}\n").unwrap();
        assert_eq!(refused(&search), "one of another version of widemargin");
        std::fs::write(&path, "a,b\n").unwrap();
        assert!(matches!(Journal::open(&path, &search), Err(Error::Journal { .. })));
    }
}
