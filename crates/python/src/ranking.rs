//! How good orders are.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use widemargin::operation::ranking::RankingQuality;

use crate::errors::exception;
use crate::outcome::set_fields;
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
    set_fields!(items, quality, [queries, pair_accuracy, ndcg, ndcg_at_10]);
    set_fields!(items, quality, [mean_average_precision, kendall_tau]);
    Ok(items)
}
