"""A block depends on its task alone: the same datasets for every method, the same bits whenever it is computed."""

import dataclasses
import itertools
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import l2calib as l2
from l2calib.compute import choices
from l2calib.errors import InputError
from l2calib.methods.catalogue import PAPER_METHODS
from l2calib.study.block import compute_block, simulate
from l2calib.study.configurations import chosen, paper_configurations
from l2calib.study.plan import Cell, Plan
from l2calib.study.sealed import DamagedError, about, seal, unseal
from tests import small_study

ROWS, N = 20, 12


def study(**changes):
    asked = {"sizes": [N], "errors": ["normal", "t"], "methods": ["nlm", "gb-ols"], "replications": 40, "block": ROWS}
    return Plan(chosen(paper_configurations(), ["3"]), **(asked | changes))


@pytest.fixture(scope="module")
def blocks():
    plan = study()
    return {cell: compute_block(plan.task(cell)) for cell in plan.cells()}


def numbers(data):
    """The columns as bytes, so that equal means equal to the last bit."""
    table, _ = unseal(data)
    return {name: table[name].combine_chunks().buffers()[1].to_pybytes() for name in table.column_names}


def test_cells_are_ordered_group_by_group():
    plan = study(sizes=[12, 20], replications=41)
    cells = plan.cells()
    assert len(cells) == len(set(cells)) == 2 * 2 * 2 * 3
    groups = [cell.group for cell in cells]
    changes = sum(one != other for one, other in itertools.pairwise(groups))
    assert changes == len(set(groups)) - 1
    assert cells[0] == Cell("3", 12, "normal", "nlm", 0)
    assert cells[0].group == ("3", 12)


def test_repetitions_in_the_options_are_dropped():
    plan = study(sizes=[20, 12, 20], methods=["nlm", "nlm"], errors=["t", "t"])
    assert (plan.sizes, plan.methods, plan.errors) == ((20, 12), ("nlm",), ("t",))
    assert [type(n) for n in study(sizes=np.array([12, 20])).sizes] == [int, int]


def test_methods_that_smooth_alike_share_the_choice_of_rho(monkeypatch, blocks):
    """Their blocks say the same of it, and it was made once.

    The design is that of `blocks`, after them, so that little is left to compile; the datasets are others.
    """
    made = []
    really = choices.choose
    monkeypatch.setattr(choices, "choose", lambda *what: made.append(what) or really(*what))
    plan = study(errors=["normal", "t"], methods=["gb-l2", "gb-ols"], replications=ROWS, seed=1)
    files = {(cell.errors, cell.method): compute_block(plan.task(cell)) for cell in plan.cells()}
    assert len(made) == 2  # for two laws
    for law in ("normal", "t"):
        seconds = [about(files[law, method])["seconds_choosing"] for method in ("gb-l2", "gb-ols")]
        assert seconds[0] == seconds[1] > 0
        first, second = (numbers(files[law, method])["kappa"] for method in ("gb-l2", "gb-ols"))
        assert first == second


def test_the_methods_of_a_plan_are_the_papers():
    assert PAPER_METHODS == ("nlm", "koh", "projected", "gb-l2", "gb-ols", "gb-l2-boot", "gb-ols-boot")
    assert Plan(paper_configurations()).methods == PAPER_METHODS
    assert len(Plan(paper_configurations()).cells()) == 4 * 10 * 3 * 7 * 20


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sizes": []}, r"no sizes were given: received \[\]; give for example 20,100"),
        ({"sizes": [2]}, "n = 2 is too small for configuration 3, whose parameters are theta1: give at least 3"),
        ({"sizes": [20.5]}, "a size must be a whole number, at least 1: received 20.5"),
        ({"sizes": [True]}, "a size must be a whole number, at least 1: received True"),
        ({"errors": ["nromal"]}, r"there is no error law 'nromal' \(did you mean 'normal'\?\)"),
        ({"errors": "normal"}, "no error laws were given: received 'normal'"),
        ({"methods": ["gb-l1"]}, r"there is no method 'gb-l1' \(did you mean"),
        ({"methods": []}, "no methods were given"),
        ({"replications": 0}, "the number of replications must be a whole number, at least 1: received 0"),
        ({"block": 0}, "the number of replications in a block must be a whole number, at least 1"),
        ({"seed": -1}, "the seed must be a whole number, between 0 and"),
        ({"seed": 2**63}, "the seed must be a whole number, between 0 and"),
        (
            {"levels": "endpoint"},
            r"the levels .* endpoints or midpoints: received 'endpoint' \(did you mean 'endpoints'",
        ),
    ],
)
def test_an_option_that_makes_no_study_is_refused_in_a_sentence(change, says):
    with pytest.raises(InputError, match=says) as caught:
        study(**change)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_a_plan_without_configurations_is_refused():
    with pytest.raises(InputError, match="no configurations were given"):
        Plan({})


