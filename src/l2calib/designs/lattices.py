"""Latin hypercubes cut from lattices, where the search begins (docs/decisions/0007).

A lattice of algebraic integers, each written as its k real conjugates, has the criterion's own virtue: the product of
the coordinates of any difference is a norm, a whole number other than zero, so no two of its points are ever near in
that sense. A cube cut from it keeps this, and replacing coordinates by ranks changes it little.
"""

from __future__ import annotations

import math

import numpy as np

# By the number of inputs k, an m whose field of 2 cos(2 pi / m) has degree k, a small discriminant and a short basis.
_CONDUCTORS = {2: 5, 3: 7, 4: 15, 5: 11, 6: 13, 8: 17, 9: 19}
_STRETCH = 0.3  # standard deviation of the logarithm of each axis
_MARGIN = 1.1


def ranks_of(points: np.ndarray) -> np.ndarray:
    """Ranks 0 to n - 1 in each column, rows in the order of the first."""
    ranks = points.argsort(axis=0, kind="stable").argsort(axis=0)
    return ranks[ranks[:, 0].argsort()]


def algebraic_lattice(k: int) -> np.ndarray | None:
    """A basis in columns, one real conjugate per row; None where no small discriminant is at hand."""
    if k not in _CONDUCTORS:
        return None
    m = _CONDUCTORS[k]
    conjugates = [a for a in range(1, (m + 1) // 2) if math.gcd(a, m) == 1]
    basis = 2 * np.cos(2 * np.pi * np.outer(conjugates, np.arange(k)) / m)
    basis[:, 0] = 1.0
    return basis


def cut(n: int, basis: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Ranks of the n lattice points nearest to a random centre, in the largest coordinate, after a random stretch."""
    k = len(basis)
    stretch = _STRETCH * rng.standard_normal(k)
    basis = np.exp(stretch - stretch.mean())[:, None] * basis
    centre = basis @ rng.random(k)
    reach = (n * abs(np.linalg.det(basis))) ** (1 / k) / 2
    inside = np.empty((0, k))
    while len(inside) < n:
        reach *= _MARGIN
        away = _points_within(basis, centre, reach * math.sqrt(k)) - centre
        inside = away[np.abs(away).max(axis=1) <= reach]
    nearest = np.abs(inside).max(axis=1).argsort(kind="stable")[:n]
    return ranks_of(inside[nearest])


def _points_within(basis: np.ndarray, centre: np.ndarray, radius: float) -> np.ndarray:
    """All lattice points in a ball: their whole coordinates from the last to the first, each within what is left."""
    orthogonal, triangular = np.linalg.qr(basis)
    target = orthogonal.T @ centre
    k = len(basis)
    coordinates, left = np.empty((1, 0)), np.full(1, radius**2)
    for row in reversed(range(k)):
        scale = triangular[row, row]
        middle = (target[row] - coordinates @ triangular[row, row + 1 :]) / scale
        half = np.sqrt(left) / abs(scale)
        lowest = np.ceil(middle - half)
        counts = np.maximum(np.floor(middle + half) - lowest + 1, 0).astype(int)
        parent = np.repeat(np.arange(len(left)), counts)
        child = np.arange(len(parent)) - np.repeat(counts.cumsum() - counts, counts)
        here = lowest[parent] + child
        left = np.maximum(left[parent] - (scale * (here - middle[parent])) ** 2, 0)
        coordinates = np.column_stack([here, coordinates[parent]])
    points: np.ndarray = coordinates @ basis.T
    return points


def multiples(n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Ranks of the multiples of a random vector, modulo one: a lattice for any number of inputs."""
    step, shift = rng.random((2, k - 1))
    index = np.arange(n)[:, None]
    return ranks_of(np.hstack([index, (index * step + shift) % 1]))
