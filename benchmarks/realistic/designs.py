"""Where people measure: evenly, at levels that double, wherever they could, mostly in one corner, or again and again.

Points are of the unit cube of inputs. Levels that grow by a constant factor do so in physical units, from the lower end
of a range of positive numbers that spans a factor of ten or more, and otherwise as distances from the lower end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import qmc

SHARES = {"even": 0.20, "log-spaced": 0.25, "random": 0.20, "crowded": 0.15, "replicated": 0.20}
_REPLICATES = (2, 3, 4, 5)
_MOST_DILUTIONS = 8  # the lowest of so many doubling levels is at 1/128 of the highest

Ranges = Sequence[tuple[float, float]]


def draw_design(rng: np.random.Generator, kind: str, n: int, ranges: Ranges, parameters: int) -> np.ndarray:
    """A design of a kind, about n points of the unit cube (n, k); factorial and replicated ones as near as they can."""
    if kind == "random":
        return rng.uniform(size=(n, len(ranges)))
    if kind == "crowded":
        return _crowded(rng, n, len(ranges))
    if kind == "replicated":
        return _replicated(rng, n, ranges, parameters)
    return _regular(rng, kind, n, ranges)


def _regular(rng: np.random.Generator, kind: str, n: int, ranges: Ranges) -> np.ndarray:
    """Levels of one input; of two, a Latin hypercube or, from nine points on, all pairs of their levels."""
    if len(ranges) == 1:
        return _levels(rng, kind, n, ranges[0])[:, None]
    if n >= 9 and rng.uniform() < 0.5:
        first, second = _factors(rng, n)
        grid = np.meshgrid(_levels(rng, kind, first, ranges[0]), _levels(rng, kind, second, ranges[1]), indexing="ij")
        return np.stack([each.ravel() for each in grid], axis=1)
    places = _latin_hypercube(rng, n)
    columns = [np.sort(_levels(rng, kind, n, limits))[places[:, j]] for j, limits in enumerate(ranges)]
    return np.stack(columns, axis=1)


def _levels(rng: np.random.Generator, kind: str, number: int, limits: tuple[float, float]) -> np.ndarray:
    """So many levels of one input in the unit interval."""
    if kind == "even":
        ends = rng.uniform() < 0.5
        return np.linspace(0, 1, number) if ends else (np.arange(number) + 0.5) / number
    low, high = limits
    if low > 0 and high / low >= 10:
        return np.clip((np.geomspace(low, high, number) - low) / (high - low), 0, 1)
    if 4 <= number <= _MOST_DILUTIONS and rng.uniform() < 0.5:
        return 2.0 ** np.arange(1 - number, 1)
    return np.geomspace(np.exp(rng.uniform(np.log(1 / 100), np.log(1 / 10))), 1, number)


def _factors(rng: np.random.Generator, n: int) -> tuple[int, int]:
    """Two numbers of levels, three or more, with a product near n."""
    first = min(max(round(np.sqrt(n) * np.exp(rng.uniform(-0.3, 0.3))), 3), n // 3)
    second = max(3, round(n / first))
    return (first, second) if rng.uniform() < 0.5 else (second, first)


def _latin_hypercube(rng: np.random.Generator, n: int) -> np.ndarray:
    """Places (n, 2) of 0 to n - 1, each once per column, spread better than a handful of others."""
    several = [np.stack([rng.permutation(n), rng.permutation(n)], axis=1) for _ in range(32)]
    return min(several, key=lambda places: qmc.discrepancy((places + 0.5) / n))


def _crowded(rng: np.random.Generator, n: int, inputs: int) -> np.ndarray:
    """Two thirds to three quarters of the points in a third of the box, and the others in the rest."""
    inside = round(n * rng.uniform(2 / 3, 3 / 4))
    whole_side = inputs == 1 or rng.uniform() < 0.5  # a third of one range, or a corner of both
    side = np.full(inputs, 1.0)
    if whole_side:
        side[rng.integers(inputs)] = 1 / 3
    else:
        side[:] = np.sqrt(1 / 3)
    corner = np.where(rng.uniform(size=inputs) < 0.5, 0.0, rng.uniform(size=inputs)) * (1 - side)
    if inputs == 1 and rng.uniform() < 0.5:
        return _crowded_levels(inside, n - inside, float(corner[0]))[:, None]
    crowd, rest = corner + side * rng.uniform(size=(inside, inputs)), np.empty((0, inputs))
    while len(rest) < n - inside:
        more = rng.uniform(size=(n, inputs))
        outside = ((more < corner) | (more > corner + side)).any(axis=1)
        rest = np.concatenate([rest, more[outside]])[: n - inside]
    return np.concatenate([crowd, rest])


def _crowded_levels(inside: int, outside: int, start: float) -> np.ndarray:
    """Even levels in the third that begins at `start`, and even ones in what is left."""
    free = (np.arange(outside) + 0.5) / outside * (2 / 3)
    return np.concatenate([np.linspace(start, start + 1 / 3, inside), np.where(free < start, free, free + 1 / 3)])


def _replicated(rng: np.random.Generator, n: int, ranges: Ranges, parameters: int) -> np.ndarray:
    """Few distinct points, two more than there are parameters or over, each two to five times."""
    least = parameters + 2
    possible = [times for times in _REPLICATES if n / times >= least] or [_REPLICATES[0]]
    times = int(rng.choice(possible))
    kind = "even" if rng.uniform() < 0.5 else "log-spaced"
    distinct = _regular(rng, kind, max(least, round(n / times), -(-9 // times)), ranges)
    return np.repeat(distinct, times, axis=0)