def test_a_configuration_that_no_worker_could_find_is_refused():
    # It would be looked for among the paper's, where another is called the same.
    alike = dataclasses.replace(paper_configurations()["3"], sigma2=1.0)
    with pytest.raises(InputError, match="a worker could not find configuration 3"):
        Plan({"3": alike})


def test_every_method_sees_the_same_datasets_with_the_same_seeds():
    plan = study()
    configuration = plan.configurations["3"]
    same = [simulate(plan.task(Cell("3", N, "t", method, 1)), configuration) for method in ("nlm", "koh", "gb-l2-boot")]
    for responses, seeds in same[1:]:
        np.testing.assert_array_equal(responses, same[0][0])
        assert seeds == same[0][1]
    assert len(set(same[0][1])) == ROWS


def test_the_datasets_of_a_block_depend_on_all_that_the_study_varies():
    def noise(name="3", n=N, errors="normal", block=0, **changes):
        plan = Plan(paper_configurations(), sizes=[n], **({"block": ROWS} | changes))
        errors_stream, seeds = plan.task(Cell(name, n, errors, "nlm", block)).streams()
        return float(errors_stream.random()), float(seeds.random())

    varied = [
        noise(),
        noise(name="2"),
        noise(n=13),
        noise(errors="t"),
        noise(block=1),
        noise(seed=1),
        noise(seed=2**40),
    ]
    assert len({number for pair in varied for number in pair}) == 2 * len(varied)
    # Nothing else: neither the levels nor what else is studied.
    assert noise() == noise(levels="midpoints") == noise(methods=["koh"], replications=5)


def test_simulated_responses_have_the_systems_mean_and_variance():
    plan = study(block=4000, errors=["skew-normal"])
    configuration = plan.configurations["3"]
    task = plan.task(plan.cells()[0])
    responses, _ = simulate(task, configuration)
    assert responses.shape == (4000, N)
    standardised = (responses - configuration.system_at(task.design)) / np.sqrt(configuration.sigma2)
    # Each of n means within its own 1 - 1e-4 / n quantile.
    assert np.abs(standardised.mean(axis=0)).max() * np.sqrt(4000) < stats.norm.ppf(1 - 1e-4 / (2 * N))
    kurtosis = stats.skewnorm(8).stats("k") + 3
    assert np.abs(standardised.var() - 1) < 4 * np.sqrt((kurtosis - 1) / standardised.size)


def test_a_task_travels_whole():
    plan = small_study.plan()
    task = plan.task(plan.cells()[1])
    there = pickle.loads(pickle.dumps(task))
    assert there.cell == task.cell
    assert there.source == small_study.SOURCE
    np.testing.assert_array_equal(there.design, task.design)
    assert [stream.random() for stream in there.streams()] == [stream.random() for stream in task.streams()]


