"""What users run today: NUTS in blackjax and NumPyro, and the paper's Metropolis.

Every figure is the time of the draws alone: compilation and warm-up are left out.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from tests.oracles.kennedy_ohagan import KAPPA_PRIOR, PSI_PRIOR, KennedyOHagan
from tests.oracles.metropolis import metropolis

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.cases import Case

DRAWS = 50_000
WARM_UP = 1_000


@dataclass(frozen=True)
class Timed:
    """Seconds for DRAWS draws, from a run of ``measured`` of them."""

    seconds: float
    measured: int

    @property
    def note(self) -> str:
        return "" if self.measured == DRAWS else f", measured on {self.measured:,}, scaled"


def _scaled(seconds: float, draws: int) -> Timed:
    return Timed(seconds * DRAWS / draws, draws)


def _discrepancy_correlation(case: Case, psi: Any) -> Any:
    """C_P at theta-hat, densely, as the paper writes it."""

    def correlation(a: Any, b: Any) -> Any:
        return jnp.exp(-((a[:, None] - b[None]) ** 2) @ psi)

    x, nodes = jnp.asarray(case.x), jnp.asarray(case.rule.nodes)
    slope = case.configuration.gradient(case.rule.nodes, case.theta_hat)
    weighted = jnp.asarray(case.rule.weights[:, None] * slope)
    h = correlation(x, nodes) @ weighted
    H = weighted.T @ correlation(nodes, nodes) @ weighted
    return correlation(x, x) - h @ jnp.linalg.solve(H, h.T)


def gibbs_density(case: Case) -> Callable[[Any], Any]:
    """gb-l2 as a function of theta on the real line, through a logit of the prior's box."""
    lower, width = case.configuration.lower, case.configuration.upper - case.configuration.lower

    def log_density(position: Any) -> Any:
        share = jax.nn.sigmoid(position)
        jacobian = jnp.sum(jnp.log(share) + jnp.log1p(-share))
        return case.log_gibbs(lower + width * share) + jacobian

    return log_density


def koh_density(case: Case) -> Callable[[Any], Any]:
    """koh as a function of (logit theta, log psi, log kappa), sigma2 integrated out, one Cholesky a call."""
    lower, width = case.configuration.lower, case.configuration.upper - case.configuration.lower
    p, n = case.configuration.p, len(case.y)

    def log_density(position: Any) -> Any:
        share = jax.nn.sigmoid(position[:p])
        log_psi, log_kappa = position[p:-1], position[-1]
        dense = _discrepancy_correlation(case, jnp.exp(log_psi))
        factor = jnp.linalg.cholesky(jnp.eye(n) + dense / jnp.exp(log_kappa))
        residual = case.y - case.eta(case.x, lower + width * share)
        white = jax.scipy.linalg.solve_triangular(factor, residual, lower=True)
        return (
            -jnp.sum(jnp.log(jnp.diag(factor)))
            - n / 2 * jnp.log(white @ white)
            + jnp.sum(jnp.log(share) + jnp.log1p(-share))
            - 0.5 * jnp.sum(((log_psi - PSI_PRIOR[0]) / PSI_PRIOR[1]) ** 2)
            - 0.5 * ((log_kappa - KAPPA_PRIOR[0]) / KAPPA_PRIOR[1]) ** 2
        )

    return log_density


def start(case: Case, hyper: bool) -> Any:
    """theta-hat on the unconstrained scale, with psi and kappa at their prior medians."""
    chosen = case.configuration
    share = np.clip((case.theta_hat - chosen.lower) / (chosen.upper - chosen.lower), 1e-3, 1 - 1e-3)
    position = np.log(share / (1 - share))
    if hyper:
        position = np.concatenate([position, np.full(chosen.k, PSI_PRIOR[0]), [KAPPA_PRIOR[0]]])
    return jnp.asarray(position)


