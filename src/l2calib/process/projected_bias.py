"""The likelihood of theta when the bias is a process projected at theta (docs/l2.md): c_theta, updated from c.

    y = eta(X; theta) + Z_theta(X) + e,    Z_theta = (I - P_theta) Z,    Z ~ GP(0, tau^2 c(.,.; psi)),

where P_theta projects on the model's slopes at theta in L2. With slopes that are orthonormal, J R^-1 = Q at the nodes
and T at the design, b = C_XD F and S = F' C_DD F for F = omega Q,

    kappa I + C_theta = Phi + W K W',    W = [T b],    K = [[S, -I], [-I, 0]],

so that in the eigenbasis of C_XX(psi) a theta costs O(n p^2) at every kappa. The matrix of Woodbury's formula,

    A = K^-1 + W' Phi^-1 W = [[T' Phi^-1 T, T' Phi^-1 b - I], [b' Phi^-1 T - I, b' Phi^-1 b - S]],

has p positive and p negative eigenvalues: the first block is a square, and minus its Schur complement is the sum of a
conditional variance and of a square. So two small Cholesky factors give its determinant and its inverse, without the
cancellation that an expansion about a nearly singular M would bring.

sigma2 is integrated out under 1/sigma2. Slopes have rows of theta as their first axis; in what is computed of them rows
are the last one, along which thousands are vectorised. All of it is written for NumPy and for JAX, whichever the arrays
are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from l2calib.numerics.namespace import AnyArray, namespace_of
from l2calib.numerics.small_matrices import (
    Entries,
    backward_entries,
    cholesky_entries,
    diagonal,
    forward_entries,
    lower_solve,
)

_NEGLIGIBLE_SLOPE = 1e-10  # of the largest: sqrt(cond M) reaches 1e5 in sound models, rounding leaves 1e-15
_SWEEPS = 2  # of Gram and Schmidt: a second makes the columns orthogonal to rounding
_RELATIVE_FLOOR = 1e-14  # of a pivot: what rounding leaves of one that is zero


class Slopes(NamedTuple):
    """The model's slopes at rows of theta, made orthonormal in L2; a direction that moves nothing is zero."""

    at_nodes: AnyArray  # Q, (N, l, p)
    at_design: AnyArray  # T, (N, m, p), in the coordinates of the span there
    inverse_root: AnyArray  # R^-1, (N, p, p)
    log_volume: AnyArray  # log det(M)^(1/2), or of singular values that are not zero, (N,)
    moves: AnyArray  # which they are, (N, p)


def orthonormal_slopes(at_nodes: AnyArray, at_design: AnyArray, scale: np.ndarray) -> Slopes:
    """From Jacobians (N, l, p) and (N, m, p); `scale` (p,) makes the parameters comparable."""
    xp = namespace_of(at_nodes)
    p = at_nodes.shape[2]
    sizes = xp.stack([scale[j] * xp.sqrt(xp.sum(at_nodes[:, :, j] ** 2, axis=1)) for j in range(p)])
    least = _NEGLIGIBLE_SLOPE * xp.max(sizes, axis=0)
    nodes: list[AnyArray] = []
    design: list[AnyArray] = []
    roots: list[AnyArray] = []  # the columns of R^-1
    triangle: Entries = []  # the columns of R, without its diagonal
    moving, lengths = [], []
    for j in range(p):
        q, t = at_nodes[:, :, j], at_design[:, :, j]
        own = xp.broadcast_to(xp.asarray(np.eye(p)[j]), (q.shape[0], p))
        along = [xp.zeros_like(least) for _ in range(j)]
        for _ in range(_SWEEPS):
            for i in range(j):
                length = xp.sum(nodes[i] * q, axis=1)
                along[i] = along[i] + length
                part = length[:, None]
                q, t, own = q - part * nodes[i], t - part * design[i], own - part * roots[i]
        size = xp.sqrt(xp.sum(q**2, axis=1))
        moves = scale[j] * size > least
        factor = xp.where(moves, 1 / xp.where(moves, size, 1.0), 0.0)[:, None]
        nodes.append(q * factor)
        design.append(t * factor)
        roots.append(own * factor)
        triangle.append(along)
        lengths.append(xp.where(moves, size, 1.0))
        moving.append(moves)
    moves, log_volume = xp.stack(moving, 1), sum(xp.log(each) for each in lengths)
    if p > 1:
        log_volume = xp.where(xp.all(moves, axis=1), log_volume, _log_volume_of_some(triangle, lengths, moving, scale))
    return Slopes(xp.stack(nodes, 2), xp.stack(design, 2), xp.stack(roots, 2), log_volume, moves)