def test_a_block_has_a_row_per_replication(blocks):
    for cell, data in blocks.items():
        table, known = unseal(data)
        assert table.column_names == [
            *("replication", "theta1_mean", "theta1_sd", "theta1_q2.5", "theta1_q50", "theta1_q97.5", "theta1_hat"),
            *("gamma", "sigma2", "kappa", "psi1", "status", "error"),
        ]
        np.testing.assert_array_equal(table["replication"], cell.block * ROWS + np.arange(ROWS))
        assert {field.type for field in table.schema} == {pa.float64(), pa.int64()}
        assert table["theta1_mean"].null_count == 0
        without = ROWS if cell.method == "nlm" else 0
        assert [table[name].null_count for name in ("gamma", "kappa", "psi1", "sigma2")] == [without] * 3 + [0]
        assert {name: known[name] for name in ("configuration", "n", "errors", "method", "block", "rows", "seed")} == {
            **vars(cell),
            "rows": ROWS,
            "seed": 0,
        }
        assert known["parameters"] == ["theta1"]


def test_a_block_holds_to_the_last_bit_what_a_batch_of_its_datasets_gives(blocks):
    plan = study()
    cell = Cell("3", N, "t", "gb-ols", 1)
    task = plan.task(cell)
    configuration = plan.configurations["3"]
    responses, seeds = simulate(task, configuration)
    batch = l2.calibrate_batch(configuration.experiment(task.design), responses, "gb-ols", seed=seeds)
    table = unseal(blocks[cell])[0]
    np.testing.assert_array_equal(table["theta1_mean"], batch.mean[:, 0])
    np.testing.assert_array_equal(table["theta1_q97.5"], batch.quantiles[:, 0, 2])
    np.testing.assert_array_equal(table["theta1_hat"], batch.theta_hat[:, 0])
    np.testing.assert_array_equal(table["gamma"], batch.gamma)
    np.testing.assert_array_equal(table["psi1"], batch.psi[:, 0])
    np.testing.assert_array_equal(table["status"], batch.status)


def test_a_block_has_the_same_bits_in_any_order_of_the_work(blocks):
    plan = study()
    for cell in reversed(list(blocks)):
        again = numbers(compute_block(plan.task(cell)))
        for name, values in numbers(blocks[cell]).items():
            assert again[name] == values, (cell, name)


def test_only_the_first_block_of_a_group_compiles(blocks):
    known = {cell: about(data) for cell, data in blocks.items()}
    compiled = [cell for cell, each in known.items() if each["compiled"]]
    assert compiled == [Cell("3", N, "normal", "nlm", 0), Cell("3", N, "normal", "gb-ols", 0)]
    for cell, each in known.items():
        assert (each["seconds_compiling"] > 0) == (cell in compiled)
        assert 0 <= each["seconds_compiling"] < each["seconds"]
    for what in ("seconds", "seconds_preparing"):
        steady = [each[what] for cell, each in known.items() if cell not in compiled]
        assert max(steady) < min(known[cell][what] for cell in compiled)


def test_any_reader_of_parquet_reads_a_block(blocks, tmp_path):
    data = next(iter(blocks.values()))
    (tmp_path / "block.parquet").write_bytes(data)
    assert pq.read_table(tmp_path / "block.parquet").num_rows == ROWS


def test_a_changed_byte_is_known():
    made = small_study.plan()
    data = bytearray(small_study.block(made.task(made.cells()[0])))
    for index in range(len(data)):
        for flip in (1, 0x80):
            data[index] ^= flip
            with pytest.raises(DamagedError):
                unseal(bytes(data))
            data[index] ^= flip
    assert unseal(bytes(data))[0].num_rows == 20


def test_a_file_that_is_cut_short_or_grew_is_known():
    made = small_study.plan()
    data = small_study.block(made.task(made.cells()[0]))
    for length in range(0, len(data), 7):
        with pytest.raises(DamagedError):
            unseal(data[:length])
    for longer in (data + b"\0", b"\0" + data, data + data):
        with pytest.raises(DamagedError):
            unseal(longer)


def test_every_bit_of_a_number_is_kept():
    odd = np.array([np.nan, -np.nan, np.inf, -0.0, 5e-324, np.nextafter(1, 2), -1 / 3])
    table, known = unseal(seal(pa.table({"x": odd, "none": pa.nulls(odd.size, pa.float64())}), {"é": [1.1, None]}))
    assert table["x"].to_numpy().tobytes() == odd.tobytes()
    assert table["none"].null_count == odd.size
    assert known == {"é": [1.1, None]}
