"""A study's folder: a Parquet file per block, each whole or not there, and a record of what the study is.

study.json
designs/n=20,k=1.parquet
blocks/configuration=2/n=20/errors=normal/method=koh/00000.parquet
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from l2calib.errors import L2CalibError, SpecError
from l2calib.results.writing import PARTIAL, write_whole
from l2calib.study.block import design_digest, identity
from l2calib.study.plan import Cell, Plan, Task
from l2calib.study.record import Record
from l2calib.study.sealed import DamagedError, about, seal, unseal

if TYPE_CHECKING:
    import pyarrow as pa

_RECORD, _LOCK = "study.json", ".lock"
_DESIGNS, _BLOCKS = "designs", "blocks"


class Archive:
    """A study's folder, to read."""

    def __init__(self, folder: Path, record: Record) -> None:
        self.folder, self.record = folder, record
        self._designs: dict[tuple[int, int], np.ndarray] = {}

    @classmethod
    def at(cls, folder: str | Path) -> Archive:
        """The study in a folder; SpecError if there is none."""
        place = Path(folder)
        if not (place / _RECORD).is_file():
            found = "it has no study.json" if place.is_dir() else "there is no such folder"
            raise SpecError(f"there is no study in '{place}': {found}; name the folder of one.")
        return cls(place, _read_record(place))

    def path(self, cell: Cell) -> Path:
        """Where the block of a cell is kept."""
        levels = f"configuration={cell.configuration}", f"n={cell.n}", f"errors={cell.errors}", f"method={cell.method}"
        return self.folder.joinpath(_BLOCKS, *levels, f"{cell.block:05d}.parquet")

    def block(self, cell: Cell) -> tuple[pa.Table, dict[str, Any]]:
        """The table of a block and what is known about it.

        FileNotFoundError if it is not there, DamagedError if it is not as it was written.
        """
        table, known = unseal(self.path(cell).read_bytes())
        self._check_identity(cell, known)
        return table, known

    def read(self, cell: Cell) -> pa.Table:
        """The table of a block."""
        return self.block(cell)[0]

    def stored_design(self, inputs: int, n: int) -> np.ndarray | None:
        """The design kept for so many inputs and points; None if there is none, DamagedError if it was changed."""
        if (inputs, n) not in self._designs:
            try:
                table, known = unseal(self._design_path(inputs, n).read_bytes())
            except FileNotFoundError:
                return None
            if known != self._design_identity(inputs, n):
                raise DamagedError("belongs to another study")
            self._designs[inputs, n] = np.column_stack([column.to_numpy() for column in table.columns])
        return self._designs[inputs, n]

    def _design_path(self, inputs: int, n: int) -> Path:
        return self.folder / _DESIGNS / f"n={n},k={inputs}.parquet"

    def _design_identity(self, inputs: int, n: int) -> dict[str, Any]:
        return {"n": n, "k": inputs, "levels": self.record.levels, "seed": self.record.seed}

    def _check_identity(self, cell: Cell, known: dict[str, Any]) -> None:
        try:
            design = self.stored_design(self.record.inputs(cell.configuration), cell.n)
        except DamagedError as error:
            raise DamagedError(f"cannot be checked, since the file of its design {error}") from None
        record = self.record
        digest = known.get("design", "") if design is None else design_digest(design)
        expected = identity(cell, record.block, record.levels, record.seed, digest)
        known = {"revision": 0} | known  # blocks of before there were any
        if {name: known.get(name) for name in expected} != expected:
            raise DamagedError("belongs to another study, another place in it or another design")
        if known.get("versions") != record.versions:
            raise DamagedError("was computed with other versions of the software than the study was begun with")


