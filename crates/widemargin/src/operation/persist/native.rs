//! A model as a framed `safetensors` document: a JSON header and arrays.
//!
//! Arrays: `support.values` (dense: rows × features; sparse: with `support.indptr` and
//! `support.indices`), `support.rows`, `functions.offsets`, `functions.parts` (function, first and
//! last-plus-one support vector of every run), `functions.coefficients` (of all runs, in order) and
//! what the calibration and a classical machine need (`projections.*` like `functions.*`, and
//! `classic.*`).

use std::path::Path;

use safetensors::Dtype;

use super::arrays::{ArrayReader, ArrayWriter, Element, to_index};
use super::header::{CalibrationHeader, ClassHeader, Header, KernelHeader};
use super::{envelope, validate};
use crate::data::{Csr, Dense, Matrix};
use crate::error::{self, Error};
use crate::machine::{
    Calibration, ClassTable, ClassicForm, ClassicPart, DecisionFunction, Model, Part,
};

/// The bytes of a valid model's file.
pub(super) fn encode(model: &Model) -> error::Result<Vec<u8>> {
    encode_document(model)
        .map(|document| envelope::seal(&document))
        .map_err(|message| Error::Model { message })
}

/// The model in a file's bytes.
pub(super) fn decode(path: &Path, bytes: &[u8]) -> error::Result<Model> {
    let document = envelope::open(path, bytes)?;
    decode_document(document)
        .and_then(|model| match validate::check(&model) {
            Ok(()) => Ok(model),
            Err(error) => Err(validate::reason(error)),
        })
        .map_err(|message| Error::Format { path: path.into(), message })
}

fn encode_document(model: &Model) -> Result<Vec<u8>, String> {
    let mut arrays = ArrayWriter::default();
    put_support(&mut arrays, &model.support);
    let rows = model.support_rows.iter().map(|&row| row as u64);
    arrays.put("support.rows", vec![model.support_rows.len()], rows);
    put_functions(&mut arrays, &FUNCTIONS, &model.functions);
    let classic = model.classic.as_ref().map(|part| put_classic(&mut arrays, part));
    let calibration = model.calibration.as_ref().map(|c| put_calibration(&mut arrays, c));
    let header = Header {
        machine: model.kind,
        kernel: KernelHeader::new(&model.kernel)?,
        precision: model.precision,
        features: model.support.columns(),
        self_weight: model.self_weight,
        classes: model.classes.as_ref().map(|table| ClassHeader {
            names: table.names.iter().map(Into::into).collect(),
            scheme: table.scheme.clone(),
            support: table.support.clone(),
        }),
        calibration,
        classic,
        preparation: model.preparation.clone(),
        feature_names: model.feature_names.clone(),
        training: model.training.as_ref().map(Into::into),
    };
    arrays.finish(serde_json::to_string(&header).map_err(|error| error.to_string())?)
}

fn decode_document(document: &[u8]) -> Result<Model, String> {
    let (mut arrays, header) = ArrayReader::open(document)?;
    let header: Header = serde_json::from_str(&header).map_err(|error| header_error(&error))?;
    let support = take_support(&mut arrays, header.features)?;
    let support_rows = arrays.take_indices("support.rows")?;
    let functions = take_functions(&mut arrays, &FUNCTIONS)?;
    let classic = match header.classic {
        Some(form) => Some(take_classic(&mut arrays, form)?),
        None => None,
    };
    let calibration = match header.calibration {
        Some(kind) => Some(take_calibration(&mut arrays, kind)?),
        None => None,
    };
    arrays.finish()?;
    Ok(Model {
        kind: header.machine,
        kernel: header.kernel.into_kernel()?,
        precision: header.precision,
        support,
        support_rows,
        functions,
        self_weight: header.self_weight,
        classes: header.classes.map(|table| ClassTable {
            names: table.names.into_iter().map(Into::into).collect(),
            scheme: table.scheme,
            support: table.support,
        }),
        calibration,
        classic,
        preparation: header.preparation,
        feature_names: header.feature_names,
        training: header.training.map(Into::into),
    })
}

fn header_error(error: &serde_json::Error) -> String {
    format!("header: {error}").replace('`', "'")
}

