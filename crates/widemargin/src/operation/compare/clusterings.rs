//! Several ways to cluster the same rows: how stable their clusters are, how well they agree with classes, and what they
//! take.
//!
//! The stability of a machine is the mean adjusted Rand index of pairs of models, each of a random part of the rows and
//! then asked for the clusters of all rows (Ben-Hur, Elisseeff and Guyon 2002; without overlap of the parts it would be
//! that of Lange, Roth, Braun and Buhmann 2004). The number of clusters, or the width of a kernel, whose clusters are the
//! most stable is a choice that needs no labels; one cluster too many is seldom stable, one too few may be.

use std::time::Instant;

use crate::context::Context;
use crate::data::{Dataset, Labels};
use crate::error::{Error, Result};
use crate::machine::Specification;
use crate::numeric::random::Generator;
use crate::operation::agreement::ClusterAgreement;
use crate::outcome::Status;

/// How the stability is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusteringOptions {
    /// Pairs of parts of the rows; 0 measures none.
    pub pairs: usize,
    /// Share of the rows in a part.
    pub share: f64,
}

impl Default for ClusteringOptions {
    fn default() -> Self {
        Self { pairs: 5, share: 0.8 }
    }
}

/// What one machine found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ComparedClustering {
    /// The machine.
    pub specification: Specification,
    /// The cluster of every row.
    pub clusters: Labels,
    /// Rows of the clusters that have any, the largest first.
    pub sizes: Vec<usize>,
    /// Mean adjusted Rand index of the pairs, where one was finished.
    pub stability: Option<f64>,
    /// Agreement with the classes, where the data have labels.
    pub agreement: Option<ClusterAgreement>,
    /// Adjusted Rand index with the clusters of the first machine.
    pub with_first: f64,
    /// Seconds of one training on all rows.
    pub seconds: f64,
}

/// The machines in the order in which they were given.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClusteringComparison {
    /// What each found.
    pub machines: Vec<ComparedClustering>,
    /// Why machines or pairs are missing, or `Solved`.
    pub status: Status,
}

impl ClusteringComparison {
    /// The machine whose clusters are the most stable, the first of equals.
    pub fn most_stable(&self) -> Option<usize> {
        let stability = |at: &usize| self.machines[*at].stability;
        let known = (0..self.machines.len()).filter(|at| stability(at).is_some());
        known
            .rev()
            .max_by(|a, b| stability(a).unwrap_or(-1.0).total_cmp(&stability(b).unwrap_or(-1.0)))
    }
}

/// Clusters the rows by every machine; a deadline of the context ends the comparison with what is finished by then.
///
/// ```
/// use widemargin::Context;
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::machine::Specification;
/// use widemargin::operation::compare::{ClusteringOptions, compare_clusterings};
///
/// let rows: Vec<f64> = (0..60).map(|i| f64::from(i % 3) * 10.0 + f64::from(i) / 60.0).collect();
/// let data = Dataset::new(Matrix::DenseF64(Dense::new(60, 1, rows)?), Labels::None)?;
/// let machines: Vec<Specification> = (3..6)
///     .map(|clusters: u64| {
///         let mut machine = Specification::new("kmeans".parse()?);
///         machine.set("clusters", clusters).map(|()| machine)
///     })
///     .collect::<Result<_, _>>()?;
/// let found = compare_clusterings(&data, &machines, &ClusteringOptions::default(), &Context::new())?;
/// assert_eq!(found.most_stable(), Some(0));
/// # Ok::<(), widemargin::Error>(())
/// ```
///
/// # Errors
/// [`Error::Parameter`] for machines that do not cluster or a share that is none; what a training fails with;
/// [`Error::Interrupted`] when not even the first was finished.
pub fn compare_clusterings(
    data: &Dataset,
    machines: &[Specification],
    options: &ClusteringOptions,
    context: &Context,
) -> Result<ClusteringComparison> {
    if !(options.share > 0.0 && options.share <= 1.0) {
        return Err(Error::parameter("share", "a number above 0 and at most 1", options.share));
    }
    if let Some(other) = machines.iter().find(|machine| !machine.kind().is_clusterer()) {
        return Err(Error::parameter("machines", "machines that cluster", other.name()));
    }
    let mut found: Vec<ComparedClustering> = Vec::with_capacity(machines.len());
    for machine in machines {
        match compared(data, machine, &found, options, context) {
            Err(Error::Interrupted) => break,
            one => found.push(one?),
        }
    }
    if found.is_empty() && !machines.is_empty() {
        return Err(Error::Interrupted);
    }
    let status = context.stop_request().unwrap_or(Status::Solved);
    Ok(ClusteringComparison { machines: found, status })
}

