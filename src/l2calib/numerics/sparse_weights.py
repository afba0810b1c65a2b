"""A sum of many terms as a sum of few of them: non-negative weights by least squares (Lawson and Hanson).

Where the terms are smooth functions of what they stand for, a few of them, reweighted, say what all of them say: a
quadrature that is made for the functions at hand.
"""

from __future__ import annotations

from typing import NamedTuple

from l2calib.numerics.namespace import AnyArray, loops_of, namespace_of

_RIDGE = 1e-11  # of unit columns: keeps near copies apart
_SETTLED = 1e-6  # of the largest error of the sums, relative
_NEGLIGIBLE = 1e-9  # of a column's length, relative to the longest: it can carry nothing
_STEPS_PER_TERM = 3  # some terms are taken up and dropped again


class _State(NamedTuple):
    place: AnyArray  # of the terms that are used (G,)
    weight: AnyArray  # theirs, never negative
    used: AnyArray  # which of the G places are taken
    taken: AnyArray  # steps
    settled: AnyArray


def sparse_weights(rows: AnyArray, target: AnyArray, keep: int) -> tuple[AnyArray, AnyArray]:
    """Places (keep,) of columns of rows (J, R) and their weights, so that the rows' sums are about a target (J,)."""
    xp = namespace_of(rows)
    length = xp.sqrt(xp.sum(rows**2, axis=0))
    usable = length > _NEGLIGIBLE * xp.max(length)
    columns = xp.where(usable, rows / xp.where(usable, length, 1.0), 0.0)
    by_place = columns.T
    eye = xp.eye(keep)

    def chosen(state: _State) -> AnyArray:
        return xp.where(state.used[:, None], by_place[state.place], 0.0)  # (G, J)

    def unsettled(state: _State) -> AnyArray:
        return ~state.settled & (state.taken < _STEPS_PER_TERM * keep)

    def step(state: _State) -> _State:
        """The best weights of the terms that are used; what they ask for below zero is dropped, or a term is added."""
        own = chosen(state)
        ridge = xp.where(state.used, _RIDGE, 1.0)
        best = xp.linalg.solve(own @ own.T + ridge[:, None] * eye, (own @ target)[:, None])[:, 0]
        best = xp.where(state.used, best, 0.0)
        below = state.used & (best <= 0)
        infeasible = xp.any(below)
        room = xp.where(below, state.weight / xp.maximum(state.weight - best, 1e-300), 2.0)
        share = xp.where(infeasible, xp.min(room), 1.0)
        weight = state.weight + share * (best - state.weight)
        dropped = below & (room <= share)
        weight = xp.where(dropped, 0.0, weight)
        used = state.used & ~dropped
        residual = target - weight @ own
        gain = columns.T @ residual
        # A term that is used already gains nothing but rounding.
        taken = xp.where(used, state.place, -1)
        gain = xp.where(xp.any(xp.arange(gain.size)[:, None] == taken, axis=1), -1.0, gain)
        new = xp.argmax(gain)
        good = xp.max(xp.abs(residual)) <= _SETTLED * xp.max(target)
        done = ~infeasible & (good | xp.all(used) | ~(gain[new] > 0))
        free = xp.argmax(~used)
        here = (xp.arange(keep) == free) & ~infeasible & ~done
        return _State(
            xp.where(here, new, state.place),
            xp.where(here, 0.0, weight),
            used | here,
            state.taken + 1,
            done,
        )

    nothing = _State(
        xp.zeros(keep, dtype=int),
        xp.zeros(keep),
        xp.zeros(keep, dtype=bool),
        xp.asarray(0),
        xp.asarray(False),
    )
    end = loops_of(rows).while_loop(unsettled, step, nothing)
    weight = xp.where(end.used, end.weight, 0.0) / xp.where(length[end.place] > 0, length[end.place], 1.0)
    return end.place, weight
