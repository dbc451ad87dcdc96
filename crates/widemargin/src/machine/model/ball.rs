//! The ball of the support vector data description (Tax and Duin 2004): a row is inside when
//! f(x) = Σ cₛ K(x, xₛ) − K(x, x) − ρ is positive, which compares its squared distance from the
//! centre with the squared radius.

use serde_json::Value;

use super::parts::{PartsReader, PartsResult, PartsWriter};
use super::validate::check_length;
use super::{Description, KernelExpansion, MachineKind, Model, ModelBody, Prepared};
use crate::context::Context;
use crate::data::Matrix;
use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// The smallest ball around the rows: Σ cₛ K(x, xₛ) − ρ, to which −K(x, x) is added.
#[derive(Clone, Debug, PartialEq)]
pub struct Ball(pub KernelExpansion);

impl ModelBody for Ball {
    fn suits(&self, kind: MachineKind) -> bool {
        kind == MachineKind::Svdd
    }

    fn vectors(&self) -> &Matrix {
        self.0.vectors()
    }

    fn outputs(&self, _model: &Model) -> usize {
        1
    }

    fn check(&self, model: &Model) -> Result<()> {
        self.0.check_parts(model)?;
        check_length("decision functions", 1, self.0.functions.len())
    }

    fn describe(&self, model: &Model) -> Description {
        self.0.describe(model)
    }

    fn prepare(&self, _model: &Model, context: &Context) -> Result<Box<dyn Prepared>> {
        if self.0.kernel == Kernel::Precomputed {
            return Err(Error::model(
                "SVDD with a precomputed kernel cannot predict: K(x, x) is not given",
            ));
        }
        self.0.prepared(true, context)
    }

    fn write(&self, parts: &mut PartsWriter) -> PartsResult<Value> {
        self.0.write(parts)
    }

    fn read(header: Value, parts: &mut PartsReader<'_>) -> PartsResult<Self> {
        KernelExpansion::read(header, parts).map(Self)
    }

    fn expansion(&self) -> Option<&KernelExpansion> {
        Some(&self.0)
    }

    fn replaceable(&self) -> Option<&KernelExpansion> {
        Some(&self.0)
    }

    fn expansion_mut(&mut self) -> Option<&mut KernelExpansion> {
        Some(&mut self.0)
    }

    fn training_rows(&self) -> &[usize] {
        self.0.training_rows()
    }

    fn rename_rows(&mut self, rows: &[usize]) {
        self.0.rename_rows(rows);
    }

    fn offsets(&self) -> Vec<f64> {
        self.0.offsets()
    }

    fn offset_mut(&mut self, function: usize) -> Option<&mut f64> {
        self.0.offset_mut(function)
    }

    fn widen(&mut self, features: usize) -> bool {
        self.0.widen(features)
    }
}
