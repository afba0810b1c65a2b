"""The No-U-Turn sampler, through blackjax.

A chain alone never leaves the mode in which it starts when the modes are far apart. So every NUTS step is followed
by one independence step that proposes from the Gaussians fitted to the modes, accepted by Metropolis and Hastings'
rule: both steps leave the posterior invariant, and the second lets a chain visit the modes in proportion to their mass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import blackjax
import numpy as np

from l2calib.engines.modes import survey_modes
from l2calib.errors import MethodError, Status
from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.numerics.modes import Modes, Survey
from l2calib.numerics.namespace import log_sum_exp
from l2calib.posterior.points import Points, Target

_MODES = 4
_INFLATION = 1.3
_R_HAT_LIMIT = 1.01


class _State(NamedTuple):
    z: Array
    log_density: Array


@dataclass(frozen=True)
class NUTS:
    """`draws` draws in all, from `chains` chains after `warmup` steps of adaptation each."""

    draws: int = 4000
    chains: int = 4
    warmup: int = 1000
    jumps: bool = True

    def __post_init__(self) -> None:
        if self.chains < 2 or self.draws < 4 * self.chains or self.warmup < 50:
            raise MethodError(
                "NUTS needs at least 2 chains, 4 draws from each and a warm-up of 50: "
                f"received chains = {self.chains}, draws = {self.draws}, warmup = {self.warmup}."
            )

    @property
    def name(self) -> str:
        return "nuts"

    @property
    def tolerance(self) -> float:
        """Chains are judged by R-hat and divergences, not by a numerical error."""
        return np.inf

    def levels(self, dimension: int) -> int:
        """A sampler has no levels of refinement but its number of draws."""
        return 1

    def evaluations(self, dimension: int, level: int) -> int:
        return self.draws

    def next_level(self, dimension: int, level: int, error: np.ndarray, missed: np.ndarray) -> np.ndarray:
        """There is none."""
        return np.full(error.shape, level)

    def survey(self, target: Target) -> Survey:
        """The modes that the method's starts lead to."""
        return survey_modes(target, target.starts)

    def points(self, target: Target, survey: Survey, level: int, key: Array) -> Points:
        """Equally weighted draws with R-hat, effective sample sizes and divergences."""
        modes, _ = survey.largest(_MODES)
        start_key, warm_key, run_key = jax.random.split(key, 3)
        first = _propose(modes, start_key, self.chains)

        def log_density(z: Array) -> Array:
            at_one: Array = target.log_density(z[None])[0]
            return at_one if target.log_share is None else at_one + target.log_share(z[None])[0]

        adapt = blackjax.window_adaptation(blackjax.nuts, log_density)

        def run(z: Array, chain_warm: Array, chain_run: Array) -> tuple[Array, Array]:
            (state, parameters), _ = adapt.run(chain_warm, z, self.warmup)
            step = blackjax.nuts(log_density, **parameters).step
            keys = jax.random.split(chain_run, -(-self.draws // self.chains))

            def advance(current: _State, step_key: Array) -> tuple[_State, tuple[Array, Array]]:
                nuts_key, jump_key = jax.random.split(step_key)
                moved, info = step(nuts_key, blackjax.nuts.init(current.z, log_density))
                landed = _State(moved.position, moved.logdensity)
                if self.jumps:
                    landed = _jump(log_density, modes, landed, jump_key)
                return landed, (landed.z, info.is_divergent)

            _, (z_chain, divergent) = jax.lax.scan(advance, _State(state.position, state.logdensity), keys)
            return z_chain, divergent

        keys = jax.random.split(warm_key, self.chains), jax.random.split(run_key, self.chains)
        chains, divergent = jax.vmap(run)(first, *keys)
        points = _as_points(chains, divergent)
        if target.log_share is None:
            return points
        return points._replace(doubt=1 - jnp.mean(jnp.exp(target.log_share(points.z))))


def _as_points(chains: Array, divergent: Array) -> Points:
    r_hat = blackjax.diagnostics.potential_scale_reduction(chains)
    ess = blackjax.diagnostics.effective_sample_size(chains)
    z = chains.reshape(-1, chains.shape[-1])
    mixed = jnp.all(r_hat < _R_HAT_LIMIT) & (jnp.sum(divergent) == 0)
    status = jnp.where(mixed, 0, int(Status.POORLY_MIXED))
    status = jnp.where(jnp.isfinite(z).all(), status, int(Status.NOT_FINITE))
    diagnostics = {
        "r_hat": r_hat,
        "ess": ess,
        "divergences": jnp.sum(divergent),
        "chains": jnp.asarray(chains.shape[0]),
    }
    weights = jnp.full(z.shape[0], 1 / z.shape[0])
    return Points(z, weights, error=1 / jnp.sqrt(jnp.min(ess)), status=status, diagnostics=diagnostics)


def _propose(modes: Modes, key: Array, number: int) -> Array:
    which_key, normal_key = jax.random.split(key)
    which = jax.random.categorical(which_key, modes.log_mass, shape=(number,))
    normal = _INFLATION * jax.random.normal(normal_key, (number, modes.centres.shape[1]))
    return jnp.asarray(modes.centres[which] + jnp.einsum("nij,nj->ni", modes.factors[which], normal))


def _log_proposal(modes: Modes, z: Array) -> Array:
    wide = Modes(modes.centres, _INFLATION * modes.factors, modes.log_mass)
    return jnp.asarray(log_sum_exp(wide.log_bells(z), axis=0))


def _jump(log_density: Callable[[Array], Array], modes: Modes, current: _State, key: Array) -> _State:
    """One independence Metropolis-Hastings step."""
    proposal_key, accept_key = jax.random.split(key)
    z = _propose(modes, proposal_key, 1)[0]
    proposed = _State(z, log_density(z))
    log_ratio = (
        proposed.log_density - current.log_density + _log_proposal(modes, current.z) - _log_proposal(modes, proposed.z)
    )
    accept = jnp.log(jax.random.uniform(accept_key)) < jnp.where(jnp.isnan(log_ratio), -np.inf, log_ratio)
    return _State(*(jnp.where(accept, new, old) for new, old in zip(proposed, current, strict=True)))
