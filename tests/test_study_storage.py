"""A study's folder: nothing half written, nothing mixed in, nothing lost, and every damage said in a sentence."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import l2calib.designs
from l2calib.errors import InputError, L2CalibError, SpecError
from l2calib.study import storage
from l2calib.study.plan import Cell
from l2calib.study.storage import Archive, Store
from tests import small_study
from tests.small_study import block, plan

AS_ROOT = os.geteuid() == 0


def fill(store, cells=None):
    for cell in store.plan.cells() if cells is None else cells:
        store.write(cell, block(store.task(cell)))


@pytest.fixture
def folder(tmp_path):
    """A finished study."""
    with Store.open(tmp_path / "study", plan()) as store:
        fill(store)
    return tmp_path / "study"


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(kind, says, folder, *arguments, **changes):
    with pytest.raises(kind, match=says) as caught:
        Store.open(folder, plan(*arguments, **changes))
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_a_block_is_found_again_where_it_was_put(tmp_path):
    with Store.open(tmp_path / "a" / "study", plan(), command="l2calib study run own.py") as store:
        cells = store.plan.cells()
        assert store.missing(cells) == cells
        fill(store, cells[:2])
        assert store.missing(cells) == cells[2:]
        assert store.problems == []
        expected = small_study.columns(store.task(cells[1]))
        np.testing.assert_array_equal(store.read(cells[1])["a_mean"], expected["a_mean"])
    assert (tmp_path / "a/study/blocks/configuration=line/n=10/errors=normal/method=nlm/00001.parquet").is_file()
    record = json.loads((tmp_path / "a/study/study.json").read_text())
    assert (record["seed"], record["levels"], record["block"]) == (0, "endpoints", 20)
    assert record["requests"][0]["command"] == "l2calib study run own.py"
    assert record["configurations"]["line"]["target"] == list(small_study.TARGET)
    assert record["configurations"]["line"]["source"] == small_study.SOURCE


def test_a_study_goes_on_with_more_of_everything(folder):
    wider = {"sizes": [10, 12], "errors": ["normal", "t"], "methods": ["nlm", "koh"], "replications": 50}
    with Store.open(folder, plan(**wider)) as store:
        missing = store.missing(store.plan.cells())
        assert len(store.plan.cells()) == 2 * 2 * 2 * 3
        # Two blocks were there of the method, size and law that both ask for.
        assert len(missing) == len(store.plan.cells()) - 2
        assert Cell("line", 10, "normal", "nlm", 2) in missing
    asked = Archive.at(folder).record.asked()
    assert asked["line", 10, "normal", "nlm"] == 50
    assert asked["line", 10, "normal", "gb-ols"] == 40
    assert ("line", 12, "normal", "gb-ols") not in asked


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seed": 1}, "begun with seed 0 and cannot be continued with seed 1; give '--seed 0' or name another folder"),
        (
            {"levels": "midpoints"},
            "begun with levels endpoints and cannot .* with levels midpoints; give '--levels end",
        ),
        ({"block": 10}, "begun with block 20 and cannot be continued with block 10; give '--block 20' or"),
    ],
)
def test_another_seed_or_option_is_refused_and_changes_nothing(folder, change, says):
    before = contents(folder)
    refused(SpecError, says, folder, **change)
    assert contents(folder) == before


@pytest.mark.parametrize("name", ["l2calib", "numpy", "jax"])
def test_another_version_is_refused(folder, monkeypatch, name):
    current = storage.Record.begin(plan()).versions
    monkeypatch.setattr("l2calib.study.record.versions", lambda: current | {name: "99.0"})
    refused(SpecError, f"begun with {name} {current[name]} and cannot be continued with {name} 99.0", folder)


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("sigma2=0.04", "sigma2=0.05", "variance of the errors"),
        ("(0, 2)", "(0, 3)", "inputs"),
        ("Uniform(0, 3)", "Uniform(0, 4)", "prior"),
        ("a + b * x", "a + b * x * 1.000001", "model"),
        ("(x - 0.5) ** 2", "(x - 0.5) ** 3", "system"),
    ],
)
def test_another_definition_is_refused(folder, old, new, part):
    assert old in small_study.SOURCE
    before = contents(folder)
    refused(SpecError, f"the {part} of configuration line changed", folder, small_study.SOURCE.replace(old, new))
    assert contents(folder) == before


def test_a_definition_with_infinite_values_is_compared_too(tmp_path):
    steep = small_study.SOURCE.replace("a + b * x", "a + b * x + (1e300 * b) ** 2")
    Store.open(tmp_path / "study", plan(steep)).close()
    Store.open(tmp_path / "study", plan(steep)).close()
    says = "the model of configuration line changed"
    refused(SpecError, says, tmp_path / "study", steep.replace("(1e300 * b)", "(1e3 * b)"))


def test_a_new_comment_or_neighbour_in_the_file_is_no_other_definition(folder):
    more = small_study.SOURCE.replace("def line", "# A line.\ndef line") + "\nconfigurations = configurations[:]\n"
    with Store.open(folder, plan(more)) as store:
        assert store.missing(store.plan.cells()) == []


def test_a_folder_of_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("dear")
    refused(SpecError, r"holds no study but other things, such as 'thesis\.tex'", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_where_the_folder_should_be_is_refused(tmp_path, folder):
    (tmp_path / "file").write_text("x")
    refused(SpecError, "cannot be kept in .*file'", tmp_path / "file")
    refused(SpecError, "cannot be kept in .*inside", tmp_path / "file" / "inside")
    with Store.open(folder, plan(sizes=[14])) as store:
        (folder / "blocks/configuration=line/n=14").write_text("in the way")
        cell = store.plan.cells()[0]
        with pytest.raises(L2CalibError, match=r"cannot be written as .*: File exists|Not a directory") as caught:
            store.write(cell, block(store.task(cell)))
        assert "what was finished before is kept" in str(caught.value)


def test_a_folder_without_a_study_has_nothing_to_read(tmp_path):
    with pytest.raises(SpecError, match=r"there is no study in .*: it has no study.json"):
        Archive.at(tmp_path)
    with pytest.raises(SpecError, match=r"there is no study in .*: there is no such folder"):
        Archive.at(tmp_path / "nowhere")


@pytest.mark.parametrize("damage", ["empty", "cut", "digit", "list", "binary"])
def test_a_damaged_record_is_refused(folder, damage):
    path = folder / "study.json"
    text = path.read_text()
    damaged = {"empty": "", "cut": text[: len(text) // 2], "digit": text.replace("1.25", "1.35"), "list": "[]"}
    path.write_bytes(b"\xff\xfe" if damage == "binary" else damaged[damage].encode())
    says = "is not as it was written|is cut short|is not UTF-8"
    refused(SpecError, says, folder)
    with pytest.raises(SpecError, match=says):
        Archive.at(folder)


def test_one_run_at_a_time_writes(tmp_path):
    first = Store.open(tmp_path / "study", plan())
    refused(SpecError, "another run is writing into", tmp_path / "study")
    first.close()
    Store.open(tmp_path / "study", plan()).close()


def test_the_lock_of_a_killed_run_does_not_stay(tmp_path):
    code = (
        "import sys, time; sys.path.insert(0, '.')\n"
        "from pathlib import Path; from l2calib.study.storage import _lock\n"
        "_lock(Path(sys.argv[1])); print('locked', flush=True); time.sleep(60)"
    )
    folder = tmp_path / "study"
    folder.mkdir()
    with subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "locked\n"
        refused(SpecError, "another run is writing into", folder)
        process.send_signal(signal.SIGKILL)
    Store.open(folder, plan()).close()


def test_what_a_killed_run_left_half_written_is_cleaned_away(folder):
    place = folder / "blocks/configuration=line/n=10/errors=normal/method=nlm"
    (place / ".00007.parquet.123.partial").write_bytes(b"half")
    (place / ".00008.parquet.a1b2.partial").mkdir()
    (place / ".00008.parquet.a1b2.partial" / "00008.parquet").write_bytes(b"half")
    (folder / ".study.json.123.partial").write_text("{")
    (folder / ".study.json.a1b2.partial").mkdir()
    (folder / ".report.html.a1b2.partial").mkdir()  # of somebody who reports on it meanwhile
    with Store.open(folder, plan()) as store:
        assert store.missing(store.plan.cells()) == []
    assert [path.name for path in folder.rglob("*.partial")] == [".report.html.a1b2.partial"]


def test_a_run_killed_before_its_record_was_written_begins_again(tmp_path):
    (tmp_path / ".lock").touch()
    (tmp_path / ".study.json.123.partial").write_text("{")
    Store.open(tmp_path, plan()).close()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: b"", "is empty: it will be computed again"),
        (lambda data: data[: len(data) // 2], "is cut short"),
        (lambda data: data[:100] + b"?" + data[101:], "is not as it was written"),
        (lambda data: data + b" ", "is not as it was written"),
        (lambda data: b"text\n" * 100, "was not written by a study"),
    ],
)
def test_a_damaged_block_is_said_and_missing(folder, damage, says):
    with Store.open(folder, plan()) as store:
        cells = store.plan.cells()
        path = store.path(cells[2])
        whole = path.read_bytes()
        path.write_bytes(damage(whole))
        assert store.missing(cells) == [cells[2]]
        (problem,) = store.problems
        assert says in problem
        assert str(path) in problem
        store.write(cells[2], whole)
        assert store.missing(cells) == []


def test_a_block_in_a_wrong_place_is_said_and_missing(folder):
    with Store.open(folder, plan()) as store:
        cells = store.plan.cells()
        store.path(cells[0]).write_bytes(store.path(cells[1]).read_bytes())
        assert store.missing(cells) == [cells[0]]
        assert "belongs to another study, another place in it or another design" in store.problems[0]


def test_a_block_of_another_study_or_software_is_not_taken(tmp_path):
    with Store.open(tmp_path / "one", plan(seed=1)) as one, Store.open(tmp_path / "two", plan()) as two:
        cell = one.plan.cells()[0]
        with pytest.raises(L2CalibError, match=r"what a worker returned for .* belongs to another study"):
            two.write(cell, block(one.task(cell)))
        with pytest.raises(L2CalibError, match=r"other versions of the software .*; install the same versions"):
            two.write(cell, block(two.task(cell), versions={"jax": "0"}))
        with pytest.raises(L2CalibError, match="is not as it was written"):
            two.write(cell, block(two.task(cell)).replace(b"nlm", b"koh"))
        assert two.missing([cell]) == [cell]


def test_a_design_is_computed_once_per_study(tmp_path, monkeypatch):
    calls = []
    real = l2calib.designs.maxpro_design

    def counted(n, k, **options):
        calls.append((n, k, options))
        return real(n, k, **options)

    monkeypatch.setattr("l2calib.designs.maxpro_design", counted)
    for _ in range(2):
        with Store.open(tmp_path / "study", plan(sizes=[10, 12], seed=5)) as store:
            designs = [store.task(cell).design for cell in store.plan.cells()]
            assert {design.shape for design in designs} == {(10, 1), (12, 1)}
            fill(store)
            assert store.missing(store.plan.cells()) == []
    assert calls == [(n, 1, {"levels": "endpoints", "seed": 5}) for n in (10, 12)]
    # To the last bit what was computed.
    np.testing.assert_array_equal(designs[0], real(10, 1, levels="endpoints", seed=5))


def test_a_design_that_was_changed_is_said_and_computed_again(folder):
    path = folder / "designs" / "n=10,k=1.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:60] + bytes([whole[60] ^ 1]) + whole[61:])
    with pytest.raises(storage.DamagedError, match="cannot be checked, since the file of its design"):
        Archive.at(folder).read(plan().cells()[0])
    with Store.open(folder, plan()) as store:
        assert store.missing(store.plan.cells()) == []
        (problem,) = store.problems
        assert "the design file" in problem
        assert "is not as it was written: it is computed again" in problem
    assert path.read_bytes() == whole


def test_blocks_of_another_design_are_missing(folder, monkeypatch):
    (folder / "designs" / "n=10,k=1.parquet").unlink()
    monkeypatch.setattr("l2calib.designs.maxpro_design", lambda n, k, **_: np.random.default_rng(0).random((n, k)))
    with Store.open(folder, plan()) as store:
        assert store.missing(store.plan.cells()) == store.plan.cells()
        assert all("another design" in problem for problem in store.problems)


def test_a_full_disk_is_said_and_loses_nothing(folder, monkeypatch):
    with Store.open(folder, plan(replications=60)) as store:
        cell = store.missing(store.plan.cells())[0]
        data = block(store.task(cell))
        before = contents(folder)

        def full(_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(
            L2CalibError, match=r"cannot be written as .*: No space left on device; what was fin"
        ) as caught:
            store.write(cell, data)
        assert not isinstance(caught.value, InputError)
        assert contents(folder) == before
        store.close()
        refused(SpecError, "cannot be kept in .*: No space left on device", folder)
        monkeypatch.undo()
        assert contents(folder) == before
    with Store.open(folder, plan(replications=60)) as store:
        store.write(cell, data)
        assert cell not in store.missing(store.plan.cells())


@pytest.mark.skipif(AS_ROOT, reason="root may write into a read-only folder")
def test_a_read_only_folder_is_said_and_can_still_be_read(folder, tmp_path):
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        refused(SpecError, "cannot be kept in .*: Permission denied", folder)
        assert Archive.at(folder).read(plan().cells()[0]).num_rows == 20
        refused(SpecError, "cannot be kept in .*: Permission denied", folder / "new")
    finally:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_a_folder_that_may_not_be_written_is_said(folder, monkeypatch):
    def forbidden(path, *_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "open", forbidden)
    refused(SpecError, "cannot be kept in .*: Permission denied", folder)
    monkeypatch.undo()
    assert Archive.at(folder).read(plan().cells()[0]).num_rows == 20


def test_thousands_of_blocks_are_checked_in_seconds(tmp_path):
    with Store.open(tmp_path / "study", plan(replications=5_000)) as store:
        cells = store.plan.cells()
        for cell in cells:  # without waiting for the disk
            path = store.path(cell)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(block(store.task(cell)))
        started = time.perf_counter()
        assert store.missing(cells) == []
        # Measured: 0.4 ms each. A minute for 8,000 would be 7.5 ms each.
        assert time.perf_counter() - started < 7.5e-3 * len(cells)
