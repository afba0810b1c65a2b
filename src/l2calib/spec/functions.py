"""A model named as a function in a Python file."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from l2calib.errors import ModelError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


def load_function(reference: str, folder: Path) -> Callable[..., Any]:
    """Return the function that ``file.py:function`` names, the file being relative to `folder`."""
    file, colon, name = reference.rpartition(":")
    if not (colon and file and name):
        raise ModelError(f"the model {reference!r} names no function; write it like 'model.py:fall_time'.")
    path = folder / file
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
    return function  # type: ignore[no-any-return]


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
        raise ModelError(f"the model file '{path}' cannot be imported: {_reason(error, path)}; mend it.") from None
    finally:
        sys.path.pop(0)
    return module


def _reason(error: BaseException, path: Path) -> str:
    said = " ".join(str(error).split())
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == path.resolve()]
    where = f" (line {lines[-1]})" if lines else ""
    return f"{type(error).__name__}{': ' if said else ''}{said}{where}"