def _log_volume_of_some(
    triangle: Entries, lengths: list[AnyArray], moving: list[AnyArray], scale: np.ndarray
) -> AnyArray:
    """The log of the product of the slopes' singular values that are not zero, the parameters in units of `scale`.

    Taken back to the parameters' own units as a determinant is, so that nothing depends on these.
    """
    p = len(lengths)
    xp = namespace_of(lengths[0])
    zero = xp.zeros_like(lengths[0])

    def entry(i: int, j: int) -> AnyArray:
        """Of R, whose rows are zero for directions that move nothing."""
        own = triangle[j][i] if i < j else lengths[j] if i == j else zero
        return scale[j] * xp.where(moving[i], own, 0.0)

    rows = [[entry(i, j) for j in range(p)] for i in range(p)]
    gram = [[_dot(rows[i], rows[j]) + xp.where(moving[i], 0.0, float(i == j)) for j in range(i + 1)] for i in range(p)]
    root = cholesky_entries(gram)
    return sum(xp.log(root[i][i]) for i in range(p)) - float(np.log(scale).sum())


class Rotated(NamedTuple):
    """What depends on psi alone, for w values of it, in the eigenbasis of C_XX(psi) with s vectors."""

    log_psi: AnyArray  # (w, k)
    eigenvalues: AnyArray  # (w, s)
    cross: AnyArray  # U' C_XD F, (w, s, l)
    big_h: AnyArray  # F' C_DD F, (w, l, l)
    basis: AnyArray  # U' times the basis of the model's span at the design, (w, s, m)
    left_out: AnyArray  # eigenvectors without a part of the model or of the cross


class RotatedResponses(NamedTuple):
    """y in the eigenbasis of every psi, and its sum of squares along what is left out."""

    y: AnyArray  # (w, s)
    rest: AnyArray  # (w,)


class Nodes(NamedTuple):
    """G values of rho = (psi, kappa): the same as above divided by the root of kappa I + C_XX, in s coordinates."""

    log_psi: AnyArray  # (G, k)
    log_kappa: AnyArray  # (G,)
    cross: AnyArray  # (G, s, l)
    big_h: AnyArray  # (G, l, l)
    basis: AnyArray  # (G, s, m)
    y: AnyArray  # (G, s)
    rest: AnyArray  # (G,)
    log_determinant: AnyArray  # of Phi, (G,)


class Terms(NamedTuple):
    """Of rows of theta at many rho: (w, v, N), or at nodes (G, N)."""

    log_likelihood: AnyArray  # sigma2 integrated out, up to a constant
    quadratic: AnyArray  # r' (kappa I + C_theta)^-1 r


def nodes_of(rotated: Rotated, responses: RotatedResponses, log_kappa: AnyArray) -> Nodes:
    """One kappa (G,) for every psi. Of more eigenvectors than there are columns, as many coordinates are kept."""
    xp = namespace_of(log_kappa)
    kappa = xp.exp(log_kappa)
    sizes = kappa[:, None] + rotated.eigenvalues
    columns = xp.concatenate([rotated.basis, rotated.cross, responses.y[:, :, None]], axis=2)
    columns = columns / xp.sqrt(sizes)[:, :, None]
    if columns.shape[1] > columns.shape[2]:
        columns = xp.linalg.qr(columns, mode="r")
    m = rotated.basis.shape[2]
    return Nodes(
        log_psi=rotated.log_psi,
        log_kappa=log_kappa,
        cross=columns[:, :, m:-1],
        big_h=rotated.big_h,
        basis=columns[:, :, :m],
        y=columns[:, :, -1],
        rest=responses.rest / kappa,
        log_determinant=xp.sum(xp.log(sizes), axis=1) + rotated.left_out * log_kappa,
    )


def lattice_terms(
    rotated: Rotated,
    responses: RotatedResponses,
    kappa: AnyArray,
    modelled: AnyArray,
    slopes: Slopes,
    observations: float,
) -> Terms:
    """The likelihood at rows of theta, for models (N, m) at the design, at kappa (w, v) for every psi: (w, v, N)."""
    found, log_determinant = _on_lattice(rotated, responses, kappa, modelled, slopes)
    return _terms(found, log_determinant, observations)


def _on_lattice(
    rotated: Rotated, responses: RotatedResponses, kappa: AnyArray, modelled: AnyArray, slopes: Slopes
) -> tuple[_Solved, AnyArray]:
    """See `lattice_terms`; and log |Phi| (w, v, 1)."""
    xp = namespace_of(modelled)
    sizes = kappa[:, :, None] + rotated.eigenvalues[:, None, :]  # (w, v, s)
    seen = _seen(rotated.basis, rotated.cross, rotated.big_h, responses.y, modelled, slopes)
    columns = [*seen.t, *seen.b, seen.residual]
    rows, others = np.triu_indices(len(columns))
    products = xp.stack(
        [columns[i] * columns[j] for i, j in zip(rows, others, strict=True)], axis=2
    )  # (w, s, pairs, N)
    w, s, pairs, number = products.shape
    table = xp.matmul(1 / sizes, products.reshape(w, s, -1)).reshape(w, -1, pairs, number)
    place = {(int(i), int(j)): at for at, (i, j) in enumerate(zip(rows, others, strict=True))}
    entries = _Entries(lambda i, j: table[:, :, place[i, j]], [[each[:, None] for each in row] for row in seen.h])
    log_determinant = xp.sum(xp.log(sizes), axis=2) + rotated.left_out * xp.log(kappa)
    return _solved(entries, slopes, (responses.rest[:, None] / kappa)[:, :, None]), log_determinant[:, :, None]


