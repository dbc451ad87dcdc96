//! The family of bodies: what a model has learnt, one type for every way to compute decision values.
//!
//! A body is one type in one file that implements [`ModelBody`]; the list at the end of this file
//! is the only other place that knows it.

use std::ops::Range;

use serde_json::Value;

use super::parts::{PartsReader, PartsResult, PartsWriter};
use super::{Ball, KernelExpansion, Linear, MachineKind, Model};
use crate::context::Context;
use crate::data::Matrix;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::machine::classic::{Centres, Discriminant, Mixtures, Neighbours, Windows};
use crate::machine::clustering::MarginClusters;
use crate::machine::parameters::Precision;
use crate::machine::sequence::{Chain, HiddenMarkov};
use crate::machine::specification;

/// What every body can do; `model` is the model that it is part of.
pub(in crate::machine) trait ModelBody {
    /// Whether machines of this kind have such a body.
    fn suits(&self, kind: MachineKind) -> bool;

    /// The vectors that it keeps; as many columns as features.
    fn vectors(&self) -> &Matrix;

    /// Number of decision values of a row.
    fn outputs(&self, model: &Model) -> usize;

    /// Checks everything that prediction relies on, but for the vectors' being finite.
    fn check(&self, model: &Model) -> Result<()>;

    /// Its properties, for people.
    fn describe(&self, model: &Model) -> Description;

    /// What it holds beside vectors and functions, by name.
    fn attributes(&self, _model: &Model) -> Attributes {
        Vec::new()
    }

    /// Makes it ready to compute decision values.
    fn prepare(&self, model: &Model, context: &Context) -> Result<Box<dyn Prepared>>;

    /// Writes its arrays; returns everything else, for the header of the file.
    fn write(&self, parts: &mut PartsWriter) -> PartsResult<Value>;