def blackjax_nuts(log_density: Callable[[Any], Any], initial: Any, draws: int) -> Timed:
    """One chain, tuned by window adaptation, the whole run one compiled loop."""
    import blackjax

    tuning = blackjax.window_adaptation(blackjax.nuts, log_density)
    (state, parameters), _ = tuning.run(jax.random.key(0), initial, num_steps=WARM_UP)
    kernel = blackjax.nuts(log_density, **parameters).step

    def chain(key: Any, first: Any) -> Any:
        def step(at: Any, one: Any) -> Any:
            moved, _ = kernel(one, at)
            return moved, moved.position

        return jax.lax.scan(step, first, jax.random.split(key, draws))[1]

    compiled = jax.jit(chain).lower(jax.random.key(1), state).compile()
    began = time.perf_counter()
    compiled(jax.random.key(1), state).block_until_ready()
    return _scaled(time.perf_counter() - began, draws)


def numpyro_gibbs(case: Case) -> Callable[[], None]:
    """gb-l2 as a NumPyro model."""
    import numpyro
    from numpyro import distributions as dist

    chosen = case.configuration

    def model() -> None:
        theta = numpyro.sample("theta", dist.Uniform(chosen.lower, chosen.upper).to_event(1))
        numpyro.factor("loss", case.log_gibbs(theta))

    return model


def numpyro_koh(case: Case) -> Callable[[], None]:
    """koh as a NumPyro model: theta, sigma2, psi and kappa jointly, y multivariate normal."""
    import numpyro
    from numpyro import distributions as dist

    chosen, n = case.configuration, len(case.y)

    def model() -> None:
        theta = numpyro.sample("theta", dist.Uniform(chosen.lower, chosen.upper).to_event(1))
        psi = numpyro.sample("psi", dist.LogNormal(*PSI_PRIOR).expand([chosen.k]).to_event(1))
        kappa = numpyro.sample("kappa", dist.LogNormal(*KAPPA_PRIOR))
        log_sigma2 = numpyro.sample("log_sigma2", dist.ImproperUniform(dist.constraints.real, (), ()))
        dense = _discrepancy_correlation(case, psi)
        covariance = jnp.exp(log_sigma2) * (jnp.eye(n) + dense / kappa)
        normal = dist.MultivariateNormal(case.eta(case.x, theta), covariance_matrix=covariance)
        numpyro.sample("y", normal, obs=case.y)

    return model


def numpyro_nuts(model: Callable[[], None], initial: dict[str, Any], draws: int) -> Timed:
    """One chain with NumPyro's own defaults.

    Each call of its `run` traces the model again, which takes seconds; the same call for one draw is subtracted.
    """
    whole, overhead = (_numpyro_run(model, initial, number) for number in (draws, 1))
    return _scaled(whole - overhead, draws)


def _numpyro_run(model: Callable[[], None], initial: dict[str, Any], draws: int) -> float:
    from numpyro.infer import MCMC, NUTS, init_to_value

    kernel = NUTS(model, init_strategy=init_to_value(values=initial))
    chain = MCMC(kernel, num_warmup=WARM_UP, num_samples=draws, progress_bar=False)
    chain.warmup(jax.random.key(0))
    times = []
    for run in range(2):
        began = time.perf_counter()
        chain.run(jax.random.key(run))
        jax.block_until_ready(chain.get_samples())
        times.append(time.perf_counter() - began)
    return times[-1]


def paper_metropolis(case: Case, draws: int) -> Timed:
    """koh by random-walk Metropolis with a dense factorisation at every iteration."""
    chosen = case.configuration
    model = KennedyOHagan(
        case.x,
        case.y,
        chosen.eta,
        chosen.gradient,
        case.rule,
        chosen.lower,
        chosen.upper,
        "estimate",
        case.theta_hat,
    )
    began = time.perf_counter()
    metropolis(model, draws, 0, seed=1)
    return _scaled(time.perf_counter() - began, draws)
