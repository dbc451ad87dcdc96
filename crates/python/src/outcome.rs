//! How trainings ended, for Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use widemargin::Outcome;

/// Puts fields of a structure into a dictionary under their names.
macro_rules! set_fields {
    ($items:ident, $from:expr, [$($field:ident),+ $(,)?]) => {
        $($items.set_item(stringify!($field), $from.$field.clone())?;)+
    };
}

pub(crate) use set_fields;

/// Status, objectives, KKT violation and work of a training.
pub(crate) fn ending<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let items = PyDict::new(py);
    items.set_item("status", outcome.status.to_string())?;
    set_fields!(items, outcome, [primal, dual, violation, iterations]);
    items.set_item("gap", outcome.gap())?;
    items.set_item("passes", outcome.blocks)?;
    Ok(items)
}
