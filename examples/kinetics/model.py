"""2 A -> B -> C as a differential equation, solved by diffrax; that B falls apart again is left out."""

import diffrax
import jax.numpy as jnp

START = 1.0  # mol/l of A
END = 20.0  # minutes: the end of the input's range
STEPS = 200


def _change(_, state, rates):
    monomer, dimer = state
    forming, decay = rates
    formed = forming * monomer**2
    return jnp.stack([-2 * formed, formed - decay * dimer])


def dimer(minutes, forming, decay):
    """The concentration of B in mol/l; forming in l/mol/min, decay in 1/min.

    The steps are fixed and end where the range ends, so the value at one time does not depend on which other times are
    asked for, and it is as smooth in the rates as the equation. l2calib differentiates forwards, twice.
    """
    order = jnp.argsort(minutes)  # diffrax wants times in their order
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(_change),
        diffrax.Tsit5(),
        t0=0.0,
        t1=END,
        dt0=END / STEPS,
        y0=jnp.array([START, 0.0]),
        args=(forming, decay),
        saveat=diffrax.SaveAt(ts=minutes[order]),
        adjoint=diffrax.ForwardMode(),
        max_steps=STEPS + 1,
    )
    return jnp.zeros_like(minutes).at[order].set(solution.ys[:, 1])
