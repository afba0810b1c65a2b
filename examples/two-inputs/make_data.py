"""Make data.csv: periods of a pendulum of known gravity, timed twice at each of 30 space-filling points."""

from pathlib import Path

import numpy as np

from l2calib.designs import maxpro_design

GRAVITY, BOB = 9.81, 0.03  # m/s2; the bob's centre hangs this much lower than the thread ends, in metres
SIGMA = 0.02  # seconds
LOW, HIGH = np.array([0.2, 0.1]), np.array([2.0, 1.5])  # metres, radians


def period(length, amplitude):
    """The system: Gauss's formula, by the arithmetic-geometric mean."""
    a, b = np.ones_like(amplitude), np.cos(amplitude / 2)
    for _ in range(6):
        a, b = (a + b) / 2, np.sqrt(a * b)
    return 2 * np.pi * np.sqrt((length + BOB) / GRAVITY) / a


def table():
    """The text of data.csv."""
    rng = np.random.default_rng(1)
    # To two digits, so that the file does not hang on a tie in the search for the design.
    points = np.round(LOW + (HIGH - LOW) * maxpro_design(30, 2, seed=1), 2)
    x = np.repeat(points, 2, axis=0)
    y = period(*x.T) + SIGMA * rng.standard_normal(len(x))
    rows = [f"{length:.2f},{amplitude:.2f},{seconds:.3f}" for (length, amplitude), seconds in zip(x, y, strict=True)]
    return "\n".join(["length,amplitude,period", *rows]) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("data.csv").write_text(table())
