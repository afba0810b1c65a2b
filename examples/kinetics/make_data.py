"""Make data.csv: the concentration of a dimer that forms, decays, and falls apart again, measured 60 times."""

from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

START = 1.0  # mol/l of the monomer
FORMING, DECAY, REVERSE = 0.9, 0.12, 0.08  # l/mol/min, 1/min, 1/min
SIGMA = 0.005  # mol/l
MINUTES = np.round(20 * (np.arange(60) + 0.5) / 60, 2)


def dimer(minutes):
    """The system: 2 A <-> B -> C, observed through B."""

    def change(_, state):
        monomer, formed = state
        net = FORMING * monomer**2 - REVERSE * formed
        return [-2 * net, net - DECAY * formed]

    order = np.argsort(minutes)
    solved = solve_ivp(
        change, (0.0, 20.0), [START, 0.0], t_eval=np.asarray(minutes)[order], rtol=1e-10, atol=1e-12, method="LSODA"
    )
    return solved.y[1][np.argsort(order)]


def table():
    """The text of data.csv."""
    rng = np.random.default_rng(1)
    y = dimer(MINUTES) + SIGMA * rng.standard_normal(len(MINUTES))
    return "\n".join(["minutes,dimer", *(f"{t:.2f},{c:.4f}" for t, c in zip(MINUTES, y, strict=True))]) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("data.csv").write_text(table())
