"""How a model is named in a spec: what every way of naming one can tell.

A kind of model knows how it is read, described in words and recorded, so that nothing above asks which kind it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

from l2calib.errors import InputError
from l2calib.models.model import Model


class Misfit(NamedTuple):
    """Why a model cannot have these inputs and parameters, and the key of the spec where that is mended."""

    error: InputError
    key: tuple[str, ...]


class Source(Protocol):
    """A model as the table [model] of a spec names it."""

    key: ClassVar[str]  # in that table
    has_defaults: ClassVar[bool]  # whether a parameter may be missing among the names, since it has a value

    @property
    def text(self) -> str: ...

    @classmethod
    def is_meant_by(cls, text: str) -> bool:
        """Whether somebody who types this means a model of this kind."""
        ...

    @classmethod
    def of(cls, text: str, folder: Path) -> Source:
        """The source in a spec whose paths are relative to `folder`."""
        ...

    def names(self) -> list[str]:
        """What needs values, in the model's order; InputError if the model cannot be read."""
        ...

    def check_name(self, name: str) -> None:
        """Raise InputError unless an input or a parameter may be called so."""
        ...

    def misfits(
        self, inputs: Sequence[str], parameters: Sequence[str], columns: Collection[str]
    ) -> Iterator[Misfit]: ...

    def function(self, inputs: Sequence[str], parameters: Sequence[str]) -> Callable[..., Any]:
        """The model as a function of these names."""
        ...

    def unused(self, inputs: Sequence[str]) -> list[str]:
        """Those of these inputs that the model is known not to look at."""
        ...

    def moved_to(self, folder: Path) -> str:
        """Its text in a spec in another folder."""
        ...

    def description(self, model: Model) -> dict[str, str]:
        """What it is, as data."""
        ...

    @classmethod
    def in_words(cls, description: dict[str, str]) -> str: ...

    def recorded(self, model: Model) -> dict[str, str]:
        """What the record of a run says of it: enough to know it again without its files."""
        ...
