//! Fisher's discriminants: directions along which classes lie far apart for their width.

mod body;
mod expansion;
mod fisher;
mod kernel_fisher;
mod scatter;
#[cfg(test)]
mod tests;

pub use body::Discriminant;
pub use fisher::{Fisher, FisherThreshold};
pub use kernel_fisher::{KernelFisher, KernelFisherRidge, KernelFisherThreshold};
pub use scatter::Shrinkage;
