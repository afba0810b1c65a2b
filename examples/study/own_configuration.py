"""A simulation study of your own: how well does Newton's law of cooling calibrate to a cup that also radiates?

    l2calib study run examples/study/own_configuration.py --sizes 20,40 --errors normal,t --methods nlm,gb-l2 \\
        --replications 200 --levels endpoints --seed 1 --out out/cooling
    l2calib study summary out/cooling

A configuration is a system mu that is known because it is simulated, a model eta of it, the ranges of the inputs, the
prior of the parameters and the variance of the errors. theta_L2, at which the model is nearest to the system, is computed.
The file must be complete in itself (besides installed packages): workers on other machines get its text and nothing else.
"""

import jax.numpy as jnp

import l2calib as l2
from l2calib.study.configurations import Configuration, variance

ROOM = 20.0  # degrees Celsius
START = 90.0


def newton(minutes, rate, room):
    """The model: the excess over the room's temperature decays at one rate."""
    return room + (START - room) * jnp.exp(-rate * minutes)


def cup(minutes):
    """The system: it cools fast while it is hot, and slowly later."""
    return ROOM + (START - ROOM) * (0.3 * jnp.exp(-0.15 * minutes) + 0.7 * jnp.exp(-0.04 * minutes))


inputs = {"minutes": (0.0, 60.0)}
prior = {"rate": l2.LogNormal(-3.0, 0.5), "room": l2.Normal(20.0, 5.0)}

configurations = [
    Configuration("cup", newton, inputs, prior, system=cup, sigma2=0.5**2),
    # The same with errors whose variance is a twentieth of the system's own.
    Configuration("noisy-cup", newton, inputs, prior, system=cup, sigma2=variance(cup, inputs) / 20),
]
