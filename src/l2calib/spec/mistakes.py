"""Mistakes in a spec file: the key that each belongs to, and how they are gathered instead of stopping at the first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from l2calib.errors import InputError, ModelError
from l2calib.spec.quoting import dotted

if TYPE_CHECKING:
    from types import TracebackType


@dataclass(frozen=True)
class Mistake:
    """What is wrong with one key of a spec."""

    key: str
    error: InputError

    @property
    def sentence(self) -> str:
        """It begins with the key."""
        return f"{self.key}: {self.error}"


class Findings:
    """The mistakes found so far, in their order and none twice."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []

    def __bool__(self) -> bool:
        return bool(self.mistakes)

    def under(self, table: str) -> bool:
        """Whether there is a mistake in that table."""
        return any(mistake.key.split(".")[0] == table for mistake in self.mistakes)

    def add(self, error: InputError, *path: str) -> None:
        """Note a mistake at the key of that path, or at the parameter that a model's fault is about."""
        about = error.about if isinstance(error, ModelError) else None
        mistake = Mistake(dotted(*path) if about is None else dotted("prior", about), error)
        if mistake.sentence not in [each.sentence for each in self.mistakes]:
            self.mistakes.append(mistake)

    def at(self, *path: str) -> _Place:
        """What is raised inside is a mistake at that key; what follows is read nevertheless."""
        return _Place(self, path)


@dataclass(frozen=True)
class _Place:
    """A context in which mistakes belong to one key."""

    findings: Findings
    path: tuple[str, ...]

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(error, InputError):
            self.findings.add(error, *self.path)
        return isinstance(error, InputError)


def first_of(mistakes: list[Mistake], spec: str) -> InputError:
    """What to raise when there are mistakes: the first, and how many more there are."""
    first, *others = mistakes
    sentence = first.sentence
    if others:
        more = "1 more mistake is" if len(others) == 1 else f"{len(others)} more mistakes are"
        sentence = f"{sentence.rstrip('.')} ({more} listed by 'l2calib check {spec}')."
    return type(first.error)(sentence)
