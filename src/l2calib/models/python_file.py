"""A model that a spec names as a function of a Python file."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from l2calib.display.words import reason_of
from l2calib.errors import ModelError, suggest
from l2calib.models.jax_function import argument_faults
from l2calib.models.model import Model
from l2calib.models.source import Misfit


@dataclass(frozen=True)
class PythonFile:
    """``file.py:function``, the file being relative to `folder`; it is run when something is asked of the function."""

    text: str
    folder: Path

    key: ClassVar[str] = "python"
    has_defaults: ClassVar[bool] = True

    @classmethod
    def is_meant_by(cls, text: str) -> bool:
        """A formula holds no colon, and a function of a file cannot be named without one."""
        return re.search(r"\.py:\w+\s*$", text) is not None

    @classmethod
    def of(cls, text: str, folder: Path) -> PythonFile:
        return cls(text, folder)

    def names(self) -> list[str]:
        try:
            arguments = inspect.signature(self._function).parameters.values()
        except (TypeError, ValueError):  # it has no names, which `misfits` says
            return []
        variable = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        return [each.name for each in arguments if each.default is each.empty and each.kind not in variable]

    def check_name(self, name: str) -> None:
        """Python itself says, in the signature, what an argument may be called."""

    def misfits(self, inputs: Sequence[str], parameters: Sequence[str], columns: Collection[str]) -> Iterator[Misfit]:
        for fault in argument_faults(self._function, inputs, parameters):
            yield Misfit(fault, ("model", self.key))

    def function(self, inputs: Sequence[str], parameters: Sequence[str]) -> Callable[..., Any]:
        return self._function

    def unused(self, inputs: Sequence[str]) -> list[str]:
        return []

    def moved_to(self, folder: Path) -> str:
        file, _, name = self.text.strip().rpartition(":")
        return f"{relative(self.folder / file, folder)}:{name}"

    def description(self, model: Model) -> dict[str, str]:
        return {"kind": self.key, "text": self.text, "arguments": ", ".join(model.arguments)}

    @classmethod
    def in_words(cls, description: dict[str, str]) -> str:
        file, _, name = description["text"].rpartition(":")
        return f"the Python function {name}({description['arguments']}) of {file}"

    def recorded(self, model: Model) -> dict[str, str]:
        return {"kind": self.key, "text": model.text}

    @functools.cached_property
    def _function(self) -> Callable[..., Any]:
        file, colon, name = self.text.rpartition(":")
        if not (colon and file and name):
            raise ModelError(f"the model {self.text!r} names no function; write it like 'model.py:fall_time'.")
        path = self.folder / file
        if not path.is_file():
            raise ModelError(f"the model file '{path}' does not exist; paths are relative to the spec.")
        module = _run(path)
        function = getattr(module, name, None)
        if not callable(function):
            own = [each for each, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
            raise ModelError(
                f"the model file '{path}' has no function '{name}'{suggest(name, own)}; "
                f"it defines {', '.join(own) or 'nothing'}; name a function that it defines."
            )
        found: Callable[..., Any] = function
        return found


def relative(path: Path, folder: Path) -> str:
    """The way from a folder to a file, with forward slashes."""
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:  # on another drive
        return path.resolve().as_posix()


def _run(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"l2calib_model_{path.stem}", path.resolve())
    if spec is None or spec.loader is None:
        raise ModelError(f"the model file '{path}' is not a Python file; give one whose name ends in '.py'.")
    module = importlib.util.module_from_spec(spec)
    # A model may import its neighbours, as it would when run as a script.
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the file is the user's, so anything may come out of it
        raise ModelError(
            f"the model file '{path}' cannot be imported: {reason_of(error, str(path.resolve()))}; mend it."
        ) from None
    finally:
        sys.path.pop(0)
    return module
