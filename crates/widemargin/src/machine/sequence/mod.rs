//! Chains: hidden Markov models, and support vector machines for the tags of sequences.

mod best_path;
mod chain;
mod densities;
mod emission;
mod fit;
mod hmm;
mod lattice;
mod markov;
mod observations;

pub use chain::{
    AlternationFit, Chain, ChainAlternation, ChainSvc, Labeller, Labelling, PackedChain,
    TagConstraints, TagLoss, TagScores,
};
pub use emission::{Emission, EmissionPrior, Updates};
pub use fit::{BaumWelch, HmmFit};
pub use hmm::{Hmm, Posteriors};
pub use markov::{EmissionKind, HiddenMarkov, HiddenMarkovMachine};
pub use observations::{MISSING_SYMBOL, Observations, Sequences};