fn put_support(arrays: &mut ArrayWriter, support: &Matrix) {
    fn dense<T: Element>(arrays: &mut ArrayWriter, matrix: &Dense<T>) {
        let shape = vec![matrix.rows(), matrix.columns()];
        arrays.put("support.values", shape, matrix.values().iter().copied());
    }
    fn sparse<T: Element>(arrays: &mut ArrayWriter, matrix: &Csr<T>) {
        let starts = matrix.indptr().iter().map(|&start| start as u64);
        arrays.put("support.indptr", vec![matrix.rows() + 1], starts);
        arrays.put("support.indices", vec![matrix.nonzeros()], matrix.indices().iter().copied());
        arrays.put("support.values", vec![matrix.nonzeros()], matrix.values().iter().copied());
    }
    match support {
        Matrix::DenseF32(matrix) => dense(arrays, matrix),
        Matrix::DenseF64(matrix) => dense(arrays, matrix),
        Matrix::SparseF32(matrix) => sparse(arrays, matrix),
        Matrix::SparseF64(matrix) => sparse(arrays, matrix),
    }
}

fn take_support(arrays: &mut ArrayReader<'_>, features: usize) -> Result<Matrix, String> {
    fn dense<T: Element>(
        arrays: &mut ArrayReader<'_>,
        features: usize,
    ) -> Result<Dense<T>, String> {
        let ([rows, columns], values) = arrays.take::<T, 2>("support.values")?;
        if columns != features {
            return Err(format!("support vectors: expected {features} features, found {columns}"));
        }
        Dense::new(rows, columns, values).map_err(|error| error.to_string())
    }
    fn sparse<T: Element>(arrays: &mut ArrayReader<'_>, features: usize) -> Result<Csr<T>, String> {
        let starts = arrays.take_indices("support.indptr")?;
        let indices = arrays.take_list::<u32>("support.indices")?;
        let values = arrays.take_list::<T>("support.values")?;
        Csr::new(features, starts, indices, values).map_err(|error| error.to_string())
    }
    let is_sparse = arrays.has("support.indptr");
    match (arrays.dtype("support.values"), is_sparse) {
        (Some(Dtype::F32), false) => dense(arrays, features).map(Matrix::DenseF32),
        (Some(Dtype::F32), true) => sparse(arrays, features).map(Matrix::SparseF32),
        (_, false) => dense(arrays, features).map(Matrix::DenseF64),
        (_, true) => sparse(arrays, features).map(Matrix::SparseF64),
    }
}