class Expansion(NamedTuple):
    """The likelihood with the slopes of one theta, from where the model moves to eta + T u: a t distribution of u.

    It is exp(peak) {1 + |root^-1 (u - centre)|^2 / square}^(-n/2), with sigma2 integrated out. Axes of rho come first.
    """

    peak: AnyArray  # (...)
    centre: AnyArray  # (..., p)
    root: AnyArray  # (..., p, p), lower triangular
    square: AnyArray  # (...)

    def log_likelihood(self, u: AnyArray, observations: float) -> AnyArray:
        """At u (..., p)."""
        xp = namespace_of(u)
        away = lower_solve(self.root, u - self.centre)
        return self.peak - observations / 2 * xp.log1p(xp.sum(away**2, axis=-1) / self.square)

    def log_mass(self) -> AnyArray:
        """Its integral over u, up to a constant that is the same for all."""
        xp, p = namespace_of(self.peak), self.centre.shape[-1]
        return self.peak + xp.sum(xp.log(diagonal(self.root)), axis=-1) + p / 2 * xp.log(self.square)


def expanded(
    rotated: Rotated,
    responses: RotatedResponses,
    kappa: AnyArray,
    modelled: AnyArray,
    slopes: Slopes,
    observations: float,
) -> Expansion:
    """About rows of theta, at kappa (w, v) for every psi: the axes are (w, v, N)."""
    xp, p = namespace_of(modelled), slopes.at_nodes.shape[-1]
    found, log_determinant = _on_lattice(rotated, responses, kappa, modelled, slopes)
    # With slopes that stay, u leaves r projected off T as it is: q(u) = least + |low^-1 (low second - u)|^2.
    centre = [sum(found.low[i][j] * found.second[j] for j in range(i + 1)) for i in range(p)]
    log_determinant = _whole_determinant(found, log_determinant)
    zero = xp.zeros_like(found.least)
    root = xp.stack([xp.stack(found.low[i] + [zero] * (p - 1 - i), axis=-1) for i in range(p)], axis=-2)
    peak = -log_determinant / 2 - observations / 2 * xp.log(found.least)
    return Expansion(peak, xp.stack(centre, axis=-1), root, found.least)


class Looked(NamedTuple):
    """Nodes at rows of theta, with what the mean of the bias is made of."""

    terms: Terms
    seen: _Seen
    solved: _Solved


def node_terms(nodes: Nodes, modelled: AnyArray, slopes: Slopes, observations: float) -> Looked:
    """The likelihood at rows of theta, for models (N, m) at the design, at every node: (G, N).

    Every node may have rows of its own: models and slopes then have the nodes as their first axis, (G, N, m).
    """
    xp = namespace_of(modelled)
    seen = _seen(nodes.basis, nodes.cross, nodes.big_h, nodes.y, modelled, slopes)
    columns = [*seen.t, *seen.b, seen.residual]
    entries = _Entries(lambda i, j: xp.sum(columns[i] * columns[j], axis=1), seen.h)
    solved = _solved(entries, slopes, nodes.rest[:, None])
    return Looked(_terms(solved, nodes.log_determinant[:, None], observations), seen, solved)


def bias_in_span(nodes: Nodes, slopes: Slopes, looked: Looked) -> AnyArray:
    """The conditional mean of Z_theta in the model's span at the nodes of the quadrature: (G, l, N)."""
    xp, (_, seen, solved) = namespace_of(slopes.at_nodes), looked
    of = range(len(seen.t))
    # A u = W' Phi^-1 r; minus the Schur complement is what was factorised.
    u_second = [-each for each in backward_entries(solved.low, solved.second)]
    u_first = [solved.first[i] - sum(solved.carried[j][i] * u_second[j] for j in of) for i in of]
    u_first = backward_entries(solved.root, u_first)
    weights = seen.residual - sum(seen.t[i] * u_first[i][:, None] + seen.b[i] * u_second[i][:, None] for i in of)
    g = xp.matmul(xp.swapaxes(nodes.cross, 1, 2), weights)  # (G, l, N)
    for i in of:
        g = g - seen.carried[i] * xp.sum(seen.t[i] * weights, axis=1)[:, None]
    q = _rows_last(slopes.at_nodes)
    along = [xp.sum(g * q[i], axis=1) for i in of]
    return g - sum(along[i][:, None] * q[i] for i in of)


