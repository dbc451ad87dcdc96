//! How good orders are.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use widemargin::operation::ranking::RankingQuality;

use crate::errors::exception;
use crate::training::slice;

/// The quality of the order of scores within queries, by name.
#[pyfunction]
#[pyo3(signature = (truth, scores, groups=None))]
pub(crate) fn ranking_quality<'py>(
    py: Python<'py>,
    truth: PyReadonlyArray1<'py, f64>,
    scores: PyReadonlyArray1<'py, f64>,
    groups: Option<PyReadonlyArray1<'py, i64>>,
) -> PyResult<Bound<'py, PyDict>> {
    let groups = groups.as_ref().map(slice).transpose()?;
    let quality =
        RankingQuality::new(groups, slice(&truth)?, slice(&scores)?).map_err(exception)?;
    let items = PyDict::new(py);
    items.set_item("queries", quality.queries)?;
    items.set_item("pair_accuracy", quality.pair_accuracy)?;
    items.set_item("ndcg", quality.ndcg)?;
    items.set_item("ndcg_at_10", quality.ndcg_at_10)?;
    items.set_item("mean_average_precision", quality.mean_average_precision)?;
    items.set_item("kendall_tau", quality.kendall_tau)?;
    Ok(items)
}
