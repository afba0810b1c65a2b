"""Tasks handed out and results taken in: by whom, in which order, and what happens when something breaks."""

import os
import queue
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from l2calib.errors import L2CalibError
from l2calib.study import runner, workers
from l2calib.study.runner import Broken, Done, Interrupted, Lost, Note, Raised, Ready, Signal
from l2calib.study.workers import LocalCrew
from tests.study_work import Errand, do

ROOT = Path(__file__).parent.parent
WORK = do


class Watcher:
    """Progress, remembered."""

    def __init__(self):
        self.begun, self.ended, self.notes = [], [], []

    def started(self, task):
        self.begun.append(task)

    def done(self, task):
        self.ended.append(task)

    def note(self, sentence):
        self.notes.append(sentence)


class ScriptedCrew:
    """Slots that do what a script says of a (slot, task), and the next task otherwise; all at once, in turn."""

    def __init__(self, slots, script=None):
        self.events = queue.SimpleQueue()
        self.slots, self.script = slots, script or {}
        self.handed, self.stopped = [], False

    def start(self, work):
        self.work = work
        for slot in self.slots:
            self.events.put(Ready(slot))

    def hand(self, slot, task):
        self.handed.append((slot, task))
        scripted = self.script.get((slot, task.number), [])
        for event in scripted.pop(0) if scripted else [Done(slot, self.work(task))]:
            self.events.put(event)

    def stop(self):
        assert not self.stopped
        self.stopped = True

    def numbers(self, slot):
        return [task.number for each, task in self.handed if each == slot]


def run(tasks, work, crew, finished, progress):
    runner.run(tasks, work, crew, finished, progress, pack=lambda task: task)


def errands(**sizes):
    """That many errands of each group, numbered through."""
    groups = [group for group, size in sizes.items() for _ in range(size)]
    return [Errand(group, number) for number, group in enumerate(groups)]


def results_of(tasks, crew, progress=None):
    results = {}
    run(tasks, WORK, crew, results.__setitem__, progress or Watcher())
    return results


def test_every_result_is_handed_over_once():
    tasks, watcher = errands(a=3, b=4, c=1), Watcher()
    handed_over = []
    crew = ScriptedCrew(["left", "right"])
    run(tasks, WORK, crew, lambda task, data: handed_over.append((task, data)), watcher)
    assert sorted(handed_over, key=lambda each: each[0].number) == [(task, WORK(task)) for task in tasks]
    assert sorted(watcher.begun, key=str) == sorted(watcher.ended, key=str) == sorted(tasks, key=str)
    assert crew.stopped


def test_nothing_to_do_starts_nobody():
    crew = ScriptedCrew([])
    assert results_of([], crew) == {}
    assert crew.handed == []


def test_a_slot_stays_in_its_group_and_then_takes_one_that_nobody_works_on():
    crew = ScriptedCrew(["left", "right"])
    results_of(errands(a=3, b=2, c=2), crew)
    # Both go on in turn: a0 b3, a1 b4, a2 and, b being done, c5; only then do both share what is left.
    assert crew.numbers("left") == [0, 1, 2, 6]
    assert crew.numbers("right") == [3, 4, 5]


def test_a_slot_without_a_group_of_its_own_helps_where_most_is_left():
    crew = ScriptedCrew(["one", "two", "three"])
    results_of(errands(a=2, b=5), crew)
    assert crew.numbers("three")[0] == 3  # after a0 and b2


def test_the_groups_are_begun_in_the_given_order():
    crew = ScriptedCrew(["only"])
    results_of(errands(b=2, a=2, c=1), crew)
    assert crew.numbers("only") == [0, 1, 2, 3, 4]


def test_a_lost_slots_task_is_tried_again_elsewhere():
    crew = ScriptedCrew(["left", "right"], {("left", 0): [[Lost("left", "it was killed")]]})
    results = results_of(errands(a=3), crew)
    assert len(results) == 3
    assert crew.numbers("left") == [0]
    assert crew.numbers("right").count(0) == 1


def test_an_idle_slot_takes_over_from_one_that_is_lost_late():
    crew = ScriptedCrew(["left", "right"], {("left", 0): [[Done("elsewhere", b""), Lost("left", "it was killed")]]})
    assert len(results_of(errands(a=1), crew)) == 1
    assert crew.numbers("right") == [0]


