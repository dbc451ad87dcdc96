//! Trained models as a Python class: their arrays, their predictions and their files.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use widemargin::Context;
use widemargin::data::{Dense, Label, Labels, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::specification::Value;
use widemargin::machine::{Calibration, Model as Trained, PackedSupport, Predictor, Scheme};

use crate::errors::exception;
use crate::machines::value_to_python;
use crate::outcome::{ending, set_fields};
use crate::table::{Table, array2, rows, to_python};

/// Multiplications between two looks for Ctrl-C while predicting: a fraction of a second.
const MULTIPLICATIONS_PER_BLOCK: usize = 1 << 32;

/// Offset and factor of every feature.
type Scaling<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// Distances and places of the nearest rows.
type Nearest<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>);

/// A trained model; immutable.
#[pyclass(frozen, module = "widemargin._core")]
pub(crate) struct Model {
    model: Arc<Trained>,
    /// Support vectors packed by the first prediction.
    packed: OnceLock<PackedSupport>,
}

impl Model {
    pub(crate) fn new(model: Trained) -> Self {
        Self { model: Arc::new(model), packed: OnceLock::new() }
    }

    pub(crate) fn shared(&self) -> Arc<Trained> {
        Arc::clone(&self.model)
    }

    /// The decision values of all rows, and what `read` makes of each block of them.
    fn each_block<R: Send>(
        &self,
        py: Python<'_>,
        features: &Table<'_>,
        threads: usize,
        read: impl Fn(&Predictor<'_>, &Dense<f64>) -> widemargin::Result<Vec<R>> + Sync,
    ) -> PyResult<(usize, Vec<R>)> {
        let matrix = features.matrix()?;
        let total = matrix.rows();
        let per_row = self.model.support_count().max(1) * self.model.features().max(1);
        let block = (MULTIPLICATIONS_PER_BLOCK / per_row).clamp(256, 1 << 16);
        let mut all = Vec::new();
        let context = py.detach(|| Context::new().with_threads(threads)).map_err(exception)?;
        for start in (0..total).step_by(block) {
            let end = (start + block).min(total);
            let part =
                if end - start == total { matrix.clone() } else { rows(&matrix, start..end)? };
            let found = py.detach(|| self.read_block(&part, &context, &read)).map_err(exception)?;
            if all.is_empty() {
                all = found;
                all.reserve(all.len() / (end - start) * (total - end));
            } else {
                all.extend(found);
            }
            py.check_signals()?;
        }
        Ok((total, all))
    }

    fn read_block<R>(
        &self,
        features: &Matrix,
        context: &Context,
        read: impl Fn(&Predictor<'_>, &Dense<f64>) -> widemargin::Result<Vec<R>>,
    ) -> widemargin::Result<Vec<R>> {
        let predictor = self.predictor(context)?;
        read(&predictor, &predictor.decision_values(features)?)
    }

    /// A predictor, its support vectors packed once.
    fn predictor<'a>(&'a self, context: &'a Context) -> widemargin::Result<Predictor<'a>> {
        let packed = match self.packed.get() {
            Some(packed) => packed,
            None => {
                let packed = self.model.pack(context)?;
                self.packed.get_or_init(|| packed)
            }
        };
        Ok(self.model.predictor_with(packed, context))
    }
}

#[pymethods]
impl Model {
    /// Reads the content of a model file, native or LIBSVM's.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, content: &[u8]) -> PyResult<Self> {
        py.detach(|| Trained::load_from_bytes(content)).map(Self::new).map_err(exception)
    }

    /// Reads a model file, native or LIBSVM's, with its classes in ascending order.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let model = py.detach(|| Trained::load(path)).map_err(exception)?;
        Ok(Self::new(model.with_sorted_classes()))
    }

