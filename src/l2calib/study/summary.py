"""A study in a table: a row per configuration, size, error law, method and parameter, with Monte Carlo errors.

Its measures are those of the paper (Section 4.3): means of posterior mean and sd, and coverage of 95% intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from l2calib.display.words import one_line
from l2calib.errors import L2CalibError, SpecError, Status
from l2calib.methods.catalogue import PAPER_METHODS
from l2calib.results.writing import write_whole
from l2calib.study.error_laws import ERROR_LAWS
from l2calib.study.plan import Cell
from l2calib.study.sealed import DamagedError
from l2calib.study.storage import Archive

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

COLUMNS: dict[str, str] = {
    "configuration": "str",
    "n": "int64",
    "errors": "str",
    "method": "str",
    "parameter": "str",
    "replications": "int64",
    "failed": "int64",
    "mean_posterior_mean": "float64",
    "mean_posterior_sd": "float64",
    "coverage": "float64",
    "coverage_se": "float64",
    "bias": "float64",
    "sampling_sd": "float64",
    "mean_length": "float64",
    "seconds_per_calibration": "float64",
    "bias_se": "float64",
    "mean_posterior_sd_se": "float64",
    "interpolated": "int64",
    "coverage_otherwise": "float64",
    "target": "float64",
    "statuses": "str",
    "levels": "str",
    "seed": "int64",
}
_ADDED = ("mean_length",)  # columns that older files lack
_FAILED = int(Status.FLAT_LOSS | Status.NOT_FINITE)


def summarise(folder: str | Path) -> pd.DataFrame:
    """The table of the study in a folder, from the blocks that are there.

    `replications` counts the datasets, `failed` those without a posterior; the averages are over the others. What was
    found wrong with block files, which then count as missing, is in the frame's `attrs["problems"]`.
    """
    archive = Archive.at(folder)
    problems: list[str] = []
    rows: list[dict[str, Any]] = []
    for key, replications in sorted(archive.record.asked().items(), key=lambda item: _order(*item[0])):
        found = _collect(archive, key, replications, problems)
        if found is not None:
            rows += _rows(archive, key, found)
    frame = _frame(rows)
    frame.attrs["problems"] = problems
    return frame


def _order(configuration: str, n: int, errors: str, method: str) -> tuple[Any, ...]:
    """As in the paper, whatever the order of the requests."""
    known = PAPER_METHODS.index(method) if method in PAPER_METHODS else len(PAPER_METHODS)
    return configuration, n, list(ERROR_LAWS).index(errors), known, method


@dataclass(frozen=True)
class _Found:
    """The replications that are there of those asked for, in their order, by column; and how long they took."""

    columns: dict[str, np.ndarray]
    seconds: float


def _collect(archive: Archive, key: tuple[str, int, str, str], replications: int, problems: list[str]) -> _Found | None:
    tables: list[dict[str, np.ndarray]] = []
    timings: list[dict[str, Any]] = []
    for block in range(-(-replications // archive.record.block)):
        cell = Cell(*key, block)
        try:
            table, known = archive.block(cell)
        except FileNotFoundError:
            continue
        except DamagedError as error:
            problems.append(f"the block file '{archive.path(cell)}' {error}: it is left out; run the study again.")
            continue
        except OSError as error:
            raise L2CalibError(
                f"the block file '{archive.path(cell)}' cannot be read: {error.strerror or error}."
            ) from None
        tables.append({name: table[name].to_numpy() for name in table.column_names})
        timings.append(known)
    if not tables:
        return None
    columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    wanted = columns["replication"] < replications
    return _Found({name: values[wanted] for name, values in columns.items()}, _seconds(timings))


def _seconds(timings: list[dict[str, Any]]) -> float:
    """Per calibration, in the blocks during which nothing was compiled; if there are none, without compilation."""
    steady = [each for each in timings if not each["compiled"]] or timings
    spent = [each["seconds"] - each["seconds_compiling"] for each in steady]
    return math.fsum(spent) / math.fsum(each["rows"] for each in steady)


def _rows(archive: Archive, key: tuple[str, int, str, str], found: _Found) -> list[dict[str, Any]]:
    described = archive.record.configurations[key[0]]
    status = found.columns["status"]
    failed, interpolated = (status & _FAILED) != 0, (status & int(Status.NEAR_INTERPOLATION)) != 0
    shared = {
        **dict(zip(("configuration", "n", "errors", "method"), key, strict=True)),
        "replications": status.size,
        "failed": int(failed.sum()),
        "interpolated": int(interpolated.sum()),
        "seconds_per_calibration": found.seconds,
        "statuses": _statuses(status),
        "levels": archive.record.levels,
        "seed": archive.record.seed,
    }
    rows = []
    for name, theta in zip(described["parameters"], described["target"], strict=True):
        mean, sd, low, high = (found.columns[f"{name}_{what}"][~failed] for what in ("mean", "sd", "q2.5", "q97.5"))
        covered = (low <= theta) & (theta <= high)
        known = {"parameter": name, "target": theta, "coverage_otherwise": _mean(covered[~interpolated[~failed]])}
        measured = {**_statistics(mean, sd, covered, theta), "mean_length": _mean(high - low)}
        rows.append({**shared, **known, **measured})
    return rows


def _statistics(mean: np.ndarray, sd: np.ndarray, covered: np.ndarray, theta: float) -> dict[str, float]:
    coverage = _mean(covered)
    centre, sampling_sd = _mean(mean), _sd(mean)
    root = math.sqrt(mean.size) if mean.size else math.nan
    return {
        "mean_posterior_mean": centre,
        "mean_posterior_sd": _mean(sd),
        "coverage": coverage,
        "coverage_se": math.sqrt(coverage * (1 - coverage)) / root,
        "bias": centre - theta,
        "sampling_sd": sampling_sd,
        "bias_se": sampling_sd / root,
        "mean_posterior_sd_se": _sd(sd) / root,
    }


def _mean(values: np.ndarray) -> float:
    """By a sum without rounding errors, which no order and no machine can change."""
    if not values.size or not np.isfinite(values).all():
        return math.nan
    return math.fsum(values.tolist()) / values.size


def _sd(values: np.ndarray) -> float:
    if values.size < 2 or not np.isfinite(values).all():
        return math.nan
    return math.sqrt(math.fsum(np.square(values - _mean(values)).tolist()) / (values.size - 1))


def _statuses(status: np.ndarray) -> str:
    counts = {str(flag): int(((status & int(flag)) != 0).sum()) for flag in Status if flag}
    return "; ".join(f"{name}: {count}" for name, count in counts.items() if count)


def _frame(rows: Any) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def write_summary(frame: pd.DataFrame, path: str | Path) -> None:
    """Write the table as CSV or Parquet, by the ending of the name: every digit, atomically."""
    file = Path(path)
    _check_ending(file)
    if file.suffix == ".csv":
        data = frame.to_csv(index=False, lineterminator="\n").encode()
    else:
        import io

        sink = io.BytesIO()
        frame.to_parquet(sink, index=False)
        data = sink.getvalue()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, data)
    except OSError as error:
        raise SpecError(f"the summary cannot be written as '{file}': {error.strerror or error}.") from None


def load_summary(path: str | Path) -> pd.DataFrame:
    """The table of a study's folder, or of a CSV or Parquet file that was written of it."""
    import pandas as pd

    place = Path(path)
    if place.is_dir():
        return summarise(place)
    if not place.exists():
        raise SpecError(
            f"there is no summary '{place}'; name a study's folder, or a CSV or Parquet file of its summary."
        )
    _check_ending(place)
    try:
        frame = _read_csv(place) if place.suffix == ".csv" else pd.read_parquet(place)
        frame = frame.assign(**{name: math.nan for name in _ADDED if name not in frame})
        missing = [name for name in COLUMNS if name not in frame]
        if not missing:
            return _frame(frame)
    except (OSError, ValueError) as error:  # pyarrow's errors are both
        raise SpecError(f"the summary '{place}' cannot be read: {one_line(str(error)):.200}.") from None
    raise SpecError(
        f"the summary '{place}' has no column '{missing[0]}'; name a file written by 'l2calib study summary'."
    )