class Store(Archive):
    """A study's folder, to read and to write; `problems` holds what was found wrong in it, in sentences.

    One process at a time has it open. A lock of a process that was killed goes with it.
    """

    def __init__(self, folder: Path, record: Record, plan: Plan, lock: int) -> None:
        super().__init__(folder, record)
        self.plan = plan
        self.problems: list[str] = []
        self.close = weakref.finalize(self, os.close, lock)

    @classmethod
    def open(cls, folder: str | Path, plan: Plan, command: str = "") -> Store:
        """Begin the study in a folder or continue it; SpecError if it is another study or cannot be kept there."""
        place = Path(folder)
        with _sentences(place):
            place.mkdir(parents=True, exist_ok=True)
            _refuse_other_things(place)
            lock = _lock(place)
            try:
                _sweep(place)
                record = _read_record(place) if (place / _RECORD).exists() else Record.begin(plan)
                record.refuse_another(plan, place)
                record = record.with_request(plan, command)
                write_whole(place / _RECORD, record.to_json().encode())
            except BaseException:
                os.close(lock)
                raise
        return cls(place, record, plan, lock)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def missing(
        self, cells: Iterable[Cell], there: Callable[[Cell, dict[str, Any]], object] | None = None
    ) -> list[Cell]:
        """Those that are not there or not as they were written; of the latter, `problems` tells.

        `there` is told of the others, and of what is known about them.
        """
        lacking = []
        for cell in cells:
            known = self._known(cell)
            if known is None:
                lacking.append(cell)
            elif there is not None:
                there(cell, known)
        return lacking

    def _known(self, cell: Cell) -> dict[str, Any] | None:
        """What is known about a block; None if it is missing."""
        path = self.path(cell)
        try:
            known = about(path.read_bytes())
        except FileNotFoundError:
            return None
        except (DamagedError, OSError) as error:
            reason = f"cannot be read ({error.strerror or error})" if isinstance(error, OSError) else error
            self.problems.append(f"the block file '{path}' {reason}: it will be computed again.")
            return None
        self.design(self.record.inputs(cell.configuration), cell.n)  # mends a damaged one, with which to compare
        try:
            self._check_identity(cell, known)
        except DamagedError as error:
            self.problems.append(f"the block file '{path}' {error}: it will be computed again.")
            return None
        return known

    def design(self, inputs: int, n: int) -> np.ndarray:
        """The stored design; if there is none, or a damaged one, it is computed and stored."""
        path = self._design_path(inputs, n)
        try:
            stored = self.stored_design(inputs, n)
        except DamagedError as error:
            self.problems.append(f"the design file '{path}' {error}: it is computed again.")
            stored = None
        if stored is not None:
            return stored
        import pyarrow as pa

        design = self.plan.design(inputs, n)
        columns = {f"x{j + 1}": np.ascontiguousarray(column) for j, column in enumerate(design.T)}
        self._write(path, seal(pa.table(columns), self._design_identity(inputs, n)), "a design")
        self._designs[inputs, n] = design
        return design

    def task(self, cell: Cell) -> Task:
        """The task of a cell, on the stored design."""
        return self.plan.task(cell, self.design(self.record.inputs(cell.configuration), cell.n))

    def write(self, cell: Cell, data: bytes) -> dict[str, Any]:
        """Keep the block of a cell and return what is known about it.

        L2CalibError if it is not that, or cannot be written.
        """
        try:
            known = about(data)
            self._check_identity(cell, known)
        except DamagedError as error:
            raise L2CalibError(
                f"what a worker returned for {cell} {error}; install the same versions everywhere and run it again."
            ) from None
        self._write(self.path(cell), data, "a block")
        return known

    def _write(self, path: Path, data: bytes, what: str) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, data)
        except OSError as error:
            raise L2CalibError(
                f"{what} of the study cannot be written as '{path}': {error.strerror or error}; "
                "what was finished before is kept: mend that and run it again."
            ) from None


@contextlib.contextmanager
def _sentences(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = f" ('{error.filename}')" if error.filename and Path(error.filename) != folder else ""
        raise SpecError(
            f"the study cannot be kept in '{folder}': {error.strerror or error}{where}; "
            "mend that or name another folder."
        ) from None


def _refuse_other_things(folder: Path) -> None:
    """Raise SpecError if there are files in the folder that no study put there."""
    if (folder / _RECORD).exists():
        return
    others = [each.name for each in folder.iterdir() if each.name != _LOCK and not each.name.endswith(PARTIAL)]
    if others:
        raise SpecError(
            f"the folder '{folder}' holds no study but other things, such as '{min(others)}'; name another folder."
        )


def _sweep(folder: Path) -> None:
    """Remove what a run that was killed left half written; others may be writing a report or a summary beside it."""
    stale = list(folder.glob(f".{_RECORD}.*{PARTIAL}"))
    for part in (_DESIGNS, _BLOCKS):
        stale += (folder / part).rglob(f".*{PARTIAL}")
    for path in stale:
        if path.is_dir():
            shutil.rmtree(path)
        else:  # as they were written before each had a folder
            path.unlink(missing_ok=True)


def _read_record(folder: Path) -> Record:
    path = folder / _RECORD
    try:
        return Record.from_json(path.read_text(encoding="utf-8"))
    except (DamagedError, UnicodeDecodeError) as error:
        reason = error if isinstance(error, DamagedError) else "is not UTF-8 text"
        raise SpecError(f"the record '{path}' {reason}; restore it or name another folder.") from None
    except OSError as error:
        raise SpecError(f"the record '{path}' cannot be read: {error.strerror or error}.") from None


def _lock(folder: Path) -> int:
    """A file descriptor that holds the folder's lock until it is closed."""
    import fcntl

    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK):  # a file system that knows no locks
            return descriptor
        os.close(descriptor)
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        raise SpecError(
            f"another run is writing into '{folder}'; wait until it is done or stop it, or name another folder."
        ) from None
    return descriptor