fn compared(
    data: &Dataset,
    machine: &Specification,
    before: &[ComparedClustering],
    options: &ClusteringOptions,
    context: &Context,
) -> Result<ComparedClustering> {
    context.checkpoint()?;
    let started = Instant::now();
    let all: Vec<usize> = (0..data.rows()).collect();
    let clusters = clusters_of(data, &all, machine, context.seed(), context)?;
    let seconds = started.elapsed().as_secs_f64();
    let agreement = match data.labels() {
        Labels::None => None,
        labels => Some(ClusterAgreement::new(labels, &clusters)?),
    };
    let with_first = match before.first() {
        Some(first) => ClusterAgreement::new(&first.clusters, &clusters)?.adjusted_rand,
        None => 1.0,
    };
    let classes = clusters.classes(crate::data::ClassOrder::Sorted)?;
    let mut sizes: Vec<usize> = classes.rows_by_class().iter().map(Vec::len).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    Ok(ComparedClustering {
        specification: machine.clone(),
        sizes,
        stability: stability(data, machine, options, context)?,
        agreement,
        with_first,
        seconds,
        clusters,
    })
}

/// The clusters of all rows by a model of some of them.
fn clusters_of(
    data: &Dataset,
    rows: &[usize],
    machine: &Specification,
    seed: u64,
    context: &Context,
) -> Result<Labels> {
    let part = data.select_rows(rows).with_labels(Labels::None)?;
    let model = machine.build(&part, seed)?.fit(&part, context)?;
    model.predictor(context)?.predict_in_time(data.features())
}

/// The mean over the pairs that were finished in time.
fn stability(
    data: &Dataset,
    machine: &Specification,
    options: &ClusteringOptions,
    context: &Context,
) -> Result<Option<f64>> {
    let count = ((options.share * data.rows() as f64).ceil() as usize).min(data.rows());
    // All machines have the same parts.
    let mut generator = Generator::new(context.seed() ^ 0x7374_6162_6c65);
    let (mut sum, mut pairs) = (0.0, 0_usize);
    for _ in 0..options.pairs {
        let mut half = || -> Result<Labels> {
            let mut rows: Vec<usize> = (0..data.rows()).collect();
            generator.shuffle(&mut rows);
            rows.truncate(count);
            rows.sort_unstable();
            clusters_of(data, &rows, machine, context.seed(), context)
        };
        let agreement = half().and_then(|one| ClusterAgreement::new(&one, &half()?));
        match agreement {
            Err(Error::Interrupted) => break,
            _ if context.stop_request().is_some() => break,
            agreement => (sum, pairs) = (sum + agreement?.adjusted_rand, pairs + 1),
        }
    }
    Ok((pairs > 0).then(|| sum / pairs as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix};
    use crate::machine::MachineKind;

    fn machines(words: &[&str]) -> Vec<Specification> {
        let one = |text: &&str| {
            let mut words = text.split(' ');
            let mut machine = Specification::new(words.next().unwrap().parse().unwrap());
            words.for_each(|word| {
                let (name, value) = word.split_once('=').unwrap();
                machine.parse(name, value).unwrap();
            });
            machine
        };
        words.iter().map(one).collect()
    }

    /// Three heaps in the plane, far apart.
    fn heaps() -> Dataset {
        let mut generator = Generator::new(5);
        let centres = [[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]];
        let row = |i: usize| centres[i % 3].map(|centre| centre + generator.normal());
        let values: Vec<f64> = (0..90).flat_map(row).collect();
        let labels = Labels::Int((0..90).map(|i| i % 3).collect());
        Dataset::new(Matrix::DenseF64(Dense::new(90, 2, values).unwrap()), labels).unwrap()
    }

    #[test]
    fn the_number_of_heaps_is_the_most_stable() {
        let tried = machines(&[
            "kmeans clusters=3 starts=5",
            "kmeans clusters=4 starts=5",
            "kmeans clusters=5 starts=5",
            "mmc clusters=3 gamma=0.05 tol=1e-2",
        ]);
        let options = ClusteringOptions::default();
        let found = compare_clusterings(&heaps(), &tried, &options, &Context::new()).unwrap();
        assert_eq!(found.status, Status::Solved);
        let stability: Vec<f64> = found.machines.iter().map(|m| m.stability.unwrap()).collect();
        assert!(stability[0] > 0.99 && stability[2] < 0.95, "{stability:?}");
        assert_eq!(found.most_stable(), Some(0), "{stability:?}");
        for three in [0, 3] {
            let machine = &found.machines[three];
            assert_eq!(machine.sizes, [30, 30, 30]);
            assert_eq!(machine.agreement.unwrap().error, 0.0);
        }
        assert_eq!(found.machines[3].with_first, 1.0);
    }

    #[test]
    fn a_deadline_ends_it_and_bad_choices_are_refused() {
        let data = heaps();
        let tried = machines(&["kmeans clusters=3"]);
        let late = Context::new().with_time_limit(std::time::Duration::ZERO);
        let options = ClusteringOptions::default();
        let nothing = compare_clusterings(&data, &tried, &options, &late);
        assert!(matches!(nothing, Err(Error::Interrupted)));
        let none = ClusteringOptions { share: 0.0, ..options };
        assert!(compare_clusterings(&data, &tried, &none, &Context::new()).is_err());
        let other = [Specification::new(MachineKind::CSvc)];
        assert!(compare_clusterings(&data, &other, &options, &Context::new()).is_err());
        let quick = ClusteringOptions { pairs: 0, ..options };
        let found = compare_clusterings(&data, &tried, &quick, &Context::new()).unwrap();
        assert_eq!(found.machines[0].stability, None);
        assert_eq!(found.most_stable(), None);
    }
}
