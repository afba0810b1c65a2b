"""How often 95% bands hold the system mu, by simulation: `python -m benchmarks.prediction`.

Every dataset is calibrated, and mu is predicted at points that fill the input space. "process" is what
`Calibration.predict` does; "smoother" is mu-hat by generalised cross-validation with the variance that its Gaussian
process has given rho-hat and sigma2-hat. A row gives the share of (dataset, point) pairs whose band holds mu, the same
at the worst point, and the mean width of the band.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special
from threadpoolctl import threadpool_limits

from l2calib.compute.predictor import DRAWS, predictor
from l2calib.compute.stages import independent_draws, solve_one, stage_keys
from l2calib.designs import maxpro_design
from l2calib.engines.integrate import Integrate
from l2calib.methods.catalogue import METHODS
from l2calib.numerics.spread import kronecker
from l2calib.problem.experiment import Experiment
from l2calib.process.correlation import squared_differences
from l2calib.smoothers.gcv import GCV
from l2calib.smoothers.grid import SmootherTables
from l2calib.study.configurations import paper_configurations
from l2calib.study.error_laws import error_law

LEVEL = 0.95
SEED = 20261117
HEADINGS = ("configuration", "n", "errors", "band", "coverage", "at the worst point", "mean width", "ms")

Ends = tuple[np.ndarray, np.ndarray]


def points(inputs: int) -> np.ndarray:
    """Of the unit cube, its ends included where there is one input."""
    return np.linspace(0, 1, 41)[:, None] if inputs == 1 else kronecker(64, inputs)


def process_band(method: str, experiment: Experiment, x: np.ndarray) -> Callable[[np.ndarray, int], Ends]:
    """The function from y and a seed to the ends of the system's band at points x of the unit cube."""
    calibrator, integrator = METHODS[method], Integrate()
    physical = experiment.box.from_unit(x)

    def band(y: np.ndarray, seed: int) -> Ends:
        fit_key, key = stage_keys(jax.random.key(seed))
        answer = solve_one(calibrator, experiment, integrator, y, jax.random.key(seed))
        theta = independent_draws(calibrator, experiment, answer, y, fit_key=fit_key, key=key, number=DRAWS)
        system = predictor(experiment, y, theta, np.random.default_rng(seed)).bands(physical, LEVEL).system
        return system.low, system.high

    return band


def smoother_band(experiment: Experiment, x: np.ndarray) -> Callable[[np.ndarray, int], Ends]:
    """The same for mu-hat."""
    smoother = GCV()
    tables = smoother.prepare(experiment)
    squared = jnp.asarray(squared_differences(x, experiment.x_unit))

    @jax.jit
    def fit(tables: SmootherTables, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        smooth = smoother.fit(tables, y)
        cross = smoother.correlation(squared, smooth.psi) @ smooth.spectrum.vectors
        left = jnp.maximum(1 - cross**2 @ smooth.inverse_diagonal, 0.0)
        mean = cross @ (smooth.inverse_diagonal * smooth.rotated)
        half = special.ndtri((1 + LEVEL) / 2) * jnp.sqrt(smooth.sigma2() / smooth.kappa * left)
        return mean - half, mean + half

    return lambda y, _: fit(tables, y)


def rows(name: str, n: int, errors: str, method: str, datasets: int, levels: str) -> list[str]:
    """The rows of one configuration and size."""
    configuration = paper_configurations()[name]
    design = maxpro_design(n, len(configuration.box.names), levels=levels, seed=SEED)
    experiment, x = configuration.experiment(design), points(design.shape[1])
    mu = configuration.system_at(x)
    noise = error_law(errors).draw(np.random.default_rng(SEED), (datasets, n))
    responses = configuration.system_at(design) + np.sqrt(configuration.sigma2) * noise
    bands = {
        f"process, {method}": process_band(method, experiment, x),
        "smoother": smoother_band(experiment, x),
    }
    table = []
    for label, band in bands.items():
        band(responses[0], 0)  # what is compiled and factorised once
        began = time.perf_counter()
        ends = np.array([band(y, seed) for seed, y in enumerate(responses)])
        milliseconds = 1e3 * (time.perf_counter() - began) / datasets
        covered = ((ends[:, 0] <= mu) & (mu <= ends[:, 1])).mean(axis=0)
        width = (ends[:, 1] - ends[:, 0]).mean()
        figures = f"{covered.mean():.3f} | {covered.min():.3f} | {width:.3g} | {milliseconds:.0f}"
        table.append(f"| {name} | {n} | {errors} | {label} | {figures} |")
    return table


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prediction", description=__doc__)
    parser.add_argument("--configurations", default="1,2,3,4")
    parser.add_argument("--sizes", default="20,50,100")
    parser.add_argument("--errors", default="normal")
    parser.add_argument("--method", default="gb-l2", choices=METHODS)
    parser.add_argument("--levels", default="endpoints", choices=["endpoints", "midpoints"])
    parser.add_argument("--datasets", type=int, default=200)
    options = parser.parse_args()
    print(f"| {' | '.join(HEADINGS)} |\n{'|---' * len(HEADINGS)}|", flush=True)
    for name in options.configurations.split(","):
        for n in map(int, options.sizes.split(",")):
            for errors in options.errors.split(","):
                with threadpool_limits(1):
                    found = rows(name, n, errors, options.method, options.datasets, options.levels)
                print("\n".join(found), flush=True)
    share = 0.95 * 0.05 / options.datasets
    print(f"\n{options.datasets} datasets on designs that reach the {options.levels}: at one point a coverage of 0.95")
    print(f"has a standard error of {share**0.5:.3f}.")


if __name__ == "__main__":
    main()
