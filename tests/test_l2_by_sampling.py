"""The integral of `l2` over rho and theta against a long run of Markov chains on the dense formula."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

import l2calib as l2
from l2calib.methods.l2 import PSI_PRIOR
from l2calib.process.lattice import KAPPA_BOUNDS, PSI_BOUNDS, HalfCauchyRatio
from tests.oracles.quadrature import gauss_legendre

RULE = gauss_legendre(24, 1)
X = np.r_[np.linspace(0, 0.5, 8), np.linspace(0.6, 1, 4)]
LOW, HIGH = np.array([0.2, 0.2]), np.array([8.0, 8.0])
WALKERS, STEPS, GROUPS = 160, 1800, 8
BURNT = 200


def observed():
    noise = 0.06 * np.random.default_rng(8).standard_normal(X.size)
    return 2 * np.exp(-1.5 * X) + 0.2 * X * (1 - X) * np.sin(9 * X) + noise


def values_and_slopes(x, theta):
    """(W, n) and (W, n, 2)."""
    falling = np.exp(-theta[:, 1:] * x)
    return theta[:, :1] * falling, np.stack([falling, -theta[:, :1] * x * falling], axis=2)


def correlation(one, other, psi):
    return np.exp(-psi[:, None, None] * (one[:, None] - other) ** 2)


def log_density(state, y):
    """Of theta and of the logs of psi and kappa (W, 4), with C_theta as it is defined."""
    theta, log_psi, log_kappa = state[:, :2], state[:, 2], state[:, 3]
    inside = ((theta > LOW) & (theta < HIGH)).all(axis=1)
    for logarithm, bounds in ((log_psi, PSI_BOUNDS), (log_kappa, KAPPA_BOUNDS)):
        inside &= (logarithm > np.log(bounds[0])) & (logarithm < np.log(bounds[1]))
    theta = np.where(inside[:, None], theta, 1.0)
    psi, kappa = (np.exp(np.where(inside, each, 0.0)) for each in (log_psi, log_kappa))
    nodes, weights = RULE.nodes[:, 0], RULE.weights
    modelled, at_design = values_and_slopes(X, theta)
    _, at_nodes = values_and_slopes(nodes, theta)
    gram = np.einsum("wqi,q,wqj->wij", at_nodes, weights, at_nodes)
    inverse_root = np.linalg.inv(np.swapaxes(np.linalg.cholesky(gram), 1, 2))
    t, q = at_design @ inverse_root, weights[:, None] * (at_nodes @ inverse_root)
    b = correlation(X, nodes, psi) @ q
    s = np.swapaxes(q, 1, 2) @ correlation(nodes, nodes, psi) @ q
    turned = np.swapaxes(t, 1, 2)
    projected = correlation(X, X, psi) - b @ turned - t @ np.swapaxes(b, 1, 2) + t @ s @ turned
    phi = projected + kappa[:, None, None] * np.eye(X.size)
    residual = y - modelled
    square = np.einsum("wi,wi->w", residual, np.linalg.solve(phi, residual[:, :, None])[:, :, 0])
    process = -np.linalg.slogdet(phi)[1] / 2 - X.size / 2 * np.log(square)
    none = -X.size / 2 * np.log((residual**2).sum(axis=1))
    # The prior of rho has a sum of one, so that this has the right sum over rho.
    of_rho = PSI_PRIOR.log_density(psi) + log_psi + HalfCauchyRatio().log_density(kappa) + log_kappa
    total = np.logaddexp(process, none) + np.linalg.slogdet(gram)[1] / 2 + of_rho
    return np.where(inside, total, -np.inf)


def sampled(y):
    """theta (STEPS - BURNT, WALKERS, 2): walkers move along the lines between others (Goodman and Weare 2010)."""
    rng = np.random.default_rng(3)
    state = np.column_stack(
        [rng.normal([2.0, 1.5], 0.1, (WALKERS, 2)), rng.normal(1.6, 2, WALKERS), rng.normal(0, 2, WALKERS)]
    )
    log_here, kept = log_density(state, y), []
    halves = np.arange(0, WALKERS, 2), np.arange(1, WALKERS, 2)
    for step in range(STEPS):
        for moving, still in (halves, halves[::-1]):
            stretch = (1 + rng.random(moving.size) * (np.sqrt(4) - 1)) ** 2 / 2
            origin = state[rng.permutation(still)]
            proposed = origin + stretch[:, None] * (state[moving] - origin)
            log_there = log_density(proposed, y)
            odds = (state.shape[1] - 1) * np.log(stretch) + log_there - log_here[moving]
            taken = np.log(rng.random(moving.size)) < odds
            state[moving[taken]], log_here[moving[taken]] = proposed[taken], log_there[taken]
        if step >= BURNT:
            kept.append(state[:, :2].copy())
    return np.array(kept)


def test_the_posterior_is_that_of_a_long_markov_chain():
    y = observed()
    prior = {name: l2.Uniform(*ends) for name, ends in zip("ab", zip(LOW, HIGH, strict=True), strict=True)}
    found = l2.calibrate(
        l2.Problem(
            lambda x, a, b: a * jnp.exp(-b * x),
            {"x": X, "y": y},
            "y",
            {"x": (0, 1)},
            prior,
            quadrature=l2.gauss_legendre(1, 24),
        )
    )
    assert found.status == l2.Status.OK
    chains = sampled(y)
    for j, name in enumerate("ab"):
        row = found.rows[name]
        groups = np.array(np.split(chains[:, :, j], GROUPS, axis=0)).reshape(GROUPS, -1)
        slow = {"mean": groups.mean(axis=1), "sd": groups.std(axis=1)}
        slow |= {f"q{100 * level:g}": np.quantile(groups, level, axis=1) for level in (0.025, 0.5, 0.975)}
        for column, estimates in slow.items():
            error = estimates.std(ddof=1) / np.sqrt(GROUPS)
            off = abs(row[column] - estimates.mean())
            # Three standard errors of either.
            assert off < 3 * np.hypot(error, found.numerical_error * row["sd"]), (name, column, off / row["sd"])
            assert error < 0.05 * row["sd"]