def together(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Several tables as one; no cell may be in two of them."""
    import pandas as pd

    cells = ["configuration", "n", "errors", "method"]
    whole = pd.concat(frames, ignore_index=True)
    twice = whole[whole.duplicated([*cells, "parameter"])]
    if len(twice):
        configuration, n, errors, method = (twice[name].iloc[0] for name in cells)
        raise SpecError(
            f"the cell of configuration {configuration}, n = {n}, {errors} errors and {method} is in two summaries; "
            "leave one of them out."
        )
    places = [_order(*row) for row in whole[cells].itertuples(index=False)]
    frame = whole.iloc[sorted(range(len(whole)), key=lambda row: (places[row], row))].reset_index(drop=True)
    frame.attrs["problems"] = [sentence for each in frames for sentence in each.attrs.get("problems", [])]
    return frame


def _read_csv(file: Path) -> pd.DataFrame:
    """As text first: Python's own reading of a number gives back every digit that was written."""
    import pandas as pd

    frame = pd.read_csv(file, dtype=str, keep_default_na=False)
    for name, kind in COLUMNS.items():
        if kind == "float64" and name in frame:
            frame[name] = [float(text) if text else math.nan for text in frame[name]]
    return frame


def _check_ending(file: Path) -> None:
    if file.suffix not in (".csv", ".parquet"):
        raise SpecError(f"a summary is a CSV or a Parquet file: received '{file.name}'; end it in .csv or .parquet.")
