"""Sets of labels, classes of a hierarchy, matchings and segments, learnt with a large margin.

Each problem says what its joint features and its loss are, and finds the best output for given
weights: all that `StructuredSVM` needs. Every gap that is printed is proven.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment

from widemargin import StructuredSVM

rng = np.random.default_rng(0)


class LabelSets:
    """Any subset of labels; a wrong label costs 1. Pairs of labels have a weight of their own."""

    def __init__(self, labels, features):
        self.labels, self.features = labels, features
        self.sets = np.array(
            [[code >> k & 1 for k in range(labels)] for code in range(2**labels)], dtype=float
        )
        self.pairs = np.array([np.outer(s, s)[np.triu_indices(labels, 1)] for s in self.sets])

    @property
    def size(self):
        return self.labels * self.features + self.labels * (self.labels - 1) // 2

    def joint_features(self, x, y):
        chosen = np.asarray(y, dtype=float)
        pairs = np.outer(chosen, chosen)[np.triu_indices(self.labels, 1)]
        return np.concatenate([np.outer(chosen, x).ravel(), pairs])

    def loss(self, y, u):
        return float(np.sum(np.asarray(y) != np.asarray(u)))

    def decode(self, x, w, y=None):
        of_labels = w[: self.labels * self.features].reshape(self.labels, -1) @ x
        values = self.sets @ of_labels + self.pairs @ w[self.labels * self.features :]
        if y is not None:
            values = values + (self.sets != np.asarray(y)).sum(axis=1)
        return tuple(int(v) for v in self.sets[np.argmax(values)])


class Hierarchy:
    """Classes are leaves of a tree; a wrong leaf costs the number of nodes it does not share."""

    def __init__(self, paths, features):
        self.paths, self.features = paths, features
        self.nodes = 1 + max(node for path in paths for node in path)

    @property
    def size(self):
        return self.nodes * self.features

    def joint_features(self, x, y):
        table = np.zeros((self.nodes, self.features))
        table[list(self.paths[y])] = x
        return table.ravel()

    def loss(self, y, u):
        return float(len(set(self.paths[y]) - set(self.paths[u])))

    def decode(self, x, w, y=None):
        of_nodes = w.reshape(self.nodes, -1) @ x
        values = [of_nodes[list(path)].sum() for path in self.paths]
        if y is not None:
            values = [v + self.loss(y, u) for u, v in enumerate(values)]
        return int(np.argmax(values))


class Matching:
    """Who belongs to whom: a permutation; x[i, j] has the features of the pair i, j."""

    def __init__(self, features):
        self.size = features

    def joint_features(self, x, y):
        return x[np.arange(len(y)), list(y)].sum(axis=0)

    def loss(self, y, u):
        return float(np.sum(np.asarray(y) != np.asarray(u)))

    def decode(self, x, w, y=None):
        values = x @ w
        if y is not None:
            # A pair that is not the true one costs 1.
            values = values + 1.0
            values[np.arange(len(y)), list(y)] -= 1.0
        return tuple(int(j) for j in linear_sum_assignment(values, maximize=True)[1])


class Segments:
    """Where a sequence changes and what each segment is: a tuple of (end, kind).

    A segment has the sum of the features of its positions for its kind, and a price for existing;
    each wrong position costs 1.
    """

    def __init__(self, kinds, features):
        self.kinds, self.features = kinds, features

    @property
    def size(self):
        return self.kinds * self.features + 1

    @staticmethod
    def positions(y):
        kinds, begin = [], 0
        for end, kind in y:
            kinds += [kind] * (end - begin)
            begin = end
        return np.array(kinds)

    def joint_features(self, x, y):
        table, kinds = np.zeros((self.kinds, self.features)), self.positions(y)
        for kind in range(self.kinds):
            table[kind] = x[kinds == kind].sum(axis=0)
        return np.concatenate([table.ravel(), [len(y)]])

    def loss(self, y, u):
        return float(np.sum(self.positions(y) != self.positions(u)))

    def decode(self, x, w, y=None):
        values = x @ w[:-1].reshape(self.kinds, -1).T
        if y is not None:
            truth = self.positions(y)
            values = values + (np.arange(self.kinds) != truth[:, None])
        sums = np.vstack([np.zeros(self.kinds), np.cumsum(values, axis=0)])
        length = len(x)
        best, back = np.full((length + 1, self.kinds + 1), -np.inf), {}
        best[0, self.kinds] = 0.0
        for end in range(1, length + 1):
            for kind in range(self.kinds):
                for begin in range(end):
                    # Neighbouring segments are of different kinds.
                    before = best[begin].copy()
                    before[kind] = -np.inf
                    last = int(np.argmax(before))
                    value = before[last] + sums[end, kind] - sums[begin, kind] + w[-1]
                    if value > best[end, kind]:
                        best[end, kind], back[end, kind] = value, (begin, last)
        end, kind, found = length, int(np.argmax(best[length])), []
        while end > 0:
            found.append((end, kind))
            end, kind = back[end, kind]
        return tuple(reversed(found))


def show(name, problem, X, y, C=1.0):
    """Train on the first two thirds and print the mean loss on the others."""
    cut = 2 * len(X) // 3
    model = StructuredSVM(problem, problem.size, C=C, max_iter=300).fit(X[:cut], y[:cut])
    found = model.predict(X[cut:])
    losses = [problem.loss(true, own) for true, own in zip(y[cut:], found, strict=True)]
    print(f"{name}: mean loss {np.mean(losses):.3f}, gap {100 * model.gap_:.2f} %")


X = rng.normal(size=(90, 5))
W = rng.normal(size=(4, 5))
show("sets of labels", LabelSets(4, 5), X, [tuple(int(v > 0) for v in W @ x) for x in X])

paths = [(0, 2), (0, 3), (1, 4), (1, 5)]
centres = rng.normal(size=(4, 5)) * 2
leaves = rng.integers(0, 4, 90)
points = centres[leaves] + 0.5 * rng.normal(size=(90, 5))
show("classes of a hierarchy", Hierarchy(paths, 5), points, leaves.tolist())

pairs = rng.normal(size=(60, 5, 5, 3))
truth = [
    tuple(int(j) for j in linear_sum_assignment(x @ np.array([1.0, -2.0, 0.5]), maximize=True)[1])
    for x in pairs
]
show("matchings", Matching(3), pairs, truth)

signals, segments = [], []
for _ in range(45):
    ends = [*np.sort(rng.choice(np.arange(3, 18), 2, replace=False)).tolist(), 20]
    kinds = [int(k) for k in (rng.integers(0, 3) + np.array([0, 1, 2])) % 3]
    segments.append(tuple(zip(ends, kinds, strict=True)))
    signals.append(np.eye(3)[Segments.positions(segments[-1])] + 0.4 * rng.normal(size=(20, 3)))
show("segments", Segments(3, 3), signals, segments, C=0.1)