/// Names of the arrays of functions: offsets, parts, coefficients.
type FunctionNames = [&'static str; 3];

const FUNCTIONS: FunctionNames = ["functions.offsets", "functions.parts", "functions.coefficients"];
const PROJECTIONS: FunctionNames =
    ["projections.offsets", "projections.parts", "projections.coefficients"];

fn put_classic(arrays: &mut ArrayWriter, part: &ClassicPart) -> ClassicForm {
    if let ClassicPart::Discriminant(discriminant) = part {
        put_functions(arrays, &PROJECTIONS, &discriminant.projections);
    }
    let (form, named) = part.taken_apart();
    for (name, values) in named {
        arrays.put(name, vec![values.len()], values.iter().copied());
    }
    form
}

fn take_classic(arrays: &mut ArrayReader<'_>, form: ClassicForm) -> Result<ClassicPart, String> {
    let projections = match form {
        ClassicForm::Discriminant { .. } => take_functions(arrays, &PROJECTIONS)?,
        _ => Vec::new(),
    };
    ClassicPart::put_together(form, projections, |name| arrays.take_list(name))
}

fn put_functions(arrays: &mut ArrayWriter, names: &FunctionNames, functions: &[DecisionFunction]) {
    arrays.put(names[0], vec![functions.len()], functions.iter().map(|f| f.offset));
    let parts: Vec<(usize, &Part)> = functions
        .iter()
        .enumerate()
        .flat_map(|(function, f)| f.parts.iter().map(move |part| (function, part)))
        .collect();
    let runs = parts.iter().flat_map(|(function, part)| {
        [*function, part.support.start, part.support.end].map(|index| index as u64)
    });
    arrays.put(names[1], vec![parts.len(), 3], runs);
    let count = parts.iter().map(|(_, part)| part.coefficients.len()).sum();
    let coefficients = parts.iter().flat_map(|(_, part)| part.coefficients.iter().copied());
    arrays.put(names[2], vec![count], coefficients);
}

fn take_functions(
    arrays: &mut ArrayReader<'_>,
    names: &FunctionNames,
) -> Result<Vec<DecisionFunction>, String> {
    let [offsets, parts, coefficients] = *names;
    let offsets = arrays.take_list::<f64>(offsets)?;
    let ([_, width], runs) = arrays.take::<u64, 2>(parts)?;
    if width != 3 {
        return Err(format!("array '{parts}': expected 3 columns, found {width}"));
    }
    let all = arrays.take_list::<f64>(coefficients)?;
    let mut rest = all.as_slice();
    let mut functions: Vec<DecisionFunction> =
        offsets.into_iter().map(|offset| DecisionFunction { parts: Vec::new(), offset }).collect();
    for run in runs.chunks_exact(3) {
        let index = |place: usize| to_index(parts, run[place]);
        let (function, start, end) = (index(0)?, index(1)?, index(2)?);
        let coefficients = end.checked_sub(start).and_then(|count| rest.split_at_checked(count));
        let (Some((coefficients, others)), Some(target)) =
            (coefficients, functions.get_mut(function))
        else {
            return Err(format!(
                "array '{parts}': function {function} over support vectors \
                 {start}..{end} goes beyond the arrays"
            ));
        };
        rest = others;
        target.parts.push(Part { support: start..end, coefficients: coefficients.to_vec() });
    }
    if rest.is_empty() {
        Ok(functions)
    } else {
        Err(format!("array '{}': {} too many", names[2], rest.len()))
    }
}

fn put_calibration(arrays: &mut ArrayWriter, calibration: &Calibration) -> CalibrationHeader {
    match calibration {
        Calibration::Sigmoid { a, b } => {
            arrays.put("calibration.a", vec![a.len()], a.iter().copied());
            arrays.put("calibration.b", vec![b.len()], b.iter().copied());
            CalibrationHeader::Sigmoid
        }
        Calibration::Isotonic { knots } => {
            let counts = knots.iter().map(|list| list.len() as u64);
            arrays.put("calibration.counts", vec![knots.len()], counts);
            let all: Vec<(f64, f64)> = knots.iter().flatten().copied().collect();
            let values = all.iter().flat_map(|&(value, probability)| [value, probability]);
            arrays.put("calibration.knots", vec![all.len(), 2], values);
            CalibrationHeader::Isotonic
        }
        Calibration::Laplace { scale } => CalibrationHeader::Laplace { scale: *scale },
        Calibration::Density { marks } => {
            arrays.put("calibration.marks", vec![marks.len()], marks.iter().copied());
            CalibrationHeader::Density
        }
        Calibration::Softmax => CalibrationHeader::Softmax,
        Calibration::Shares => CalibrationHeader::Shares,
    }
}

fn take_calibration(
    arrays: &mut ArrayReader<'_>,
    kind: CalibrationHeader,
) -> Result<Calibration, String> {
    Ok(match kind {
        CalibrationHeader::Sigmoid => Calibration::Sigmoid {
            a: arrays.take_list("calibration.a")?,
            b: arrays.take_list("calibration.b")?,
        },
        CalibrationHeader::Isotonic => {
            let counts = arrays.take_indices("calibration.counts")?;
            let ([_, width], values) = arrays.take::<f64, 2>("calibration.knots")?;
            if width != 2 {
                return Err(format!(
                    "array 'calibration.knots': expected 2 columns, found {width}"
                ));
            }
            let mut rest = values.as_chunks::<2>().0;
            let mut knots = Vec::new();
            for count in counts {
                let Some((list, others)) = rest.split_at_checked(count) else {
                    return Err("array 'calibration.knots': too few".into());
                };
                rest = others;
                knots.push(list.iter().map(|&[value, probability]| (value, probability)).collect());
            }
            if !rest.is_empty() {
                return Err(format!("array 'calibration.knots': {} too many", rest.len()));
            }
            Calibration::Isotonic { knots }
        }
        CalibrationHeader::Softmax => Calibration::Softmax,
        CalibrationHeader::Shares => Calibration::Shares,
        CalibrationHeader::Laplace { scale } => Calibration::Laplace { scale },
        CalibrationHeader::Density => {
            Calibration::Density { marks: arrays.take_list("calibration.marks")? }
        }
    })
}
