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

sigma2 is integrated out under 1/sigma2. Rows of theta are the first axis throughout, in NumPy or in JAX, whichever the
arrays are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from l2calib.numerics.namespace import AnyArray, namespace_of
from l2calib.numerics.small_matrices import backward_entries, cholesky_entries, forward_entries

_NEGLIGIBLE_SLOPE = 1e-10  # of the largest: sqrt(cond M) reaches 1e5 in sound models, rounding leaves 1e-15
_SWEEPS = 2  # of Gram and Schmidt: a second makes the columns orthogonal to rounding
_RELATIVE_FLOOR = 1e-14  # of a pivot: what rounding leaves of one that is zero


class Slopes(NamedTuple):
    """The model's slopes at rows of theta, made orthonormal in L2; a direction that moves nothing is zero."""

    at_nodes: AnyArray  # Q, (N, l, p)
    at_design: AnyArray  # T, (N, m, p), in the coordinates of the span there
    inverse_root: AnyArray  # R^-1, (N, p, p)
    log_volume: AnyArray  # log det(M)^(1/2) of the directions that move something, (N,)
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
    log_volume, moving = xp.zeros_like(least), []
    for j in range(p):
        q, t = at_nodes[:, :, j], at_design[:, :, j]
        own = xp.broadcast_to(xp.asarray(np.eye(p)[j]), (q.shape[0], p))
        for _ in range(_SWEEPS):
            for i in range(j):
                part = xp.sum(nodes[i] * q, axis=1)[:, None]
                q, t, own = q - part * nodes[i], t - part * design[i], own - part * roots[i]
        size = xp.sqrt(xp.sum(q**2, axis=1))
        moves = scale[j] * size > least
        factor = xp.where(moves, 1 / xp.where(moves, size, 1.0), 0.0)[:, None]
        nodes.append(q * factor)
        design.append(t * factor)
        roots.append(own * factor)
        log_volume = log_volume + xp.where(moves, xp.log(xp.where(moves, size, 1.0)), 0.0)
        moving.append(moves)
    return Slopes(xp.stack(nodes, 2), xp.stack(design, 2), xp.stack(roots, 2), log_volume, xp.stack(moving, 1))


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


class Terms(NamedTuple):
    """Of rows of theta, at w values of psi and v of kappa for each."""

    log_likelihood: AnyArray  # (N, w, v), sigma2 integrated out, up to a constant
    quadratic: AnyArray  # r' (kappa I + C_theta)^-1 r
    weights: AnyArray | None = None  # (kappa I + C_theta)^-1 r in the eigenbasis, (N, w, v, s), where it was asked for
    load: AnyArray | None = None  # T' times it, (N, w, v, p)


