"""The parameters and attributes that several estimators share, described once."""

from __future__ import annotations

import textwrap
from typing import TypeVar

T = TypeVar("T", bound=type)

_BLOCKS = {
    "kernel": """
kernel : str or callable, default='rbf'
    ``'linear'``, ``'poly'``, ``'rbf'``, ``'sigmoid'``, ``'precomputed'``; also ``'laplacian'``,
    ``'chi2'``, ``'cosine'`` and sums and products such as
    ``'0.5*rbf(gamma=0.1) + linear*cosine'``. A :class:`StringKernel`, or its expression such as
    ``'spectrum(length=3)'``, takes lists of str as rows. A callable gets two tables of rows and
    returns the matrix of their similarities.
degree : int, default=3
    Exponent of ``'poly'``.
gamma : {'scale', 'auto', 'median', 'jaakkola', 'jaakkola-nearest'} or float, \\
        default='scale'
    γ of every kernel that has one: ``'scale'`` is 1 / (n_features * X.var()), ``'auto'`` is
    1 / n_features.
coef0 : float, default=0.0
    Constant term of ``'poly'`` and ``'sigmoid'``.
""",
    "classification": """
probability : bool, default=False
    Whether to learn probabilities by an internal 5-fold cross-validation. Deprecated, as in
    scikit-learn 1.9.
class_weight : dict or 'balanced', default=None
    Factors on the weight of classes.
decision_function_shape : {'ovo', 'ovr'}, default='ovr'
    Whether `decision_function` returns a score per class or the value of every function.
break_ties : bool, default=False
    Whether `predict` breaks ties of the vote by the scores of `decision_function`.
random_state : int, RandomState instance or None, default=None
    Seeds the folds of `probability` and the codes of ``multi_class='ecoc'``.
""",
    "training": """
shrinking : bool, default=True
    Whether to use shrinking: variables that stay at a bound are left out.
tol : float, default=1e-3
    Largest violation of the optimality conditions accepted.
cache_size : float, default=200
    Memory for kernel rows in MB.
verbose : bool, default=False
    Whether to print progress.
max_iter : int, default=-1
    Limit on the steps of every two-class problem, -1 for none; reaching it gives a
    `ConvergenceWarning` and the best model so far.
""",
    "extra_classification": """
multi_class : {'ovo', 'ovr', 'dag', 'ecoc'}, default='ovo'
    How many classes become two: one-vs-one, one-vs-rest, a decision graph, or error-correcting
    codes.
code : array-like of shape (n_classes, n_functions), default=None
    Code of ``multi_class="ecoc"``: a row of -1, 0 and 1 for every class, in the order of
    ``classes_``; a column is a function. None is an exhaustive code for up to seven classes and a
    random one for more.
decoding : {'hinge', 'hamming', 'exponential', 'linear'}, default='hinge'
    Loss of a decision value by which ``multi_class="ecoc"`` elects the class.
calibration : {'sigmoid', 'isotonic'}, default='sigmoid'
    How decision values become probabilities.
""",
    "extra": """
precision : {'auto', 'single', 'double'}, default='auto'
    Number format of kernel values. By default they are of single precision as long as that moves no
    decision value by more than `tol`, or a tenth of it for float64 arrays whose values are not all
    float32 numbers; otherwise, and for a `tol` below 1e-5, the training goes on in double. These
    arrays, and what was trained in double, are predicted in double.
    Gradients are always double.
max_time : float, default=None
    Seconds after which training stops with a `ConvergenceWarning` and the best model so far.
warm_start : bool, default=False
    Whether `fit` starts from the solution of the last one.
callbacks : callable or list of callables, default=None
    Called with a :class:`widemargin.Progress` while training; a true return value stops it.
n_jobs : int, default=None
    Threads; None is 1 unless joblib says otherwise, -1 is all. The result is the same for all.
""",
    "linear": """
fit_intercept : bool, default=True
    Whether the functions have a constant.
intercept_scaling : float or 'free', default=1
    Value of the appended feature whose weight makes the constant; that weight is penalised like the
    others, less so the larger this is. With ``'free'`` it is not penalised.
""",
    "linear_extra": """
verbose : int, default=0
    Whether to print progress.
random_state : int, RandomState instance or None, default=None
    Seeds the order of rows.
max_iter : int, default=1000
    Limit on passes over the rows (Newton: steps); reaching it gives a `ConvergenceWarning`.
max_time : float, default=None
    Seconds after which training stops with a `ConvergenceWarning` and the best model so far.
warm_start : bool, default=False
    Whether `fit` starts from the solution of the last one.
callbacks : callable or list of callables, default=None
    Called with a :class:`widemargin.Progress` while training; a true return value stops it.
n_jobs : int, default=None
    Threads; None is 1 unless joblib says otherwise, -1 is all. The result is the same for all.
""",
    "linear_classifier": """
coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    Weights of the features.
intercept_ : ndarray of shape (1,) or (n_classes,)
    Constants of the functions.
classes_ : ndarray of shape (n_classes,)
    Class labels, ascending.
""",
    "least_squares": """
tol : float, default=1e-3
    Largest violation of the optimality conditions accepted.
cache_size : float, default=200
    Memory for kernel rows in MB.
verbose : bool, default=False
    Whether to print progress.
max_iter : int, default=-1
    Limit on products with the kernel matrix, -1 for none.
""",
    "novelty": """
nu : float, default=0.5
    Upper bound on the share of training rows outside and lower bound on the share of support
    vectors, in (0, 1].
""",
    "linear_attributes": """
n_iter_ : int
    Passes of the solver over the rows.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, if the training data had any.
status_, objective_, dual_gap_, violation_
    How the training ended, the dual objective, the gap to the primal one, and the largest violation
    of the optimality conditions.
""",
    "attributes_classification": """
classes_ : ndarray of shape (n_classes,)
    Class labels, ascending.
class_weight_ : ndarray of shape (n_classes,)
    Factors on the weight of classes.
""",
    "attributes": """
support_ : ndarray of shape (n_SV,)
    Rows of the training data that are support vectors.
support_vectors_ : {ndarray, sparse matrix} of shape (n_SV, n_features)
    The support vectors.
n_support_ : ndarray
    Number of support vectors, by class for classifiers.
dual_coef_ : {ndarray, sparse matrix}
    Coefficients of the support vectors, laid out as in scikit-learn.
coef_ : {ndarray, sparse matrix}
    Weights of the features; only with ``kernel='linear'``.
intercept_ : ndarray
    Constants of the decision functions.
fit_status_ : int
    0 if the tolerance was reached, otherwise 1.
n_iter_ : int or ndarray
    Steps of the solver, for classifiers by decision function.
shape_fit_ : tuple of int
    Shape of the training data.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, if the training data had any.
status_, objective_, dual_gap_, violation_
    How the training ended, the dual objective, the gap to the primal one, and the largest violation
    of the optimality conditions.
""",
    "combined_kernels": """
kernels : list, tuple or 'precomputed', default=('linear', 'rbf')
    Names, expressions, dictionaries such as ``{"kernel": "rbf", "gamma": 0.1}``, functions of
    two tables of rows, or "precomputed" for every one: rows are then lists of Gram matrices.
views : list of (name, kernel, columns), default=None
    Kernels that see some columns only, in the place of `kernels`. Columns are given as in
    ColumnTransformer: names, numbers, slices, masks or a function of the rows. A kernel
    "precomputed" takes as many columns as there are training rows.
""",
    "combined_repair": """
jitter : float, default=None
    Share of its mean diagonal that is added to the diagonal of every kernel; None is 1e-6 for
    signed weights and 0 otherwise.
repair : {'shift', 'refuse'}, default=None
    What is done about kernels that are not positive semidefinite on the rows, beside a warning:
    their smallest eigenvalue is taken from the diagonal (`diagonal_shifts_`), or an error.
approximate : str, default=None
    Features in the place of kernel values, for more rows than these can be computed for:
    'nystroem:500' takes the values at 500 rows, 'rff:500' random Fourier features (kernels 'rbf'
    and narrow 'linear' ones). Bounds are then those of the approximated problem. For weights that
    are not negative.
""",
    "combined_training": """
cache_size : float, default=1000
    Memory for kernel values in MB; tables that do not fit are computed block by block.
verbose : bool, default=False
    Whether to print progress.
max_time : float, default=None
    Seconds after which the best weights so far are taken.
callbacks : callable or list, default=None
    Called with every event of the training.
n_jobs : int, default=None
    Threads.
""",
    "combined_attributes": """
kernel_weights_ : ndarray of shape (n_kernels,)
    Weights of the kernels scaled to trace n, summing to 1.
raw_kernel_weights_ : ndarray of shape (n_kernels,)
    Weights of the kernels as they were given: the learnt kernel is their sum.
kernel_contributions_ : ndarray of shape (n_kernels,)
    Share of every kernel in the squared length of the weight vectors.
objective_ : float
    Primal objective at the learnt kernel.
bound_ : float
    Certified lower bound of the objective over all weights that are admitted.
gap_ : float
    Objective minus bound, as a share of the objective.
smallest_eigenvalue_ : float or None
    Of the learnt kernel over all rows, for signed weights.
diagonal_shifts_ : ndarray of shape (n_kernels,)
    What `repair` added to the diagonal of every kernel.
""",
    "combined_transduction": """
transduction_ : ndarray of shape (n_unlabeled,)
    Predictions for the rows without labels, where there are some.
""",
    "combined_counts": """
n_iter_ : int
    Rounds.
n_solves_ : int
    Training problems solved.
""",
    "class_windows": """
priors : {'frequencies', 'equal'} or array-like of shape (n_classes,), default=None
    Class probabilities.
random_state : int, RandomState instance or None, default=None
    Seeds the choice of rows that are left out, 2 000 at most.
n_jobs : int, default=None
    Threads.

Attributes
----------
classes_ : ndarray of shape (n_classes,)
    Class labels, ascending.
bandwidths_ : ndarray of shape (n_classes,)
    Width of every class.
n_features_in_ : int
    Number of features.
""",
    "sites": """
client : distributed.Client, default=None
    The cluster; the current client by default.
topology : str, default='full'
    Links between sites: ``'full'``, ``'ring'``, ``'tree'``, ``'random:LINKS'`` or links such as
    ``'0>1,1>2,2>0'``.
schedule : {'parallel', 'sequential', 'async'}, default='parallel'
    When sites solve.
sites : int, default=None
    Sites; partitions next to each other are put together. By default one for each worker.
""",
    "sites_attributes": """
report_ : dict
    How the training ended and what the sites sent, with objectives and rows of every round.
""",
    "markov": """
startprob_prior, transmat_prior : float, default=1.0
    What these have beyond 1 is added to the counts of starts and of transitions.
algorithm : {'viterbi', 'map'}, default='viterbi'
    How `predict` finds states: the best path, or the best state of each position.
random_state : int, RandomState instance or None, default=None
    Seeds random models and samples.
n_iter : int, default=10
    Most iterations of a start.
tol : float, default=1e-2
    A start ends when the log-likelihood grows by less than this.
verbose : bool, default=False
    Whether to print the log-likelihood of every iteration.
""",
    "markov_training": """
implementation : {'scaling', 'log'}, default='scaling'
    Sums of scaled probabilities, which go over to logarithms where they vanish, or of
    logarithms throughout.
n_init : int, default=1
    Starts, of which the one with the largest log-likelihood is kept. Each begins with what
    `init_params` leaves out as it was set, and the rest at random.
n_inputs : int, default=None
    Number of inputs that choose a transition; the largest one of the training data and those
    below it unless given.
input_lag : int, default=1
    An input chooses the transition so many positions later: that to the next position for 1,
    that into its own for 0.
uniform_below : float, default=0.0
    A state that is left fewer times than this with some input, in expectation, has the same
    probability of all followers there; otherwise one that is never left keeps its row.
n_jobs : int, default=None
    Threads; the result is the same for any number.
max_time : float, default=None
    Seconds after which `fit` stops with a `ConvergenceWarning` and the best model so far.
callbacks : callable or list of callables, default=None
    Called with a :class:`widemargin.Progress` after each iteration, whose objective is the
    log-likelihood and whose violation is what it gained; a true return value stops `fit`.
""",
    "markov_attributes": """
startprob_ : ndarray of shape (n_components,)
    Probabilities of the first state.
transmat_ : ndarray of shape (n_components, n_components)
    Probabilities of the next state, a row for each state; of shape (n_inputs, n_components,
    n_components) with inputs.
monitor_ : object
    ``history`` of the log-likelihood, ``iter`` and ``converged``.
start_log_likelihoods_ : ndarray of shape (n_init,)
    The last log-likelihood of each start; -inf for one that cannot have made the sequences.
""",
}


def documented(cls: T) -> T:
    """Fill the shared blocks into the documentation of a class."""
    lines = []
    for line in (cls.__doc__ or "").splitlines():
        text = line.strip()
        block = _BLOCKS.get(text.strip("{}")) if text.startswith("{") else None
        if block is None:
            lines.append(line.replace("{{", "{").replace("}}", "}"))
        else:
            # Compilers from Python 3.13 on take the indentation out.
            lines.append(textwrap.indent(block.strip("\n"), line[: len(line) - len(line.lstrip())]))
    cls.__doc__ = "\n".join(lines)
    return cls
