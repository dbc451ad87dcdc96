//! The all-in-one multi-class machines: one score per class, all learnt together.
//!
//! They minimise `½ Σ_c ‖w_c‖² + C Σᵢ L(f(xᵢ), yᵢ)` where the loss L joins margin violations as the
//! machine says, without offsets or with one per class, and predict the class of the largest
//! score (Doğan, Glasmachers and Igel, JMLR 17(45), 2016; Trinh 2012).

mod fit;
mod table;

pub use fit::MulticlassSvc;
pub(super) use fit::{class_model, declared_classes};
pub use table::AllInOne;
