//! Constants of the linear solvers that were set by measurement, each with what it was measured on.
//!
//! Times are those of `bench/linear.py` on two cores of a Zen 4 server; where no number is given the
//! value is the one of the paper named in the solver's file, and times change by less than a tenth
//! between half and twice of it. Limits that only keep a loop from being endless stand with their loop.

/// Proximal Newton's method and its quadratic models.
pub(super) mod newton {
    /// Halvings of a step, and the share of the predicted gain that a step has to bring.
    pub(in super::super) const MOST_HALVINGS: usize = 20;
    pub(in super::super) const SUFFICIENT: f64 = 0.01;

    /// Steps without gain, each with a better model, before the solver gives up.
    pub(in super::super) const MOST_STALLS: usize = 12;

    /// A step that leaves more than this share of the KKT violation asks for a better model.
    pub(in super::super) const SLOW: f64 = 0.4;

    /// Predicted gains below this share of the objective cannot be seen in it.
    pub(in super::super) const NOISE: f64 = 1e-11;

    /// A sum of two numbers that is this share of them is what rounding left of 0.
    pub(in super::super) const ROUNDED_TO_ZERO: f64 = 1e-12;

    /// One in so many rows makes the first guess, to this tolerance, if there are so many rows of the
    /// sample for every weight. On a9a, w8a and ijcnn1 it saves two to three passes over all rows.
    pub(in super::super) const STRIDE: usize = 8;
    pub(in super::super) const START_TOLERANCE: f64 = 1e-2;
    pub(in super::super) const SAMPLE_ROWS_PER_WEIGHT: usize = 10;

    /// Passes of dual coordinate descent that make a guess where weights outnumber rows: on news20 half
    /// of the Newton steps.
    pub(in super::super) const GUESS_PASSES: u64 = 6;

    /// Rows of a sampled Hessian for every weight, and how many times as many after a slow step. With 40
    /// a9a takes one step more, with 160 forming the matrix takes as long as the steps.
    pub(in super::super) const ROWS_PER_WEIGHT: usize = 80;
    pub(in super::super) const MORE_ROWS: usize = 4;

    /// Work of a sampled Hessian and of its factor, for every stored value of the table: what a few
    /// passes cost.
    pub(in super::super) const MODEL_WORK: usize = 4;
    pub(in super::super) const FACTOR_WORK: usize = 2;

    /// Share of the KKT violation that the ℓ1 minimum of a sampled Hessian may leave.
    pub(in super::super) const INNER_SHARE: f64 = 0.05;

    /// Passes over the weights for one minimum with the ℓ1 penalty.
    pub(in super::super) const MOST_INNER: usize = 1000;

    /// Passes over the weights before the minimum of the model over the weights that are not 0 is solved
    /// for, at least and per weight of these: their Hessian costs half a pass for every weight. What is
    /// added to its diagonal, as a share: rounding, divided by it, is how far weights move where the model
    /// is flat.
    pub(in super::super) const FACE_PASSES: usize = 10;
    pub(in super::super) const FACE_PASSES_PER_WEIGHT: f64 = 0.05;
    pub(in super::super) const FACE_RIDGE: f64 = 1e-9;

    /// No weight moves farther than this share of the largest on a sampled Hessian, or than this
    /// distance in descent over columns (LIBLINEAR's): a second derivative holds nearby only.
    pub(in super::super) const FARTHEST: f64 = 0.5;
    pub(in super::super) const FARTHEST_MOVE: f64 = 10.0;

    /// Moves of a weight that do not count, and what is added to every curvature (LIBLINEAR's).
    pub(in super::super) const SMALLEST_MOVE: f64 = 1e-12;
    pub(in super::super) const RIDGE: f64 = 1e-12;

