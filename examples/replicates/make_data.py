"""Make data.csv: the level of a draining tank, read five times at each of eight moments."""

from pathlib import Path

import numpy as np

LEVEL, OUTFLOW, FRICTION = 50.0, 0.15, 0.02  # cm, sqrt(cm)/s, 1/s
SIGMA = 0.8  # cm
SECONDS = np.repeat(np.linspace(1.0, 29.0, 8), 5)


def level(seconds):
    """The system: with s the root of the level, ds/dt = -(outflow + friction s) / 2."""
    steady = OUTFLOW / FRICTION
    return ((np.sqrt(LEVEL) + steady) * np.exp(-FRICTION * seconds / 2) - steady) ** 2


def table():
    """The text of data.csv."""
    rng = np.random.default_rng(1)
    y = level(SECONDS) + SIGMA * rng.standard_normal(len(SECONDS))
    return "\n".join(["seconds,level", *(f"{t:.0f},{h:.1f}" for t, h in zip(SECONDS, y, strict=True))]) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("data.csv").write_text(table())
