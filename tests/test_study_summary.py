"""The table of a study: averages over the replications, their Monte Carlo errors, and nothing dropped silently."""

import math

import numpy as np
import pandas as pd
import pytest

from l2calib.errors import SpecError, Status
from l2calib.study.storage import Store
from l2calib.study.summary import COLUMNS, load_summary, summarise, write_summary
from tests import small_study
from tests.small_study import TARGET, block, plan
from tests.study_frames import paper_like

CONTRACT = (
    "configuration, n, errors, method, parameter, replications, failed, mean_posterior_mean, mean_posterior_sd, "
    "coverage, coverage_se, bias, sampling_sd, mean_length, seconds_per_calibration, "
    "bias_se, mean_posterior_sd_se, interpolated, coverage_otherwise, target, statuses, levels, seed"
)


def make(folder, change=lambda task, made: made, leave_out=(), about=lambda task: {}, **changes):
    """A study of made-up blocks, each changed as told."""
    with Store.open(folder, plan(**changes)) as store:
        for cell in store.missing(store.plan.cells()):
            if cell.block not in leave_out:
                task = store.task(cell)
                store.write(cell, block(task, change(task, small_study.columns(task)), **about(task)))
    return folder


def everything(task_columns, name):
    return np.concatenate([columns[name] for columns in task_columns])


def made_up(blocks, **changes):
    made = plan(**changes)
    return [
        small_study.columns(made.task(cell)) for cell in made.cells() if cell.method == "nlm" and cell.block in blocks
    ]


def test_the_columns_are_the_contract(tmp_path):
    frame = summarise(make(tmp_path / "study"))
    assert ", ".join(frame.columns) == CONTRACT
    assert frame[["configuration", "n", "errors", "method", "parameter"]].to_numpy().tolist() == [
        ["line", 10, "normal", method, name] for method in ("nlm", "gb-ols") for name in ("a", "b")
    ]
    assert set(frame["levels"]) == {"endpoints"}
    assert set(frame["seed"]) == {0}
    assert frame.attrs["problems"] == []


def test_a_row_is_what_numpy_makes_of_the_replications(tmp_path):
    frame = summarise(make(tmp_path / "study"))
    parts = made_up({0, 1})
    for row, name, theta in zip(frame.itertuples(), "ab", TARGET, strict=False):
        mean, sd = everything(parts, f"{name}_mean"), everything(parts, f"{name}_sd")
        covered = (everything(parts, f"{name}_q2.5") <= theta) & (theta <= everything(parts, f"{name}_q97.5"))
        assert (row.replications, row.failed, row.target, row.statuses) == (40, 0, theta, "")
        expected = {
            "mean_posterior_mean": mean.mean(),
            "mean_posterior_sd": sd.mean(),
            "coverage": covered.mean(),
            "coverage_se": math.sqrt(covered.mean() * (1 - covered.mean()) / 40),
            "bias": mean.mean() - theta,
            "sampling_sd": mean.std(ddof=1),
            "bias_se": mean.std(ddof=1) / math.sqrt(40),
            "mean_posterior_sd_se": sd.std(ddof=1) / math.sqrt(40),
        }
        assert 0 < covered.mean() < 1
        for column, value in expected.items():
            assert getattr(row, column) == pytest.approx(value, rel=1e-9), column


def test_failed_datasets_are_counted_and_left_out_of_the_averages(tmp_path):
    def fail(task, made):
        made["status"][:3] = Status.NOT_FINITE
        made["status"][3] = Status.FLAT_LOSS | Status.GCV_AT_BOUND
        made["status"][4:10] = Status.GCV_AT_BOUND | Status.INACCURATE
        for name in ("a_mean", "a_sd", "a_q2.5", "a_q97.5"):
            made[name][:4] = np.nan
        return made

    frame = summarise(make(tmp_path / "study", fail))
    row = frame.iloc[0]
    assert (row["replications"], row["failed"]) == (40, 8)
    assert row["statuses"] == "gcv-at-bound: 14; flat-loss: 2; inaccurate: 12; not-finite: 6"
    kept = np.concatenate([columns["a_mean"][4:] for columns in made_up({0, 1})])
    assert row["mean_posterior_mean"] == pytest.approx(kept.mean(), rel=1e-12)
    assert row["bias_se"] == pytest.approx(kept.std(ddof=1) / math.sqrt(32), rel=1e-9)


