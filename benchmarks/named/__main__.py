"""Judge methods on nine problems, each with one thing that makes a calibration hard.

What is finished is kept in --out, in parts of 250 datasets; a run that was killed continues where it stopped.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.named.problems import NAMES
from benchmarks.named.run import Plan, run
from benchmarks.named.table import markdown


def main() -> int:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.named", description=__doc__)
    parser.add_argument("--methods", default="l2", help="names, or module:object, with commas")
    parser.add_argument("--problems", default=",".join(NAMES), help="names, with commas; all of them if left out")
    parser.add_argument("--datasets", type=int, default=1000, help="per problem")
    parser.add_argument("--out", type=Path, default=Path("out/named"), help="where answers are kept")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--revision", help="what tells this version of the methods from others in --out")
    parser.add_argument("--table", action="store_true", help="run nothing: the table of what is kept")
    options = parser.parse_args()
    problems = options.problems.split(",")
    if unknown := [each for each in problems if each not in NAMES]:
        parser.error(f"there is no problem {unknown[0]!r}; give some of {', '.join(NAMES)}.")
    if options.datasets < 2 or options.workers < 1:
        parser.error("give at least two datasets and one worker.")
    plan = Plan(options.out, options.methods.split(","), problems, options.datasets, options.revision)
    wrong = [] if options.table else run(plan, options.workers)
    print(markdown(plan.kept()))
    if wrong:
        print(f"\n{len(wrong)} could not be answered:", *wrong, sep="\n", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
