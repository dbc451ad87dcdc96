//! Model selection: which parameters of a machine predict held-out rows best.
//!
//! A [`search`] asks a [`Family`] for machines at points of a [`Space`], has every one predict the
//! held-out rows of every [`Split`] and keeps the [`Trial`]s. What the trainings have in common is
//! computed once ([`evaluate`]): kernel values of all rows per kernel, the matrix of each two-class
//! problem for all penalties and splits, and starts from solved neighbours (Nguyen 2006, chapter 4;
//! DeCoste and Wagstaff 2000). The scores are those of training every machine by itself, to the
//! tolerance of the solver.

mod bounds;
mod elimination;
mod evaluate;
mod family;
mod journal;
mod metric;
mod rounds;
mod search;
mod space;
mod splits;
mod surrogate;
mod trial;

pub(super) use elimination::subsample;

pub use bounds::{Criterion, criterion};
pub use evaluate::{Evaluation, Job, Predictions, Response, Reuse, evaluate};
pub use family::SpecifiedFamily;
pub use journal::Record;
pub use metric::Metric;
pub use rounds::{SearchRound, halving, race, surrogate};
pub use search::{Judge, Plan, Strategy, search};
pub use space::{Axis, Family, Identity, Point, Space};
pub use splits::{Split, bootstrap, hold_out, repeated};
pub use trial::{Found, Trial};

pub use crate::machine::specification::Value;
