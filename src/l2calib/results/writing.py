"""Files that are there whole or as they were: the one way in which the package writes."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

PARTIAL = ".partial"  # how the names of what is not yet whole end
_LONGEST_LABEL = 100


@contextlib.contextmanager
def staged(folder: Path, label: str = "l2calib") -> Iterator[Path]:
    """A hidden place in `folder`: the files that are put there move into the folder once the block is left.

    If the block or the disk fails, nothing is moved and nothing stays behind. Each file is on the disk before it moves,
    so that not even a crash leaves half of one, and every writer has a place of its own.
    """
    with tempfile.TemporaryDirectory(
        dir=folder, prefix=f".{label[:_LONGEST_LABEL]}.", suffix=PARTIAL, ignore_cleanup_errors=True
    ) as name:
        place = Path(name)
        yield place
        ready = sorted(place.iterdir())
        for path in ready:
            with path.open("rb+") as file:
                os.fsync(file.fileno())
        for path in ready:
            path.replace(folder / path.name)
    _remember_names(folder)


def write_whole(path: Path, data: bytes) -> None:
    """The file is there with all of the data, or as it was."""
    with staged(path.parent, path.name) as place:
        (place / path.name).write_bytes(data)


def _remember_names(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every file system syncs folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