    /// A conjugate-gradient step that gains less than this share of the average step is the last (Galli
    /// and Lin, 2021), unless more of the gradient is left than asked for; the least that is asked for.
    pub(in super::super) const LAST_STEP: f64 = 0.5;
    pub(in super::super) const EXACT: f64 = 1e-3;
    pub(in super::super) const MOST_CG_STEPS: usize = 1000;

    /// A factor of the Hessian is kept while it needs at most so many conjugate-gradient steps.
    pub(in super::super) const REUSED_FACTOR_STEPS: usize = 5;

    /// Most weights of a Hessian that is factored as a whole (at 8 bytes for each pair), and the cost of
    /// an entry of the cube of a factor, in products of a pair of values.
    pub(in super::super) const MOST_FACTORED: usize = 2048;
    pub(in super::super) const FACTOR_ENTRY: f64 = 0.05;
}

/// Preconditioners of conjugate gradients.
pub(super) mod preconditioner {
    /// Weight of the diagonal of the Hessian; the rest is the identity (Hsia, Chiang and Lin, 2018).
    pub(in super::super) const DIAGONAL_SHARE: f64 = 0.01;

    /// Rows of a sampled factor for every weight, and the work of the factor and of the sample's Hessian
    /// for every stored value of the table.
    pub(in super::super) const ROWS_PER_WEIGHT: usize = 40;
    pub(in super::super) const FACTOR_WORK: usize = 8;
    pub(in super::super) const SAMPLE_WORK: usize = 4;
}

/// Dual coordinate descent of one problem.
pub(super) mod dual {
    /// How often a descent that met its goal is sent back by the check over all rows.
    pub(in super::super) const MOST_RETURNS: u32 = 20;

    /// Passes without a visit to a variable that stayed at its bound, at most: a pass, then three, then
    /// seven. On a9a with the hinge loss two thirds of all looks are saved.
    pub(in super::super) const MOST_SKIPPED: u8 = 7;

    /// Rows, and variables, which may come from another core, that are prefetched ahead of the current.
    pub(in super::super) const ROWS_AHEAD: usize = 4;
    pub(in super::super) const VARIABLES_AHEAD: usize = 12;

    /// Gradients closer to 0 than this move nothing (LIBLINEAR's).
    pub(in super::super) const NEGLIGIBLE: f64 = 1e-12;

    /// Cost of visiting a variable beside its stored values, in theirs: when an interior-point method
    /// would have cost less.
    pub(in super::super) const LOOK: usize = 16;

    /// How many times what the passes cost a second-order method may cost when they are at their limit.
    pub(in super::super) const LAST_RESORT: u64 = 10;

    /// Looks at every variable of a smooth loss before Newton's method goes on, its tolerance and its
    /// steps: mnist10k with the squared hinge takes 0.47 s, without it 1.24.
    pub(in super::super) const LOOKS_BEFORE_NEWTON: u64 = 150;
    pub(in super::super) const NEWTON_TOLERANCE: f64 = 1e-6;
    pub(in super::super) const NEWTON_STEPS: u64 = 100;

    /// The gap of Newton's method there, as a share of that asked for: the dual point of its weights w has
    /// the weights w − g, whose objective is larger by up to the largest eigenvalue of the Hessian times
    /// the gap.
    pub(in super::super) const NEWTON_GAP: f64 = 1e-9;

    /// Factor on the tolerance of a descent that met it with too large a duality gap, and the smallest
    /// that it leads to.
    pub(in super::super) const TIGHTER: f64 = 0.1;
    pub(in super::super) const MOST_TIGHTENED: u32 = 8;

    /// Tolerance of the guess of the weights that logistic regression starts from, by the gradient
    /// relative to that at 0.
    pub(in super::super) const GUESS_TOLERANCE: f64 = 1e-5;
}

/// Crammer and Singer's dual.
pub(super) mod crammer_singer {
    /// How much farther than to the minimum a row's variables go: the objective falls with anything
    /// below 2, in fewer passes with more than 1.
    pub(in super::super) const RELAXATION: f64 = 1.3;

