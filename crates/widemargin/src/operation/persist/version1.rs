//! Files of format version 1, in which every model was support vectors and decision functions over
//! them: means, rows, centres and weight vectors were stored as support vectors too.
//!
//! The header becomes that of the body, and the arrays get the names that the body reads.

use serde::Deserialize;
use serde_json::{Value, json};

use super::header::{CalibrationHeader, ClassHeader, TrainingHeader};
use super::native::{header_error, take_calibration};
use crate::machine::{
    Body, KernelExpansion, Linear, MachineKind, Model, PartsReader, Preparation, arranged,
};

/// Everything of a model but its arrays.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    machine: MachineKind,
    kernel: Value,
    precision: Value,
    features: usize,
    self_weight: f64,
    classes: Option<ClassHeader>,
    calibration: Option<CalibrationHeader>,
    #[serde(default)]
    classic: Option<Classic>,
    #[serde(default)]
    preparation: Preparation,
    feature_names: Option<Vec<String>>,
    training: Option<TrainingHeader>,
}

/// What classical machines kept beside their arrays.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Classic {
    Discriminant { separability: f64, regularisation: f64 },
    Mixtures { covariance: Value, components: Vec<usize>, log_likelihood: f64 },
    Neighbours { k: usize, weighting: Value, search: Value },
    Windows { window: Value, input: Value },
    Centres,
}

/// The model of a header and arrays.
pub(super) fn read(header: &str, arrays: &mut PartsReader<'_>) -> Result<Model, String> {
    let mut header: Header = serde_json::from_str(header).map_err(|error| header_error(&error))?;
    let self_weight = f64::from(u8::from(header.machine == MachineKind::Svdd));
    if header.self_weight != self_weight {
        let found = header.self_weight;
        return Err(format!("expected self weight {self_weight}, found {found}"));
    }
    if header.classic.is_some() != matches!(header.machine, MachineKind::Classic(_)) {
        return Err(format!(
            "expected the part of a classical machine for {} only",
            header.machine
        ));
    }
    let calibration = take_calibration(arrays, header.calibration.take())?;
    let body = read_body(&mut header, arrays)?;
    Ok(Model {
        classes: header.classes.map(Into::into),
        calibration,
        preparation: header.preparation,
        feature_names: header.feature_names,
        training: header.training.map(Into::into),
        ..Model::new(header.machine, body)
    })
}

fn read_body(header: &mut Header, arrays: &mut PartsReader<'_>) -> Result<Body, String> {
    let features = header.features;
    let expansion = json!({
        "kernel": header.kernel.take(),
        "precision": header.precision.take(),
        "features": features,
    });
    let Some(classic) = header.classic.take() else {
        return match header.machine {
            MachineKind::Svdd => Body::read("ball", expansion, arrays),
            kind if MachineKind::LINEAR.contains(&kind) => read_linear(expansion, arrays),
            _ => Body::read("kernel-expansion", expansion, arrays),
        };
    };
    let (name, vectors, parts) = match classic {
        Classic::Discriminant { separability, regularisation } => {
            for name in ["ratios", "feature_scores"] {
                arrays.rename(&format!("classic.{name}"), name);
            }
            let header = json!({
                "expansion": expansion,
                "separability": separability,
                "regularisation": regularisation,
            });
            return Body::read("discriminant", header, arrays);
        }
        Classic::Mixtures { covariance, components, log_likelihood } => (
            "mixtures",
            "means",
            json!({
                "features": features,
                "covariance": covariance,
                "components": components,
                "log_likelihood": log_likelihood,
            }),
        ),
        Classic::Neighbours { k, weighting, search } => (
            "neighbours",
            "rows",
            json!({ "features": features, "k": k, "weighting": weighting, "search": search }),
        ),
        Classic::Windows { window, input } => {
            arrays.rename("support.rows", "rows.training");
            ("windows", "rows", json!({ "features": features, "window": window, "input": input }))
        }
        Classic::Centres => ("centres", "centres", json!({ "features": features })),
    };
    for part in ["values", "indptr", "indices"] {
        arrays.rename(&format!("support.{part}"), &format!("{vectors}.{part}"));
    }
    for part in ["weights", "covariances", "log_priors", "loss", "targets", "whitening", "widths"] {
        arrays.rename(&format!("classic.{part}"), part);
    }
    for empty in ["support.rows", "functions.offsets", "functions.parts", "functions.coefficients"]
    {
        arrays.take_empty(empty)?;
    }
    Body::read(name, parts, arrays)
}

/// Weight vectors that were support vectors, each with a coefficient of 1 or −1.
fn read_linear(header: Value, arrays: &mut PartsReader<'_>) -> Result<Body, String> {
    let Body::KernelExpansion(read) = Body::read("kernel-expansion", header, arrays)? else {
        return Err("expected weights, found another body".into());
    };
    let KernelExpansion { support, functions, .. } = read;
    let mut signs = Vec::with_capacity(functions.len());
    for (f, function) in functions.iter().enumerate() {
        match &function.parts[..] {
            [part] if part.support == (f..f + 1) && part.coefficients[0].abs() == 1.0 => {
                signs.push((f, part.coefficients[0]));
            }
            _ => {
                let message =
                    "expected one weight vector per function, in order, found another shape";
                return Err(message.into());
            }
        }
    }
    if support.rows() != functions.len() {
        let (expected, found) = (functions.len(), support.rows());
        return Err(format!("weight vectors: expected {expected}, found {found}"));
    }
    let offsets = functions.iter().map(|function| function.offset).collect();
    let weights = match signs.iter().all(|(_, sign)| *sign == 1.0) {
        true => support,
        false => arranged(&support, &signs),
    };
    Ok(Linear { weights, offsets }.into())
}
