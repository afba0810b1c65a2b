"""What an integration accepts keeps its tolerance, on many datasets: `python -m benchmarks.numerical_error`.

Coarse levels against the finest, with one, two and three parameters; the tests hold fewer datasets, with one and two
parameters, to dense grids. It leaves with status 1 if any result that is accepted is farther off than it may be.
"""

from __future__ import annotations

import sys

import numpy as np
from tests.oracles.configurations import configuration, design
from tests.problems import experiment

import l2calib as l2

DATASETS = 24
FINEST = 1e-12
CASES = [(1, 20, "gb-l2", 1e-3), (2, 20, "nlm", 5e-3), (2, 100, "nlm", 1e-3), (4, 40, "gb-ols", 5e-3)]


def keeps_its_tolerance(number: int, n: int, method: str, tolerance: float) -> bool:
    chosen = configuration(number)
    noise = np.random.default_rng(5).standard_normal((DATASETS, n))
    responses = chosen.mu(design(n, chosen.k)) + np.sqrt(chosen.sigma2) * noise

    def solved(tolerance: float) -> tuple[l2.Batch, np.ndarray]:
        batch = l2.calibrate_batch(experiment(number, n), responses, method, engine=l2.Integrate(tolerance))
        return batch, np.dstack([batch.mean, batch.sd, batch.quantiles[..., 0], batch.quantiles[..., 2]])

    (finest, expected), (batch, found) = solved(FINEST), solved(tolerance)
    difference = np.abs((found - expected) / finest.sd[..., None]).max(axis=(1, 2))
    accepted = (batch.status & l2.Status.INACCURATE) == 0
    print(
        f"configuration {number}, n = {n}, {method}: {accepted.sum()} of {DATASETS} accepted, off by at most "
        f"{difference[accepted].max(initial=0):.1e} where {tolerance:g} is allowed",
        flush=True,
    )
    known = finest.error.max() < l2.Integrate().tolerance
    return bool(known and accepted.any() and np.all(difference[accepted] < tolerance + finest.error[accepted]))


def main() -> None:
    kept = [keeps_its_tolerance(*case) for case in CASES]
    sys.exit(not all(kept))


if __name__ == "__main__":
    main()