    /// Writes a native model file, atomically.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.model.save(path)).map_err(exception)
    }

    /// The content of a native model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let content = py.detach(|| self.model.to_bytes()).map_err(exception)?;
        Ok(PyBytes::new(py, &content))
    }

    /// The content of a LIBSVM model file.
    fn to_libsvm<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let content = py.detach(|| self.model.to_libsvm_bytes()).map_err(exception)?;
        Ok(PyBytes::new(py, &content))
    }

    /// The content of a LIBLINEAR model file.
    fn to_liblinear<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let content = py.detach(|| self.model.to_liblinear_bytes()).map_err(exception)?;
        Ok(PyBytes::new(py, &content))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let content = slf.get().to_bytes(slf.py())?;
        Ok((slf.get_type().getattr("from_bytes")?, (content,)))
    }

    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        slf
    }

    /// Name of the machine, as on the command line.
    #[getter]
    fn kind(&self) -> &'static str {
        self.model.kind.name()
    }

    /// Number of features of a row.
    #[getter]
    fn features(&self) -> usize {
        self.model.features()
    }

    /// Names of the features, if known.
    #[getter]
    fn feature_names(&self) -> Option<Vec<String>> {
        self.model.feature_names.clone()
    }

    /// ``"single"`` or ``"double"``.
    #[getter]
    fn precision(&self) -> &'static str {
        match self.model.precision() {
            widemargin::machine::Precision::F32 => "single",
            widemargin::machine::Precision::F64 => "double",
        }
    }

    /// Names of the classes, if it has any.
    #[getter]
    fn classes<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let Some(table) = &self.model.classes else { return Ok(None) };
        let name = |label: &Label| {
            Ok(match label {
                Label::Int(value) => value.into_pyobject(py)?.into_any(),
                Label::Real(value) => value.into_pyobject(py)?.into_any(),
                Label::Text(value) => value.into_pyobject(py)?.into_any(),
            })
        };
        table.names.iter().map(name).collect::<PyResult<_>>().map(Some)
    }

    /// Whether rows go through features that approximate a kernel.
    #[getter]
    fn is_mapped(&self) -> bool {
        self.model.preparation.map.is_some()
    }

    /// How functions become classes: ``"ovo"``, ``"ovr"``, ``"dag"`` or ``"ecoc"``.
    #[getter]
    fn scheme(&self) -> Option<&'static str> {
        self.model.classes.as_ref().map(|table| match table.scheme {
            Scheme::OneVsOne => "ovo",
            Scheme::OneVsRest => "ovr",
            Scheme::Dag => "dag",
            Scheme::ErrorCorrecting(_) => "ecoc",
        })
    }

    /// The code matrix of ``"ecoc"``, one row per class.
    #[getter]
    fn code<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        match self.model.classes.as_ref().map(|table| &table.scheme) {
            Some(Scheme::ErrorCorrecting(code)) => {
                let shape = [code.len(), code.first().map_or(0, Vec::len)];
                let entries = code.iter().flatten().map(|&entry| f64::from(entry)).collect();
                array2(py, entries, shape).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Number of support vectors.
    #[getter]
    fn support_count(&self) -> usize {
        self.model.support_count()
    }

    /// Training row of every support vector; empty when not known.
    #[getter]
    fn support<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i32>> {
        let rows: Vec<i32> = self.model.support_rows().iter().map(|&row| row as i32).collect();
        rows.into_pyarray(py)
    }

    /// The support vectors: an array, or ``(indptr, indices, values, columns)``.
    #[getter]
    fn support_vectors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.model.vectors())
    }

    /// Number of support vectors, by class for classifiers.
    #[getter]
    fn support_counts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i32>> {
        let counts: Vec<i32> = match &self.model.classes {
            Some(table) => table.support.iter().map(|&count| count as i32).collect(),
            None => vec![self.model.support_count() as i32],
        };
        counts.into_pyarray(py)
    }

    /// −ρ of every function.
    #[getter]
    fn intercepts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        // Adding zero turns -0 into 0.
        let values: Vec<f64> = self.model.offsets().iter().map(|offset| 0.0 - offset).collect();
        values.into_pyarray(py)
    }

    /// Coefficients of the support vectors: LIBSVM's ``sv_coef`` (one row fewer than classes) where
    /// there is a function per pair of classes, otherwise a row per function.
    #[getter]
    fn dual_coefficients<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (rows, values) = self.model.dual_coefficients();
        array2(py, values, [rows, self.model.support_count()])
    }

    /// Coefficients of the support vectors, one row per function.
    #[getter]
    fn function_coefficients<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (functions, count) = (self.model.functions(), self.model.support_count());
        let mut values = vec![0.0; functions.len() * count];
        for (f, function) in functions.iter().enumerate() {
            for part in &function.parts {
                let start = f * count + part.support.start;
                let places = &mut values[start..start + part.coefficients.len()];
                places.copy_from_slice(&part.coefficients);
            }
        }
        array2(py, values, [functions.len(), count])
    }

    /// Weights of the features in every function of a linear model.
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let weights = py.detach(|| self.model.linear_weights()).map_err(exception)?;
        let shape = [weights.rows(), weights.columns()];
        array2(py, weights.values().to_vec(), shape)
    }

    /// How the training ended: status, objectives, violation, effort; empty for foreign models.
    #[getter]
    fn training<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Some(training) = &self.model.training else { return Ok(PyDict::new(py)) };
        let items = ending(py, &training.outcome)?;
        set_fields!(items, training, [rows, seconds]);
        let parameters = training.parameters.iter();
        let parameters = parameters.map(|(name, value)| Ok((name, value_to_python(py, value)?)));
        items.set_item("parameters", parameters.collect::<PyResult<Vec<_>>>()?)?;
        Ok(items)
    }

    /// The machine that was trained: whether online, and the values of all its parameters, `_` in
    /// the place of `-`; `None` for files that do not keep it.
    #[getter]
    fn specification<'py>(&self, py: Python<'py>) -> PyResult<Option<(bool, Bound<'py, PyDict>)>> {
        let training = self.model.training.as_ref();
        let Some(specification) = training.and_then(|training| training.specification.as_ref())
        else {
            return Ok(None);
        };
        let values = PyDict::new(py);
        for parameter in specification.entry().parameters() {
            if let Some(value) = specification.value(parameter.name) {
                values.set_item(parameter.name.replace('-', "_"), value_to_python(py, &value)?)?;
            }
        }
        Ok(Some((specification.is_online(), values)))
    }

    /// The kernel as a nested dictionary.
    #[getter]
    fn kernel<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        describe(py, self.model.kernel().unwrap_or(&Kernel::Linear))
    }

    /// What is done to rows before the kernel sees them, if anything: ``(offset, factor)`` with
    /// row ↦ offset + factor · row.
    #[getter]
    fn scaling<'py>(&self, py: Python<'py>) -> PyResult<Option<Scaling<'py>>> {
        let Some(scaler) = &self.model.preparation.scaler else { return Ok(None) };
        let columns = self.model.features();
        let values = [vec![0.0; columns], vec![1.0; columns]].concat();
        let probe = Dense::new(2, columns, values).map_err(exception)?;
        let moved = scaler.transform(Matrix::DenseF64(probe)).map_err(exception)?;
        let (mut offset, mut end) = (vec![0.0; columns], vec![0.0; columns]);
        moved.copy_row(0, &mut offset);
        moved.copy_row(1, &mut end);
        let factor: Vec<f64> = end.iter().zip(&offset).map(|(end, offset)| end - offset).collect();
        Ok(Some((offset.into_pyarray(py), factor.into_pyarray(py))))
    }

    /// The calibration as a dictionary, if there is one.
    #[getter]
    fn calibration<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let items = PyDict::new(py);
        match &self.model.calibration {
            None => return Ok(None),
            Some(Calibration::Sigmoid { a, b }) => {
                items.set_item("method", "sigmoid")?;
                items.set_item("a", a.clone().into_pyarray(py))?;
                items.set_item("b", b.clone().into_pyarray(py))?;
            }
            Some(Calibration::Isotonic { knots }) => {
                items.set_item("method", "isotonic")?;
                items.set_item("knots", knots.clone())?;
            }
            Some(Calibration::Laplace { scale }) => {
                items.set_item("method", "laplace")?;
                items.set_item("scale", *scale)?;
            }
            Some(Calibration::Softmax) => items.set_item("method", "softmax")?,
            Some(Calibration::Shares) => items.set_item("method", "shares")?,
            Some(Calibration::Density { marks }) => {
                items.set_item("method", "density")?;
                items.set_item("marks", marks.clone().into_pyarray(py))?;
            }
        }
        Ok(Some(items))
    }

    /// The values of all decision functions, positive meaning the first class of a pair.
    fn decision_values<'py>(
        &self,
        py: Python<'py>,
        features: Table<'py>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (rows, values) =
            self.each_block(py, &features, threads, |_, values| Ok(values.values().to_vec()))?;
        array2(py, values, [rows, self.model.outputs()])
    }

    /// What the model holds beside vectors and functions, by name; lists of numbers are arrays.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let items = PyDict::new(py);
        for (name, value) in self.model.attributes() {
            match value {
                Value::Reals(numbers) => items.set_item(name, numbers.into_pyarray(py))?,
                value => items.set_item(name, value_to_python(py, &value)?)?,
            }
        }
        Ok(items)
    }

    /// For a discriminant: the model whose decision values are its projections.
    fn projection(&self) -> Option<Self> {
        self.model.projection().map(Self::new)
    }

    /// The logarithm of the density at every row.
    fn log_densities<'py>(
        &self,
        py: Python<'py>,
        features: Table<'py>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (_, densities) = self.each_block(py, &features, threads, |predictor, values| {
            predictor.log_densities_of(values)
        })?;
        Ok(densities.into_pyarray(py))
    }

    /// Distances and rows of the k nearest training rows, nearest first.
    fn nearest<'py>(
        &self,
        py: Python<'py>,
        features: Table<'py>,
        k: usize,
        threads: usize,
    ) -> PyResult<Nearest<'py>> {
        let matrix = features.matrix()?;
        let rows = matrix.rows();
        let found = py.detach(|| {
            let context = Context::new().with_threads(threads)?;
            self.predictor(&context)?.nearest(&matrix, k)
        });
        let found = found.map_err(exception)?;
        let distances = found.iter().flatten().map(|&(distance, _)| distance).collect();
        let places = found.iter().flatten().map(|&(_, row)| row as f64).collect();
        Ok((array2(py, distances, [rows, k])?, array2(py, places, [rows, k])?))
    }

    /// A score of every class, the largest being the best: votes with a fraction for confidence
    /// where there is a function per pair, otherwise what decides the prediction.
    fn class_scores<'py>(
        &self,
        py: Python<'py>,
        features: Table<'py>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let classes = self.model.classes.as_ref().map_or(0, |table| table.names.len());
        let (rows, scores) = self.each_block(py, &features, threads, |predictor, values| {
            Ok(predictor.class_scores(values).values().to_vec())
        })?;
        array2(py, scores, [rows, classes])
    }

    /// The probability of every class.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        features: Table<'py>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let classes = match (&self.model.classes, self.model.kind.is_clusterer()) {
            (Some(table), _) => table.names.len(),
            (None, true) => self.model.outputs(),
            (None, false) => 2,
        };
        let (rows, values) = self.each_block(py, &features, threads, |predictor, values| {
            Ok(predictor.probabilities_of(values)?.values().to_vec())
        })?;
        array2(py, values, [rows, classes])
    }

    /// The predictions: positions of classes, numbers, or 1 and −1.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        features: Table<'py>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.model.classes.is_some() {
            let (_, places) = self.each_block(py, &features, threads, |predictor, values| {
                Ok(predictor.class_indices(values).into_iter().map(|c| c as isize).collect())
            })?;
            return Ok(places.into_pyarray(py).into_any());
        }
        let (_, blocks) = self.each_block(py, &features, threads, |predictor, values| {
            Ok(vec![predictor.predictions(values)])
        })?;
        let (mut whole, mut real) = (Vec::new(), Vec::new());
        for block in blocks {
            match block {
                Labels::Int(values) => whole.extend(values.into_iter().map(|v| v as isize)),
                Labels::Real(values) => real.extend(values),
                _ => {}
            }
        }
        match whole.is_empty() {
            true => Ok(real.into_pyarray(py).into_any()),
            false => Ok(whole.into_pyarray(py).into_any()),
        }
    }
}