def test_a_result_of_a_slot_that_was_given_up_is_not_taken():
    crew = ScriptedCrew(["only"], {("only", 0): [[Lost("only", "it left"), Done("only", b"stale"), Ready("only")]]})
    assert list(results_of(errands(a=1), crew).values()) == [b"a0"]


def test_a_task_that_loses_three_slots_ends_the_run_with_a_sentence():
    back = [Lost("only", "it was killed"), Ready("only")]
    crew = ScriptedCrew(["only"], {("only", 1): [back, back, back]})
    results = {}
    with pytest.raises(L2CalibError, match=r"^errand 1 of group a was given up after 3 attempts.*it was killed;.*\.$"):
        run(errands(a=3), WORK, crew, results.__setitem__, Watcher())
    assert crew.numbers("only") == [0, 1, 1, 1]
    assert len(results) == 1


def test_work_that_raises_ends_the_run_with_a_sentence_and_keeps_what_has_arrived():
    crew = ScriptedCrew(["left", "right"], {("left", 0): [[Raised("left", "the sum is wrong.")]]})
    results = {}
    with pytest.raises(L2CalibError, match=r"^errand 0 of group a failed: the sum is wrong\.$"):
        run(errands(a=1, b=1), WORK, crew, results.__setitem__, Watcher())
    assert [task.number for task in results] == [1]
    assert crew.stopped


def test_a_result_that_cannot_be_taken_ends_the_run_after_the_others_are_taken():
    crew, taken, watcher = ScriptedCrew(["one", "two", "three"]), [], Watcher()

    def finished(task, data):
        if task.number == 0:
            raise L2CalibError("the disk is full.")
        taken.append(task.number)

    with pytest.raises(L2CalibError, match="the disk is full"):
        run(errands(a=3, b=3, c=3), WORK, crew, finished, watcher)
    assert taken == [3, 6]
    assert [task.number for task in watcher.ended] == taken
    assert crew.stopped


@pytest.mark.parametrize(
    ("event", "error"), [(Broken("the scheduler is gone."), L2CalibError), (Signal(signal.SIGTERM), Interrupted)]
)
def test_whatever_ends_the_run_early_what_has_arrived_is_kept(event, error):
    crew = ScriptedCrew(["left", "right"], {("left", 0): [[event]]})
    results = {}
    with pytest.raises(error):
        run(errands(a=1, b=1), WORK, crew, results.__setitem__, Watcher())
    assert [task.number for task in results] == [1]
    assert crew.stopped


def test_notes_are_passed_on_and_the_run_goes_on():
    crew, watcher = ScriptedCrew(["only"], {("only", 0): [[Note("mind the gap."), Done("only", b"")]]}), Watcher()
    assert len(results_of(errands(a=2), crew, watcher)) == 2
    assert watcher.notes == ["mind the gap."]


