"""The search for a maximum projection Latin hypercube: lattices, descent by swaps, and shaking (docs/decisions/0007).

Which levels the ranks stand for only scales the criterion, so the search knows ranks alone.
"""

from __future__ import annotations

import numpy as np

from l2calib.designs.criterion import log_mean_product
from l2calib.designs.lattices import algebraic_lattice, cut, multiples, ranks_of
from l2calib.designs.swaps import descend

_MOST_POINTS, _MOST_NUMBERS = 2000, 40_000_000  # above them swaps take too long, or their matrices too much memory
_DESCENTS = 3  # from the best of each family of lattices
_SHAKES = 3  # random swaps in one shake


def search(n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Ranks (n, k), 0 to n - 1 in each column, the first column in order."""
    if n == 1 or k == 1:
        return np.tile(np.arange(n)[:, None], k)
    lattices = _lattices(n, k, rng)
    if n > _MOST_POINTS or k * n**2 > _MOST_NUMBERS:
        return min(lattices, key=log_mean_product)
    swaps = _between(2_000_000_000 // n**2, 0, 100_000)
    descents = []
    for start in lattices:
        ranks, total, spent = descend(start, swaps)
        descents.append((total, ranks))
        swaps -= spent
    total, ranks = min(descents, key=lambda each: each[0])
    return ranks_of(_shake(ranks, total, swaps, rng))


def _between(value: int, least: int, most: int) -> int:
    return max(least, min(value, most))


def _lattices(n: int, k: int, rng: np.random.Generator) -> list[np.ndarray]:
    """The best few of many lattices, best first within a family."""
    tries = _between(8_000_000 // n**2, 10, 200)
    basis = algebraic_lattice(k)
    families = [[multiples(n, k, rng) for _ in range(tries)]]
    if basis is not None:
        families.insert(0, [cut(n, basis, rng) for _ in range(tries)])
    return [ranks for family in families for ranks in sorted(family, key=log_mean_product)[:_DESCENTS]]


def _shake(ranks: np.ndarray, total: float, swaps: int, rng: np.random.Generator) -> np.ndarray:
    """Iterated local search: swap a few at random, descend again, keep what is better."""
    n, k = ranks.shape
    for _ in range(_between(8_000_000 // (n**2 * (k - 1)), 10, 200)):
        if swaps <= 0:
            break
        shaken = ranks.copy()
        for _ in range(_SHAKES):
            pair, column = rng.choice(n, 2, replace=False), rng.integers(k)
            shaken[pair, column] = shaken[pair[::-1], column]
        shaken, reached, spent = descend(shaken, swaps)
        swaps -= spent
        if reached < total * (1 - 1e-10):
            ranks, total = shaken, reached
    return ranks
