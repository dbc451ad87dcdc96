"""Turns a nearly optimal solution into an optimum exact to f64.

LIBSVM keeps kernel values in f32, so at any tolerance its coefficients carry errors near 1e-7. With
the bounded and zero coefficients held where LIBSVM left them, the free ones, the offset ρ and, for
the ν-machines, the second multiplier solve one linear system; the result is kept when its
certificate is better than the one it started from.
"""

import numpy as np

from machines import Machine, Part


def polish(machine: Machine, part: Part, k: np.ndarray) -> Part:
    """The better of the given sub-solution and its linear-system refinement."""
    refined = _refine(machine, part, k)
    if refined is None:
        return part
    quality = lambda p: _badness(p, machine, k)
    return refined if quality(refined) <= quality(part) else part


def _badness(part, machine, k):
    certificate = part.certificate(machine, k)
    return max(certificate.infeasibility, certificate.violation, abs(certificate.relative_gap))


def _refine(machine: Machine, part: Part, k: np.ndarray):
    c, y, n = part.coefficients, part.target, len(part.target)
    size, two = np.abs(c), machine.svm_type in ("nu_svc", "nu_svr")
    upper = part.upper
    if machine.svm_type == "nu_svc":
        # LIBSVM divides by r; undo it so that the box is [0, 1].
        scale = size.sum() / (machine.nu * n)
        c, size, upper = c / scale, size / scale, np.ones(n)
    free = (size > 0) & (size < upper * (1 - 1e-11))
    bound = size >= upper * (1 - 1e-11)
    if not free.any():
        return None
    sign = np.sign(c) if machine.svm_type.endswith("svr") else y
    fixed = np.where(bound, np.sign(c) * upper, 0.0)
    total = machine.nu * n if machine.svm_type == "one_class" else 0.0
    # Row i of the system: (Kc)ᵢ − ρ + sᵢ t = wantedᵢ, with t the tube or minus the margin.
    wanted = {
        "c_svc": y,
        "nu_svc": np.zeros(n),
        "one_class": np.zeros(n),
        "epsilon_svr": y - sign * machine.epsilon,
        "nu_svr": y,
    }[machine.svm_type]
    slope = -y if machine.svm_type == "nu_svc" else sign
    budget = machine.nu * n * (machine.c if machine.svm_type == "nu_svr" else 1.0)
    count, extra = int(free.sum()), 2 if two else 1
    left = np.zeros((count + extra, count + extra))
    right = np.zeros(count + extra)
    left[:count, :count] = k[np.ix_(free, free)]
    left[:count, count] = -1
    left[count, :count] = 1
    right[:count] = (wanted - k @ fixed)[free]
    right[count] = total - fixed.sum()
    if two:
        left[:count, count + 1] = slope[free]
        left[count + 1, :count] = sign[free]
        right[count + 1] = budget - np.abs(fixed).sum()
    solution = np.concatenate([c[free], np.zeros(extra)])
    solution = np.linalg.lstsq(left, right - left @ solution, rcond=1e-13)[0] + solution
    solution += np.linalg.lstsq(left, right - left @ solution, rcond=1e-13)[0]
    refined = fixed.copy()
    refined[free] = solution[:count]
    rho = solution[count]
    if machine.svm_type == "nu_svc":
        margin = solution[count + 1]
        if not margin > 0:
            return None
        refined, rho = refined / margin, rho / margin
    return Part(part.rows, part.target, refined, float(rho), part.upper)
