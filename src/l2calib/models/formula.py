"""A model that a spec writes as a formula."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from l2calib.errors import SpecError
from l2calib.models.expression import check_name, compile_expression, names_in
from l2calib.models.model import Model, unused_parameter
from l2calib.models.source import Misfit


@dataclass(frozen=True)
class Formula:
    """An expression in the names of inputs and parameters."""

    text: str

    key: ClassVar[str] = "expression"
    has_defaults: ClassVar[bool] = False

    @classmethod
    def is_meant_by(cls, text: str) -> bool:
        return True  # whatever names nothing else

    @classmethod
    def of(cls, text: str, folder: Path) -> Formula:
        return cls(text)

    def names(self) -> list[str]:
        return names_in(self.text)

    def check_name(self, name: str) -> None:
        check_name(name)

    def misfits(self, inputs: Sequence[str], parameters: Sequence[str], columns: Collection[str]) -> Iterator[Misfit]:
        used, declared = self.names(), [*inputs, *parameters]
        left_out = [name for name in used if name in columns and name not in declared]
        for name in left_out:
            yield Misfit(_column_left_out(name), ("data", "inputs", name))
        compile_expression(self.text, [*declared, *left_out])  # it has no other names
        for name in parameters:
            if name not in used:
                yield Misfit(unused_parameter(name), ("prior", name))

    def function(self, inputs: Sequence[str], parameters: Sequence[str]) -> Callable[..., Any]:
        return compile_expression(self.text, [*inputs, *parameters])

    def unused(self, inputs: Sequence[str]) -> list[str]:
        used = self.names()
        return [name for name in inputs if name not in used]

    def moved_to(self, folder: Path) -> str:
        return self.text.strip()

    def description(self, model: Model) -> dict[str, str]:
        return {"kind": self.key, "text": self.text, "arguments": ", ".join(model.arguments)}

    @classmethod
    def in_words(cls, description: dict[str, str]) -> str:
        return f"the expression {' '.join(description['text'].split())}"

    def recorded(self, model: Model) -> dict[str, str]:
        return {"kind": self.key, "text": self.text}


def _column_left_out(name: str) -> SpecError:
    return SpecError(
        f"the expression uses '{name}', which is a column of the data but not an input; "
        f"add {name} = [low, high] to [data.inputs]."
    )
