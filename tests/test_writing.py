"""Files are there whole or as they were, whatever happens while they are written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from l2calib.results.writing import PARTIAL, staged, write_whole

MANY_TIMES = """
import sys
from pathlib import Path
from l2calib.results.writing import write_whole
print("ready", flush=True)
while True:
    write_whole(Path(sys.argv[1]), sys.argv[2].encode() * 100_000)
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_files_appear_together_when_all_are_written(tmp_path):
    with staged(tmp_path) as place:
        (place / "b").write_text("2")
        (place / "a").write_text("1")
        assert [name for name in names(tmp_path) if not name.endswith(PARTIAL)] == []
    assert names(tmp_path) == ["a", "b"]
    assert (tmp_path / "a").read_text() == "1"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_changes_and_nothing_stays_when_writing_fails(tmp_path, error):
    (tmp_path / "a").write_text("before")

    def fail():
        with staged(tmp_path) as place:
            (place / "a").write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "before"


def test_nothing_changes_when_the_disk_is_full(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    (tmp_path / "a").write_text("before")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(tmp_path / "a", b"after")
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "before"


def test_files_may_be_read_by_whom_the_umask_lets(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "a", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_a_long_name_can_be_written(tmp_path):
    write_whole(tmp_path / ("n" * 250), b"x")
    assert names(tmp_path) == ["n" * 250]


def test_two_processes_and_a_kill_leave_the_file_whole(tmp_path):
    file = tmp_path / "file"
    writers = [
        subprocess.Popen([sys.executable, "-c", MANY_TIMES, str(file), letter], stdout=subprocess.PIPE, text=True)
        for letter in "ab"
    ]
    try:
        for writer in writers:
            assert writer.stdout.readline() == "ready\n"
        while not file.exists():
            assert all(writer.poll() is None for writer in writers)
        for _ in range(200):
            assert set(file.read_text()) in ({"a"}, {"b"})
            assert file.stat().st_size == 100_000
        assert all(writer.poll() is None for writer in writers)
    finally:
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
    assert file.read_text() in ("a" * 100_000, "b" * 100_000)
    assert all(name == "file" or name.endswith(PARTIAL) for name in names(tmp_path))
