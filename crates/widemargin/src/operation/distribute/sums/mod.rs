//! Linear machines over rows at several sites: only sums leave a site.
//!
//! `min ½‖w‖² + Σ Cᵢ ℓ(⟨w, xᵢ⟩, tᵢ)` with a smooth loss is minimised by Newton's method at the coordinator
//! ([`Descent`]), which asks all sites for the loss, its gradient, products with its Hessian and losses
//! along a step; each is a sum over rows ([`SumsSite`]). The duality gap over all rows is the certificate.

mod center;
mod descent;
mod machine;
mod site;

pub(super) use center::SumsCoordinator;
pub(super) use machine::LinearTask;
pub(super) use site::SumsSite;

use serde::{Deserialize, Serialize};

/// SumRequest the coordinator asks of a site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Request {
    serial: u32,
    function: u32,
    /// Serial number of the request that brought the weights.
    point: u32,
    /// The weights, for a site that may not have them.
    weights: Option<Vec<f64>>,
    what: SumRequest,
}

/// Which sums.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum SumRequest {
    /// Σ Cℓ, the sum of its conjugates at the slopes, its gradient, and the diagonal of its Hessian.
    Point,
    /// The Hessian of the loss times a direction.
    Product(Vec<f64>),
    /// Σ Cℓ at some lengths along a direction.
    Along(Vec<f64>, Vec<f64>),
}

/// SumRequest a site responds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Response {
    serial: u32,
    /// None from a site that does not have the weights: it has started again.
    sums: Option<Vec<f64>>,
    /// Rows of the site.
    rows: u64,
}
