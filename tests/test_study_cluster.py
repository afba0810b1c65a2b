"""A Dask cluster as a crew: a real scheduler and real workers, which come, die and leave."""

import os
import signal
import sys
import threading

import pytest

from l2calib.errors import L2CalibError, SpecError
from l2calib.study import block
from l2calib.study import cluster as module
from l2calib.study.cluster import ClusterCrew
from l2calib.study.runner import Interrupted
from tests.dask_cluster import Cluster
from tests.study_work import Errand
from tests.test_study_runner import WORK, Watcher, alive, results_of, run, traces, wait_until


@pytest.fixture
def cluster(tmp_path):
    with Cluster(tmp_path) as started:
        yield started


@pytest.fixture
def notes(tmp_path):
    (tmp_path / "traces").mkdir()
    return tmp_path / "traces"


def kill_when(condition, process):
    """End a process once something has happened, while the test waits for a run."""

    def wait_and_kill():
        wait_until(condition, 30)
        process.kill()

    threading.Thread(target=wait_and_kill, daemon=True).start()


def test_a_cluster_does_the_work_in_children_of_its_workers_and_ends_them(cluster):
    workers = [cluster.worker(), cluster.worker(threads=2)]
    tasks = [Errand(group, number, kind="pid") for group in "abcdef" for number in range(4)]
    pids = set(results_of(tasks, ClusterCrew(cluster.address)).values())
    assert 1 <= len(pids) <= 3
    assert not {str(worker.pid).encode() for worker in workers} & pids
    wait_until(lambda: not any(alive(int(pid)) for pid in pids), 2)
    assert all(worker.poll() is None for worker in workers)


def test_work_that_raises_on_a_cluster_ends_the_run_with_the_same_sentence(cluster):
    cluster.worker()
    with pytest.raises(L2CalibError, match=r"^errand 7 of group a failed: ZeroDivisionError: division by nothing\.$"):
        results_of([Errand("a", 7, kind="raise")], ClusterCrew(cluster.address))


def test_a_child_that_is_killed_on_a_cluster_is_replaced_and_its_task_tried_again(cluster, notes):
    cluster.worker()
    results = results_of([Errand("a", 0, str(notes), "die-twice"), Errand("a", 1)], ClusterCrew(cluster.address))
    assert sorted(results.values()) == [b"a0", b"a1"]
    assert len(set(traces(notes))) == 3


def test_a_worker_may_die_and_another_come_while_a_run_goes_on(cluster, notes):
    first = cluster.worker()

    def replace():
        wait_until(lambda: traces(notes), 30)
        first.kill()
        cluster.worker()

    threading.Thread(target=replace, daemon=True).start()
    tasks = [Errand("a", 0, str(notes), "sleep-once"), Errand("a", 1)]
    results = results_of(tasks, ClusterCrew(cluster.address))
    assert sorted(results.values()) == [b"a0", b"a1"]
    started = traces(notes)
    assert len(set(started)) == 2
    # The child of the one that was killed went with it.
    assert not alive(started[0])


def test_a_scheduler_that_goes_away_ends_the_run_with_a_sentence(cluster, notes, monkeypatch):
    monkeypatch.setattr(module, "_SECONDS_TO_CONNECT", 3)
    cluster.worker()
    kill_when(lambda: traces(notes), cluster.scheduler)
    results = {}
    tasks = [Errand("a", 0), Errand("a", 1, str(notes), "sleep")]
    crew = ClusterCrew(cluster.address)
    with pytest.raises(L2CalibError, match=r"^the Dask scheduler at tcp://127\.0\.0\.1.* does not answer any more"):
        run(tasks, WORK, crew, results.__setitem__, Watcher())
    assert list(results.values()) == [b"a0"]


def test_no_workers_is_said_after_a_while(cluster, monkeypatch):
    monkeypatch.setattr(module, "_SECONDS_WITHOUT_WORKERS", 1)
    with pytest.raises(L2CalibError, match=r"no usable workers for 1 seconds; start some, .*'dask worker tcp://"):
        results_of([Errand("a", 0)], ClusterCrew(cluster.address))


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense://x", "tcp://"])
def test_an_address_without_a_scheduler_is_refused(address, monkeypatch, capfd):
    monkeypatch.setattr(module, "_SECONDS_TO_CONNECT", 1)
    with pytest.raises(SpecError, match=rf"^no Dask scheduler answers at '{address}' .*\.$"):
        ClusterCrew(address)
    assert capfd.readouterr().err == ""


def test_without_the_package_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SpecError, match=r"pip install 'l2calib\[distributed\]'"):
        ClusterCrew("127.0.0.1:8786")


def test_workers_with_other_versions_are_refused(cluster, monkeypatch):
    cluster.worker()
    monkeypatch.setitem(block.versions(), "jax", "0.0.1")
    with pytest.raises(
        L2CalibError, match=r"^the Dask worker at tcp.* cannot be used: it has jax \S+ instead of 0\.0\.1;"
    ):
        results_of([Errand("a", 0)], ClusterCrew(cluster.address))


def test_workers_without_the_library_are_refused(cluster, tmp_path):
    # An empty package in front of the installed one.
    (tmp_path / "shadow" / "l2calib").mkdir(parents=True)
    (tmp_path / "shadow" / "l2calib" / "__init__.py").write_text("")
    cluster.worker(PYTHONPATH=str(tmp_path / "shadow"))
    with pytest.raises(
        L2CalibError, match=r"^the Dask worker at tcp.* cannot be used: .*; install l2calib \S+ there\.$"
    ):
        results_of([Errand("a", 0)], ClusterCrew(cluster.address))


def test_a_signal_ends_the_children_on_a_cluster_too(cluster, notes):
    cluster.worker()

    def press():
        wait_until(lambda: traces(notes), 30)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    results = {}
    tasks = [Errand("a", 0), Errand("a", 1, str(notes), "sleep")]
    with pytest.raises(Interrupted):
        run(tasks, WORK, ClusterCrew(cluster.address), results.__setitem__, Watcher())
    assert list(results.values()) == [b"a0"]
    wait_until(lambda: not alive(traces(notes)[0]), 2)
