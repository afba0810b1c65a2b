"""Every method against the oracles in every configuration: `python -m benchmarks.against_oracles`.

The tests hold each method to brute force and to NUTS in some of the paper's configurations; here are all of them, with
the same assertions. It leaves with status 1 if any fails.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from tests import test_against_oracles as checks

if TYPE_CHECKING:
    from collections.abc import Callable


def holds(name: str, check: Callable[[], None]) -> bool:
    try:
        check()
    except AssertionError as error:
        print(f"{name}: FAILS\n{error}", flush=True)
        return False
    print(f"{name}: holds", flush=True)
    return True


def main() -> None:
    asked: dict[str, Callable[[], None]] = {}
    for number in checks.NUMBERS:
        for method in ("gb-l2", "gb-ols"):
            asked[f"estimate of {method} in configuration {number}"] = partial(
                checks.test_estimates_and_their_matrices, number, method
            )
        for method in checks.WITH_DENSITY:
            asked[f"posterior of {method} in configuration {number}"] = partial(
                checks.hold_posterior, number, method, by_nuts=True
            )
    plain = "kennedy-ohagan-plain"
    asked[f"posterior of {plain} in configuration 1"] = partial(
        checks.test_relatives_of_kennedy_ohagan, 1, plain, plain
    )
    sound = [holds(name, check) for name, check in asked.items()]
    sys.exit(not all(sound))


if __name__ == "__main__":
    main()
