"""Make data.csv: the rate of an enzyme that too much of its substrate inhibits, at 60 concentrations."""

from pathlib import Path

import numpy as np

FASTEST, HALF, INHIBITION = 12.0, 1.5, 60.0  # micromol/l/s, mmol/l, mmol/l
SIGMA = 0.15  # micromol/l/s
SUBSTRATE = np.round(20 * (np.arange(60) + 0.5) / 60, 2)  # mmol/l


def rate(substrate):
    """The system: Haldane's law."""
    return FASTEST * substrate / (HALF + substrate + substrate**2 / INHIBITION)


def table():
    """The text of data.csv."""
    rng = np.random.default_rng(1)
    y = rate(SUBSTRATE) + SIGMA * rng.standard_normal(len(SUBSTRATE))
    return "\n".join(["substrate,rate", *(f"{s:.2f},{v:.3f}" for s, v in zip(SUBSTRATE, y, strict=True))]) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("data.csv").write_text(table())
