//! `cluster` with `--beside` or `--try`: several ways to cluster the same rows in one table.

use std::path::Path;

use clap::Args;
use widemargin::Status;
use widemargin::data::Dataset;
use widemargin::data::write::write_atomically;
use widemargin::machine::Specification;
use widemargin::operation::compare::{
    ClusteringComparison, ClusteringOptions, ComparedClustering, compare_clusterings,
};

use super::cluster::write;
use crate::failure::{CommandResult, Failure, Outcome};
use crate::session::Session;
use crate::table::{duration, grid};
use crate::terminal;

/// What is compared.
#[derive(Args, Debug)]
#[command(next_help_heading = "Comparison")]
pub(crate) struct ComparisonArguments {
    /// Compare with other machines that cluster, such as kmeans,spectral
    #[arg(long, value_name = "KIND,KIND,...", value_delimiter = ',')]
    beside: Vec<String>,

    /// Compare values of a parameter, such as clusters=2,3,4; may be repeated
    #[arg(long = "try", value_name = "NAME=VALUE,VALUE,...")]
    tried: Vec<String>,

    /// Pairs of random parts of the rows (80 % each) that the stability is measured on
    #[arg(long, value_name = "N", default_value_t = 5)]
    pairs: usize,
}

impl ComparisonArguments {
    /// Whether anything is compared.
    pub(crate) fn is_wanted(&self) -> bool {
        !(self.beside.is_empty() && self.tried.is_empty())
    }

    /// Compares, prints the table and writes the most stable clusters.
    pub(crate) fn run(
        &self,
        data: &Dataset,
        machine: &Specification,
        output: Option<&Path>,
        session: &Session<'_>,
    ) -> CommandResult {
        let machines = self.machines(machine)?;
        let options = ClusteringOptions { pairs: self.pairs, ..ClusteringOptions::default() };
        let found = session
            .run("comparing", |context| compare_clusterings(data, &machines, &options, context))?;
        terminal::print(&text(&found))?;
        if let (Some(path), Some(best)) = (output, found.most_stable()) {
            let clusters = &found.machines[best].clusters;
            session.save(|| write_atomically(path, |out| write(clusters, out)))?;
        }
        if found.machines.len() < machines.len() {
            let (done, all) = (found.machines.len(), machines.len());
            terminal::warn(&format!("{}: {done} of {all} machines are compared", found.status));
        }
        Ok(match found.status {
            status @ (Status::Interrupted | Status::TimeLimit) => status.into(),
            _ => Outcome::Done,
        })
    }

    /// The machine and those beside it, which take over what it was given, for all values that are tried.
    fn machines(&self, machine: &Specification) -> CommandResult<Vec<Specification>> {
        let mut machines = vec![machine.clone()];
        for name in &self.beside {
            let mut other = Specification::new(name.trim().parse()?);
            for (parameter, value) in machine.given() {
                // A choice of one machine need not be one of another.
                if other.has(parameter) {
                    let _ = other.set(parameter, value.clone());
                }
            }
            machines.push(other);
        }
        for axis in &self.tried {
            let Some((name, values)) = axis.split_once('=') else {
                return Err(Failure::usage(format!("--try {axis}: expected NAME=VALUE,VALUE,...")));
            };
            if !machines.iter().any(|machine| machine.has(name)) {
                return Err(Failure::usage(format!("--try {axis}: no machine has '{name}'")));
            }
            let mut next = Vec::new();
            for machine in machines {
                if !machine.has(name) {
                    next.push(machine);
                    continue;
                }
                for value in values.split(',') {
                    let mut one = machine.clone();
                    one.parse(name, value)?;
                    next.push(one);
                }
            }
            machines = next;
        }
        Ok(machines)
    }
}

fn text(found: &ClusteringComparison) -> String {
    let has_classes = found.machines.iter().any(|machine| machine.agreement.is_some());
    let mut heading = vec!["machine", "stability", "with first", "training"];
    if has_classes {
        heading.extend(["error %", "adjusted Rand", "V-measure"]);
    }
    heading.push("sizes");
    let mut rows = vec![heading.into_iter().map(str::to_owned).collect()];
    rows.extend(found.machines.iter().map(row));
    let mut text = grid(&rows);
    if let Some(best) = found.most_stable() {
        let name = found.machines[best].specification.to_string();
        text.push_str(&format!("\nmost stable: {name}\n"));
    }
    text
}

fn row(machine: &ComparedClustering) -> Vec<String> {
    let mut row = vec![
        machine.specification.to_string(),
        machine.stability.map_or_else(|| "-".to_owned(), |stability| format!("{stability:.3}")),
        format!("{:.3}", machine.with_first),
        duration(machine.seconds),
    ];
    if let Some(agreement) = machine.agreement {
        row.extend([
            format!("{:.2}", 100.0 * agreement.error),
            format!("{:.4}", agreement.adjusted_rand),
            format!("{:.4}", agreement.v_measure),
        ]);
    }
    let sizes: Vec<String> = machine.sizes.iter().map(ToString::to_string).collect();
    row.push(sizes.join(" "));
    row
}
