"""Posterior summaries of many datasets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from l2calib.compute.stages import Solution
from l2calib.errors import DataError, Status


@dataclass(frozen=True)
class Batch:
    """Posterior summaries of many datasets of one experiment, a row each.

    `mean`, `sd` and `theta_hat` are (B, p), `quantiles` is (B, p, 3) at 2.5, 50 and 97.5 percent; `gamma`, `sigma2`,
    `kappa` and `no_process` are (B,) and `psi` is (B, k), None where the method has none; `status` holds `Status`
    values, `error` the numerical error in posterior standard deviations.
    """

    method: str
    solution: Solution

    @property
    def mean(self) -> np.ndarray:
        return np.asarray(self.solution.summary.mean)

    @property
    def sd(self) -> np.ndarray:
        return np.asarray(self.solution.summary.sd)

    @property
    def quantiles(self) -> np.ndarray:
        return np.asarray(self.solution.summary.quantiles)

    @property
    def status(self) -> np.ndarray:
        return np.asarray(self.solution.status)

    @property
    def failed(self) -> np.ndarray:
        """Which datasets have no posterior."""
        return np.asarray((self.status & int(Status.FLAT_LOSS | Status.NOT_FINITE)) != 0)

    @property
    def error(self) -> np.ndarray:
        return np.asarray(self.solution.summary.error)

    @property
    def theta_hat(self) -> np.ndarray:
        return np.asarray(self.solution.fit.theta_hat)

    @property
    def gamma(self) -> np.ndarray | None:
        return self._learnt("gamma")

    @property
    def sigma2(self) -> np.ndarray | None:
        return self._learnt("sigma2")

    @property
    def psi(self) -> np.ndarray | None:
        return self._learnt("psi")

    @property
    def kappa(self) -> np.ndarray | None:
        return self._learnt("kappa")

    @property
    def no_process(self) -> np.ndarray | None:
        return self._learnt("no_process")

    def _learnt(self, name: str) -> np.ndarray | None:
        value = getattr(self.solution.fit, name)
        return None if value is None else np.asarray(value)

    def covers(self, theta: Sequence[float] | np.ndarray) -> np.ndarray:
        """Whether the 95% interval of every dataset and parameter holds theta (B, p)."""
        target = np.asarray(theta, dtype=float)
        if target.shape not in (self.mean.shape, self.mean.shape[1:]):
            raise DataError(f"theta must have shape {self.mean.shape[1:]}: received {target.shape}.")
        return np.asarray((self.quantiles[:, :, 0] <= target) & (target <= self.quantiles[:, :, 2]))
