//! Writes models that LIBLINEAR's programs read; what would change predictions is refused.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::super::libsvm::whole_label;
use super::{CRAMMER_SINGER, FIRST_KEY, SOLVERS};
use crate::data::memory;
use crate::data::read::IndexBase;
use crate::data::write::push_shortest;
use crate::error::{Error, Result};
use crate::machine::specification::Value;
use crate::machine::{MachineKind, Model};

/// The text of a model's file, the numbers still to be printed.
pub(in super::super) struct Text {
    head: String,
    functions: usize,
    /// One line for every feature and the bias, one number for every function.
    weights: Vec<f64>,
}

impl Text {
    /// Prints the text.
    ///
    /// # Errors
    /// When the writer refuses.
    pub(in super::super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(self.head.as_bytes())?;
        let mut text = String::new();
        for line in self.weights.chunks_exact(self.functions) {
            text.clear();
            for weight in line {
                push_shortest(&mut text, *weight);
                text.push(' ');
            }
            text.push('\n');
            out.write_all(text.as_bytes())?;
        }
        Ok(())
    }
}

/// The text of a valid model's file.
pub(in super::super) fn text(model: &Model) -> Result<Text> {
    let Some(linear) = model.linear() else {
        return refuse(format!("LIBLINEAR has no {} machine", model.kind));
    };
    if model.kind.is_ranker() {
        return refuse(format!("LIBLINEAR has no {} machine", model.kind));
    }
    if model.preparation.scaler.is_some() {
        return refuse("LIBLINEAR's format has no place for the scaling of the features".into());
    }
    if model.preparation.map.is_some() {
        return refuse("LIBLINEAR's format has no place for approximate features".into());
    }
    if model.preparation.index_base == Some(IndexBase::Zero) {
        return refuse("LIBLINEAR counts features from 1, the training file from 0".into());
    }
    let mut head = String::new();
    let classes = model.classes.as_ref().map(|table| &table.names);
    let _ = writeln!(head, "solver_type {}", solver(model));
    let _ = writeln!(head, "nr_class {}", classes.map_or(2, Vec::len));
    if let Some(names) = classes {
        head.push_str("label");
        for name in names {
            let _ = write!(head, " {}", whole_label(name)?);
        }
        head.push('\n');
    }
    let _ = writeln!(head, "nr_feature {}", model.features());
    let novelty = model.kind == MachineKind::LinearOneClass;
    let offsets = &linear.offsets;
    let biased = !novelty && offsets.iter().any(|offset| *offset != 0.0);
    let _ = writeln!(head, "bias {}", if biased { 1 } else { -1 });
    if novelty {
        head.push_str("rho ");
        push_shortest(&mut head, offsets[0]);
        head.push('\n');
    }
    head.push_str("w\n");
    let functions = offsets.len();
    let bytes = 8 * model.features() as u128 * functions as u128;
    memory::check(|| format!("LIBLINEAR's file of {} features", model.features()), bytes)?;
    let mut weights = vec![0.0; model.features() * functions];
    for f in 0..functions {
        linear.weights.for_each_nonzero(f, |j, weight| weights[j * functions + f] = weight);
    }
    if biased {
        weights.extend(offsets.iter().map(|offset| -offset));
    }
    Ok(Text { head, functions, weights })
}

fn refuse<T>(reason: String) -> Result<T> {
    Err(Error::model(format!("{reason}; save it in the native format instead")))
}

/// The solver of LIBLINEAR's that is named, or else one that solves the model's problem.
fn solver(model: &Model) -> &'static str {
    let parameter = |name: &str| {
        let parameters = model.training.as_ref().map(|training| &training.parameters);
        let found = parameters.and_then(|list| list.iter().find(|(key, _)| key == name));
        match found {
            Some((_, Value::Text(text))) => text.as_str(),
            _ => "",
        }
    };
    let wanted = parameter(FIRST_KEY);
    if let Some((name, _)) = SOLVERS.iter().find(|(name, _)| *name == wanted) {
        return name;
    }
    let sparse = parameter("penalty") == "l1";
    let two_functions = model.outputs() == 2;
    match model.kind {
        MachineKind::Logistic if sparse => "L1R_LR",
        MachineKind::Logistic => "L2R_LR",
        MachineKind::LinearSvr if parameter("loss") == "squared-tube" => "L2R_L2LOSS_SVR",
        MachineKind::LinearSvr => "L2R_L1LOSS_SVR_DUAL",
        MachineKind::LinearOneClass => "ONECLASS_SVM",
        _ if two_functions || parameter("multiclass") == "crammer-singer" => CRAMMER_SINGER,
        _ if sparse => "L1R_L2LOSS_SVC",
        _ if parameter("loss") == "hinge" => "L2R_L1LOSS_SVC_DUAL",
        _ => "L2R_L2LOSS_SVC_DUAL",
    }
}