def projected_terms(
    rotated: Rotated,
    responses: RotatedResponses,
    kappa: AnyArray,
    modelled: AnyArray,
    slopes: Slopes,
    observations: float,
    with_weights: bool = False,
) -> Terms:
    """The likelihood at rows of theta, for models (N, m) at the design; kappa is (w, v)."""
    xp = namespace_of(modelled)
    p = slopes.at_nodes.shape[2]
    t = _to_eigenbasis(rotated.basis, slopes.at_design)  # (N, w, s, p)
    b = _to_eigenbasis(rotated.cross, slopes.at_nodes)
    carried_nodes = xp.matmul(rotated.big_h, slopes.at_nodes[:, None])  # (N, w, l, p)
    inner = xp.matmul(xp.swapaxes(slopes.at_nodes, 1, 2)[:, None], carried_nodes)[..., None]
    h = [[inner[:, :, i, j] for j in range(p)] for i in range(p)]  # each (N, w, 1)
    residual = responses.y - xp.matmul(rotated.basis, modelled[:, None, :, None])[..., 0]
    diagonal = kappa[:, :, None] + rotated.eigenvalues[:, None, :]  # (w, v, s)
    gram = _Gram(xp.concatenate([t, b, residual[..., None]], axis=3), 1 / diagonal)
    nothing = xp.where(slopes.moves, 0.0, 1.0)[:, :, None, None]  # a direction that moves nothing is left out
    of = range(p)
    upper = [[gram[i, j] + (nothing[:, i] if i == j else 0.0) for j in of] for i in of]
    mixed = [[gram[i, p + j] - (1.0 if i == j else 0.0) for i in of] for j in of]  # by columns
    root = cholesky_entries(upper, [_RELATIVE_FLOOR * upper[i][i] for i in of])
    carried = [forward_entries(root, column) for column in mixed]  # columns of L^-1 (T' Phi^-1 b - I)
    schur = [[h[i][j] - gram[p + i, p + j] + _dot(carried[i], carried[j]) for j in of] for i in of]
    low = cholesky_entries(schur, [_RELATIVE_FLOOR * (xp.abs(schur[i][i]) + h[i][i] + nothing[:, i]) for i in of])
    first = forward_entries(root, [gram[i, 2 * p] for i in of])
    second = forward_entries(low, [gram[p + i, 2 * p] - _dot(carried[i], first) for i in of])
    quadratic = gram[2 * p, 2 * p] + responses.rest[:, None] / kappa - _dot(first, first) + _dot(second, second)
    log_determinant = xp.sum(xp.log(diagonal), axis=2) + rotated.left_out * xp.log(kappa)
    log_determinant = log_determinant + 2 * sum(xp.log(root[i][i]) + xp.log(low[i][i]) for i in of)
    terms = Terms(-log_determinant / 2 - observations / 2 * xp.log(quadratic), quadratic)
    if not with_weights:
        return terms
    # A u = W' Phi^-1 r; minus the Schur complement is what was factorised.
    u_second = [-each for each in backward_entries(low, second)]
    u_first = backward_entries(root, [first[i] - sum(carried[j][i] * u_second[j] for j in of) for i in of])
    explained = sum(t[:, :, None, :, i] * u_first[i][..., None] for i in of)
    explained = explained + sum(b[:, :, None, :, i] * u_second[i][..., None] for i in of)
    weights = (residual[:, :, None, :] - explained) / diagonal
    return terms._replace(weights=weights, load=xp.matmul(weights, t))


def bias_in_span(rotated: Rotated, slopes: Slopes, terms: Terms) -> AnyArray:
    """The conditional mean of Z_theta in the model's span at the nodes: (N, w, v, l)."""
    xp = namespace_of(slopes.at_nodes)
    assert terms.weights is not None
    assert terms.load is not None
    from_design = xp.matmul(terms.weights, rotated.cross)
    carried = xp.matmul(rotated.big_h, slopes.at_nodes[:, None])  # (N, w, l, p)
    g = from_design - xp.matmul(terms.load, xp.swapaxes(carried, 2, 3))
    along = xp.matmul(g, slopes.at_nodes[:, None])  # (N, w, v, p)
    return g - xp.matmul(along, xp.swapaxes(slopes.at_nodes, 1, 2)[:, None])


def _to_eigenbasis(maps: AnyArray, columns: AnyArray) -> AnyArray:
    """Columns (N, m, p) of every theta in the eigenbasis of every psi, by maps (w, s, m): (N, w, s, p)."""
    return namespace_of(columns).matmul(maps, columns[:, None])


def _dot(one: list[AnyArray], other: list[AnyArray]) -> AnyArray:
    return sum(left * right for left, right in zip(one, other, strict=True))


class _Gram:
    """Products of columns (N, w, s, c) under Phi^-1, one table for every pair."""

    def __init__(self, columns: AnyArray, inverse: AnyArray) -> None:
        xp = namespace_of(columns)
        count = columns.shape[3]
        rows, others = np.triu_indices(count)
        by_column = xp.moveaxis(columns, 3, 2)  # (N, w, c, s)
        products = by_column[:, :, rows] * by_column[:, :, others]  # (N, w, pairs, s)
        self._table = xp.matmul(products, xp.moveaxis(inverse, 2, 1)[None])  # (N, w, pairs, v)
        self._place = {(int(i), int(j)): at for at, (i, j) in enumerate(zip(rows, others, strict=True))}

    def __getitem__(self, pair: tuple[int, int]) -> AnyArray:
        """(N, w, v)."""
        return self._table[:, :, self._place[min(pair), max(pair)]]
