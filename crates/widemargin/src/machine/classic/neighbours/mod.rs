//! k nearest neighbours: the rows nearest to a query vote, or their mean is the answer.

mod brute;
mod fit;
mod body;
#[cfg(test)]
mod tests;
mod tree;

pub use fit::{KNearest, Metric, Search, Weighting};
pub(super) use body::Finder;
pub use body::Neighbours;
