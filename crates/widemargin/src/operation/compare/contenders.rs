//! The machines that are compared, each with the few settings it chooses from.
//!
//! Every machine sees standardised features, so that γ is told in units of 1 / features.

use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::machine::specification::Value;
use crate::machine::{Machine, Specification};
use crate::operation::tune::{Axis, Space};

/// A machine and its settings.
pub(super) struct Contender {
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

const ENTRIES: [Entry; 8] = [
    Entry { name: "svm-rbf", machine: "c-svc", fixed: &[], grid: &["c=1,10,100", WIDTHS] },
    Entry {
        name: "svm-linear",
        machine: "c-svc",
        fixed: &[("kernel", "linear")],
        grid: &["c=0.1,1"],
    },
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

/// The names of the machines that can be compared.
pub fn contender_names() -> [&'static str; ENTRIES.len()] {
    ENTRIES.map(|entry| entry.name)
}

/// The named machines, or all.
pub(super) fn chosen(names: &[String], data: &Dataset) -> Result<Vec<Contender>> {
    let known = contender_names();
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Error::parameter("machines", format!("one of {}", known.join(", ")), name));
    }
    let wanted = |entry: &&Entry| names.is_empty() || names.iter().any(|name| name == entry.name);
    ENTRIES.iter().filter(wanted).map(|entry| contender(entry, data)).collect()
}

fn contender(entry: &Entry, data: &Dataset) -> Result<Contender> {
    let mut base = Specification::new(entry.machine.parse()?);
    base.set("scale", "standard")?;
    for (name, text) in entry.fixed {
        base.parse(name, text)?;
    }
    let axes = entry.grid.iter().map(|text| Axis::parse(&base, text)).collect::<Result<_>>()?;
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
    Ok(Contender { name: entry.name.to_owned(), candidates })
}
