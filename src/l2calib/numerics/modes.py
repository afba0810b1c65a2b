"""The modes of a density: where climbs have ended, each with its fitted Gaussian."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from l2calib.numerics.namespace import AnyArray, log_sum_exp, namespace_of
from l2calib.numerics.newton import Summit, laplace
from l2calib.numerics.small_matrices import diagonal, forward, lower_solve

_ARRIVED = 0.05
_DENSITY_AT_THE_ENDS = 0.058  # of a standard normal at its 2.5% quantile


class Modes(NamedTuple):
    """Fitted Gaussians: centres (M, p), lower factors of their covariances (M, p, p), log masses (M,)."""

    centres: AnyArray
    factors: AnyArray
    log_mass: AnyArray

    @property
    def log_peak(self) -> AnyArray:
        xp = namespace_of(self.factors)
        return self.log_mass - xp.sum(xp.log(diagonal(self.factors)), axis=-1)

    @property
    def conditional_sd(self) -> AnyArray:
        """Along each coordinate, the others held (M, p)."""
        xp, p = namespace_of(self.factors), self.centres.shape[1]
        root = lower_solve(self.factors, xp.broadcast_to(xp.eye(p), self.factors.shape))
        return 1 / xp.sqrt(xp.sum(root**2, axis=-2))

    def log_bells(self, z: AnyArray) -> AnyArray:
        """Log height of every Gaussian (M, ...) at z (p, ...): points are the last axis, and vectorised along it."""
        centres, factors, log_peak = (
            each.reshape(len(each), *[1] * (z.ndim - 1), *each.shape[1:])
            for each in (self.centres, self.factors, self.log_peak)
        )
        white = forward(factors, [z[i] - centres[..., i] for i in range(len(z))])
        return log_peak - sum(each**2 for each in white) / 2

    def log_shares(self, z: AnyArray) -> AnyArray:
        """Log partition of unity (M, ...) at z (p, ...): the share of each Gaussian in their mixture."""
        log_bells = self.log_bells(z)
        return log_bells - log_sum_exp(log_bells, axis=0)


class Survey(NamedTuple):
    """All summits that were found, each with its Gaussian."""

    centres: AnyArray  # (S, p)
    factors: AnyArray  # (S, p, p)
    log_mass: AnyArray  # (S,), minus infinity for what is no mode

    def largest(self, keep: int) -> tuple[Modes, AnyArray]:
        """The `keep` largest distinct modes, and how far the others would move the moments and the interval, in sd.

        Where there are fewer, copies of the largest without mass fill the places.
        """
        xp = namespace_of(self.centres)
        remaining, kept, log_mass, distances = self.log_mass, [], [], []
        for _ in range(keep):
            best = xp.argmax(remaining)
            log_mass.append(remaining[best])
            best = xp.where(xp.isfinite(remaining[best]), best, xp.argmax(self.log_mass))
            kept.append(best)
            white = lower_solve(self.factors[best][None], self.centres - self.centres[best])
            distances.append(xp.sum(white**2, axis=1))
            remaining = xp.where(distances[-1] < 4.0, -np.inf, remaining)
        index = xp.stack(kept)
        mass, squared = xp.exp(remaining - xp.max(self.log_mass)), distances[0]
        # Its own mass at a 95% interval's end, the mean, the standard deviation.
        missed = xp.max(mass * xp.maximum(1 / _DENSITY_AT_THE_ENDS, xp.sqrt(squared) + squared / 2))
        chosen = Modes(self.centres[index], self.factors[index], xp.stack(log_mass))
        return chosen, xp.where(xp.isnan(missed), 0.0, missed)


def survey_climbs(summits: Summit) -> Survey:
    """A Gaussian at each summit; a climb that was cut short on a slope only counts when there is nothing better."""
    centres, factors, log_mass = laplace(summits)
    xp = namespace_of(log_mass)
    log_mass = xp.where(xp.isnan(log_mass), -np.inf, log_mass)
    arrived = summits.decrement < _ARRIVED
    log_mass = xp.where(arrived | ~xp.any(arrived), log_mass, -np.inf)
    return Survey(centres, factors, log_mass)