    /// Reads what [`write`](Self::write) wrote; [`check`](Self::check) is still to come.
    fn read(header: Value, parts: &mut PartsReader<'_>) -> PartsResult<Self>
    where
        Self: Sized;

    /// Support vectors that can be replaced by others with nothing else depending on them.
    fn replaceable(&self) -> Option<&KernelExpansion> {
        None
    }

    /// The weights, for linear decision functions.
    fn linear(&self) -> Option<&Linear> {
        None
    }

    /// The body whose decision values are the projections on its directions, if it has directions.
    fn projection(&self) -> Option<Body> {
        None
    }

    /// Whether its vectors may be weights of features that a feature map makes.
    fn takes_mapped_features(&self) -> bool {
        false
    }

    /// Whether its outputs are scores of all classes that become probabilities without a calibration that was
    /// learnt.
    fn has_class_scores(&self) -> bool {
        false
    }

    /// Whether its outputs are logarithms of weighted densities.
    fn has_density(&self) -> bool {
        false
    }

    /// The loss of deciding for each class when each is true, class by class; empty where the largest output
    /// decides.
    fn losses(&self) -> &[f64] {
        &[]
    }

    /// The expansion over support vectors, if it is one or holds one.
    fn expansion(&self) -> Option<&KernelExpansion> {
        None
    }

    /// The same, to be changed.
    fn expansion_mut(&mut self) -> Option<&mut KernelExpansion> {
        None
    }

    /// Training row of every vector; empty when not known.
    fn training_rows(&self) -> &[usize] {
        &[]
    }

    /// Replaces every training row i by `rows[i]`.
    fn rename_rows(&mut self, _rows: &[usize]) {}

    /// The offset ρ of every decision function.
    fn offsets(&self) -> Vec<f64> {
        Vec::new()
    }

    /// The offset of one of them, to be changed.
    fn offset_mut(&mut self, _function: usize) -> Option<&mut f64> {
        None
    }

    /// Puts decision functions and vectors in another order, the functions multiplied with a sign
    /// each; returns whether it can.
    fn reorder(&mut self, _functions: &[(usize, f64)], _vectors: &[usize]) -> bool {
        false
    }

    /// Appends features that are 0 in all its vectors; returns whether it can.
    fn widen(&mut self, _features: usize) -> bool {
        false
    }
}

/// Properties of a body by name.
pub(in crate::machine) type Attributes = Vec<(&'static str, specification::Value)>;

/// A body made ready to compute decision values.
pub(in crate::machine) trait Prepared: Send + Sync {
    /// Writes decision values; the rows are neighbours unless [`takes_any_rows`](Self::takes_any_rows).
    fn evaluate(&self, evaluation: Evaluation<'_>) -> Result<()>;

    /// Writes the decision values of any rows at once, if the backend of the context does that.
    fn evaluate_on_backend(
        &self,
        _model: &Model,
        _queries: &Matrix,
        _rows: &[usize],
        _out: &mut [f64],
    ) -> Option<Result<()>> {
        None
    }

    /// Whether rows may be any list; the number of features is then checked by `evaluate`.
    fn takes_any_rows(&self) -> bool {
        false
    }

    /// Whether `evaluate` refuses numbers that are not finite.
    fn refuses_non_finite(&self) -> bool {
        false
    }

    /// The k nearest vectors of neighbouring rows, for bodies that look for them.
    fn nearest(
        &self,
        _queries: &Matrix,
        _rows: Range<usize>,
        _k: usize,
        _context: &Context,
    ) -> Result<Option<Vec<Nearest>>> {
        Ok(None)
    }
}

/// Rows whose decision values are asked for.
pub(in crate::machine) struct Evaluation<'a> {
    pub(in crate::machine) queries: &'a Matrix,
    /// Rows of `queries`.
    pub(in crate::machine) rows: &'a [usize],
    /// Room for the values, row after row, which are 0.
    pub(in crate::machine) out: &'a mut [f64],
    pub(in crate::machine) scratch: &'a mut Scratch,
    pub(in crate::machine) context: &'a Context,
}

/// Distances and places of the nearest vectors of a row, nearest first.
pub(in crate::machine) type Nearest = Vec<(f64, usize)>;

/// Memory that the tasks of one thread use again and again.
#[derive(Default)]
pub(in crate::machine) struct Scratch {
    pub(super) single: Vec<f32>,
    pub(super) double: Vec<f64>,
    pub(super) sums: Vec<f64>,
}

/// Neighbouring rows as a range.
pub(in crate::machine) fn run_of(rows: &[usize]) -> Range<usize> {
    let first = rows.first().copied().unwrap_or(0);
    first..first + rows.len()
}

/// The properties of a body, for people.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Description {
    /// What its vectors are: support vectors, weights, components, rows, centres.
    pub vectors: &'static str,
    /// The kernel, for bodies that have one; linear for weights.
    pub kernel: Option<Kernel>,
    /// Number format that decision values are computed in.
    pub precision: Precision,
    /// Number of decision functions.
    pub functions: usize,
    /// How many of its numbers are not 0, where its vectors are weights of features.
    pub nonzeros: Option<usize>,
    /// Whether its training minimises an objective that has a dual.
    pub has_dual: bool,
    /// What else is worth knowing: a name and a value each.
    pub details: Vec<(&'static str, String)>,
}

impl Description {
    /// Of a body without a kernel and without decision functions.
    pub(in crate::machine) fn of_vectors(vectors: &'static str) -> Self {
        Self {
            vectors,
            kernel: None,
            precision: Precision::F64,
            functions: 0,
            nonzeros: None,
            has_dual: false,
            details: Vec::new(),
        }
    }
}

macro_rules! family {
    ($($(#[$doc:meta])* $body:ident = $name:literal,)+) => {
        /// What a model has learnt.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Body {
            $($(#[$doc])* $body($body),)+
        }

        impl Body {
            /// The names of all bodies in files.
            pub const NAMES: &[&str] = &[$($name),+];

            /// Its name in files.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$body(_) => $name,)+
                }
            }

            pub(in crate::machine) fn get(&self) -> &dyn ModelBody {
                match self {
                    $(Self::$body(body) => body,)+
                }
            }

            pub(in crate::machine) fn get_mut(&mut self) -> &mut dyn ModelBody {
                match self {
                    $(Self::$body(body) => body,)+
                }
            }

            /// Reads the body of this name from the header and the arrays of a file.
            pub(crate) fn read(
                name: &str,
                header: Value,
                parts: &mut PartsReader<'_>,
            ) -> PartsResult<Self> {
                match name {
                    $($name => $body::read(header, parts).map(Self::$body),)+
                    _ => Err(format!(
                        "expected a model body of one of {}, found '{name}': a newer widemargin \
                         wrote this file",
                        Self::NAMES.join(", ")
                    )),
                }
            }
        }

        $(impl From<$body> for Body {
            fn from(body: $body) -> Self {
                Self::$body(body)
            }
        })+
    };
}

family! {
    /// Sums of kernel values with support vectors.
    KernelExpansion = "kernel-expansion",
    /// The smallest ball around the rows, in the feature space of a kernel.
    Ball = "ball",
    /// Weights of the features.
    Linear = "linear",
    /// Directions that separate classes, of both Fisher discriminants.
    Discriminant = "discriminant",
    /// Mixtures of Gaussians.
    Mixtures = "mixtures",
    /// Rows that vote: k-nearest neighbours.
    Neighbours = "neighbours",
    /// Parzen windows around rows.
    Windows = "windows",
    /// Centres of clusters.
    Centres = "centres",
    /// Clusters with a margin between them.
    MarginClusters = "margin-clusters",
    /// Scores of tags and of pairs of neighbouring tags.
    Chain = "chain",
    /// A hidden Markov model.
    HiddenMarkov = "hidden-markov",
}

impl Body {
    /// The vectors that it keeps: support vectors, weight vectors, means, rows or centres.
    pub fn vectors(&self) -> &Matrix {
        self.get().vectors()
    }

    /// Writes its arrays; returns everything else.
    pub(crate) fn write(&self, parts: &mut PartsWriter) -> PartsResult<Value> {
        self.get().write(parts)
    }
}
