"""The compiled half of the package."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

_Floats: TypeAlias = NDArray[np.float64]
_Integers: TypeAlias = NDArray[np.int64]
_Single: TypeAlias = NDArray[np.float32]
_Indices: TypeAlias = NDArray[np.int32]
_Sparse: TypeAlias = tuple[_Indices, _Indices, _Floats | _Single, int]
Table: TypeAlias = _Floats | _Single | _Sparse

__version__: str

class Settings(TypedDict):
    machine: str
    online: bool
    parameters: dict[str, Any]
    calibration: str | None
    seed: int
    cache_megabytes: float | None
    threads: int
    max_seconds: float | None

class Site:
    def __new__(
        cls,
        plan: bytes,
        place: tuple[int, int],
        features: Table,
        targets: Any,
        weights: _Floats | None,
        threads: int,
        cache_megabytes: float,
    ) -> Site: ...
    def receive(
        self, incoming: Sequence[tuple[int, int, bytes]], seconds: float | None = None
    ) -> list[tuple[int, int, bytes]]: ...
    def join(self) -> list[tuple[int, int, bytes]]: ...
    def site_result(self, wanted: tuple[int, tuple[int, int] | None] | None = None) -> bytes: ...

class Coordinator:
    def __new__(cls, plan: bytes) -> Coordinator: ...
    @property
    def has_ended(self) -> bool: ...
    @property
    def last_round(self) -> tuple[int, list[float], list[int]]: ...
    @property
    def wanted(self) -> tuple[int, tuple[int, int] | None]: ...
    def start(self) -> list[tuple[int, int, bytes]]: ...
    def receive(
        self, incoming: Sequence[tuple[int, int, bytes]]
    ) -> list[tuple[int, int, bytes]]: ...
    def tick(self) -> list[tuple[int, int, bytes]]: ...
    def stop(self) -> None: ...
    def finish(self, site_results: Sequence[bytes]) -> tuple[Model, dict[str, Any]]: ...

class Learner:
    def __new__(
        cls, settings: Settings, features: Table, classes: Sequence[int | float | str]
    ) -> Learner: ...
    @staticmethod
    def resume(
        settings: Settings, model: Model, classes: Sequence[int | float | str]
    ) -> Learner: ...
    def partial_fit(
        self, features: Table, codes: _Integers, weights: _Floats | None = None
    ) -> None: ...
    def model(self) -> Model: ...

class Hmm:
    def __new__(
        cls,
        start: Sequence[float],
        transition: Sequence[float],
        kind: str,
        values: Sequence[float],
        shape: str,
        covariances: Sequence[float],
    ) -> Hmm: ...
    @staticmethod
    def random(
        states: int,
        kind: str,
        size: int,
        shape: str,
        inputs: int,
        given: dict[str, Any],
        seed: int,
    ) -> Hmm: ...
    def fit(
        self,
        given: dict[str, Any],
        training: dict[str, Any],
        on_event: Callable[[str, tuple[Any, ...]], bool] | None,
    ) -> tuple[Hmm, list[float], list[float], str]: ...
    def fit_states(
        self,
        path: NDArray[np.uint32],
        given: dict[str, Any],
        smoothing: float,
        training: dict[str, Any],
    ) -> Hmm: ...
    def posteriors(
        self, given: dict[str, Any], logarithms: bool, threads: int
    ) -> tuple[list[float], _Floats]: ...
    def log_likelihood(self, given: dict[str, Any], threads: int) -> float: ...
    def viterbi(self, given: dict[str, Any], threads: int) -> tuple[NDArray[np.uint32], float]: ...
    def sample(
        self, inputs: Sequence[int], first: int | None, seed: int
    ) -> tuple[_Floats, NDArray[np.uint32]]: ...
    def save(self, path: str, symbols: Sequence[str] | None) -> None: ...
    @staticmethod
    def of_model(model: Model) -> tuple[Hmm, str, str, list[str], list[str] | None]: ...
    def parts(self) -> tuple[list[float], list[float], list[float], list[float]]: ...
    @property
    def parameters(self) -> int: ...

class Chain:
    def __new__(cls, model: Model) -> Chain: ...
    def label(self, given: Any, threads: int) -> list[tuple[list[int], float]]: ...
    def n_best(self, given: Any, n: int, threads: int) -> list[list[tuple[list[int], float]]]: ...
    @property
    def tags(self) -> list[int | float | str]: ...
    @property
    def pairs(self) -> list[float]: ...
    @property
    def first_forbidden(self) -> list[bool]: ...

class FeatureMap:
    @staticmethod
    def fit(rule: str, gamma: str, seed: int, features: Table) -> FeatureMap: ...
    def transform(self, features: Table, threads: int) -> NDArray[np.float32]: ...
    @property
    def outputs(self) -> int: ...

class SubstringFeatures:
    @staticmethod
    def fit(kernel: str, strings: list[str]) -> SubstringFeatures: ...
    def transform(self, strings: list[str]) -> Table: ...
    @property
    def names(self) -> list[str]: ...

class Model:
    @staticmethod
    def from_bytes(content: bytes) -> Model: ...
    @staticmethod
    def load(path: str) -> Model: ...
    def save(self, path: str) -> None: ...
    def to_bytes(self) -> bytes: ...
    def to_libsvm(self) -> bytes: ...
    def to_liblinear(self) -> bytes: ...
    @property
    def kind(self) -> str: ...
    @property
    def features(self) -> int: ...
    @property
    def feature_names(self) -> list[str] | None: ...
    @property
    def precision(self) -> str: ...
    @property
    def classes(self) -> list[int | float | str] | None: ...
    @property
    def is_mapped(self) -> bool: ...
    @property
    def scheme(self) -> str | None: ...
    @property
    def code(self) -> _Floats | None: ...
    @property
    def support_count(self) -> int: ...
    @property
    def support(self) -> _Indices: ...
    @property
    def support_vectors(self) -> Table: ...
    @property
    def support_counts(self) -> _Indices: ...
    @property
    def intercepts(self) -> _Floats: ...
    @property
    def dual_coefficients(self) -> _Floats: ...
    @property
    def function_coefficients(self) -> _Floats: ...
    def weights(self) -> _Floats: ...
    @property
    def training(self) -> dict[str, Any]: ...
    @property
    def kernel(self) -> dict[str, Any]: ...
    @property
    def scaling(self) -> tuple[_Floats, _Floats] | None: ...
    @property
    def calibration(self) -> dict[str, Any] | None: ...
    @property
    def attributes(self) -> dict[str, Any]: ...
    @property
    def specification(self) -> tuple[bool, dict[str, Any]] | None: ...
    def projection(self) -> Model | None: ...
    def log_densities(self, features: Table, threads: int) -> _Floats: ...
    def nearest(self, features: Table, k: int, threads: int) -> tuple[_Floats, _Floats]: ...
    def decision_values(self, features: Table, threads: int) -> _Floats: ...
    def class_scores(self, features: Table, threads: int) -> _Floats: ...
    def probabilities(self, features: Table, threads: int) -> _Floats: ...
    def predict(self, features: Table, threads: int) -> NDArray[Any]: ...

def fit(
    settings: Settings,
    features: Table,
    targets: _Floats | tuple[_Integers, Sequence[int | float | str]] | None = None,
    weights: _Floats | None = None,
    names: Sequence[str] | None = None,
    start: Model | None = None,
    on_event: Callable[[str, tuple[Any, ...]], bool] | None = None,
    groups: _Integers | None = None,
) -> tuple[Model, _Integers, list[str]]: ...
def fit_path(
    settings: Settings,
    features: Table,
    targets: _Floats | tuple[_Integers, Sequence[int | float | str]],
    path: Sequence[tuple[float, float]],
    weights: _Floats | None = None,
    names: Sequence[str] | None = None,
    on_event: Callable[[str, tuple[Any, ...]], bool] | None = None,
) -> tuple[list[Model], list[str]]: ...
def fit_files(
    settings: Settings,
    inputs: Sequence[str],
    folder: str,
    memory: int,
    on_event: Callable[[str, tuple[Any, ...]], bool] | None = None,
) -> tuple[Model, list[str]]: ...
def fit_chain(
    settings: Settings,
    given: Any,
    codes: NDArray[np.uint32],
    names: Sequence[int | float | str],
    forbidden: tuple[list[Any], list[tuple[Any, Any]]] | None = None,
    weights: _Floats | None = None,
    on_event: Callable[[str, tuple[Any, ...]], bool] | None = None,
) -> tuple[Model, list[str]]: ...
def alternate_chain(
    settings: Settings,
    given: Any,
    start: NDArray[np.uint32],
    count: int,
    rounds: int,
    on_event: Callable[[str, tuple[Any, ...]], bool] | None = None,
) -> tuple[Model, list[int], list[float], str]: ...
def fit_structured(
    problem: Any,
    dimension: int,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    c: float,
    tol: float,
    max_iterations: int,
    max_seconds: float | None = None,
    on_event: Callable[[str, tuple[Any, ...]], bool] | None = None,
) -> tuple[_Floats, dict[str, Any], list[str]]: ...
def ranking_quality(
    truth: _Floats, scores: _Floats, groups: _Integers | None = None
) -> dict[str, Any]: ...
def compare(
    features: Table,
    targets: _Floats | tuple[_Integers, Sequence[int | float | str]],
    machines: Sequence[str],
    folds: int,
    repeats: int,
    confidence: float,
    max_seconds: float | None,
    threads: int,
    seed: int,
) -> dict[str, Any]: ...
def compare_clusterings(
    features: Table,
    targets: _Floats | tuple[_Integers, Sequence[int | float | str]] | None,
    machines: Sequence[Settings],
    pairs: int,
    share: float,
    max_seconds: float | None,
    threads: int,
    seed: int,
) -> list[dict[str, Any]]: ...
def compare_kernels(
    features: Table,
    targets: _Floats | tuple[_Integers, Sequence[int | float | str]],
    machine: str,
    kernels: str,
    penalties: Sequence[float],
    epsilon: float | None,
    subsets: bool,
    resamples: int,
    folds: int,
    repeats: int,
    confidence: float,
    max_seconds: float | None,
    threads: int,
    seed: int,
) -> dict[str, Any]: ...
def cluster_agreement(classes: _Integers, clusters: _Integers) -> dict[str, float]: ...
def leave_one_out_error(
    settings: Settings,
    model: Model,
    features: Table,
    targets: tuple[_Integers, Sequence[int | float | str]],
    which: str,
) -> float: ...
def compress(
    model: Model,
    target: tuple[str, float],
    method: str,
    shared: bool | None,
    refinement: int | None,
    held_out: tuple[Table, _Floats | tuple[_Integers, Sequence[int | float | str]]] | None,
    seed: int,
    threads: int,
) -> tuple[Model, list[tuple[int, int, float, float]]]: ...
def census(features: Table, targets: Any = None, weights: _Floats | None = None) -> bytes: ...
def training_plan(
    settings: Settings,
    classes: Sequence[int | float | str],
    censuses: Sequence[bytes],
    topology: str,
    schedule: str,
) -> bytes: ...
def check_kernel(text: str) -> None: ...
def parameter_names(machine: str, online: bool) -> list[str]: ...
def default_grid(machine: str, kernel: str | None) -> list[tuple[str, list[Any]]]: ...
def refined(values: list[float], best: float, whole: bool) -> list[float]: ...
def evaluate(
    settings: Sequence[Settings],
    features: Table,
    targets: tuple[_Integers, list[Any]] | _Floats,
    splits: Sequence[tuple[_Integers, _Integers]],
    weights: _Floats | None = None,
    cold: bool = False,
    on_event: Callable[[str, tuple[Any, ...]], object] | None = None,
    values: bool = True,
) -> list[list[Any]]: ...
def halving(
    candidates: int,
    trains: Sequence[_Integers],
    classes: NDArray[np.uint32] | None,
    factor: int,
    smallest: int,
    max_seconds: float | None,
    evaluate: Callable[[list[int], int, list[tuple[int, _Integers]]], list[list[float]]],
) -> None: ...
def race(
    candidates: int,
    trains: Sequence[_Integers],
    max_seconds: float | None,
    evaluate: Callable[[list[int], int, list[tuple[int, _Integers]]], list[list[float]]],
) -> None: ...
def surrogate(
    dimensions: int,
    points: int,
    seed: int,
    max_seconds: float | None,
    evaluate: Callable[[list[list[float]]], list[tuple[list[float], float]]],
) -> None: ...
def compares_strings(kernel: str) -> bool: ...
def string_rows(strings: list[str]) -> Table: ...
def kernel_values(
    kernel: str, queries: Table, rows: Table, threads: int
) -> NDArray[np.float64]: ...
def gram_scaled(values: NDArray[np.float64], trace: float) -> tuple[NDArray[np.float64], float]: ...
def gram_centred(values: NDArray[np.float64]) -> NDArray[np.float64]: ...
def gram_cosine(values: NDArray[np.float64]) -> NDArray[np.float64]: ...
def gram_repaired(
    values: NDArray[np.float64], how: str
) -> tuple[NDArray[np.float64], float, float]: ...
def gram_alignment(left: NDArray[np.float64], right: NDArray[np.float64]) -> float: ...
