//! The machines that are compared, each with the few settings it chooses from: the usual ones, and any other
//! classifier of the table of machines by its name.
//!
//! Every machine sees standardised features, so that γ is in units of 1 / features.

use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::machine::specification::Value;
use crate::machine::{Machine, MachineKind, Specification};
use crate::operation::tune::{Axis, Space};

/// A machine and its settings.
pub(super) struct TunedMachine {
    pub(super) name: String,
    pub(super) candidates: Vec<Candidate>,
}

/// One setting: the machines that vote, mostly one.
pub(super) struct Candidate {
    /// In words.
    pub(super) settings: String,
    pub(super) voters: Vec<Specification>,
}

impl Candidate {
    /// The machines for some rows: what depends on features is taken from these alone.
    pub(super) fn machines(&self, data: &Dataset, rows: &[usize]) -> Result<Vec<Box<dyn Machine>>> {
        let build = |specification: &Specification| {
            // Tables of kernel values have a column for every row, and nothing depends on features.
            let tables = ["kernel", "kernels"].iter().any(|name| {
                specification
                    .value(name)
                    .is_some_and(|text| text.to_string().contains("precomputed"))
            });
            match tables {
                true => specification.build(data, 0),
                false => specification.build(&data.select_rows(rows), 0),
            }
        };
        self.voters.iter().map(build).collect()
    }
}

/// A machine to compare: what is fixed and what is chosen from, γ in units of 1 / features.
struct Entry {
    name: &'static str,
    machine: &'static str,
    fixed: &'static [(&'static str, &'static str)],
    grid: &'static [&'static str],
}

const WIDTHS: &str = "gamma=0.25,1,4";
const PENALTIES: &str = "c=1,10,100";

/// What machines without an entry choose from, where their default grid has the parameter.
const USUAL_AXES: [&str; 3] = [PENALTIES, WIDTHS, "nu=0.05,0.1,0.2"];

/// The machines that are compared unless others are named.
const ENTRIES: [Entry; 9] = [
    Entry { name: "svm-rbf", machine: "c-svc", fixed: &[], grid: &[PENALTIES, WIDTHS] },
    Entry {
        name: "svm-linear",
        machine: "c-svc",
        fixed: &[("kernel", "linear")],
        grid: &["c=0.1,1"],
    },
    Entry { name: "ls-svc", machine: "ls-svc", fixed: &[], grid: &[PENALTIES, WIDTHS] },
    Entry { name: "fisher", machine: "fisher", fixed: &[], grid: &["shrinkage=none,auto"] },
    Entry {
        name: "kernel-fisher",
        machine: "kernel-fisher",
        fixed: &[("landmarks", "500")],
        grid: &["mu=0.001,0.1", WIDTHS],
    },
    Entry {
        name: "gmm-bayes",
        machine: "gmm-bayes",
        fixed: &[("floor", "1e-3"), ("tol", "1e-3")],
        grid: &["covariance=full,diag", "components=1,2,4"],
    },
    Entry { name: "knn", machine: "knn", fixed: &[], grid: &["neighbours=1,5,15,31"] },
    Entry { name: "parzen", machine: "parzen", fixed: &[], grid: &["width=cv,silverman"] },
    Entry { name: "pnn", machine: "pnn", fixed: &[], grid: &["input=distance,lifted"] },
];

/// The names of the machines that are compared unless others are named.
pub fn usual_machines() -> [&'static str; ENTRIES.len()] {
    ENTRIES.map(|entry| entry.name)
}

/// The names of the machines that can be compared: the usual ones, and every other classifier.
pub fn machine_names() -> Vec<&'static str> {
    let usual = usual_machines();
    let others = MachineKind::all().filter(|kind| kind.is_classifier()).map(MachineKind::name);
    usual.into_iter().chain(others.filter(|name| !usual.contains(name))).collect()
}

/// The named machines, or the usual ones.
pub(super) fn chosen(names: &[String], data: &Dataset) -> Result<Vec<TunedMachine>> {
    let known = machine_names();
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Error::parameter("machines", format!("one of {}", known.join(", ")), name));
    }
    if names.is_empty() {
        return ENTRIES.iter().map(|entry| usual(entry, data)).collect();
    }
    let named = known.iter().filter(|name| names.iter().any(|own| own == *name));
    named
        .map(|name| match ENTRIES.iter().find(|entry| entry.name == *name) {
            Some(entry) => usual(entry, data),
            None => other(name, data),
        })
        .collect()
}

fn usual(entry: &Entry, data: &Dataset) -> Result<TunedMachine> {
    let mut base = Specification::new(entry.machine.parse()?);
    for (name, text) in entry.fixed {
        base.parse(name, text)?;
    }
    tuned(entry.name, base, entry.grid, data)
}

fn other(name: &str, data: &Dataset) -> Result<TunedMachine> {
    let base = Specification::new(name.parse()?);
    let own: Vec<&str> = base.default_grid().iter().filter_map(|axis| parameter(axis)).collect();
    let varies = |axis: &&'static str| parameter(axis).is_some_and(|name| own.contains(&name));
    let grid: Vec<&'static str> = USUAL_AXES.into_iter().filter(varies).collect();
    tuned(name, base, &grid, data)
}

/// The parameter of an axis that is written as `NAME=VALUES`.
fn parameter(axis: &'static str) -> Option<&'static str> {
    axis.split_once('=').map(|(name, _)| name)
}

fn tuned(
    name: &str,
    mut base: Specification,
    grid: &[&str],
    data: &Dataset,
) -> Result<TunedMachine> {
    base.set("scale", "standard")?;
    let axes = grid.iter().map(|text| Axis::parse(&base, text)).collect::<Result<_>>()?;
    let unit = 1.0 / data.columns().max(1) as f64;
    let mut candidates = Vec::new();
    for point in (Space { axes }).grid() {
        let mut specification = base.clone();
        let mut words = Vec::new();
        for (name, value) in &point.0 {
            let (value, word) = match (name.as_str(), value) {
                ("gamma", Value::Real(width)) => {
                    (Value::Real(width * unit), format!("gamma={width}/features"))
                }
                _ => (value.clone(), format!("{name}={value}")),
            };
            specification.set(name, value)?;
            words.push(word);
        }
        candidates.push(Candidate { settings: words.join(", "), voters: vec![specification] });
    }
    Ok(TunedMachine { name: name.to_owned(), candidates })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Labels, Matrix};

    #[test]
    fn every_classifier_of_the_table_can_be_compared() {
        let rows = Dense::new(12, 2, (0..24).map(|i| f64::from(i % 7)).collect()).unwrap();
        let labels = Labels::Int((0..12).map(|i| i % 2).collect());
        let data = Dataset::new(Matrix::DenseF64(rows), labels).unwrap();
        let names = machine_names();
        for kind in MachineKind::all() {
            let is_known = names.contains(&kind.name());
            let is_usual = ENTRIES.iter().any(|entry| entry.machine == kind.name());
            assert!(is_known || is_usual || !kind.is_classifier(), "{kind}");
            assert!(!is_known || kind.is_classifier(), "{kind}");
        }
        let all: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let rows: Vec<usize> = (0..12).collect();
        for tuned in chosen(&all, &data).unwrap() {
            assert!(!tuned.candidates.is_empty(), "{}", tuned.name);
            for candidate in &tuned.candidates {
                candidate.machines(&data, &rows).unwrap();
            }
        }
        let nu = chosen(&["nu-svc".to_owned()], &data).unwrap();
        assert_eq!(nu[0].candidates.len(), 9, "three widths times three values of nu");
    }
}
