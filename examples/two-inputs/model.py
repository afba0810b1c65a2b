"""The period of a pendulum that swings little: it does not know of the amplitude, and so it is wrong."""

import jax.numpy as jnp


def period(length, amplitude, g, bob):
    """Seconds; g in m/s2, bob the distance in metres from the end of the thread to the bob's centre."""
    del amplitude
    return 2 * jnp.pi * jnp.sqrt((length + bob) / g)
