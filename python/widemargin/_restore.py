"""Parameters of estimators from what a model file keeps of its training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from widemargin import _core

_KERNELS = {"polynomial": "poly"}

#: Parameters whose names differ from those of the library.
_NAMES = {"c": "C", "multiclass": "multi_class", "robust_method": "method", "starts": "n_starts"}


#: What the training record of older files has, and the names of parameters of the library.
_NUMBERS = ("c", "nu", "epsilon", "tol", "gap")
_WORDS = {"loss": "loss", "bias": "bias", "penalty": "penalty", "online": "strategy"}


def specification(model: _core.Model) -> dict[str, Any]:
    """Return the values of all parameters; of files that lack them those of the training record."""
    if model.specification is not None:
        return model.specification[1]
    recorded = dict(model.training.get("parameters", []))
    known: dict[str, Any] = {name: float(recorded[name]) for name in _NUMBERS if name in recorded}
    known.update({ours: recorded[name] for name, ours in _WORDS.items() if name in recorded})
    return known


def is_online(model: _core.Model) -> bool:
    """Return whether a model was trained online."""
    if model.specification is not None:
        return model.specification[0]
    return "online" in dict(model.training.get("parameters", []))


def parameters(model: _core.Model, takes: Any) -> dict[str, Any]:
    """Return the parameters of a file that an estimator takes, by the estimator's names."""
    found: dict[str, Any] = {}
    for name, value in specification(model).items():
        ours = _NAMES.get(name, name)
        if ours in takes and not isinstance(value, (list, tuple)):
            found[ours] = value
    if "loss" in found:
        found["loss"] = _loss(found["loss"], model.kind)
    if "bias" in found:
        found["bias"] = found["bias"] in (True, "true")
    if "class_weight" in takes:
        found["class_weight"] = _class_weight(model)
    return found


def _loss(loss: str, kind: str) -> str:
    """Return scikit-learn's name of a loss."""
    if kind in ("epsilon-svr", "linear-svr"):
        squared = loss.startswith("squared")
        return "squared_epsilon_insensitive" if squared else "epsilon_insensitive"
    return loss.replace("-", "_") if loss == "squared-hinge" else loss


def _class_weight(model: _core.Model) -> Any:
    """Return the factors of classes as scikit-learn takes them; None where all are 1."""
    given = specification(model).get("class_weight")
    if given == "balanced":
        return "balanced"
    names = {str(name): name for name in model.classes or []}
    if not isinstance(given, (list, tuple)) or not given:
        return None
    factors = {names.get(str(label), label): factor for label, factor in given}
    return None if all(factor == 1 for factor in factors.values()) else factors


def kernel_parameters(model: _core.Model) -> dict[str, Any]:
    """Return the kernel of a model, with the numbers that rules such as 'scale' became."""
    kernel = model.kernel
    found: dict[str, Any] = {"kernel": expression(kernel)}
    found.update({k: v for k, v in kernel.items() if k in ("gamma", "coef0", "degree")})
    if "name" in kernel and "parts" not in kernel and "text" not in kernel:
        found["kernel"] = _KERNELS.get(kernel["name"], kernel["name"])
    return found


def expression(kernel: dict[str, Any]) -> str:
    """Return a kernel as the text that makes it."""
    if "text" in kernel:
        return str(kernel["text"])
    parts = [expression(part) for part in kernel.get("parts", [])]
    if kernel["name"] == "sum":
        terms = [
            f"{weight!r}*{part}" for weight, part in zip(kernel["weights"], parts, strict=True)
        ]
        return f"({' + '.join(terms)})"
    if kernel["name"] == "product":
        return "*".join(parts)
    if kernel["name"] == "view":
        columns = ",".join(f"{start + 1}-{end}" for start, end in kernel["columns"])
        return f"view({columns}: {expression(kernel['kernel'])})"
    given = [f"{key}={kernel[key]!r}" for key in ("gamma", "coef0", "degree") if key in kernel]
    name = _KERNELS.get(kernel["name"], kernel["name"])
    return f"{name}({', '.join(given)})" if given else str(name)
