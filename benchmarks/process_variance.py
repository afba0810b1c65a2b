"""What projected calibration owes to its process's variance: `python -m benchmarks.process_variance`.

The paper says that projected calibration over-covers and that it is not clear why; nor does it say how the variance of
the process is estimated. Here are both estimates, on datasets simulated as in the paper's study (normal errors, end
points): "smoother" is sigma2-hat / kappa-hat, the default, and "profile" is y' Phi^-1 y / n. A row gives the coverage
of 95% intervals and the mean posterior sd over the sampling sd of the posterior mean, parameter by parameter.
"""

from __future__ import annotations

import argparse
from typing import Literal

import numpy as np

import l2calib as l2
from l2calib.study.block import simulate
from l2calib.study.configurations import paper_configurations
from l2calib.study.plan import Cell, Plan

ESTIMATES: tuple[Literal["smoother", "profile"], ...] = ("smoother", "profile")
HEADINGS = ("configuration", "n", "process variance", "coverage", "sd / sampling sd")


def rows(plan: Plan, name: str, n: int) -> list[str]:
    """Both estimates on the same datasets."""
    configuration = plan.configurations[name]
    task = plan.task(Cell(name, n, "normal", "projected", 0))
    experiment = configuration.experiment(task.design)
    responses, seeds = simulate(task, configuration)
    target, lines = configuration.target.theta, []
    for estimate in ESTIMATES:
        batch = l2.calibrate_batch(experiment, responses, l2.ProjectedL2(process_variance=estimate), seed=seeds)
        covered = (batch.quantiles[:, :, 0] <= target) & (target <= batch.quantiles[:, :, -1])
        ratio = batch.sd.mean(axis=0) / batch.mean.std(axis=0, ddof=1)
        entries = name, str(n), estimate, _listed(covered.mean(axis=0), 3), _listed(ratio, 2)
        lines.append(f"| {' | '.join(entries)} |")
    return lines


def _listed(values: np.ndarray, digits: int) -> str:
    return " ".join(f"{value:.{digits}f}" for value in values)


def main() -> None:
    """Parse, simulate, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.process_variance", description=__doc__)
    parser.add_argument("--datasets", type=int, default=2000)
    parser.add_argument("--sizes", default="20,60,100,200")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    plan = Plan(paper_configurations(), sizes=sizes, seed=1, block=options.datasets)
    print(f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|", sep="\n")
    for name in plan.configurations:
        for n in sizes:
            print("\n".join(rows(plan, name, n)), flush=True)


if __name__ == "__main__":
    main()
