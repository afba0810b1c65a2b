"""The commands of a study: what they print and refuse, and that a killed study continues to the same bits."""

import json
import math
import os
import pty
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from l2calib.cli.progress import StudyProgress, duration
from l2calib.study.pace import Pace
from l2calib.study.plan import Cell
from l2calib.study.storage import Archive
from l2calib.study.summary import COLUMNS, summarise, write_summary
from tests.dask_cluster import Cluster
from tests.study_frames import paper_like

L2CALIB = str(Path(sys.executable).with_name("l2calib"))
CONTRACT = [
    *("configuration", "n", "errors", "method", "parameter", "replications", "failed"),
    *("mean_posterior_mean", "mean_posterior_sd", "coverage", "coverage_se", "bias", "sampling_sd"),
    *("mean_length", "seconds_per_calibration"),
]
# Two groups of cells that are computed by the same programs: every process that is started traces them again.
ERRORS, SIZE, BLOCKS = ("normal", "t"), 40, 60
STUDY = (
    f"study paper --configurations 3 --sizes 20 --errors {','.join(ERRORS)} --methods nlm --seed 5 "
    f"--replications {SIZE * BLOCKS} --block {SIZE} --levels midpoints --out"
).split()
CELLS = [Cell("3", 20, errors, "nlm", block) for errors in ERRORS for block in range(BLOCKS)]


