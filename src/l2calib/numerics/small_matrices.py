"""Linear algebra of p x p matrices, unrolled: a batch of thousands is elementwise work, not library calls.

Matrices are the last two axes of their arrays, and all axes before them are broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from l2calib.numerics.namespace import AnyArray, namespace_of

Entries: TypeAlias = list[list[AnyArray]]  # of a matrix, row by row, each an array over whatever there are many of


def cholesky_entries(matrix: Entries, floor: Sequence[AnyArray] | None = None) -> Entries:
    """The lower triangles of Cholesky factors, row by row.

    Pivots are kept at least at a positive `floor`; without one a matrix that is not positive definite gives NaN.
    """
    rows: Entries = []
    for i in range(len(matrix)):
        row: list[AnyArray] = []
        for j in range(i):
            rest = matrix[i][j]
            for m in range(j):
                rest = rest - row[m] * rows[j][m]
            row.append(rest / rows[j][j])
        pivot = matrix[i][i]
        for entry in row:
            pivot = pivot - entry**2
        row.append(namespace_of(pivot).sqrt(pivot if floor is None else _at_least(pivot, floor[i])))
        rows.append(row)
    return rows


def _at_least(pivot: AnyArray, low: AnyArray) -> AnyArray:
    xp = namespace_of(pivot)
    return xp.where(low > 0, xp.maximum(pivot, low), pivot)


def forward_entries(lower: Entries, right: Sequence[AnyArray]) -> list[AnyArray]:
    """L^-1 r, component by component."""
    solution: list[AnyArray] = []
    for i, component in enumerate(right):
        rest = component
        for m in range(i):
            rest = rest - lower[i][m] * solution[m]
        solution.append(rest / lower[i][i])
    return solution


def backward_entries(lower: Entries, right: Sequence[AnyArray]) -> list[AnyArray]:
    """L'^-1 r, component by component."""
    solution = list(right)
    for i in reversed(range(len(solution))):
        rest = solution[i]
        for m in reversed(range(i + 1, len(solution))):
            rest = rest - lower[m][i] * solution[m]
        solution[i] = rest / lower[i][i]
    return solution


def _entries(matrix: AnyArray) -> Entries:
    return [[matrix[..., i, j] for j in range(matrix.shape[-1])] for i in range(matrix.shape[-1])]


def cholesky(matrix: AnyArray, floor: AnyArray | None = None) -> AnyArray:
    """The Cholesky factors of small matrices (..., p, p), their pivots kept at least at a floor (..., p) if given."""
    xp, p = namespace_of(matrix), matrix.shape[-1]
    rows = cholesky_entries(_entries(matrix), None if floor is None else [floor[..., i] for i in range(p)])
    zero = xp.zeros_like(matrix[..., 0, 0])
    return xp.stack([xp.stack(row + [zero] * (p - len(row)), axis=-1) for row in rows], axis=-2)


def forward(lower: AnyArray, right: Sequence[AnyArray]) -> list[AnyArray]:
    """L^-1 r, component by component, for lower triangular L (..., p, p) and p components (...)."""
    return forward_entries(_entries(lower), right)


def _both(lower: AnyArray, right: Sequence[AnyArray]) -> list[AnyArray]:
    """(L L')^-1 r, component by component."""
    entries = _entries(lower)
    return backward_entries(entries, forward_entries(entries, right))


def _stacked(parts: list[AnyArray], axis: int) -> AnyArray:
    return namespace_of(parts[0]).stack(parts, axis=axis)


def lower_solve(lower: AnyArray, right: AnyArray) -> AnyArray:
    """L^-1 R for lower triangular L (..., p, p) and vectors (..., p), or with as many axes as L, columns."""
    if right.ndim < lower.ndim:
        return _stacked(forward(lower, [right[..., i] for i in range(right.shape[-1])]), -1)
    return _stacked(forward(lower[..., None, :, :], [right[..., i, :] for i in range(right.shape[-2])]), -2)


def solve(matrix: AnyArray, right: AnyArray) -> AnyArray:
    """Small symmetric positive definite systems, for vectors or columns as in `lower_solve`; NaN where one is not."""
    lower = cholesky(matrix)
    if right.ndim < matrix.ndim:
        return _stacked(_both(lower, [right[..., i] for i in range(right.shape[-1])]), -1)
    return _stacked(_both(lower[..., None, :, :], [right[..., i, :] for i in range(right.shape[-2])]), -2)


def inverse(matrix: AnyArray) -> AnyArray:
    """Of small symmetric positive definite matrices (..., p, p); NaN where one is not."""
    return _stacked(_both(cholesky(matrix)[..., None, :, :], list(np.eye(matrix.shape[-1]))), -2)


def diagonal(matrix: AnyArray) -> AnyArray:
    """The diagonals (..., p) of small matrices."""
    return namespace_of(matrix).stack([matrix[..., i, i] for i in range(matrix.shape[-1])], axis=-1)


def on_diagonal(values: AnyArray) -> AnyArray:
    """Matrices (..., p, p) with these diagonals (..., p) and nothing else."""
    return namespace_of(values).where(np.eye(values.shape[-1], dtype=bool), values[..., None, :], 0.0)


def quadratic_form(matrix: AnyArray, vector: AnyArray) -> AnyArray:
    """v' A v for matrices (..., p, p) and vectors (..., p)."""
    xp = namespace_of(vector)
    return xp.sum(vector * xp.sum(matrix * vector[..., None, :], axis=-1), axis=-1)
