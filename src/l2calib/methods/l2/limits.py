"""What limits an answer: what the data leave open, and where further observations would tell most.

With the model's slopes at theta-hat and the most probable rho, theta and the system are jointly normal, and what an
observation takes away from the variance of theta depends on where it is made and not on what it says.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from l2calib.display.numbers import named
from l2calib.display.words import listed
from l2calib.problem.experiment import Experiment
from l2calib.process.correlation import Correlation, squared_differences
from l2calib.process.projected_bias import orthonormal_slopes

OBSERVATIONS = 3  # further ones that are made at one place: one could be an outlier
_WORTH_SAYING = 0.33  # of an interval's length
_DETERMINED = 0.3  # the prior's sd over that of the data alone: below, the data take away no twentieth of it
_TAKES_PART = 0.2  # of a direction of length one


class MorePoints(NamedTuple):
    """The best place for `OBSERVATIONS` more, and by what share each parameter's standard deviation would fall."""

    place: dict[str, float]
    shorter: dict[str, float]


class Limits(NamedTuple):
    """Groups of parameters that the data do not tell apart, or one by one nothing of; and what would help."""

    open: tuple[tuple[str, ...], ...]
    more_points: MorePoints | None

    def sentences(self) -> list[str]:
        """For people."""
        said = [
            f"The data say next to nothing of {names[0]}: its posterior is what the prior says."
            if len(names) == 1
            else f"The data do not tell {listed(names)} apart: only a combination of them is determined, and along "
            "what is left open the posterior is what the prior says."
            for names in self.open
        ]
        if self.more_points is None:
            return said
        name, share = max(self.more_points.shorter.items(), key=lambda each: each[1])
        if share >= _WORTH_SAYING:
            place = named(self.more_points.place, self.more_points.place.values(), digits=4)
            said.append(
                f"Most would be told by {OBSERVATIONS} more observations at {place}: "
                f"they would shorten the interval of {name} by about {share:.0%}."
            )
        return said


def limits(
    experiment: Experiment, correlation: Correlation, theta: np.ndarray, sigma2: float, psi: np.ndarray, kappa: float
) -> Limits:
    """Of the answer theta; places are nodes of the quadrature. Without a process psi is not a number."""
    n, few = experiment.observations, experiment.few_nodes
    everywhere = np.vstack([experiment.x, experiment.nodes[: len(few.nodes)]])
    _, slopes = experiment.model.values_and_slopes(everywhere, theta[None])
    at_design, at_nodes = slopes[0, :n] * experiment.whitening[:, None], slopes[0, n:]
    typical = float(np.median(experiment.whitening))
    roots = np.sqrt(few.weights)[:, None]
    own = orthonormal_slopes((roots * at_nodes)[None], at_design[None], experiment.prior.scale)
    inverse_root = own.inverse_root[0][:, own.moves[0]]
    at = np.vstack([at_design, typical * at_nodes]) @ inverse_root
    covariance, noise = np.zeros((len(at), len(at))), 1.0
    if np.isfinite(psi).all() and np.isfinite(kappa):
        scales = np.concatenate([experiment.whitening, np.full(len(few.nodes), typical)])
        covariance, noise = _projected(correlation, experiment, psi, at, scales, at_nodes @ inverse_root), kappa
    names = experiment.prior.names
    try:
        factor = np.linalg.cholesky(covariance[:n, :n] + noise * np.eye(n))
        information = np.linalg.solve(factor, at_design) * experiment.prior.scale * np.sqrt(noise)
        left_open = _open(information, np.sqrt(sigma2), names)
        gain = _gain(factor, covariance, noise, at, inverse_root)
    except np.linalg.LinAlgError:  # of what is singular, or no number, nothing can be said
        return Limits((), None)
    best = int(np.argmax(gain.mean(axis=1)))
    shorter = 1 - np.sqrt(1 - gain[best])
    place = dict(zip(experiment.box.names, everywhere[n + best].tolist(), strict=True))
    return Limits(left_open, MorePoints(place, dict(zip(names, shorter.tolist(), strict=True))))


def _open(information: np.ndarray, sigma: float, names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """By white slopes (n, p), for parameters in units of the prior."""
    _, sizes, directions = np.linalg.svd(information, full_matrices=True)
    sizes = np.pad(sizes, (0, len(names) - len(sizes)))
    return tuple(
        tuple(name for name, part in zip(names, direction, strict=True) if abs(part) > _TAKES_PART)
        for size, direction in zip(sizes, directions, strict=True)
        if size < _DETERMINED * sigma
    )


def _projected(
    correlation: Correlation,
    experiment: Experiment,
    psi: np.ndarray,
    at: np.ndarray,
    scales: np.ndarray,
    q: np.ndarray,
) -> np.ndarray:
    """The covariance of the projected process at the design and the nodes, by tau^2."""
    n, few = experiment.observations, experiment.few_nodes
    sites = np.vstack([experiment.x_unit, few.nodes])
    plain = scales[:, None] * scales * correlation(squared_differences(sites, sites), psi)
    functionals = few.weights[:, None] * q
    b = plain[:, n:] / scales[n:] @ functionals
    s = functionals.T @ (b[n:] / scales[n:, None])
    return np.asarray(plain - b @ at.T - at @ b.T + at @ s @ at.T)


def _gain(
    factor: np.ndarray, covariance: np.ndarray, noise: float, at: np.ndarray, inverse_root: np.ndarray
) -> np.ndarray:
    """The share of every parameter's variance that observations at each node take away (Q, p)."""
    n = len(factor)
    white, across = np.linalg.solve(factor, at[:n]), np.linalg.solve(factor, covariance[:n, n:])
    known = np.linalg.inv(white.T @ white)
    away = at[n:] - across.T @ white  # (Q, p)
    variance = np.maximum(np.diag(covariance)[n:] - (across**2).sum(axis=0), 0.0) + noise / OBSERVATIONS
    variance = variance + np.einsum("qi,ij,qj->q", away, known, away)
    moved = away @ known @ inverse_root.T
    of_theta = np.einsum("ji,ik,jk->j", inverse_root, known, inverse_root)
    determined = of_theta > 0
    share = np.where(determined, moved**2 / variance[:, None] / np.where(determined, of_theta, 1.0), 0.0)
    return np.asarray(np.minimum(share, 1.0))
