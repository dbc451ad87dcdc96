//! Clustering: k-means, and spectral clustering by the eigenvectors of a graph.

mod body;
mod graph;
mod kmeans;
mod lloyd;
mod spectral;
#[cfg(test)]
mod tests;

pub use body::Centres;
pub use kmeans::KMeans;
pub(super) use lloyd::{Lloyd, Seeds};
pub use spectral::{Affinity, Cut, Spectral};
