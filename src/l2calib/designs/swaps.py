"""Steepest descent over all swaps of two ranks in one column (docs/decisions/0007).

With C_ij = 1 / (rank_i - rank_j)^2 in the column and M_ij the product of the other columns' (zero where i = j in both),
swapping rows a and b changes the sum over pairs by

    sum over j other than a, b of (M_aj - M_bj) (C_bj - C_aj)  =  (M C + C M)_ab - r_a - r_b + 2 M_ab C_ab,

where r are the row sums of M C taken elementwise: one matrix product gives all swaps of the column.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

_ROUNDING = 1e-10  # a change that is smaller than this share of the sum is none


class ColumnSwaps:
    """What each swap in one column would change, kept up to date as swaps are made."""

    def __init__(self, others: np.ndarray, own: np.ndarray) -> None:
        self._others = others
        self._own = own.copy()
        products = others * own
        self._row_sums = products.sum(axis=1)
        self.initial = self.total
        crossed = others @ own
        self.changes = crossed + crossed.T - np.add.outer(self._row_sums, self._row_sums) + 2 * products
        np.fill_diagonal(self.changes, np.inf)

    @property
    def total(self) -> float:
        """The sum over pairs."""
        return float(self._row_sums.sum() / 2)

    def best(self) -> tuple[int, int]:
        """The rows whose swap lowers the sum most."""
        a, b = divmod(int(self.changes.argmin()), len(self.changes))
        return a, b

    def swap(self, a: int, b: int) -> None:
        """Swap rows a and b: a change of rank one for all other pairs, new rows for these two."""
        M, C = self._others, self._own
        m, c = M[:, a] - M[:, b], C[:, b] - C[:, a]
        c[[a, b]] = 0.0
        moved = np.subtract.outer(m, m)
        moved *= np.subtract.outer(c, c)
        self.changes -= moved
        self._row_sums += m * c
        C[[a, b]] = C[[b, a]]
        C[:, [a, b]] = C[:, [b, a]]
        for row in (a, b):
            self._row_sums[row] = M[row] @ C[row]
        for row in (a, b):
            changes = M[row] @ C + M @ C[row] - self._row_sums - self._row_sums[row] + 2 * M[row] * C[row]
            changes[row] = np.inf
            self.changes[row] = self.changes[:, row] = changes


def inverse_squares(n: int) -> np.ndarray:
    """1 / (rank_i - rank_j)^2 for all ranks, in units that keep products of many columns near one."""
    ranks = np.arange(n)
    distances = np.abs(np.subtract.outer(ranks, ranks)).astype(float)
    np.fill_diagonal(distances, 1.0)
    unit = np.exp(np.log(distances).sum() / (n * (n - 1)))
    table: np.ndarray = (unit / distances) ** 2
    np.fill_diagonal(table, 0.0)
    return table


def descend(ranks: np.ndarray, most: int) -> tuple[np.ndarray, float, int]:
    """Swap until no swap of any column helps, `most` times at most: the ranks, their sum and the number of swaps."""
    n, k = ranks.shape
    table, ranks = inverse_squares(n), ranks.copy()
    columns = [table[np.ix_(column, column)] for column in ranks.T]
    spent, idle, total = 0, 0, np.inf
    # Of two columns one is enough: a swap in the other is the same swap with the rows renamed.
    order = itertools.cycle([0] if k == 2 else range(k))
    while idle < (1 if k == 2 else k):
        column = next(order)
        others = functools.reduce(np.multiply, [each for j, each in enumerate(columns) if j != column])
        swaps = ColumnSwaps(others, columns[column])
        made = _descend_column(ranks[:, column], swaps, min(n, most - spent))
        columns[column] = table[np.ix_(ranks[:, column], ranks[:, column])]
        total = float((others * columns[column]).sum() / 2)
        idle = 0 if total < (1 - _ROUNDING) * swaps.initial else idle + 1
        spent += made
    return ranks, total, spent


def _descend_column(ranks: np.ndarray, swaps: ColumnSwaps, most: int) -> int:
    """Make the best swap until none helps; the number made. The caller computes afresh what rounding has blurred."""
    for made in range(most):
        a, b = swaps.best()
        if swaps.changes[a, b] >= -_ROUNDING * swaps.total:
            return made
        ranks[[a, b]] = ranks[[b, a]]
        swaps.swap(a, b)
    return max(most, 0)
