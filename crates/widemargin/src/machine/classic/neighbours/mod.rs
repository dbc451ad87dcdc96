//! k-nearest neighbours: the rows nearest to a query vote, or their mean is the prediction.

mod body;
mod brute;
mod fit;
#[cfg(test)]
mod tests;
mod tree;

pub(super) use body::Finder;
pub use body::Neighbours;
pub use fit::{KNearest, NeighbourMetric, NeighbourSearch, Weighting};
