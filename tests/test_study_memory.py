"""A worker forgets its programs when they fill the memory, and not before."""

import subprocess
import sys

import pytest

from l2calib.study.workers import environment

PROGRAM = """
import sys, jax
from l2calib.study import memory
memory._ROOM_FOR_PROGRAMS = float(sys.argv[1])
program = jax.jit(lambda number: number, static_argnums=0)
for number in range(3):
    memory.make_room()
    program(number)
    print(program._cache_size())
"""


@pytest.mark.parametrize(("room", "kept"), [(1e15, [1, 2, 3]), (0, [1, 1, 1])])
def test_programs_are_kept_while_there_is_room(room, kept):
    command = [sys.executable, "-c", PROGRAM, str(room)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())
    assert [int(line) for line in done.stdout.split()] == kept


@pytest.mark.skipif(sys.platform != "linux", reason="other systems return it, or do not, by themselves")
def test_memory_that_is_freed_is_returned():
    """A hundred megabytes in small pieces, with one between every two that is kept."""
    code = (
        "from l2calib.study.memory import _resident_bytes, give_back\n"
        "pieces = [bytes(10_000) for _ in range(20_000)]\n"
        "before = _resident_bytes()\n"
        "pieces = pieces[::100]\n"
        "give_back()\n"
        "print(before - _resident_bytes())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) > 1e8
