"""The measure on the inputs under which distances are taken: nodes chi and weights omega (paper, equation for L_L2)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from l2calib.errors import MethodError, whole_number

_DEFAULT_NODES_PER_INPUT = {1: 64, 2: 20}
_DEFAULT_SOBOL_POWER = 12


@dataclass(frozen=True, eq=False)
class Quadrature:
    """Nodes (Q, k) in the unit cube with weights (Q,) that sum to one.

    Where it is `nested`, the weights are equal and the first 2^m nodes are a rule by themselves.
    """

    nodes: np.ndarray
    weights: np.ndarray
    nested: bool = False

    def __post_init__(self) -> None:
        shapes_agree = self.nodes.size > 0 and self.nodes.ndim == 2 and self.weights.shape == self.nodes.shape[:1]
        if not shapes_agree:
            raise MethodError(
                f"quadrature needs nodes (Q, k) and weights (Q,): received {self.nodes.shape} and {self.weights.shape}."
            )
        if self.nodes.min() < 0 or self.nodes.max() > 1 or not np.isclose(self.weights.sum(), 1.0):
            raise MethodError("quadrature needs nodes in the unit cube and weights that sum to one; rescale them.")

    def thinned(self, most: int) -> Quadrature:
        """At most so many nodes, a power of two, of a nested rule; of another, all of them."""
        if not self.nested or len(self.nodes) <= most:
            return self
        return Quadrature(self.nodes[:most], np.full(most, 1 / most), nested=True)


def gauss_legendre(inputs: int, nodes_per_input: int) -> Quadrature:
    """The tensor Gauss-Legendre rule."""
    whole_number(inputs, "the number of inputs", least=1)
    whole_number(nodes_per_input, "the number of nodes per input", least=1)
    points, weights = np.polynomial.legendre.leggauss(nodes_per_input)
    points, weights = (points + 1) / 2, weights / 2
    nodes = np.array(list(itertools.product(points, repeat=inputs)))
    products = np.array(list(itertools.product(weights, repeat=inputs))).prod(axis=1)
    return Quadrature(nodes, products)


def sobol(inputs: int, power: int = _DEFAULT_SOBOL_POWER, seed: int = 0) -> Quadrature:
    """2**power scrambled Sobol points with equal weights."""
    from scipy.stats import qmc

    whole_number(inputs, "the number of inputs", least=1)
    whole_number(power, "the power of two", least=0, most=30)
    nodes = qmc.Sobol(inputs, scramble=True, rng=np.random.default_rng(seed)).random_base2(power)
    return Quadrature(nodes, np.full(len(nodes), 1 / len(nodes)), nested=True)


def default_quadrature(inputs: int) -> Quadrature:
    """Gauss-Legendre for one or two inputs, Sobol beyond."""
    if inputs in _DEFAULT_NODES_PER_INPUT:
        return gauss_legendre(inputs, _DEFAULT_NODES_PER_INPUT[inputs])
    return sobol(inputs)
