//! Saddle problems over correlation matrices (the elliptope): margins whose labels are unknown.
//!
//! ```text
//! minimise over X ⪰ 0, diag X = 1   F(X) = max over 0 ≤ λ ≤ 1 of  Σ ℓᵢλᵢ − ½ Σ Gᵢⱼ λᵢλⱼ Mᵢⱼ + Σ pᵢ(1 − ℓᵢ)
//! subject to ‖Σ wᵢuᵢ‖² ≤ limit  or  Σ ℓᵢ ≥ least,
//!            Mᵢⱼ = uᵢ·uⱼ,  ℓᵢ = uᵢ·uᵢ,  uᵢ = aᵢ v₀ + bᵢ v₍ₖ₍ᵢ₎₎,  X = VVᵀ
//! ```
//!
//! Two-class maximum-margin clustering has uᵢ = vᵢ (Xu, Neufeld, Larson and Schuurmans 2005); where some labels are
//! known, their rows are ±v₀; rows whose labels are equal or opposite share a vector ([`Ties`]). Machines that may leave rows out have uᵢ = ½(v₀ + vᵢ), so that ℓᵢ = Mᵢᵢ is the share
//! ηᵢ of row i that counts and M ⪰ ηηᵀ (Xu, Crammer and Schuurmans 2006); what is left out costs p, or at least so
//! much has to count. F is convex in X. [`relax`] descends over V with few columns (Burer and Monteiro
//! 2003) by Riemannian trust-region steps (Absil, Baker and Gallivan 2007), the inner quadratic program solved to rounding, and proves how far from the least value it is: for every λ,
//! multiplier t ≥ 0 and vector z the number a + Σz + N λ_min(A − diag z) is a lower bound, a + ⟨A, X⟩ being
//! the Lagrangian at (λ, t). Where that leaves a gap and there are not too many rows, an interior point of the dual closes
//! it. [`Signs`] makes labels of V, and [`enumerate`] finds the best of few rows by branch and
//! bound.

mod barrier;
mod box_qp;
mod certificate;
mod enumerate;
mod interior;
mod problem;
mod product;
mod relax;
mod saddle;
mod signs;
mod ties;
mod trust_region;

pub(crate) use box_qp::BoxQp;
pub(crate) use enumerate::{Labelling, enumerate};
pub(crate) use problem::Problem;
pub(crate) use relax::{Options, Relaxation, relax};
pub(crate) use signs::{Signs, centred_eigenvectors, train_and_relabel};
pub(crate) use ties::Ties;
