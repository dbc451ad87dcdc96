//! Parzen windows (kernel density estimates): the classifier, the density itself, and the probabilistic
//! neural network.

mod errors;
mod fit;
mod input;
mod left_out;
mod ready;
#[cfg(test)]
mod tests;
mod width;
mod window;

pub use fit::{KernelDensity, Parzen, ProbabilisticNetwork};
pub use input::NetworkInput;
pub(super) use ready::Ready;
pub use width::WindowWidth;
pub use window::Window;