def test_the_coverage_of_what_the_smoother_did_not_interpolate(tmp_path):
    def interpolate(task, made):
        made["status"][:5] = Status.NEAR_INTERPOLATION | Status.GCV_AT_BOUND
        made["status"][5] = Status.NEAR_INTERPOLATION | Status.FLAT_LOSS
        made["a_q2.5"][:5] = made["a_q97.5"][:5]
        return made

    row = summarise(make(tmp_path / "study", interpolate)).iloc[0]
    parts = [{name: values[6:] for name, values in part.items() if values is not None} for part in made_up({0, 1})]
    covered = (everything(parts, "a_q2.5") <= TARGET[0]) & (TARGET[0] <= everything(parts, "a_q97.5"))
    assert (row["interpolated"], row["failed"]) == (12, 2)
    assert row["coverage_otherwise"] == covered.mean() > row["coverage"] > 0


def test_a_study_of_which_all_failed_has_no_averages(tmp_path):
    def fail(task, made):
        return made | {"status": np.full(task.rows, int(Status.NOT_FINITE))}

    row = summarise(make(tmp_path / "study", fail)).iloc[0]
    assert row["failed"] == row["replications"] == 40
    assert np.isnan([row["mean_posterior_mean"], row["coverage"], row["coverage_se"], row["bias_se"]]).all()


def test_the_first_replications_asked_for_are_used(tmp_path):
    frame = summarise(make(tmp_path / "study", replications=30))
    used = everything(made_up({0, 1}), "a_mean")[:30]
    assert frame["replications"].iloc[0] == 30
    assert frame["mean_posterior_mean"].iloc[0] == pytest.approx(used.mean(), rel=1e-14)


def test_what_is_missing_is_not_made_up(tmp_path):
    frame = summarise(make(tmp_path / "study", replications=60, leave_out={1}))
    used = everything(made_up({0, 2}, replications=60), "a_mean")
    assert frame["replications"].tolist() == [40] * 4
    assert frame["mean_posterior_mean"].iloc[0] == pytest.approx(used.mean(), rel=1e-14)


def test_a_study_without_blocks_has_no_rows(tmp_path):
    frame = summarise(make(tmp_path / "study", leave_out={0, 1}))
    assert frame.empty
    assert frame.dtypes.to_dict() == summarise(make(tmp_path / "other")).dtypes.to_dict()


def test_a_damaged_block_is_left_out_and_said(tmp_path):
    folder = make(tmp_path / "study")
    path = folder / "blocks/configuration=line/n=10/errors=normal/method=nlm/00001.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    frame = summarise(folder)
    assert frame["replications"].tolist() == [20, 20, 40, 40]
    (problem,) = frame.attrs["problems"]
    assert str(path) in problem
    assert "is left out; run the study again" in problem


def test_a_summary_does_not_depend_on_how_the_study_came_about(tmp_path):
    many = {"sizes": [10, 12], "errors": ["normal", "t"], "methods": ["gb-ols", "nlm"]}
    at_once = summarise(make(tmp_path / "one", replications=60, **many))
    make(tmp_path / "two", replications=20, sizes=[12], errors=["t"], methods=["nlm"])
    make(tmp_path / "two", replications=60, sizes=[12], errors=["t", "normal"], methods=["nlm", "gb-ols"])
    make(
        tmp_path / "two", replications=60, sizes=[10], errors=["t", "normal"], methods=["nlm", "gb-ols"], leave_out={0}
    )
    in_parts = summarise(make(tmp_path / "two", replications=60, **many))
    pd.testing.assert_frame_equal(at_once, in_parts, check_exact=True)
    assert at_once["method"].tolist() == ["nlm", "nlm", "gb-ols", "gb-ols"] * 4


def test_each_method_has_the_replications_asked_of_it(tmp_path):
    make(tmp_path / "study", methods=["nlm"], replications=60)
    frame = summarise(make(tmp_path / "study", methods=["gb-ols"], replications=20))
    assert dict(zip(frame["method"], frame["replications"], strict=True)) == {"nlm": 60, "gb-ols": 20}


