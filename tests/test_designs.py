"""Maximum projection designs: the criterion, the swaps, the lattices and what the search reaches."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from l2calib.designs import maxpro_criterion, maxpro_design
from l2calib.designs.continuous import scale_free_criterion
from l2calib.designs.criterion import log_mean_product
from l2calib.designs.lattices import _CONDUCTORS, _points_within, algebraic_lattice, cut, multiples
from l2calib.designs.swaps import ColumnSwaps, descend, inverse_squares
from l2calib.errors import DataError, MethodError

# n: criterion of the R package's Latin hypercubes at its default effort, with 20 starts, and after its continuous step.
R_PACKAGE = {
    20: (29.150, 28.524, 25.394),
    50: (58.125, 56.761, 53.457),
    100: (94.952, 92.953, 89.318),
    200: (154.546, math.inf, 148.037),
}
PRINTED = 5e-4  # half a unit of the last digit of those figures


def _criterion_by_loops(design):
    n, k = design.shape
    products = [
        math.prod(1 / (design[i, column] - design[j, column]) ** 2 for column in range(k))
        for i in range(n)
        for j in range(i)
    ]
    return (sum(products) / len(products)) ** (1 / k)


def _random_ranks(n, k, seed):
    rng = np.random.default_rng(seed)
    return np.column_stack([np.arange(n), *(rng.permutation(n) for _ in range(k - 1))])


def _sum_over_pairs(ranks):
    table = inverse_squares(len(ranks))
    return math.prod(table[np.ix_(column, column)] for column in ranks.T).sum() / 2


def _levels(n, levels):
    return np.arange(n) / (n - 1) if levels == "endpoints" else (np.arange(n) + 0.5) / n


@pytest.mark.parametrize(("n", "k"), [(2, 1), (2, 3), (9, 2), (30, 5)])
def test_the_criterion_is_its_definition(n, k):
    design = np.random.default_rng(n).random((n, k))
    assert maxpro_criterion(design) == pytest.approx(_criterion_by_loops(design), rel=1e-12)


def test_the_criterion_by_blocks_of_rows_is_the_criterion_at_once(monkeypatch):
    design = np.random.default_rng(1).random((40, 3))
    at_once = maxpro_criterion(design)
    monkeypatch.setattr("l2calib.designs.criterion._PAIRS_AT_ONCE", 170)
    assert maxpro_criterion(design) == pytest.approx(at_once, rel=1e-13)


def test_the_criterion_survives_three_hundred_inputs():
    # Each column has the same distances, so every product is one distance to the power of -600: beyond any float.
    design = np.repeat([[0.0], [0.01]], 300, axis=1)
    assert maxpro_criterion(design) == pytest.approx(1e4, rel=1e-12)


def test_a_shared_coordinate_makes_the_criterion_infinite():
    assert maxpro_criterion(np.array([[0.1, 0.2], [0.1, 0.7], [0.4, 0.9]])) == math.inf


@pytest.mark.parametrize(
    "design", [np.zeros(4), np.zeros((1, 2)), np.zeros((3, 0)), np.array([[0.0], [np.nan]]), [["a"], ["b"]]]
)
def test_what_is_no_design_has_no_criterion(design):
    with pytest.raises(DataError):
        maxpro_criterion(design)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(2, 25), k=st.integers(2, 5), seed=st.integers(0, 10**6))
def test_the_change_of_every_swap_is_what_recomputing_gives_before_and_after_swaps(n, k, seed):
    rng = np.random.default_rng(seed)
    ranks, column = _random_ranks(n, k, seed), int(rng.integers(k))
    table = inverse_squares(n)
    matrices = [table[np.ix_(each, each)] for each in ranks.T]
    swaps = ColumnSwaps(math.prod(m for j, m in enumerate(matrices) if j != column), matrices[column])
    for _ in range(4):
        before = _sum_over_pairs(ranks)
        assert swaps.total == pytest.approx(before, rel=1e-10)
        for a, b in itertools.combinations(range(n), 2):
            swapped = ranks.copy()
            swapped[[a, b], column] = swapped[[b, a], column]
            expected = _sum_over_pairs(swapped) - before
            assert swaps.changes[a, b] == swaps.changes[b, a]
            assert swaps.changes[a, b] == pytest.approx(expected, rel=1e-9, abs=1e-9 * before)
        a, b = rng.choice(n, 2, replace=False)
        ranks[[a, b], column] = ranks[[b, a], column]
        swaps.swap(a, b)


@pytest.mark.parametrize(("n", "k"), [(30, 2), (25, 4)])
def test_a_descent_ends_where_no_swap_helps(n, k):
    start = _random_ranks(n, k, seed=3)
    ranks, total, spent = descend(start, most=10_000)
    assert spent > 0
    assert total == pytest.approx(_sum_over_pairs(ranks), rel=1e-12)
    for column in range(k):
        for a, b in itertools.combinations(range(n), 2):
            swapped = ranks.copy()
            swapped[[a, b], column] = swapped[[b, a], column]
            assert _sum_over_pairs(swapped) >= total * (1 - 1e-9)


def test_a_descent_makes_no_more_swaps_than_it_may():
    _, stopped, spent = descend(_random_ranks(40, 3, seed=5), most=7)
    assert spent == 7
    assert stopped > descend(_random_ranks(40, 3, seed=5), most=10_000)[1]


@pytest.mark.parametrize("k", _CONDUCTORS)
def test_the_norm_of_a_lattice_point_is_a_whole_number_other_than_zero(k):
    basis = algebraic_lattice(k)
    coordinates = np.random.default_rng(k).integers(-3, 4, (200, k))
    norms = np.prod(coordinates[coordinates.any(axis=1)] @ basis.T, axis=1)
    np.testing.assert_allclose(norms, norms.round(), atol=1e-7 * np.abs(norms).max())
    assert np.abs(norms).min() > 0.5


@pytest.mark.parametrize("k", [2, 3, 4])
def test_all_lattice_points_of_a_ball_are_found(k):
    basis, centre, radius = algebraic_lattice(k), np.linspace(0.3, 1.7, k), 4.0
    grid = np.array(list(itertools.product(range(-9, 10), repeat=k))) @ basis.T
    expected = grid[np.linalg.norm(grid - centre, axis=1) <= radius]
    found = _points_within(basis, centre, radius)
    assert len(found) > 2**k
    np.testing.assert_allclose(found[np.lexsort(found.T)], expected[np.lexsort(expected.T)], atol=1e-12)


@pytest.mark.parametrize(("n", "k"), [(2, 2), (40, 3), (25, 6), (30, 9)])
def test_a_cut_of_a_lattice_is_a_latin_hypercube_better_than_random_ones(n, k):
    rng = np.random.default_rng(0)
    cuts = [cut(n, algebraic_lattice(k), rng) for _ in range(9)]
    for ranks in [*cuts, multiples(n, k, rng)]:
        np.testing.assert_array_equal(np.sort(ranks, axis=0), np.tile(np.arange(n)[:, None], k))
    if n > 2:
        random = [log_mean_product(_random_ranks(n, k, seed)) for seed in range(9)]
        assert max(map(log_mean_product, cuts)) < np.median(random)


@pytest.mark.parametrize("levels", ["endpoints", "midpoints"])
@pytest.mark.parametrize(("n", "k"), [(2, 2), (3, 2), (3, 4), (17, 3), (12, 5), (10, 7), (6, 30)])
def test_every_column_of_a_design_holds_each_level_once(n, k, levels):
    design = maxpro_design(n, k, levels)
    assert design.shape == (n, k)
    np.testing.assert_array_equal(np.sort(design, axis=0), np.tile(_levels(n, levels)[:, None], k))
    np.testing.assert_array_equal(design[:, 0], _levels(n, levels))


@pytest.mark.parametrize(("levels", "published"), [("midpoints", 59.633), ("endpoints", 53.818)])
def test_with_one_input_the_design_is_the_levels(levels, published):
    design = maxpro_design(20, 1, levels)
    np.testing.assert_array_equal(design[:, 0], _levels(20, levels))
    assert maxpro_criterion(design) == pytest.approx(published, abs=PRINTED)


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("levels", ["endpoints", "midpoints"])
def test_a_single_point_is_at_the_centre(levels, continuous):
    np.testing.assert_array_equal(maxpro_design(1, 3, levels, continuous=continuous), np.full((1, 3), 0.5))


@pytest.mark.parametrize(("n", "k"), [(5, 2), (6, 2), (4, 3)])
def test_the_best_of_all_small_latin_hypercubes_is_found(n, k):
    columns = list(itertools.permutations(range(n)))
    every = (np.column_stack([np.arange(n), *chosen]) for chosen in itertools.product(columns, repeat=k - 1))
    best = min(map(_sum_over_pairs, every))
    found = (maxpro_design(n, k) * n - 0.5).round().astype(int)
    assert _sum_over_pairs(found) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("n", R_PACKAGE)
def test_latin_hypercubes_are_no_worse_than_the_r_packages(n):
    default, twenty_starts, _ = R_PACKAGE[n]
    reached = maxpro_criterion(maxpro_design(n, 2, seed=n + 1))
    assert reached <= default + PRINTED
    assert reached <= twenty_starts + PRINTED


@pytest.mark.parametrize("n", R_PACKAGE)
def test_the_continuous_step_is_no_worse_than_the_r_packages(n):
    assert maxpro_criterion(maxpro_design(n, 2, seed=n, continuous=True)) <= R_PACKAGE[n][2] + PRINTED


@pytest.mark.parametrize("levels", ["endpoints", "midpoints"])
@pytest.mark.parametrize(("n", "k"), [(2, 1), (2, 2), (3, 3), (15, 1), (25, 2), (20, 4)])
def test_the_continuous_step_never_worsens_and_stays_in_the_cube(n, k, levels):
    moved = maxpro_design(n, k, levels, continuous=True)
    assert maxpro_criterion(moved) <= maxpro_criterion(maxpro_design(n, k, levels))
    assert moved.min() == 0.0
    assert moved.max() == 1.0


def test_the_continuous_step_ends_where_the_slopes_vanish():
    _, slopes = scale_free_criterion(maxpro_design(25, 2, continuous=True))
    _, before = scale_free_criterion(maxpro_design(25, 2))
    assert np.abs(slopes).max() < 1e-2 * np.abs(before).max()


@pytest.mark.parametrize(("n", "k"), [(2, 2), (7, 1), (9, 3)])
def test_the_slopes_of_the_continuous_step_are_those_of_finite_differences(n, k):
    points, step = np.random.default_rng(4).random((n, k)), 1e-6
    value, slopes = scale_free_criterion(points)
    stretched = (points - points.min(axis=0)) / np.ptp(points, axis=0)
    assert value == pytest.approx(k * math.log(maxpro_criterion(stretched)), abs=1e-10)
    differences = np.empty((n, k))
    for place in np.ndindex(n, k):
        up, down = points.copy(), points.copy()
        up[place] += step
        down[place] -= step
        differences[place] = (scale_free_criterion(up)[0] - scale_free_criterion(down)[0]) / (2 * step)
    np.testing.assert_allclose(slopes, differences, rtol=1e-5, atol=1e-5 * np.abs(slopes).max())


@pytest.mark.parametrize("continuous", [False, True])
def test_a_seed_gives_one_design_whatever_the_number_of_threads(continuous):
    designs = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            designs.append(maxpro_design(40, 3, seed=8, continuous=continuous))
    np.testing.assert_array_equal(*designs)
    assert not np.array_equal(designs[0], maxpro_design(40, 3, seed=9, continuous=continuous))


def test_more_points_than_swaps_can_serve_still_make_a_good_latin_hypercube(monkeypatch):
    monkeypatch.setattr("l2calib.designs.latin_hypercube._MOST_POINTS", 90)
    reached = maxpro_criterion(maxpro_design(100, 2))
    assert reached <= R_PACKAGE[100][0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n": 0, "k": 2}, "number of points"),
        ({"n": 2.5, "k": 2}, "number of points"),
        ({"n": 5, "k": 0}, "number of inputs"),
        ({"n": 5, "k": 2, "seed": -1}, "seed"),
        ({"n": 5, "k": 2, "levels": "midpoint"}, "did you mean 'midpoints'"),
        ({"n": 5, "k": 2, "levels": None}, "'endpoints' or 'midpoints'"),
    ],
)
def test_what_cannot_be_a_design_is_refused_in_a_sentence(arguments, words):
    with pytest.raises(MethodError, match=words) as caught:
        maxpro_design(**arguments)
    assert str(caught.value).endswith(".")
