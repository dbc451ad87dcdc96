//! Spectral clustering: rows that a graph holds together.
//!
//! With the similarities A (empty diagonal) and degrees D, the eigenvectors of the largest
//! eigenvalues of D^(−½)AD^(−½) place every row in few dimensions. Ng, Jordan and Weiss (2002) scale
//! the places to length 1 and cluster them by k-means; Shi and Malik's normalised cut (2000) orders
//! the rows by the second vector and cuts where cut/assoc(S) + cut/assoc(rest) is least. The ratio cut (Hagen and Kahng
//! 1992) does so along the second smallest eigenvector of D − A where cut/|S| + cut/|rest| is least.

use std::time::Instant;

use super::super::rows::{self, TrainingSummary, check, named, table};
use super::super::{Classic, NeighbourSearch, Neighbours, Weighting};
use super::graph::{Graph, inverse_root};
use super::kmeans::KMeans;
use super::lloyd::Lloyd;
use crate::context::Context;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::machine::Model;
use crate::machine::names::names;
use crate::numeric::algebra::leading_eigenvectors;
use crate::solver::Status;

/// Largest ‖Av − λv‖ of an eigenvector that will do: similarities are in single precision.
const TOLERANCE: f64 = 1e-5;

/// The similarity of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Affinity {
    /// exp(−γ‖x − z‖²) of every pair.
    Gaussian {
        /// γ
        gamma: f64,
    },
    /// 1 where each is among the nearest of the other, ½ where one is, else 0.
    Neighbours {
        /// How many are the nearest.
        count: usize,
    },
}

/// How places become clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cut {
    /// Ng, Jordan and Weiss: any number of clusters.
    #[default]
    KMeans,
    /// Shi and Malik: two clusters by the least normalised cut.
    Normalised,
    /// Hagen and Kahng: two clusters by the least ratio cut.
    Ratio,
}

names!(Cut, "cut", KMeans: "kmeans", Normalised: "normalised", Ratio: "ratio");

/// Spectral clustering; new rows join the cluster of the nearest training row.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::machine::{Affinity, Machine, Spectral};
/// use widemargin::Context;
///
/// // A point cloud inside a ring.
/// let ring = (0..40).map(|i| (i as f64 * 0.157).sin_cos()).map(|(y, x)| [4.0 * x, 4.0 * y]);
/// let cloud = (0..10).map(|i| [0.1 * (i % 3) as f64, 0.1 * (i / 3) as f64]);
/// let rows: Vec<f64> = ring.chain(cloud).flatten().collect();
/// let data = Dataset::new(Matrix::DenseF64(Dense::new(50, 2, rows)?), Labels::None)?;
/// let affinity = Affinity::Gaussian { gamma: 1.0 };
/// let context = Context::new();
/// let model = Spectral { clusters: 2, affinity, ..Spectral::default() }.fit(&data, &context)?;
/// let Labels::Int(found) = model.predictor(&context)?.predict(data.features())? else { panic!() };
/// assert!(found[..40].iter().all(|c| *c == found[0]) && found[40..].iter().all(|c| *c != found[0]));
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Spectral {
    /// Number of clusters.
    pub clusters: usize,
    /// The similarity of rows.
    pub affinity: Affinity,
    /// How places become clusters.
    pub cut: Cut,
    /// Starts of k-means among the places.
    pub starts: usize,
}

impl Default for Spectral {
    fn default() -> Self {
        let affinity = Affinity::Gaussian { gamma: 1.0 };
        Self { clusters: 8, affinity, cut: Cut::KMeans, starts: 10 }
    }
}

rows::trained_on_selected!(Spectral);

