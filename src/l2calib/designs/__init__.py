"""Maximum projection designs: points that fill the unit cube and each of its faces (paper, Section 4.2).

Joseph, Gul and Ba (2015), Biometrika 102, 371-380. `docs/decisions/0007-maximum-projection-designs.md` says how the
search works.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from threadpoolctl import threadpool_limits

from l2calib.designs.continuous import move_freely
from l2calib.designs.criterion import maxpro_criterion
from l2calib.designs.latin_hypercube import search
from l2calib.errors import MethodError, suggest, whole_number

Levels = Literal["endpoints", "midpoints"]

__all__ = ["Levels", "maxpro_criterion", "maxpro_design"]


def maxpro_design(
    n: int, k: int, levels: Levels = "midpoints", seed: int = 0, continuous: bool = False
) -> np.ndarray:  # (n, k)
    """A maximum projection design of n points in the unit cube, in the order of their first input.

    Parameters
    ----------
    n, k
        Points and inputs. For one input the design is the levels themselves.
    levels
        A Latin hypercube's n levels: "midpoints" of n equal cells, or equally spaced with "endpoints" 0 and 1.
    seed
        The same seed gives the same design, whatever the number of threads.
    continuous
        Leave the levels and move the points until the criterion is at a local minimum; never worse than the levels.
    """
    n = whole_number(n, "the number of points", least=1)
    k = whole_number(k, "the number of inputs", least=1)
    seed = whole_number(seed, "the seed", least=0)
    if levels not in get_args(Levels):
        raise MethodError(
            f"the levels of a design must be 'endpoints' or 'midpoints': received {levels!r:.60}"
            f"{suggest(str(levels), get_args(Levels))}."
        )
    # One thread: with more, sums are rounded in another order and a tie between two swaps may fall the other way.
    with threadpool_limits(1, user_api="blas"):
        ranks = search(n, k, np.random.default_rng(seed))
        design = _positions(ranks, levels)
        return move_freely(design) if continuous else design


def _positions(ranks: np.ndarray, levels: Levels) -> np.ndarray:
    """Ranks 0 to n - 1 as levels in [0, 1]; a single point is at the centre."""
    n = len(ranks)
    return ranks / (n - 1) if levels == "endpoints" and n > 1 else (ranks + 0.5) / n
