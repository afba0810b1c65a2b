"""Tensor Gauss-Legendre quadrature on the unit cube."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tests.oracles.arrays import Array


@dataclass(frozen=True)
class Quadrature:
    """Nodes chi, one row each, and weights omega that sum to one."""

    nodes: Array
    weights: Array


def gauss_legendre(points: int, dimension: int) -> Quadrature:
    """The tensor rule with ``points`` nodes along each of ``dimension`` axes."""
    roots, weights = np.polynomial.legendre.leggauss(points)
    axes = [(roots + 1) / 2] * dimension
    halves = [weights / 2] * dimension
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    products = np.stack(np.meshgrid(*halves, indexing="ij"), axis=-1)
    return Quadrature(nodes.reshape(-1, dimension), products.prod(axis=-1).ravel())
