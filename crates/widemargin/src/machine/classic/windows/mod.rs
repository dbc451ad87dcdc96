//! Parzen windows (kernel density estimates): the classifier, the density itself, and the probabilistic
//! neural network.

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
pub use input::NetworkInput;
pub use width::WindowWidth;
pub use window::Window;