def start(folder, *options):
    return subprocess.Popen(
        [L2CALIB, *STUDY, str(folder), *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(folder, *options):
    process = start(folder, *options)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert out == ""
    return err


def blocks_in(folder):
    """How many are there whole: what a kill left half written has a folder of its own beside them."""
    return len(list(Path(folder).glob("blocks/*/*/*/*/[0-9]*.parquet")))


def kill_after(process, folder, blocks, delay):
    """Send SIGKILL once that many more blocks are there, and then some time later."""
    before = blocks_in(folder)
    end = time.monotonic() + 240
    while blocks_in(folder) < before + blocks:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.01)
    time.sleep(delay)
    process.kill()
    process.communicate()


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """A study that nothing interrupts."""
    folder = tmp_path_factory.mktemp("reference") / "deep" / "study"
    said = finish(folder, "--workers", "2")
    return folder, said


def tables(folder):
    archive = Archive.at(folder)
    return {cell: archive.read(cell) for cell in CELLS}


def test_a_study_killed_five_times_continues_to_the_same_bits_wherever_it_runs(reference, tmp_path):
    folder, dice = tmp_path / "study", random.Random(20250101)
    with Cluster(tmp_path) as cluster:
        cluster.worker()
        cluster.worker()
        places = [["--workers", "1"], ["--workers", "2"], ["--scheduler", cluster.address]]
        for kill in range(5):
            kill_after(start(folder, *places[kill % 3]), folder, dice.randint(1, 3), dice.uniform(0, 0.3))
            assert blocks_in(folder) < len(CELLS)
        there = blocks_in(folder)
        said = finish(folder, *places[2])
    assert said == f"l2calib: {len(CELLS) - there} blocks were done in {said.split(' done in ')[1]}"
    assert f", {there} were there already." in said
    expected = tables(reference[0])
    for cell, table in tables(folder).items():
        assert table.equals(expected[cell]), cell
    ours, theirs = (summarise(each).drop(columns="seconds_per_calibration") for each in (folder, reference[0]))
    pd.testing.assert_frame_equal(ours, theirs, check_exact=True)


def test_what_is_there_is_not_done_again(reference):
    folder, said = reference
    assert said.startswith(f"l2calib: {len(CELLS)} blocks were done in ")
    assert said.endswith("s, 0 were there already.\n")
    times = {cell: Archive.at(folder).path(cell).stat().st_mtime_ns for cell in CELLS}
    assert finish(folder).endswith(f"l2calib: 0 blocks were done in 0 s, {len(CELLS)} were there already.\n")
    assert {cell: Archive.at(folder).path(cell).stat().st_mtime_ns for cell in CELLS} == times


def test_damaged_blocks_are_found_said_and_done_again(reference, tmp_path):
    folder = shutil.copytree(reference[0], tmp_path / "study")
    cut, changed = (Archive.at(folder).path(cell) for cell in (CELLS[3], CELLS[8]))
    cut.write_bytes(cut.read_bytes()[:-100])
    data = bytearray(changed.read_bytes())
    data[len(data) // 2] ^= 1
    changed.write_bytes(data)
    said = finish(folder, "--workers", "1")
    assert [line for path in (cut, changed) for line in said.splitlines() if str(path) in line] == said.splitlines()[:2]
    assert "l2calib: 2 blocks were done" in said
    assert tables(folder)[CELLS[3]].equals(tables(reference[0])[CELLS[3]])
    assert tables(folder)[CELLS[8]].equals(tables(reference[0])[CELLS[8]])


def test_ctrl_c_is_one_sentence_and_keeps_what_is_done(tmp_path):
    folder = tmp_path / "study"
    process = start(folder, "--workers", "2")
    while not blocks_in(folder):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    kept = blocks_in(folder)
    assert (process.returncode, out) == (130, "")
    assert err == (
        f"l2calib: interrupted with {kept} of {len(CELLS)} blocks in '{folder}'; the same command continues it.\n"
    )
    assert 0 < kept < len(CELLS)


def test_the_summary_obeys_the_contract(reference, run):
    status, out, err = run("study", "summary", reference[0], "--json")
    answer = json.loads(out)
    assert (status, err) == (0, "")
    assert list(answer) == ["study", "rows"]
    assert answer["study"] == str(reference[0])
    assert [(row["errors"], row["method"]) for row in answer["rows"]] == [(errors, "nlm") for errors in ERRORS]
    for row in answer["rows"]:
        assert list(row)[: len(CONTRACT)] == CONTRACT
        assert row["replications"] == SIZE * BLOCKS


def test_the_summary_is_a_table_for_people_and_a_file_on_request(reference, run, tmp_path):
    status, out, _ = run("study", "summary", reference[0], "--out", tmp_path / "summary.csv")
    assert status == 0
    assert "nlm" in out
    assert "…" not in out
    again, table, _ = run("study", "summary", tmp_path / "summary.csv")
    assert (again, table) == (0, out)


def row(**values):
    numbers = {name: math.nan if kind == "float64" else 1 if kind == "int64" else "x" for name, kind in COLUMNS.items()}
    return numbers | values


@pytest.fixture
def summary_file(tmp_path):
    frame = pd.DataFrame([row(method="nlm"), row(method="koh", coverage=0.95)]).astype(COLUMNS)
    write_summary(frame, tmp_path / "summary.csv")
    return tmp_path / "summary.csv"


def test_what_is_not_a_number_is_null_in_json_and_no_obstacle_to_a_table(summary_file, run):
    _, out, _ = run("study", "summary", summary_file, "--json")
    assert [each["coverage"] for each in json.loads(out)["rows"]] == [None, 0.95]
    status, out, err = run("study", "summary", summary_file)
    assert (status, err) == (0, "")
    assert "nan" in out


@pytest.fixture
def paper_file(tmp_path):
    write_summary(paper_like(configurations="3", sizes=(20, 100), errors=("normal",)), tmp_path / "paper.csv")
    return tmp_path / "paper.csv"


def test_figures_are_drawn_of_a_summary(paper_file, run, tmp_path):
    status, out, err = run("study", "figures", paper_file, "--out", tmp_path / "f")
    assert (status, err) == (0, "")
    names = [Path(line).name for line in out.splitlines()]
    assert "configuration-3-normal.png" in names
    assert sorted(names) == sorted(path.name for path in (tmp_path / "f").iterdir())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--sizes", "20,,40"], "--sizes must be a list with commas, like 20,100 or nlm,koh: received '20,,40'."),
        (["--sizes", "20,many"], "--sizes must be whole numbers, like 20,100: received 'many' among them."),
        (["--sizes", "-20"], "--sizes must be whole numbers, like 20,100: received '-20' among them."),
        (["--methods", ""], "--methods must be a list with commas, like 20,100 or nlm,koh: received ''."),
        (["--methods", "gb-l3"], "gb-l3"),
        (["--errors", "norml"], "did you mean 'normal'?"),
        (["--configurations", "5"], "there is no configuration '5'"),
        (["--levels", "middle"], "the levels of a design are endpoints or midpoints: received 'middle'"),
        (["--workers", "2", "--scheduler", "tcp://127.0.0.1:1"], "both --workers and --scheduler were given"),
        (["--workers", "0"], "--workers"),
        (["--replications", "none"], "--replications"),
    ],
)
def test_bad_options_are_refused_with_one_sentence(run, tmp_path, options, sentence):
    status, out, err = run("study", "paper", "--out", tmp_path / "study", *options)
    assert (status, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("command", [["paper"], ["paper", "--out", ""], ["run", "--out", "x"], ["figures", "x"]])
def test_what_is_missing_is_said(run, command):
    status, out, err = run("study", *command)
    assert (status, out, err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("command", [["summary"], ["claims"], ["figures", "--out", "x"]])
def test_a_folder_without_a_study_is_refused(run, tmp_path, command):
    status, out, err = run("study", command[0], tmp_path, *command[1:])
    assert (status, out) == (2, "")
    assert f"there is no study in '{tmp_path}'" in err


def test_a_study_of_another_seed_is_refused(reference, run):
    changed = [*STUDY[: STUDY.index("--seed")], "--seed", "6", *STUDY[STUDY.index("--seed") + 2 :]]
    for options in ([], ["--plan"]):
        status, out, err = run(*changed, reference[0], *options)
        assert (status, out) == (2, "")
        assert "was begun with seed 5 and cannot be continued with seed 6" in err


def test_a_plan_is_shown_without_anything_being_done(run, tmp_path, reference):
    status, out, _ = run(*STUDY, tmp_path / "study", "--plan", "--methods", "nlm,koh")
    assert status == 0
    assert out.split()[-4:] == ["all", "240", "0", "240"]
    assert not (tmp_path / "study").exists()
    _, out, _ = run(*STUDY, reference[0], "--plan", "--methods", "nlm,koh")
    assert out.split()[-4:] == ["all", "240", "120", "120"]


def test_configurations_of_ones_own_are_planned(run, tmp_path):
    file = Path(__file__).parent.parent / "examples" / "study" / "own_configuration.py"
    _, out, _ = run("study", "run", file, "--configurations", "cup", "--out", tmp_path / "study", "--plan")
    assert out.split()[-4:] == ["all", "4,200", "0", "4,200"]


def test_a_design_is_printed_with_every_digit(run, tmp_path):
    status, out, err = run("design", 7, 2, "--seed", 3)
    lines = out.splitlines()
    assert (status, err, lines[0], len(lines)) == (0, "", "x1,x2", 8)
    midpoints = [(i + 0.5) / 7 for i in range(7)]
    for column in zip(*(line.split(",") for line in lines[1:]), strict=True):
        assert sorted(map(float, column)) == midpoints
    assert run("design", 7, 2, "--seed", 3, "--out", tmp_path / "new" / "design.csv") == (0, "", "")
    assert (tmp_path / "new" / "design.csv").read_text() == out


@pytest.mark.parametrize("options", [[0, 2], [5, 2, "--levels", "middle"], ["five", 2], [5, 2, "--out", ""]])
def test_a_design_that_cannot_be_is_refused(run, options):
    status, out, err = run("design", *options)
    assert (status, out, err.count("\n")) == (2, "", 1)


def progress_on_a_terminal(environment):
    """What a terminal is sent by a bar that sees two of five blocks done."""
    program = (
        "import time\n"
        "from l2calib.cli.progress import StudyProgress\n"
        "from l2calib.study.pace import Pace\n"
        "from l2calib.study.plan import Cell\n"
        "cells = [Cell('3', 20, 'normal', 'koh', block) for block in range(3)]\n"
        "pace, known = Pace(cells, {'3': 1}), {'seconds': 184, 'seconds_compiling': 0, 'seconds_preparing': 0}\n"
        "with StudyProgress(5, 2, 1000, pace) as progress:\n"
        "    for cell in cells[:2]:\n"
        "        progress.started(cell); time.sleep(0.15); pace.took(cell, known); progress.done(cell)\n"
        "    progress.started(cells[2]); time.sleep(0.15)\n"
    )
    ours, theirs = pty.openpty()
    known = {name: value for name, value in os.environ.items() if name != "CI"}
    process = subprocess.Popen(
        [sys.executable, "-c", program], stderr=theirs, env=known | {"TERM": "xterm", "COLUMNS": "150"} | environment
    )
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(ours, 65536):
            said += piece
    except OSError:  # how a terminal without anyone at its other end ends
        pass
    os.close(ours)
    assert process.wait() == 0
    return said.decode()


def test_a_terminal_shows_blocks_speed_time_left_and_what_is_worked_on():
    said = progress_on_a_terminal({})
    assert "4/5 blocks" in said
    assert "calibrations/s" in said
    assert "about 6 min 8 s left" in said  # two blocks, after the first
    assert "3/n=20/koh" in said


def test_there_is_no_bar_in_ci():
    assert progress_on_a_terminal({"CI": "true"}) == ""


def test_there_is_no_bar_without_a_terminal_but_a_sentence(capfd):
    cell = Cell("3", 20, "normal", "koh", 0)
    with StudyProgress(5, 4, 1000, Pace([cell], {"3": 1})) as progress:
        progress.started(cell)
        progress.done(cell)
        assert capfd.readouterr().err == ""
    assert progress.closing() == "1 block was done in 0 s, 4 were there already."


@pytest.mark.parametrize(
    ("seconds", "words"), [(3.4, "3 s"), (184, "3 min 4 s"), (7260, "2 h 1 min"), (59.7, "1 min 0 s")]
)
def test_durations_are_in_words(seconds, words):
    assert duration(seconds) == words