impl Spectral {
    fn train(&self, data: &Dataset, context: &Context) -> Result<Model> {
        let started = Instant::now();
        check(data)?;
        if self.clusters == 0 || self.clusters > data.rows() {
            let expected = format!("at least 1 and at most the {} rows", data.rows());
            return Err(Error::parameter("clusters", expected, self.clusters));
        }
        if self.cut != Cut::KMeans && self.clusters != 2 {
            let expected = format!("2 for a {} cut", self.cut);
            return Err(Error::parameter("clusters", expected, self.clusters));
        }
        if let Affinity::Gaussian { gamma } = self.affinity {
            Error::check_positive("gamma", gamma)?;
        }
        let graph = Graph::new(data.features(), self.affinity, context)?;
        let product = |block: &[Vec<f64>]| match self.cut {
            Cut::Ratio => unscaled_product(&graph, block, context),
            _ => graph.multiply(block, context),
        };
        let found = leading_eigenvectors(data.rows(), self.clusters, TOLERANCE, product, context)?;
        let labels = match self.cut {
            Cut::Normalised => normalised_cut(&graph, &found.vectors[1], context)?,
            Cut::Ratio => {
                let weights = vec![1.0; data.rows()];
                least_cut(&graph, &found.vectors[1], &weights, context)?
            }
            Cut::KMeans => self.cluster(&found.vectors, context)?,
        };
        let solved = found.residual <= TOLERANCE;
        if !solved {
            let residual = found.residual;
            rows::warn(context, format!("the eigenvectors are accurate only to {residual:.1e}"));
        }
        let parameters = named(&[
            ("clusters", self.clusters.into()),
            ("affinity", format!("{:?}", self.affinity).to_lowercase().into()),
            ("cut", self.cut.to_string().into()),
        ]);
        let effort = TrainingSummary {
            status: if solved { Status::Solved } else { Status::AlmostSolved },
            objective: found.values.iter().map(|value| 1.0 - value).sum(),
            change: found.residual,
            parameters,
            ..TrainingSummary::closed_form(started, &[])
        };
        let body = Neighbours {
            // A copy: the rows may be the caller's memory.
            rows: data.features().select_rows(&(0..data.rows()).collect::<Vec<_>>()),
            k: 1,
            weighting: Weighting::Uniform,
            search: NeighbourSearch::Auto,
            targets: labels,
            whitening: Vec::new(),
        };
        Ok(rows::model(Classic::Spectral, data, body, effort))
    }
}

impl Spectral {
    /// k-means of the places, scaled to length 1.
    fn cluster(&self, vectors: &[Vec<f64>], context: &Context) -> Result<Vec<f64>> {
        let rows = vectors[0].len();
        let mut places = Vec::with_capacity(rows * vectors.len());
        for i in 0..rows {
            let squares: f64 = vectors.iter().map(|vector| vector[i] * vector[i]).sum();
            let scale = inverse_root(squares);
            places.extend(vectors.iter().map(|vector| vector[i] * scale));
        }
        let places = table(places, vectors.len())?;
        let machine = KMeans { clusters: self.clusters, starts: self.starts, ..KMeans::default() };
        let (_, found) = machine.cluster(&Lloyd::new(&places, context)?, context)?;
        Ok(found.labels.iter().map(|&label| f64::from(label)).collect())
    }
}

/// (I − (D − A)/c) times every vector, c being an upper bound on the eigenvalues of D − A.
fn unscaled_product(graph: &Graph, block: &[Vec<f64>], context: &Context) -> Result<Vec<Vec<f64>>> {
    let largest = graph.degrees.iter().fold(f64::MIN_POSITIVE, |a, b| a.max(*b));
    let scaled = |vector: &Vec<f64>| -> Vec<f64> {
        vector.iter().zip(&graph.degrees).map(|(v, degree)| v * degree.sqrt()).collect()
    };
    let inner = graph.multiply(&block.iter().map(scaled).collect::<Vec<_>>(), context)?;
    let combine = |(vector, image): (&Vec<f64>, &Vec<f64>)| -> Vec<f64> {
        let each = vector.iter().zip(image).zip(&graph.degrees);
        each.map(|((v, a), degree)| v - (degree * v - degree.sqrt() * a) / (2.0 * largest))
            .collect()
    };
    Ok(block.iter().zip(&inner).map(combine).collect())
}

/// The side of every row at the least normalised cut along a vector.
pub(super) fn normalised_cut(graph: &Graph, vector: &[f64], context: &Context) -> Result<Vec<f64>> {
    let place: Vec<f64> =
        vector.iter().zip(&graph.degrees).map(|(v, &degree)| v * inverse_root(degree)).collect();
    least_cut(graph, &place, &graph.degrees, context)
}

/// The side of every row where cut/w(S) + cut/w(rest) is least, S being the rows up to one of their places.
fn least_cut(graph: &Graph, place: &[f64], weights: &[f64], context: &Context) -> Result<Vec<f64>> {
    let n = place.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| place[a].total_cmp(&place[b]).then(a.cmp(&b)));
    let total: f64 = weights.iter().sum();
    let mut inside = vec![false; n];
    let (mut cut, mut weight) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 1);
    for (at, &i) in order.iter().enumerate().take(n.saturating_sub(1)) {
        context.checkpoint()?;
        let mut within = 0.0;
        graph.each_edge(i, |j, value| within += if inside[j] { value } else { 0.0 });
        inside[i] = true;
        cut += graph.degrees[i] - 2.0 * within;
        weight += weights[i];
        let value = cut / weight + cut / (total - weight);
        if value < best.0 {
            best = (value, at + 1);
        }
    }
    let mut labels = vec![1.0; n];
    order[..best.1].iter().for_each(|&i| labels[i] = 0.0);
    Ok(labels)
}