def test_time_is_told_without_compilation(tmp_path):
    def first_compiles(task):
        if task.cell.block == 0 or task.cell.method == "gb-ols":
            return {"seconds": 9.0, "seconds_compiling": 8.0, "compiled": True}
        return {"seconds": 0.5 * task.cell.block}

    frame = summarise(make(tmp_path / "study", about=first_compiles, replications=60))
    by_method = dict(zip(frame["method"], frame["seconds_per_calibration"], strict=True))
    assert by_method["nlm"] == pytest.approx((0.5 + 1.0) / 40)
    # No block was free of compilation: what there is, less the seconds of it.
    assert by_method["gb-ols"] == pytest.approx(1.0 / 20)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_written_summary_is_the_same_to_the_last_bit(tmp_path, ending):
    def fail_half(task, made):
        if task.cell.method == "nlm":
            made["status"][:] = Status.NOT_FINITE
        return made

    folder = make(tmp_path / "study", fail_half)
    frame = summarise(folder)
    write_summary(frame, tmp_path / "results" / f"summary.{ending}")
    pd.testing.assert_frame_equal(load_summary(tmp_path / "results" / f"summary.{ending}"), frame, check_exact=True)
    pd.testing.assert_frame_equal(load_summary(folder), frame, check_exact=True)
    assert [path.name for path in (tmp_path / "results").iterdir()] == [f"summary.{ending}"]
    assert frame["coverage"].isna().sum() == 2


def test_a_configuration_called_by_a_number_stays_text(tmp_path):
    frame = summarise(make(tmp_path / "study")).assign(configuration="2")
    write_summary(frame, tmp_path / "summary.csv")
    assert load_summary(tmp_path / "summary.csv")["configuration"].tolist() == ["2"] * 4


def test_what_is_no_summary_is_refused_in_a_sentence(tmp_path):
    def refused(path, says):
        with pytest.raises(SpecError, match=says) as caught:
            load_summary(path)
        assert "\n" not in str(caught.value)
        assert str(caught.value).endswith(".")

    refused(tmp_path / "nowhere.csv", "there is no summary")
    refused(tmp_path, "there is no study in")
    (tmp_path / "summary.txt").write_text("x")
    refused(tmp_path / "summary.txt", "a summary is a CSV or a Parquet file: received 'summary.txt'")
    (tmp_path / "summary.csv").write_text("configuration,n\n2,20\n")
    refused(tmp_path / "summary.csv", "has no column 'errors'")
    (tmp_path / "empty.csv").write_text("")
    refused(tmp_path / "empty.csv", "cannot be read")
    (tmp_path / "words.csv").write_text(",".join(COLUMNS) + "\n" + ",".join(["x"] * len(COLUMNS)) + "\n")
    refused(tmp_path / "words.csv", "cannot be read")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 but no more")
    refused(tmp_path / "broken.parquet", "cannot be read")
    with pytest.raises(SpecError, match=r"end it in \.csv or \.parquet"):
        write_summary(summarise(make(tmp_path / "study")), tmp_path / "summary.xlsx")
    with pytest.raises(SpecError, match="the summary cannot be written as"):
        write_summary(summarise(tmp_path / "study"), tmp_path / "summary.txt" / "summary.csv")


def test_two_summaries_side_by_side(run, tmp_path):
    sizes = (20, 40)
    frames = {name: paper_like("23", sizes, methods=(name,))[list(COLUMNS)] for name in ("koh", "nlm")}
    for name, frame in frames.items():
        write_summary(frame, tmp_path / f"{name}.csv")
    one, other, both = (tmp_path / f"{name}.csv" for name in ("koh", "nlm", "both"))
    assert run("study", "summary", one, "--with", other, "--out", both)[0] == 0
    whole = load_summary(both)
    assert len(whole) == sum(map(len, frames.values()))
    # Cell by cell, the methods in the paper's order.
    assert whole["method"].tolist() == ["nlm", "koh"] * (len(whole) // 2)
    status, out, err = run("study", "summary", both, "--with", one)
    assert (status, out) == (2, "")
    assert "n = 20, normal errors and koh is in two summaries; leave one of them out." in err
