"""Draw images/prediction.png of the page on prediction: `python docs/make_prediction_image.py`."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

import l2calib as l2
from l2calib.plots import plot_bias, plot_prediction
from l2calib.spec import load_problem


def main() -> None:
    """Wiffle balls by the default method: the prediction, and the bias beside it."""
    result = l2.calibrate(load_problem("wiffle"), seed=1)
    figure = Figure(figsize=(9.6, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_prediction(result, ax=left)
    plot_bias(result, ax=right)
    figure.savefig(Path(__file__).parent / "images" / "prediction.png", dpi=110)


if __name__ == "__main__":
    main()
