"""Linear algebra of p x p matrices, unrolled: a batch of thousands is elementwise work, not library calls."""

from __future__ import annotations

from l2calib.numerics.arrays import Array, jnp


def cholesky(matrix: Array, floor: Array | float = 0.0) -> Array:
    """The Cholesky factor of a small matrix, unrolled so that a batch of them is elementwise work.

    Pivots are kept at least at `floor` (p,); with a floor of zero a matrix that is not positive definite gives NaN.
    """
    p = matrix.shape[0]
    low = jnp.broadcast_to(jnp.asarray(floor), (p,))
    rows: list[list[Array]] = []
    for i in range(p):
        row: list[Array] = []
        for j in range(i):
            row.append((matrix[i, j] - sum(row[m] * rows[j][m] for m in range(j))) / rows[j][j])
        pivot = matrix[i, i] - sum(entry**2 for entry in row)
        row.append(jnp.sqrt(jnp.where(low[i] > 0, jnp.maximum(pivot, low[i]), pivot)))
        rows.append(row)
    zero = jnp.zeros_like(matrix[0, 0])
    return jnp.stack([jnp.stack(row + [zero] * (p - len(row))) for row in rows])


def lower_solve(lower: Array, right: Array) -> Array:
    """L^-1 R for a small lower triangular L (p, p) and R (p, ...), unrolled."""
    solution: list[Array] = []
    for i in range(lower.shape[0]):
        solution.append((right[i] - sum(lower[i, m] * solution[m] for m in range(i))) / lower[i, i])
    return jnp.stack(solution)


def solve(matrix: Array, right: Array) -> Array:
    """Solve a small symmetric positive definite system; NaN when it is not positive definite."""
    lower = cholesky(matrix)
    forward = lower_solve(lower, right)
    reversed_transpose = lower.T[::-1, ::-1]
    return lower_solve(reversed_transpose, forward[::-1])[::-1]