def test_ctrl_c_waits_until_a_result_is_taken():
    taken = []

    def finished(task, data):
        if not taken:
            signal.raise_signal(signal.SIGINT)
        taken.append(task.number)

    with pytest.raises(Interrupted) as caught:
        run(errands(a=5), WORK, ScriptedCrew(["only"]), finished, Watcher())
    # The signal stands in line behind the result that was on its way meanwhile.
    assert caught.value.number == signal.SIGINT
    assert taken == [0, 1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_pressed_again_does_not_wait():
    def finished(task, data):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    crew = ScriptedCrew(["only"])
    with pytest.raises(KeyboardInterrupt):
        run(errands(a=5), WORK, crew, finished, Watcher())
    assert crew.stopped
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# Real processes.


@pytest.fixture(autouse=True)
def importable_tests(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def alive(pid):
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    # A zombie of a parent that never waits is as good as gone.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def wait_until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def traces(folder):
    return [pid for file in sorted(Path(folder).iterdir()) for pid in file.read_text().split()]


def test_local_workers_do_the_work_in_processes_that_they_keep():
    tasks = [Errand(group, number, kind="pid") for group in "ab" for number in range(5)]
    results = results_of(tasks, LocalCrew(2))
    pids = set(results.values())
    assert len(results) == 10
    assert 1 <= len(pids) <= 2
    assert str(os.getpid()).encode() not in pids
    assert not any(alive(int(pid)) for pid in pids)


def test_what_a_model_prints_does_not_disturb_and_it_has_nothing_to_read(capfd):
    tasks = [Errand("a", 0, kind="print"), Errand("a", 1, kind="read")]
    results = results_of(tasks, LocalCrew(1))
    assert list(results.values()) == [b"a0", b"''"]
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "below Python too" in captured.err


def test_workers_run_on_one_thread_whatever_the_environment_says(monkeypatch, tmp_path):
    for name in ("OMP_NUM_THREADS", "NPROC", "XLA_FLAGS", "JAX_PLATFORMS", "JAX_DISABLE_JIT"):
        monkeypatch.setenv(name, "7")
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (said,) = results_of([Errand("a", 0, kind="environment")], LocalCrew(1)).values()
    told = dict(line.split("=", 1) for line in said.decode().splitlines() if "=" in line)
    assert told["OMP_NUM_THREADS"] == told["OPENBLAS_NUM_THREADS"] == told["NPROC"] == "1"
    assert told["XLA_FLAGS"] == "--xla_cpu_multi_thread_eigen=false"
    assert told["JAX_PLATFORMS"] == "cpu"
    assert "JAX_DISABLE_JIT" not in told
    assert Path(told["JAX_COMPILATION_CACHE_DIR"]).parent == tmp_path / "l2calib" / "xla"


def test_a_cache_of_the_users_own_is_used(monkeypatch, tmp_path):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "/their/own")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert workers.environment()["JAX_COMPILATION_CACHE_DIR"] == "/their/own"


def test_without_a_place_for_a_cache_there_is_none(monkeypatch, tmp_path):
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert "JAX_COMPILATION_CACHE_DIR" not in workers.environment()


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [("raise", "ZeroDivisionError: division by nothing."), ("leave", "SystemExit.")],
)
def test_an_exception_in_a_worker_becomes_one_sentence(kind, sentence, capfd):
    with pytest.raises(L2CalibError) as caught:
        results_of([Errand("a", 7, kind=kind)], LocalCrew(1))
    assert str(caught.value) == f"errand 7 of group a failed: {sentence}"
    assert "Traceback" not in capfd.readouterr().err


def test_a_worker_that_is_killed_is_replaced_and_its_task_tried_again(tmp_path):
    tasks = [Errand("a", number, str(tmp_path), "die-twice" if number == 1 else "echo") for number in range(4)]
    results = results_of(tasks, LocalCrew(1))
    assert sorted(results.values()) == [b"a0", b"a1", b"a2", b"a3"]
    assert len(set(traces(tmp_path))) == 3


def test_a_task_that_kills_every_worker_ends_the_run_with_a_sentence(tmp_path):
    with pytest.raises(L2CalibError, match=r"^errand 0 of group a was given up .* it was killed, .*memory"):
        results_of([Errand("a", 0, str(tmp_path), "die")], LocalCrew(2))
    assert len(traces(tmp_path)) == 3


# What a user would run: two tasks are done, two take for ever.
PROGRAM = """
import sys
from l2calib.study.runner import Interrupted
from l2calib.study.workers import LocalCrew
from tests.study_work import Errand, do
from tests.test_study_runner import Watcher, run

folder = sys.argv[1]
tasks = [Errand("a", 0), Errand("a", 1, folder, "sleep"), Errand("b", 2), Errand("b", 3, folder, "sleep")]
try:
    run(tasks, do, LocalCrew(2), lambda task, data: print(data.decode(), flush=True), Watcher())
except Interrupted as error:
    print("interrupted", error.number, flush=True)
"""


@pytest.fixture
def program(tmp_path):
    """The program, both of its workers asleep, and their process ids."""
    started = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    wait_until(lambda: len(traces(tmp_path)) == 2, 30)
    yield started, traces(tmp_path)
    started.kill()
    started.wait()
    started.stdout.close()


def test_workers_are_gone_when_the_program_is_killed(program):
    started, pids = program
    assert all(alive(pid) for pid in pids)
    started.kill()
    wait_until(lambda: not any(alive(pid) for pid in pids), 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_workers_at_once_and_loses_nothing_finished(program, number):
    started, pids = program
    started.send_signal(number)
    out, _ = started.communicate(timeout=5)
    assert sorted(out.split("\n")[:2]) == ["a0", "b2"]
    assert f"interrupted {int(number)}" in out
    wait_until(lambda: not any(alive(pid) for pid in pids), 2)
