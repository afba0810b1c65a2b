"""A simulation study of your own: Newton's law of cooling, calibrated to a cup that cools in two stages.

    l2calib study run examples/study/own_configuration.py --sizes 20,40 --methods nlm,gb-l2 --replications 200 --out cup
    l2calib study summary cup

A configuration is a system mu that is known because it is simulated, a model eta of it, the ranges of the inputs, the
prior of the parameters and the variance of the errors. theta_L2, at which the model is nearest to the system, is
computed. Besides installed packages, the file must be complete in itself: workers on other machines get only its text.
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
