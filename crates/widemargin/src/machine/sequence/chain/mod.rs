//! The large-margin chain: a support vector machine for sequences of tags (max-margin Markov network; Taskar,
//! Guestrin and Koller, 2004; Tsochantaridis, Joachims, Hofmann and Altun, 2005),
//!
//! ```text
//! minimise over w   ½‖w‖² + C Σᵢ max over u [Δ(u, yⁱ) + s(xⁱ, u) − s(xⁱ, yⁱ)]
//! ```
//!
//! where s sums scores of every tag at its position, linear in the features or in those of a kernel, and a score of
//! every pair of neighbouring tags; w holds both. Δ sums the losses of the positions.

mod alternation;
mod blocks;
mod body;
mod emissions;
mod label;
mod n_best;
mod tags;

use std::time::Instant;

pub use alternation::{AlternationFit, ChainAlternation};
pub use body::{Chain, TagScores};
pub use label::{Labeller, Labelling, PackedChain};
pub use tags::{TagConstraints, TagLoss};

pub(super) use emissions::sparse as sparse_rows;

use blocks::{ChainBlocks, ChainWeights};
use emissions::{Expansion, KernelEmissions, LinearEmissions};
use tags::TagRules;

use super::lattice::padded;
use crate::context::Context;
use crate::data::{Classes, Csr, Matrix, NO_TAG, TaggedSequences, memory};
use crate::error::{Error, Result};
use crate::kernel::{Gram, Kernel};
use crate::machine::Precision;
use crate::machine::model::{
    DecisionFunction, KernelExpansion, MachineKind, Model, Part, Training,
};
use crate::machine::names::defaults;
use crate::machine::training::support_table;
use crate::outcome::Outcome;
use crate::solver::structured::{self, Options};

/// A support vector machine for the tags of sequences.
///
/// ```
/// use widemargin::data::{Dense, Label, Matrix, TaggedSequences};
/// use widemargin::machine::Body;
/// use widemargin::machine::sequence::ChainSvc;
/// use widemargin::Context;
///
/// // Two sequences; the feature says nothing about the last position, its neighbour does.
/// let rows = Dense::new(6, 1, vec![1.0, 1.0, 0.0, -1.0, -1.0, 0.0])?;
/// let tags: Vec<Label> = ["a", "a", "a", "b", "b", "b"].map(|t| Label::Text(t.into())).to_vec();
/// let data = TaggedSequences::new(Matrix::DenseF64(rows), vec![3, 3])?.with_tags(&tags)?;
/// let context = Context::new();
/// let model = ChainSvc { c: 10.0, ..ChainSvc::default() }.fit(&data, &context)?;
/// let Body::Chain(chain) = &model.body else { panic!() };
/// let found = chain.labeller(&context)?.label(&data)?;
/// assert_eq!(found[0].tags, [0, 0, 0]);
/// assert_eq!(found[1].tags, [1, 1, 1]);
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ChainSvc {
    /// Price C of the loss of a sequence.
    pub c: f64,
    /// The kernel of positions; the linear one has explicit weights, others hold all kernel values between positions
    /// in memory.
    pub kernel: Kernel,
    /// The loss of a wrong tag.
    pub loss: TagLoss,
    /// Which tags may follow which.
    pub constraints: TagConstraints,
    /// Whether sequences are cut where a tag is not known; otherwise such sequences are refused.
    pub cut_at_unknown: bool,
    /// Duality gap, as a share of the primal objective, that ends the training.
    pub tol: f64,
    /// Most passes over the sequences.
    pub max_iterations: usize,
}

defaults!(ChainSvc {
    c: 0.1,
    kernel: Kernel::Linear,
    loss: TagLoss::Hamming,
    constraints: TagConstraints::None,
    cut_at_unknown: false,
    tol: 0.01,
    max_iterations: 100,
});

impl ChainSvc {
    /// Learns from sequences with tags.
    ///
    /// # Errors
    /// Parameters out of range, tags that are not known or break the constraints, a single tag, features that are not
    /// finite.
    pub fn fit(&self, data: &TaggedSequences, context: &Context) -> Result<Model> {
        let started = Instant::now();
        self.check()?;
        let cut;
        let data = match self.cut_at_unknown {
            true => {
                cut = data.known_runs()?;
                &cut
            }
            false => data,
        };
        let tags = known_tags(data)?;
        crate::data::check_two_classes(&tags.names)?;
        data.rows().validate()?;
        let rules = TagRules::new(&tags.names, &self.loss, &self.constraints)?;
        rules.check(data, &tags.codes, &tags.names)?;
        let solved = context.install(|| match &self.kernel {
            Kernel::Linear => self.fit_linear(data, tags, &rules, context),
            kernel => self.fit_kernel(kernel, data, tags, &rules, context),
        })?;
        let Solved { chain, names, outcome } = solved;
        let parameters =
            [("c", self.c.into()), ("tol", self.tol.into()), ("sequences", data.count().into())];
        Ok(Model {
            feature_names: names,
            training: Some(Training::new(outcome, data.positions(), started, parameters)),
            ..Model::new(MachineKind::ChainSvc, chain)
        })
    }

    fn check(&self) -> Result<()> {
        Error::check_positive("c", self.c)?;
        Error::check_positive("tol", self.tol)?;
        if self.max_iterations == 0 {
            return Err(Error::parameter("max_iterations", "at least 1", 0));
        }
        self.kernel.validate()
    }

