"""The span of a model: what it can be at fixed points, over the whole prior, in few coordinates.

A smooth model moves in few directions as theta runs over the prior, and its values at a few of the points then
determine all the others. Losses only need distances between functions, so a loss at theta costs a handful of model
values instead of hundreds. The points are chosen by a pivoted factorisation of snapshots of the model, and the result
is checked on thetas that it has not seen; a model that cannot be written like this keeps all of its points.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg, special

from l2calib.models.model import Model
from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.numerics.namespace import AnyArray, namespace_of
from l2calib.numerics.spread import kronecker
from l2calib.problem.prior import Prior

_SNAPSHOTS = 512
_RANK_TOLERANCE = 1e-13
_CHECK_TOLERANCE = 1e-11
_POINT_BY_POINT = 4  # up to so many coordinates, a model is quicker evaluated for one point at a time
_POINTS = (8, 24, 64)  # of a span, filled up: spans of one model then share what is compiled
_LEAST_SLOPE = 1e-10  # of the largest: below, a direction is rounding
_DIRECTION_TOLERANCE = 1e-5  # of directions: no interval knows of it
_REACH = 6.0  # of the snapshots, in standard deviations of the prior on the line


@functools.partial(jax.tree_util.register_dataclass, data_fields=["points", "encoder"], meta_fields=["model"])
@dataclass(frozen=True, eq=False)
class ModelCoordinates:
    """The model as a function from theta to its coordinates (m,).

    Its arrays may be arguments of a program, which then serves every design.
    """

    model: Model
    points: Array | np.ndarray  # where the model is evaluated (m, k)
    encoder: Array | np.ndarray  # from its values to coordinates: (m, m), or the diagonal (m,)

    def __call__(self, theta: Array) -> Array:
        if self.encoder.ndim == 1:
            return jnp.asarray(self.model(jnp.asarray(self.points), theta) * self.encoder)
        if len(self.points) > _POINT_BY_POINT:
            return jnp.asarray(self.encoder) @ self.model(jnp.asarray(self.points), theta)
        # XLA evaluates anew whatever the points share (a sine of theta) if it sees them as an axis.
        values = [self.model(jnp.asarray(point[None]), theta)[0] for point in self.points]
        return jnp.stack([functools.reduce(operator.add, map(operator.mul, row, values)) for row in self.encoder])

    def values(self, thetas: AnyArray) -> AnyArray:
        """The coordinates (N, m) at rows of theta (N, p), in the array library of these."""
        if namespace_of(thetas) is np:
            (coordinates,) = _compiled_rows(self, thetas, slopes=False)
            return coordinates
        return jax.vmap(self)(thetas)

    def with_slopes(self, thetas: AnyArray) -> tuple[AnyArray, AnyArray]:
        """The coordinates (N, m) and their slopes (N, m, p), likewise."""
        if namespace_of(thetas) is np:
            coordinates, slopes = _compiled_rows(self, thetas, slopes=True)
            return coordinates, slopes
        return _with_slopes(self, thetas)


def _with_slopes(model: ModelCoordinates, thetas: Array) -> tuple[Array, Array]:
    def one(theta: Array) -> tuple[Array, Array]:
        value = model(theta)
        return value, value

    slopes, coordinates = jax.vmap(jax.jacfwd(one, has_aux=True))(thetas)
    return coordinates, slopes


def _compiled_rows(model: ModelCoordinates, thetas: np.ndarray, slopes: bool) -> tuple[np.ndarray, ...]:
    """In NumPy; what is compiled knows no encoder, and few numbers of points."""
    points, encoder = np.asarray(model.points), np.asarray(model.encoder)
    number = len(points)
    if encoder.ndim == 2:  # the model's value at one point is known to depend on no other
        size = next((each for each in _POINTS if number <= each), number)
        points = np.concatenate([points, np.broadcast_to(points[-1:], (size - number, points.shape[1]))])
    found = model.model.values_and_slopes(points, thetas) if slopes else (model.model.values(points, thetas),)
    values, *rest = (each[:, :number] for each in found)
    if encoder.ndim == 1:
        return values * encoder, *(each * encoder[:, None] for each in rest)
    return values @ encoder.T, *(np.matmul(encoder, each) for each in rest)


@dataclass(frozen=True, eq=False)
class Span:
    """Functions on M points as m coordinates: sum_i w_i f_i g_i is the scalar product of the coordinates.

    What lies outside the span has no coordinates; no theta can change it.
    """

    weights: np.ndarray  # (M,)
    coordinates: ModelCoordinates
    basis: np.ndarray  # (M, m), orthonormal under the weights

    @property
    def dimension(self) -> int:
        """m."""
        return int(self.basis.shape[1])

    @property
    def functionals(self) -> np.ndarray:
        """(M, m): the weighted basis, which takes values to coordinates."""
        return np.asarray(self.weights[:, None] * self.basis)

    def project(self, values: AnyArray) -> AnyArray:
        """The coordinates (..., m) of functions given by their values (..., M)."""
        return values @ self.functionals

    def outside(self, values: AnyArray) -> AnyArray:
        """The weighted sum of squares of what a function has outside the span."""
        rest = values - self.basis @ self.project(values)
        return namespace_of(values).sum(self.weights * rest**2)


def snapshots_of(model: Model, prior: Prior, points: np.ndarray) -> np.ndarray:
    """The model at points (M, k) in physical units, for parameters all over the prior: (T, M)."""
    return model.values(points, prior.from_line(_spread(prior.dimension)))


def span_of(
    model: Model,
    prior: Prior,
    points: np.ndarray,
    weights: np.ndarray,
    snapshots: np.ndarray,
    scale: np.ndarray | None = None,
) -> Span:
    """The span of the model at points (M, k) in physical units, under positive weights (M,); `scale` multiplies it."""
    line, roots = _spread(prior.dimension), np.sqrt(weights)
    factors = roots if scale is None else roots * scale
    values = snapshots * factors
    with np.errstate(invalid="ignore", over="ignore"):
        length = np.linalg.norm(values, axis=1)
    usable = np.isfinite(length) & (length > 0)
    line, values = line[usable], values[usable] / length[usable, None]
    reduced = _interpolation(values[::2])
    if reduced is not None:
        # From the picked points alone: a model whose value at one input depends on the others fails here.
        picked = ModelCoordinates(model, points[reduced.picked], np.diag(factors[reduced.picked]))
        alone = picked.values(prior.from_line(line[1::2]))
        missed = values[1::2] - (alone / length[usable, None][1::2]) @ reduced.matrix.T
        if not np.linalg.norm(missed, axis=1).max(initial=0.0) <= _CHECK_TOLERANCE:
            reduced = None
    if reduced is None:
        return Span(weights, ModelCoordinates(model, points, factors), np.diag(1 / roots))
    orthonormal, triangular = np.linalg.qr(reduced.matrix)
    coordinates = ModelCoordinates(model, points[reduced.picked], triangular * factors[reduced.picked])
    return Span(weights, coordinates, orthonormal / roots[:, None])


class _Interpolation(NamedTuple):
    """A row of snapshots is `matrix` times its own entries at `picked`."""

    picked: np.ndarray  # (m,)
    matrix: np.ndarray  # (M, m)


def narrowed(span: Span, prior: Prior) -> Span:
    """The part of a span that the model's slopes need, as directions of length one, and its differences.

    A span is exact to rounding, which takes many coordinates; what is made of directions needs far fewer. At every
    theta the slopes are made orthonormal first: the directions in which the model hardly moves count as much as others.
    """
    thetas = prior.from_line(special.ndtri(kronecker(_SNAPSHOTS, prior.dimension)))
    values, slopes = span.coordinates.with_slopes(thetas)
    values, slopes = values - values.mean(axis=0), slopes * prior.scale
    usable = np.isfinite(values).all(axis=1) & np.isfinite(slopes).all(axis=(1, 2))
    directions, lengths, _ = np.linalg.svd(slopes[usable], full_matrices=False)
    moving = lengths > _LEAST_SLOPE * lengths.max(axis=1, keepdims=True)
    away = np.linalg.norm(values[usable], axis=1, keepdims=True)
    rows = np.swapaxes(directions, 1, 2)[moving], (values[usable] / np.where(away > 0, away, 1.0))
    _, sizes, turned = np.linalg.svd(np.concatenate(rows), full_matrices=False)
    kept = turned[sizes > _DIRECTION_TOLERANCE * sizes[0]].T if sizes.size else np.eye(span.dimension)
    if 4 * kept.shape[1] > 3 * span.dimension:
        return span
    own = span.coordinates
    encoder = kept.T * own.encoder if own.encoder.ndim == 1 else kept.T @ own.encoder
    return Span(span.weights, ModelCoordinates(own.model, own.points, encoder), span.basis @ kept)


def _spread(dimension: int) -> np.ndarray:
    """Points on the line: of every two neighbours one is to learn from, one to check with.

    Half of either are spread as the prior is, half reach evenly into its tails.
    """
    unit = kronecker(2 * _SNAPSHOTS, dimension)
    return np.where(np.arange(len(unit))[:, None] % 4 < 2, special.ndtri(unit), _REACH * (2 * unit - 1))


def _interpolation(snapshots: np.ndarray) -> _Interpolation | None:
    """The interpolative decomposition of the snapshots' columns; None where it would not save half of them."""
    triangular, order = linalg.qr(snapshots, mode="r", pivoting=True)
    size = np.abs(np.diag(triangular))
    rank = int(np.sum(size > _RANK_TOLERANCE * size[0])) if size[0] > 0 else 0
    points = snapshots.shape[1]
    if not 0 < 2 * rank <= points:
        return None
    matrix = np.empty((points, rank))
    matrix[order[:rank]] = np.eye(rank)
    matrix[order[rank:]] = linalg.solve_triangular(triangular[:rank, :rank], triangular[:rank, rank:]).T
    in_order = np.argsort(order[:rank])  # the model sees its inputs in the order in which the user gave them
    return _Interpolation(order[:rank][in_order], matrix[:, in_order])