class _Seen(NamedTuple):
    """Columns (w, s, N) in the eigenbasis, one array for every direction, and F' C_DD F between them (w, N)."""

    t: list[AnyArray]
    b: list[AnyArray]
    residual: AnyArray
    carried: list[AnyArray]  # C_DD F, (w, l, N)
    h: list[list[AnyArray]]


def _seen(basis: AnyArray, cross: AnyArray, big_h: AnyArray, y: AnyArray, modelled: AnyArray, slopes: Slopes) -> _Seen:
    xp, p = namespace_of(modelled), slopes.at_nodes.shape[-1]
    at_design = _through(basis, [*_rows_last(slopes.at_design), xp.swapaxes(modelled, -2, -1)])
    q = _rows_last(slopes.at_nodes)
    carried = _through(big_h, q)
    h = [[xp.sum(q[i] * carried[j], axis=1) for j in range(i + 1)] for i in range(p)]
    return _Seen(at_design[:p], _through(cross, q), y[:, :, None] - at_design[p], carried, h)


def _rows_last(slopes: AnyArray) -> list[AnyArray]:
    """Of (..., N, m, p), for every direction (..., m, N)."""
    xp = namespace_of(slopes)
    return [xp.swapaxes(slopes[..., i], -2, -1) for i in range(slopes.shape[-1])]


def _through(maps: AnyArray, columns: list[AnyArray]) -> list[AnyArray]:
    """Columns (m, N) or (w, m, N) of every theta by maps (w, s, m), as products of large matrices: each (w, s, N)."""
    xp = namespace_of(maps)
    w, s, m = maps.shape
    together = xp.concatenate(columns, axis=-1)
    found = xp.matmul(maps.reshape(w * s, m) if together.ndim == 2 else maps, together)
    found = found.reshape(w, s, len(columns), -1)
    return [found[:, :, i] for i in range(len(columns))]


class _Entries(NamedTuple):
    """Products under Phi^-1 of the columns T, b and r, by their numbers (i <= j), and F' C_DD F."""

    gram: Callable[[int, int], AnyArray]
    h: list[list[AnyArray]]


class _Solved(NamedTuple):
    root: Entries
    low: Entries
    carried: list[list[AnyArray]]  # columns of L^-1 (T' Phi^-1 b - I)
    first: list[AnyArray]
    second: list[AnyArray]
    least: AnyArray  # r' Phi^-1 r of what of r lies off T
    quadratic: AnyArray


def _solved(entries: _Entries, slopes: Slopes, rest: AnyArray) -> _Solved:
    gram, h = entries
    p = len(h)
    of = range(p)
    xp = namespace_of(rest)
    nothing = [xp.where(slopes.moves[..., i], 0.0, 1.0) for i in of]  # a direction that moves nothing is left out
    upper = [[gram(j, i) + (nothing[i] if i == j else 0.0) for j in range(i + 1)] for i in of]  # its lower triangle
    mixed = [[gram(i, p + j) - (1.0 if i == j else 0.0) for i in of] for j in of]  # by columns
    root = cholesky_entries(upper, [_RELATIVE_FLOOR * upper[i][i] for i in of])
    carried = [forward_entries(root, column) for column in mixed]
    schur = [[h[i][j] - gram(p + j, p + i) + _dot(carried[i], carried[j]) for j in range(i + 1)] for i in of]
    low = cholesky_entries(schur, [_RELATIVE_FLOOR * (xp.abs(schur[i][i]) + h[i][i] + nothing[i]) for i in of])
    first = forward_entries(root, [gram(i, 2 * p) for i in of])
    second = forward_entries(low, [gram(p + i, 2 * p) - _dot(carried[i], first) for i in of])
    least = gram(2 * p, 2 * p) + rest - _dot(first, first)
    return _Solved(root, low, carried, first, second, least, least + _dot(second, second))


def _terms(solved: _Solved, log_determinant: AnyArray, observations: float) -> Terms:
    xp = namespace_of(solved.quadratic)
    log_determinant = _whole_determinant(solved, log_determinant)
    return Terms(-log_determinant / 2 - observations / 2 * xp.log(solved.quadratic), solved.quadratic)


def _whole_determinant(solved: _Solved, log_determinant: AnyArray) -> AnyArray:
    """log |kappa I + C_theta| from log |Phi|."""
    xp = namespace_of(solved.quadratic)
    return log_determinant + 2 * sum(xp.log(solved.root[i][i] * solved.low[i][i]) for i in range(len(solved.root)))


def _dot(one: list[AnyArray], other: list[AnyArray]) -> AnyArray:
    return sum(left * right for left, right in zip(one, other, strict=True))
