"""The tables of a spec file: found, read, and checked key by key."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from l2calib.errors import SpecError, suggest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


_Box = Annotated[list[float], Field(min_length=2, max_length=2)]


class DataTable(_Table):
    """A CSV file, which of its columns is the response, and the box of each input."""

    file: str
    response: str
    inputs: Annotated[dict[str, _Box], Field(min_length=1)]


class ModelTable(_Table):
    """Exactly one of a Python function and an expression."""

    python: str | None = None
    expression: str | None = None


class Spec(_Table):
    """A whole spec file, its keys checked, with nothing that it names yet read or run."""

    data: DataTable
    model: ModelTable
    prior: Annotated[dict[str, str], Field(min_length=1)]


_KEYS: dict[tuple[str, ...], type[_Table]] = {(): Spec, ("data",): DataTable, ("model",): ModelTable}


def examples() -> dict[str, Path]:
    """Return the packaged examples: name to spec file."""
    folder = Path(__file__).parents[1] / "examples"
    return {path.parent.name: path for path in sorted(folder.glob("*/spec.toml"))}


def locate(spec: str | Path) -> Path:
    """Find the spec file: a file that exists wins over an example of the same name."""
    path = Path(spec)
    if path.is_file():
        return path
    packaged = examples()
    if str(spec) in packaged:
        return packaged[str(spec)]
    trouble = "is a folder" if path.is_dir() else "does not exist"
    raise SpecError(
        f"the spec '{spec}' {trouble}{suggest(str(spec), packaged)}; "
        f"give a TOML file or a packaged example ({', '.join(packaged)})."
    )


def read_spec(path: Path) -> Spec:
    """Read and check the tables of a spec file."""
    try:
        spec = Spec.model_validate(tomllib.loads(path.read_text(encoding="utf-8-sig")))
    except OSError as error:
        raise SpecError(f"the spec '{path}' cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SpecError(f"the spec '{path}' is not UTF-8 text; give a TOML file.") from None
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"the spec '{path}' is not valid TOML: {_lower(str(error))}.") from None
    except ValidationError as error:
        raise SpecError(f"the spec '{path}' {_complaint(error.errors())}.") from None
    if (spec.model.python is None) == (spec.model.expression is None):
        count = "neither" if spec.model.python is None else "both"
        raise SpecError(f"the spec '{path}' has {count} of 'python' and 'expression' in [model]; give exactly one.")
    return spec


def _complaint(errors: list[ErrorDetails]) -> str:
    # A misspelt key is a missing key too; its spelling is what the user can act on.
    error = min(errors, key=lambda each: each["type"] != "extra_forbidden")
    *table, key = (str(part) for part in error["loc"])
    where = f"in [{'.'.join(table)}]" if table else "at the top level"
    if error["type"] == "extra_forbidden":
        keys = list(_KEYS[tuple(table)].model_fields)
        return f"has an unknown key '{key}' {where}{suggest(key, keys)}; the keys there are {', '.join(keys)}"
    if error["type"] == "missing":
        return f"lacks the key '{key}' {where}; add it"
    return f"has a wrong value for '{key}' {where}: {_lower(error['msg'])}, but received {error['input']!r:.60}"


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]
