"""Calibrate the draining tank of examples/replicates by `gb-ols` and by the method of this folder.

python examples/own-method/beside_gb_ols.py [figure.png]
"""

import sys
from pathlib import Path

from ridge import Ridge

import l2calib as l2
from l2calib.spec import load_problem

problem = load_problem(Path(__file__).parents[1] / "replicates" / "spec.toml")
both = l2.compare(problem, ["gb-ols", Ridge(penalty=0.8**2)])  # readings of the level are good to 0.8 cm
print(both.summary().round(3).to_string())  # noqa: T201
if sys.argv[1:]:
    from l2calib.plots import plot_calibration

    plot_calibration(both).savefig(sys.argv[1])