    /// The same in passes that may be the last: shorter steps leave less of the noise of their order.
    pub(in super::super) const FINAL_RELAXATION: f64 = 0.8;
}

/// The interior-point method, beside [`FACTOR_ENTRY`](newton::FACTOR_ENTRY) and
/// [`MOST_FACTORED`](newton::MOST_FACTORED).
pub(super) mod interior {
    /// The relative duality gap up to which its point is worth going on from.
    pub(in super::super) const WORTH: f64 = 0.5;

    /// Steps that a solution takes, as a rule.
    pub(in super::super) const USUAL_STEPS: f64 = 25.0;

    /// What a stored value and a row cost in a step, in pairs of values that are multiplied and added up.
    pub(in super::super) const STORED_VALUE: f64 = 10.0;
    pub(in super::super) const ROW: f64 = 100.0;
}

/// The linear one-class machine.
pub(super) mod one_class {
    /// One in so many rows is moved between two looks at all gradients, but so many pairs at least.
    pub(in super::super) const MOVED_SHARE: usize = 10;
    pub(in super::super) const LEAST_PAIRS: usize = 4;

    /// One in so many runs of rows gives the mean that variables begin with, where there are many rows.
    pub(in super::super) const RUN_STRIDE: usize = 3;
    pub(in super::super) const RUN: usize = 4;
    pub(in super::super) const LARGE_DATA: usize = 1 << 12;
}

/// Batched one-vs-rest.
pub(super) mod batch {
    /// The tightest tolerance for single precision, the most rows that it counts and its passes. A line of
    /// the cache holds twice as many problems: news20 takes 0.6 of the time.
    pub(in super::super) const SINGLE_TOLERANCE: f64 = 1e-2;
    pub(in super::super) const MOST_SINGLE_ROWS: usize = 1 << 24;
    pub(in super::super) const SINGLE_PASSES: u64 = 100;

    /// Problems of a batch in double precision.
    pub(in super::super) const DOUBLES: usize = 8;
}

/// Block-partitioned dual coordinate descent.
pub(super) mod blocks {
    /// Blocks, and so the most threads that help: with four, blocks hinder each other so much that they
    /// take twice the steps. A number that depended on the threads would change the bits of the solution.
    pub(in super::super) const BLOCKS: usize = 2;

    /// One in so many rows changes its block after a pass; without any, MNIST takes five times the steps.
    pub(in super::super) const EXCHANGED: usize = 32;

    /// Stored values that a block should look at in a round: some ten microseconds, many times what it
    /// takes two cores to synchronise.
    pub(in super::super) const ROUND_VALUES: usize = 1 << 13;

    /// Stored values of a round for every weight, all of which are touched when steps are joined.
    pub(in super::super) const VALUES_PER_WEIGHT: usize = 16;

    /// Rounds of a pass over all rows, if that leaves them [`ROUND_VALUES`].
    pub(in super::super) const ROUNDS: usize = 16;

    /// The least share of the separate steps that is as good as all of them; the dual falls up to twice
    /// the best share.
    pub(in super::super) const NEARLY_WHOLE: f64 = 0.75;

    /// Joint steps shorter than this share of the separate ones ask for shorter rounds, of no fewer rows
    /// than these.
    pub(in super::super) const SHORT: f64 = 0.6;
    pub(in super::super) const SHORTEST_ROUND: usize = 32;

    /// Passes before one thread goes on with what has second-order methods.
    pub(in super::super) const MOST_PASSES: u64 = 1000;

    /// Spins at a barrier before a thread yields.
    pub(in super::super) const SPINS: u32 = 1 << 12;

    /// How long a number of threads is tried and how long the better one is kept, in milliseconds.
    pub(in super::super) const TRIAL_MS: u64 = 2;
    pub(in super::super) const KEPT_MS: u64 = 60;

    /// Threads that do the work of so many without waiting are better than one.
    pub(in super::super) const WORTHWHILE: f64 = 1.4;
}
