//! How two features combine into the sum a kernel is a function of.
//!
//! Every step is symmetric to the last bit, and the steps over sparse rows add exactly 0 where
//! either feature is 0, so that a sum over the non-zeros of one row equals the sum over the other's.

use crate::numeric::simd::{Lanes, Real};

/// The sum that a kernel needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pairing {
    /// Σ x z
    Product,
    /// Σ |x − z|
    Distance,
    /// Σ (x − z)² / (x + z)
    ChiSquared,
}

/// Adds what one pair of features contributes.
pub(super) trait Step {
    /// Whether any transform may follow and tiles of all sizes pay for their code; else the sum is
    /// that of a radial kernel, and tiles are of one row or a whole group.
    const COMMON: bool = false;

    /// `sum` + contribution of `x` and `z`
    fn add<V: Lanes<Element: Real>>(x: V, z: V, sum: V) -> V;
}

/// x z
pub(super) struct Product;

/// |x − z|
pub(super) struct Distance;

/// (x − z)² / (x + z), 0/0 being 0
pub(super) struct ChiSquared;

/// |x| + |z| − |x − z|, by which ‖x‖₁ + ‖z‖₁ exceeds ‖x − z‖₁
pub(super) struct DistanceShared;

/// x z / (x + z), of which ‖x‖₁ + ‖z‖₁ exceeds the χ² distance by four
pub(super) struct ChiSquaredShared;

impl Step for Product {
    const COMMON: bool = true;

    #[inline(always)]
    fn add<V: Lanes<Element: Real>>(x: V, z: V, sum: V) -> V {
        x.mul_add(z, sum)
    }
}

impl Step for Distance {
    #[inline(always)]
    fn add<V: Lanes<Element: Real>>(x: V, z: V, sum: V) -> V {
        sum.add(x.sub(z).abs())
    }
}

impl Step for ChiSquared {
    #[inline(always)]
    fn add<V: Lanes<Element: Real>>(x: V, z: V, sum: V) -> V {
        let difference = x.sub(z);
        let total = x.add(z).max(x.fill(V::Element::MIN_POSITIVE));
        difference.mul_add(difference.div(total), sum)
    }
}

impl Step for DistanceShared {
    #[inline(always)]
    fn add<V: Lanes<Element: Real>>(x: V, z: V, sum: V) -> V {
        sum.add(x.abs().add(z.abs()).sub(x.sub(z).abs()))
    }
}

impl Step for ChiSquaredShared {
    #[inline(always)]
    fn add<V: Lanes<Element: Real>>(x: V, z: V, sum: V) -> V {
        let (low, high) = (x.min(z), x.max(z));
        let total = x.add(z).max(x.fill(V::Element::MIN_POSITIVE));
        low.mul_add(high.div(total), sum)
    }
}
