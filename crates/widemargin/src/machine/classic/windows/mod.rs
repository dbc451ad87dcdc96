//! Densities as sums of windows around the rows: Parzen's classifier, the density itself, and the
//! probabilistic neural network.

mod body;
mod errors;
mod fit;
mod input;
mod left_out;
#[cfg(test)]
mod tests;
mod width;
mod window;

pub use body::Windows;
pub use fit::{KernelDensity, Parzen, ProbabilisticNetwork};
pub use input::Input;
pub use width::Width;
pub use window::Window;