    fn options(&self) -> Options {
        Options { tol: self.tol, max_passes: self.max_iterations }
    }

    fn fit_linear(
        &self,
        data: &TaggedSequences,
        tags: &Classes,
        rules: &TagRules,
        context: &Context,
    ) -> Result<Solved> {
        let set = context.instruction_set();
        let emissions = LinearEmissions::new(data.rows(), set);
        check_memory(emissions.features(), rules.count())?;
        let blocks = ChainBlocks::new(emissions, data, &tags.codes, rules, self.c, set);
        let solution = structured::solve(&blocks, &self.options(), context)?;
        let width = padded(rules.count());
        let (kept, names) = kept_features(data, &solution.weights.emissions, width);
        let weights = weight_table(&solution.weights.emissions, &kept, rules.count(), width)?;
        let chain = chain(tags, TagScores::Weights(weights), &solution.weights);
        Ok(Solved { chain, names, outcome: solution.outcome })
    }

    fn fit_kernel(
        &self,
        kernel: &Kernel,
        data: &TaggedSequences,
        tags: &Classes,
        rules: &TagRules,
        context: &Context,
    ) -> Result<Solved> {
        let gram = Gram::of(kernel, data.rows(), context)?;
        let emissions = KernelEmissions::new(gram);
        let set = context.instruction_set();
        let blocks = ChainBlocks::new(emissions, data, &tags.codes, rules, self.c, set);
        let solution = structured::solve(&blocks, &self.options(), context)?;
        let expansion = expansion(kernel, data.rows(), &solution.weights.emissions, rules.count());
        let chain = chain(tags, TagScores::Expansion(expansion), &solution.weights);
        let names = data.feature_names().map(<[String]>::to_vec);
        Ok(Solved { chain, names, outcome: solution.outcome })
    }
}

struct Solved {
    chain: Chain,
    names: Option<Vec<String>>,
    outcome: Outcome,
}

/// The tags, all of which must be known.
fn known_tags(data: &TaggedSequences) -> Result<&Classes> {
    let Some(tags) = data.tags() else {
        return Err(Error::labels("a tag for every position", "none"));
    };
    match tags.codes.iter().position(|&code| code == NO_TAG) {
        None => Ok(tags),
        Some(at) => {
            let (sequence, position) = data.place(at);
            let found = format!("none at position {position} of sequence {sequence}");
            Err(Error::labels(
                "a tag for every position, or sequences cut where there is none",
                found,
            ))
        }
    }
}

fn check_memory(features: usize, tags: usize) -> Result<()> {
    let bytes = 8 * features as u128 * padded(tags) as u128;
    memory::check(|| "weights of all features and tags".into(), bytes)
}

/// The features that the model keeps, and their names: where they have names, those with a weight.
fn kept_features(
    data: &TaggedSequences,
    weights: &[f64],
    width: usize,
) -> (Vec<usize>, Option<Vec<String>>) {
    let all = 0..data.rows().columns();
    let Some(names) = data.feature_names() else { return (all.collect(), None) };
    let used = |feature: &usize| weights[feature * width..][..width].iter().any(|w| *w != 0.0);
    let kept: Vec<usize> = all.filter(used).collect();
    let names = kept.iter().map(|&feature| names[feature].clone()).collect();
    (kept, Some(names))
}

/// The weights of the kept features, a sparse row for every tag.
fn weight_table(weights: &[f64], kept: &[usize], tags: usize, width: usize) -> Result<Matrix> {
    let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for tag in 0..tags {
        for (place, &feature) in kept.iter().enumerate() {
            let weight = weights[feature * width + tag];
            if weight != 0.0 {
                indices.push(place as u32);
                values.push(weight);
            }
        }
        starts.push(indices.len());
    }
    Ok(Matrix::SparseF64(Csr::new(kept.len(), starts, indices, values)?))
}

fn expansion(kernel: &Kernel, rows: &Matrix, weights: &Expansion, tags: usize) -> KernelExpansion {
    let width = padded(tags);
    let of = |position: usize| &weights.coefficients[position * width..][..tags];
    let used: Vec<usize> = (0..rows.rows()).filter(|&k| of(k).iter().any(|c| *c != 0.0)).collect();
    let function = |tag: usize| DecisionFunction {
        parts: vec![Part {
            support: 0..used.len(),
            coefficients: used.iter().map(|&k| of(k)[tag]).collect(),
        }],
        offset: 0.0,
    };
    KernelExpansion {
        kernel: kernel.clone(),
        precision: Precision::F64,
        support: support_table(kernel, rows, &used),
        functions: (0..tags).map(function).collect(),
        support_rows: used,
    }
}

fn chain<E>(tags: &Classes, scores: TagScores, weights: &ChainWeights<E>) -> Chain {
    let (count, width) = (tags.names.len(), padded(tags.names.len()));
    let rows = weights.pairs.rows.chunks_exact(width);
    Chain {
        tags: tags.names.clone(),
        scores,
        pairs: rows.flat_map(|row| &row[..count]).copied().collect(),
        first_forbidden: weights.pairs.start[..count].iter().map(|s| s.is_infinite()).collect(),
        templates: None,
    }
}
