//! Hidden Markov models: chains of hidden states that emit what is observed.

mod emission;
mod fit;
mod hmm;
mod lattice;
mod observations;

pub use emission::{Emission, EmissionPrior, Updates};
pub use fit::{BaumWelch, HmmFit};
pub use hmm::{Hmm, Posteriors};
pub use observations::{Observations, Sequences};
