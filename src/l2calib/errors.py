"""What can go wrong: exceptions for one problem, a Status inside a batch.

Every message is one sentence that says what is wrong, what was received and what to do.
"""

from __future__ import annotations

import difflib
import enum
import operator
from collections.abc import Iterable
from typing import Any


class L2CalibError(Exception):
    """Anything that l2calib raises on purpose."""


class InputError(L2CalibError):
    """What was handed in cannot be calibrated as it is."""


class SpecError(InputError):
    """The spec file or the command line."""


class DataError(InputError):
    """The observations or the inputs' box."""


class ModelError(InputError):
    """The mathematical model eta(x; theta); `about` is the parameter to remove, where that is the remedy."""

    def __init__(self, sentence: str, about: str | None = None) -> None:
        super().__init__(sentence)
        self.about = about


class PriorError(InputError):
    """The prior distribution of the parameters."""


class MethodError(InputError):
    """A method, engine or option that does not exist or does not fit."""


class CalibrationFailed(L2CalibError):
    """The input was sound but no posterior could be computed."""


class Status(enum.IntFlag):
    """What a calibration met on its way, as data, so that a batch never stops for one dataset."""

    OK = 0
    GCV_AT_BOUND = 1
    MINIMUM_ON_BOUNDARY = 2
    FLAT_LOSS = 4
    NOT_CONVERGED = 8
    INACCURATE = 16
    NOT_FINITE = 32
    POORLY_MIXED = 64
    NEAR_INTERPOLATION = 128
    NOT_A_MINIMUM = 256

    @property
    def failed(self) -> bool:
        """Whether there is no posterior to speak of."""
        return bool(self & (Status.FLAT_LOSS | Status.NOT_FINITE))

    def sentences(self) -> list[str]:
        """One sentence per flag, for people."""
        return [_SENTENCES[flag] for flag in Status if flag & self]

    def __str__(self) -> str:
        names = [str(flag.name).lower().replace("_", "-") for flag in Status if flag & self]
        return ", ".join(names) or "ok"


_SENTENCES = {
    Status.GCV_AT_BOUND: (
        "Generalised cross-validation chose a smoothing parameter at the edge of its range: "
        "the data do not determine how smooth the system is, so check the fit of the smoother."
    ),
    Status.MINIMUM_ON_BOUNDARY: (
        "The loss is smallest on the boundary of the prior's support: widen the prior if values beyond it are possible."
    ),
    Status.FLAT_LOSS: (
        "The loss is flat at its minimum, so no scaling gamma and no posterior exist: "
        "fix a parameter or give data that identify it."
    ),
    Status.NOT_CONVERGED: (
        "The search for the smallest loss stopped before its gradient vanished: the model may not be smooth in its "
        "parameters, or the loss may be flat to second order at its minimum, and then gamma rests on rounding; "
        "treat both with care."
    ),
    Status.INACCURATE: (
        "The numerical integration did not reach its tolerance: compare with the NUTS engine before relying on it."
    ),
    Status.NOT_FINITE: (
        "The posterior is not finite anywhere it was evaluated: check the model and the prior's support."
    ),
    Status.NEAR_INTERPOLATION: (
        "The smoother follows the observations nearly one by one, which leaves too few degrees of freedom to know the "
        "error variance: it may be far too small, and the intervals with it, so compare its root with what is known of "
        "the measurements, look at l2 and koh, or measure some points twice."
    ),
    Status.NOT_A_MINIMUM: (
        "With more than a fifth of the biases that the data allow, the model is closer to the system at another theta: "
        "the data leave open which minimum is the lowest, so narrow the prior or give more data."
    ),
    Status.POORLY_MIXED: (
        "The Markov chains have not mixed (R-hat above 1.01 or divergences): draw more or use the integrating engine."
    ),
}


def suggest(name: str, known: Iterable[str]) -> str:
    """A hint for a misspelt name, empty when nothing is near."""
    spelt = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), list(spelt), n=1)
    return f" (did you mean '{spelt[near[0]]}'?)" if near else ""


def whole_number(value: Any, what: str, least: int, most: int | None = None) -> int:
    """The value as an int; MethodError unless it is a whole number in that range."""
    allowed = f"at least {least}" if most is None else f"between {least} and {most}"
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least or (most is not None and number > most):
        raise MethodError(f"{what} must be a whole number, {allowed}: received {value!r:.60}.")
    return number
