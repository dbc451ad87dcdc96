//! A model as a framed `safetensors` document: a JSON header and named arrays.
//!
//! The header names the machine and the body and holds what all models share; which arrays there
//! are is the body's business, but for those of the calibration (`calibration.*`).

use std::path::Path;

use super::header::{CalibrationHeader, Header};
use super::{envelope, version1};
use crate::error::{self, Error};
use crate::machine::{Body, Calibration, MachineKind, Model, PartsReader, PartsWriter, reason};

/// The bytes of a valid model's file.
pub(super) fn encode(model: &Model) -> error::Result<Vec<u8>> {
    encode_document(model)
        .map(|document| envelope::seal(&document))
        .map_err(|message| Error::Model { message })
}

/// The model in a file's bytes.
pub(super) fn decode(path: &Path, bytes: &[u8]) -> error::Result<Model> {
    let (version, document) = envelope::open(path, bytes)?;
    decode_document(version, document)
        .and_then(|model| model.validate().map(|()| model).map_err(reason))
        .map_err(|message| Error::Format { path: path.into(), message })
}

fn encode_document(model: &Model) -> Result<Vec<u8>, String> {
    let mut arrays = PartsWriter::default();
    let parts = model.body.write(&mut arrays)?;
    let header = Header {
        machine: model.kind.name().to_owned(),
        body: model.body.name().to_owned(),
        parts,
        classes: model.classes.as_ref().map(Into::into),
        calibration: model.calibration.as_ref().map(|c| put_calibration(&mut arrays, c)),
        preparation: model.preparation.clone(),
        feature_names: model.feature_names.clone(),
        training: model.training.as_ref().map(Into::into),
    };
    arrays.finish(serde_json::to_string(&header).map_err(|error| error.to_string())?)
}

fn decode_document(version: u32, document: &[u8]) -> Result<Model, String> {
    let (mut arrays, header) = PartsReader::open(document)?;
    let model = match version {
        1 => version1::read(&header, &mut arrays)?,
        _ => read(&header, &mut arrays)?,
    };
    arrays.finish()?;
    Ok(model)
}

fn read(header: &str, arrays: &mut PartsReader<'_>) -> Result<Model, String> {
    let header: Header = serde_json::from_str(header).map_err(|error| header_error(&error))?;
    let kind: MachineKind = header.machine.parse().map_err(|_| {
        let names: Vec<&str> = MachineKind::all().map(MachineKind::name).collect();
        format!(
            "expected a machine of one of {}, found '{}': a newer widemargin wrote this file",
            names.join(", "),
            header.machine
        )
    })?;
    Ok(Model {
        classes: header.classes.map(Into::into),
        calibration: take_calibration(arrays, header.calibration)?,
        preparation: header.preparation,
        feature_names: header.feature_names,
        training: header.training.map(Into::into),
        ..Model::new(kind, Body::read(&header.body, header.parts, arrays)?)
    })
}

pub(super) fn header_error(error: &serde_json::Error) -> String {
    format!("header: {error}").replace('`', "'")
}

fn put_calibration(arrays: &mut PartsWriter, calibration: &Calibration) -> CalibrationHeader {
    match calibration {
        Calibration::Sigmoid { a, b } => {
            arrays.put_list("calibration.a", a.iter().copied());
            arrays.put_list("calibration.b", b.iter().copied());
            CalibrationHeader::Sigmoid
        }
        Calibration::Isotonic { knots } => {
            let counts: Vec<usize> = knots.iter().map(Vec::len).collect();
            arrays.put_indices("calibration.counts", &counts);
            let all: Vec<(f64, f64)> = knots.iter().flatten().copied().collect();
            let values = all.iter().flat_map(|&(value, probability)| [value, probability]);
            arrays.put("calibration.knots", vec![all.len(), 2], values);
            CalibrationHeader::Isotonic
        }
        Calibration::Laplace { scale } => CalibrationHeader::Laplace { scale: *scale },
        Calibration::Density { marks } => {
            arrays.put_list("calibration.marks", marks.iter().copied());
            CalibrationHeader::Density
        }
        Calibration::Softmax => CalibrationHeader::Softmax,
        Calibration::Shares => CalibrationHeader::Shares,
    }
}

pub(super) fn take_calibration(
    arrays: &mut PartsReader<'_>,
    kind: Option<CalibrationHeader>,
) -> Result<Option<Calibration>, String> {
    let Some(kind) = kind else { return Ok(None) };
    Ok(Some(match kind {
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
    }))
}
