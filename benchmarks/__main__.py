"""Measure everything in one run and print it as a Markdown table."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from dataclasses import dataclass

import jax.numpy as jnp

from benchmarks import samplers
from benchmarks.cases import case
from benchmarks.ours import seconds_per_dataset
from benchmarks.processes import ROOT, cold_seconds, peak_gigabytes
from benchmarks.table import Row, absolute, markdown, relative, write_between_markers


@dataclass(frozen=True)
class Effort:
    """How much is run: the real thing, or a smoke test of the benchmark itself."""

    batch: int
    draws: int
    koh_draws: int
    metropolis_draws: int
    large_batch: int
    cold_runs: int


FULL = Effort(batch=8192, draws=50_000, koh_draws=2_000, metropolis_draws=50_000, large_batch=20_000, cold_runs=3)
QUICK = Effort(batch=64, draws=5_000, koh_draws=200, metropolis_draws=200, large_batch=500, cold_runs=1)

# configuration, method, milliseconds allowed per dataset, share of the batch
LIMITS = [
    (2, "gb-l2", 0.3, 1.0),
    (2, "gb-ols", 0.3, 1.0),
    (2, "nlm", 0.3, 1.0),
    (2, "gb-l2-boot", 10, 1 / 32),
    (2, "gb-ols-boot", 10, 1 / 32),
    (2, "projected", 10, 1 / 32),
    (2, "koh", 6, 1 / 16),
    (4, "gb-l2", 5, 1 / 4),
    (4, "koh", 60, 1 / 128),
]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def batch_rows(effort: Effort) -> tuple[list[Row], dict[tuple[int, str], float]]:
    """Every method per dataset in a batch, against its own limit."""
    rows, seconds = [], {}
    for number, method, limit, share in LIMITS:
        batch = max(16, int(effort.batch * share))
        taken = seconds_per_dataset(number, 100, method, batch)
        _say(f"configuration {number}, {method}: {1e3 * taken:.3g} ms")
        seconds[number, method] = taken
        what = f"{method}, configuration {number}, n = 100, per dataset in a batch of {batch:,}"
        rows.append(absolute(what, 1e3 * taken, limit, "ms"))
    return rows, seconds


def sampler_rows(effort: Effort, ours: dict[tuple[int, str], float]) -> list[Row]:
    """The same posteriors, drawn from 50,000 times."""
    rows = []

    def add(number: int, method: str, name: str, timed: samplers.Timed, goal: float | None) -> None:
        _say(f"configuration {number}, {method}, {name}: {timed.seconds:.3g} s")
        what = f"{method}, configuration {number}, n = 100"
        rows.append(relative(what, ours[number, method], name + timed.note, timed.seconds, goal))

    for number in (2, 4):
        goal = 10_000 if number == 2 else None
        chosen = case(number, 100)
        first = {"theta": jnp.asarray(chosen.theta_hat)}
        gibbs = samplers.gibbs_density(chosen), samplers.start(chosen, hyper=False)
        koh = samplers.koh_density(chosen), samplers.start(chosen, hyper=True)
        add(number, "gb-l2", "blackjax NUTS", samplers.blackjax_nuts(*gibbs, effort.draws), goal)
        model = samplers.numpyro_gibbs(chosen)
        add(number, "gb-l2", "NumPyro NUTS", samplers.numpyro_nuts(model, first, effort.draws), goal)
        add(number, "koh", "blackjax NUTS", samplers.blackjax_nuts(*koh, effort.koh_draws), goal)
        model = samplers.numpyro_koh(chosen)
        timed = samplers.numpyro_nuts(model, first, effort.koh_draws)
        add(number, "koh", "NumPyro NUTS", timed, goal)
        add(
            number,
            "koh",
            "Metropolis, dense Cholesky",
            samplers.paper_metropolis(chosen, effort.metropolis_draws),
            None,
        )
    return rows


def process_rows(effort: Effort) -> list[Row]:
    """Memory of a large batch, and cold starts from the shell."""
    rows = []
    what = f"peak memory, gb-l2, configuration 2, {effort.large_batch:,} datasets, n = 200"
    rows.append(absolute(what, peak_gigabytes(2, 200, "gb-l2", effort.large_batch), 4, "GB"))
    calibrate = cold_seconds(["calibrate", "wiffle"], effort.cold_runs)
    rows.append(absolute("`l2calib calibrate wiffle`, cold", calibrate, 10, "s"))
    rows.append(absolute("`l2calib --help`", cold_seconds(["--help"], effort.cold_runs), 0.5, "s"))
    return rows


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke test: the figures mean nothing")
    parser.add_argument("--write", action="store_true", help="put the table into README.md as well")
    parser.add_argument("--batch", action="store_true", help="the rows of batches alone, to compare two commits by")
    options = parser.parse_args()
    if options.write and (options.quick or options.batch):
        parser.error("--write takes the whole table, measured in earnest: leave --quick and --batch out.")
    effort = QUICK if options.quick else FULL
    rows, ours = batch_rows(effort)
    if not options.batch:
        rows += sampler_rows(effort, ours) + process_rows(effort)
    machine = (
        f"One run on {os.cpu_count()} cores ({platform.machine()}, Python {platform.python_version()}). Ratios are one "
        "sampler's 50,000 draws over one of our datasets in a batch, without compilation and the samplers' warm-up."
    )
    table = markdown(rows, machine)
    print(table)
    if options.write:
        write_between_markers(ROOT / "README.md", table)


if __name__ == "__main__":
    main()
