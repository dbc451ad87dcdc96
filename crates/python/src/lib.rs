//! The compiled half of the Python package: NumPy arrays in, models out.
//!
//! It owns no mathematics. Tables of NumPy are read in place where they are C-contiguous, training
//! runs on a thread of its own with the interpreter released, and errors become Python's.

#![deny(unsafe_code)]

mod chains;
mod compare;
mod compression;
mod distributed;
mod errors;
mod feature_map;
mod gram;
mod machines;
mod model;
mod online;
mod outcome;
mod ranking;
mod rounds;
mod search;
mod sequence;
mod strings;
mod structured;
mod table;
mod training;

use mimalloc::MiMalloc;
use pyo3::prelude::*;

/// For this module alone: keeps what is freed for the next list of the same size, which the C library
/// gives back to the system each time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// `widemargin._core`.
#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<feature_map::FeatureMap>()?;
    module.add_class::<distributed::Coordinator>()?;
    module.add_class::<distributed::Site>()?;
    module.add_class::<model::Model>()?;
    module.add_class::<online::Learner>()?;
    module.add_class::<sequence::Hmm>()?;
    module.add_class::<chains::Chain>()?;
    module.add_class::<strings::SubstringFeatures>()?;
    module.add_function(wrap_pyfunction!(training::fit, module)?)?;
    module.add_function(wrap_pyfunction!(training::fit_path, module)?)?;
    module.add_function(wrap_pyfunction!(training::fit_files, module)?)?;
    module.add_function(wrap_pyfunction!(chains::fit_chain, module)?)?;
    module.add_function(wrap_pyfunction!(chains::alternate_chain, module)?)?;
    module.add_function(wrap_pyfunction!(structured::fit_structured, module)?)?;
    module.add_function(wrap_pyfunction!(ranking::ranking_quality, module)?)?;
    module.add_function(wrap_pyfunction!(search::evaluate, module)?)?;
    module.add_function(wrap_pyfunction!(rounds::halving, module)?)?;
    module.add_function(wrap_pyfunction!(rounds::race, module)?)?;
    module.add_function(wrap_pyfunction!(rounds::surrogate, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare_clusterings, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare_kernels, module)?)?;
    module.add_function(wrap_pyfunction!(compare::cluster_agreement, module)?)?;
    module.add_function(wrap_pyfunction!(search::leave_one_out_error, module)?)?;
    module.add_function(wrap_pyfunction!(compression::compress, module)?)?;
    module.add_function(wrap_pyfunction!(machines::check_kernel, module)?)?;
    module.add_function(wrap_pyfunction!(strings::compares_strings, module)?)?;
    module.add_function(wrap_pyfunction!(strings::string_rows, module)?)?;
    module.add_function(wrap_pyfunction!(strings::kernel_values, module)?)?;
    module.add_function(wrap_pyfunction!(machines::default_grid, module)?)?;
    module.add_function(wrap_pyfunction!(machines::refined, module)?)?;
    module.add_function(wrap_pyfunction!(machines::parameter_names, module)?)?;
    module.add_function(wrap_pyfunction!(distributed::census, module)?)?;
    module.add_function(wrap_pyfunction!(distributed::training_plan, module)?)?;
    module.add_function(wrap_pyfunction!(gram::gram_scaled, module)?)?;
    module.add_function(wrap_pyfunction!(gram::gram_centred, module)?)?;
    module.add_function(wrap_pyfunction!(gram::gram_cosine, module)?)?;
    module.add_function(wrap_pyfunction!(gram::gram_repaired, module)?)?;
    module.add_function(wrap_pyfunction!(gram::gram_alignment, module)?)?;
    Ok(())
}
