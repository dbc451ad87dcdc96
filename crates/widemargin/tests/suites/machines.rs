//! Machines that learn over kernels, and the classical ones.

#[path = "../approximate_kernels.rs"]
mod approximate_kernels;
#[path = "../backend.rs"]
mod backend;
#[path = "../chains.rs"]
mod chains;
#[path = "../classic.rs"]
mod classic;
#[path = "../common/mod.rs"]
mod common;
#[path = "../driven_markov.rs"]
mod driven_markov;
#[path = "../extreme_choices.rs"]
mod extreme_choices;
#[path = "../extremes.rs"]
mod extremes;
#[path = "../hidden_markov.rs"]
mod hidden_markov;
#[path = "../indefinite_kernels.rs"]
mod indefinite_kernels;
#[path = "../kernel_overflow.rs"]
mod kernel_overflow;
#[path = "../least_squares.rs"]
mod least_squares;
#[path = "../libsvm_optima.rs"]
mod libsvm_optima;
#[path = "../limits.rs"]
mod limits;
#[path = "../max_margin_clustering.rs"]
mod max_margin_clustering;
#[path = "../multiclass_optimum.rs"]
mod multiclass_optimum;
#[path = "../multiclass_paths.rs"]
mod multiclass_paths;
#[path = "../multiple_kernel.rs"]
mod multiple_kernel;
#[path = "../relaxation_optima.rs"]
mod relaxation_optima;
#[path = "../ripley.rs"]
mod ripley;
#[path = "../robust.rs"]
mod robust;
#[path = "../semi_supervised.rs"]
mod semi_supervised;
#[path = "../semi_supervised_relaxation.rs"]
mod semi_supervised_relaxation;
#[path = "../signed_weights.rs"]
mod signed_weights;
#[path = "../structured.rs"]
mod structured;
#[path = "../threads.rs"]
mod threads;
