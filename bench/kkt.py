"""Optimality certificates of the five machines, from coefficients alone, in f64.

Each check takes the kernel matrix K, the coefficients c of the decision function
f(x) = Σ cᵢ K(xᵢ, x) − ρ, and the data, and answers a `Certificate`: how far the constraints and the
Karush-Kuhn-Tucker conditions are from holding, and primal − dual. For a positive semidefinite K a
zero certificate proves optimality, whoever computed the solution.
Formulas: Chang and Lin, LIBSVM: A library for support vector machines, 2011, section 2.
"""

from dataclasses import dataclass

import numpy as np

AT_BOUND = 1e-9


@dataclass
class Certificate:
    """Zero everywhere at the optimum; `violation` is in units of the decision value."""

    infeasibility: float
    violation: float
    primal: float
    dual: float

    @property
    def relative_gap(self) -> float:
        return (self.primal - self.dual) / max(1.0, abs(self.primal), abs(self.dual))


def _worst(*parts) -> float:
    return max((float(np.max(p)) for p in map(np.atleast_1d, parts) if np.size(p)), default=0.0)


def _conditions(alpha, upper, slack):
    """α = 0 needs slack ≥ 0, α = U needs slack ≤ 0, anything between needs slack = 0."""
    scale = AT_BOUND * np.maximum(upper, 1e-300)
    low, high = alpha <= scale, alpha >= upper - scale
    return _worst(
        np.maximum(-slack[low], 0),
        np.maximum(slack[high & ~low], 0),
        np.abs(slack[~low & ~high]),
        0.0,
    )


def c_svc(k, c, rho, y, upper) -> Certificate:
    """min ½αᵀQα − Σα, yᵀα = 0, 0 ≤ αᵢ ≤ Uᵢ, with y = ±1 and c = yα."""
    alpha, product = y * c, k @ c
    margin = y * (product - rho)
    energy = 0.5 * c @ product
    return Certificate(
        _worst(-alpha, alpha - upper, abs(c.sum()), 0.0) / max(1.0, float(np.max(upper))),
        _conditions(alpha, upper, margin - 1),
        energy + float(upper @ np.maximum(1 - margin, 0)),
        float(alpha.sum() - energy),
    )


def nu_svc(k, c, rho, y, nu) -> Certificate:
    """ν-SVC as LIBSVM scales it: a C-SVC whose C is Σα / (νn), each class holding half of Σα."""
    total = np.abs(c).sum()
    certificate = c_svc(k, c, rho, y, np.full(len(y), total / (nu * len(y))))
    halves = abs((y * c)[y > 0].sum() / total - 0.5)
    certificate.infeasibility = max(certificate.infeasibility, float(halves))
    return certificate


def epsilon_svr(k, c, rho, y, cost, epsilon) -> Certificate:
    """min ½cᵀKc + ε Σ|c| − yᵀc, Σc = 0, |c| ≤ C."""
    product = k @ c
    residual = y - (product - rho)
    energy, size = 0.5 * c @ product, np.abs(c)
    upper = np.full(len(y), float(cost))
    toward = np.where(c != 0, np.sign(c), np.sign(residual))
    return Certificate(
        _worst(size - upper, abs(c.sum()), 0.0) / max(1.0, cost),
        _conditions(size, upper, epsilon - toward * residual),
        float(energy + cost * np.maximum(np.abs(residual) - epsilon, 0).sum()),
        float(y @ c - epsilon * size.sum() - energy),
    )


def nu_svr(k, c, rho, y, cost, nu) -> Certificate:
    """min ½cᵀKc − yᵀc, Σc = 0, Σ|c| ≤ Cνn, |c| ≤ C; the tube ε is the second multiplier."""
    product = k @ c
    size = np.abs(c)
    distance = np.abs(y - (product - rho))
    free = (size > AT_BOUND * cost) & (size < cost * (1 - AT_BOUND))
    inside, outside = size <= AT_BOUND * cost, size >= cost * (1 - AT_BOUND)
    if free.any():
        tube = float(np.median(distance[free]))
    else:
        lower = distance[inside].max() if inside.any() else 0.0
        higher = distance[outside].min() if outside.any() else lower
        tube = 0.5 * float(lower + higher)
    budget = cost * nu * len(y)
    missing = budget - size.sum()
    certificate = epsilon_svr(k, c, rho, y, cost, tube)
    certificate.infeasibility = max(certificate.infeasibility, float(-missing / budget))
    certificate.primal += budget * tube
    certificate.dual += tube * float(size.sum())
    return certificate


def one_class(k, c, rho, nu) -> Certificate:
    """min ½αᵀKα, Σα = νn, 0 ≤ α ≤ 1; its primal is ½‖w‖² + Σξ − νnρ."""
    product = k @ c
    value, energy, total = product - rho, 0.5 * c @ product, nu * len(c)
    return Certificate(
        _worst(-c, c - 1, abs(c.sum() - total) / total, 0.0),
        _conditions(c, np.ones(len(c)), value),
        float(energy + np.maximum(-value, 0).sum() - rho * total),
        float(-energy),
    )
