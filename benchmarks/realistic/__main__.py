"""Judge methods on random problems as people bring them.

Problems of the tuning half are for choosing between methods and their options; those of the reporting half are looked
at once all is chosen. What is finished is kept in --out, and a run continues where it stopped.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.realistic.run import Plan, run, seeds_of
from benchmarks.realistic.table import markdown


def main() -> int:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.realistic", description=__doc__)
    parser.add_argument("--methods", default="nlm,gb-l2,koh,gb-ols", help="names, or module:object, with commas")
    parser.add_argument("--half", choices=("tuning", "reporting"), default="tuning")
    parser.add_argument("--problems", type=int, default=50, help="the first so many of the half")
    parser.add_argument("--datasets", type=int, default=50, help="per problem")
    parser.add_argument("--out", type=Path, default=Path("out/realistic"), help="where answers are kept")
    parser.add_argument("--workers", type=int, default=1)
    one_by_one = "dataset by dataset, where that is quicker than to compile"
    parser.add_argument("--one-by-one", action="store_true", help=one_by_one)
    parser.add_argument("--revision", help="what tells this version of the methods from others in --out")
    parser.add_argument("--table", action="store_true", help="run nothing: the table of what is kept")
    options = parser.parse_args()
    if options.problems < 1 or options.datasets < 2 or options.workers < 1:
        parser.error("give at least one problem, two datasets and one worker.")
    plan = Plan(
        options.out,
        options.methods.split(","),
        seeds_of(options.half, options.problems),
        options.datasets,
        options.one_by_one,
        options.revision,
    )
    wrong = [] if options.table else run(plan, options.workers)
    print(markdown(plan.answered()))
    if wrong:
        print(f"\n{len(wrong)} could not be answered:", *wrong, sep="\n", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
