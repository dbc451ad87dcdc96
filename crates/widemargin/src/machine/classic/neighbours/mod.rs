//! k-nearest neighbours: the rows nearest to a query vote, or their mean is the prediction.

mod brute;
mod fit;
mod ready;
#[cfg(test)]
mod tests;
mod tree;

pub use fit::{KNearest, NeighbourMetric, NeighbourSearch, Weighting};
pub(super) use ready::{Finder, Ready};