fn describe<'py>(py: Python<'py>, kernel: &Kernel) -> PyResult<Bound<'py, PyDict>> {
    let items = PyDict::new(py);
    items.set_item("name", kernel.name())?;
    match kernel {
        Kernel::String(_) => items.set_item("text", kernel.to_string())?,
        Kernel::Polynomial { gamma, coef0, degree } => {
            items.set_item("gamma", *gamma)?;
            items.set_item("coef0", *coef0)?;
            items.set_item("degree", *degree)?;
        }
        Kernel::Sigmoid { gamma, coef0 } => {
            items.set_item("gamma", *gamma)?;
            items.set_item("coef0", *coef0)?;
        }
        Kernel::Gaussian { gamma } | Kernel::Laplacian { gamma } | Kernel::ChiSquared { gamma } => {
            items.set_item("gamma", *gamma)?;
        }
        Kernel::Sum(terms) => {
            let weights: Vec<f64> = terms.iter().map(|(weight, _)| *weight).collect();
            let parts = terms.iter().map(|(_, kernel)| describe(py, kernel));
            items.set_item("weights", weights)?;
            items.set_item("parts", parts.collect::<PyResult<Vec<_>>>()?)?;
        }
        Kernel::View { columns, kernel } => {
            let columns: Vec<(usize, usize)> = columns.iter().map(|r| (r.start, r.end)).collect();
            items.set_item("columns", columns)?;
            items.set_item("kernel", describe(py, kernel)?)?;
        }
        Kernel::Product(factors) => {
            let parts = factors.iter().map(|kernel| describe(py, kernel));
            items.set_item("parts", parts.collect::<PyResult<Vec<_>>>()?)?;
        }
        _ => {}
    }
    Ok(items)
}
