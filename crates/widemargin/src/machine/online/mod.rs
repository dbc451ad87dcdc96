//! Online training of the all-in-one machines, and LASVM.
//!
//! A stream of examples is learnt by steps on few dual variables; only examples with a variable that
//! is not zero are kept. One pass gives an approximation, passes until nothing violates the optimality
//! conditions give the optimum of the batch machine (Trinh 2012; Bordes, Bottou, Gallinari and Weston
//! 2007; Bordes, Ertekin, Weston and Bottou 2005).

mod fit;
mod lasvm;
mod learner;
mod schedule;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod vectors;

pub use fit::OnlineSvc;
pub use lasvm::Lasvm;
pub use learner::OnlineLearner;
pub use schedule::{Clock, Epochs, OnlineSchedule, WorkingSetStrategy};
