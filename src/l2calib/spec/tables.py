"""The tables of a spec file: found, read, and checked key by key."""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from l2calib.errors import SpecError, suggest
from l2calib.models.kinds import KINDS
from l2calib.models.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails

    from l2calib.spec.mistakes import Findings


class _Table(BaseModel):
    """Keys are optional here, so that a spec that lacks some is read as far as it goes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


_Box = Annotated[list[float], Field(min_length=2, max_length=2)]


class DataTable(_Table):
    """A CSV file, which of its columns is the response, and the box of each input: None where it is unreadable."""

    file: str | None = None
    response: str | None = None
    inputs: Annotated[dict[str, _Box | None], Field(min_length=1)] = {}


class _ModelTable(_Table):
    """Exactly one of the kinds of models, by its key."""

    def sources(self, folder: Path) -> list[Source]:
        """What the table names; paths are relative to `folder`."""
        given = {kind: getattr(self, kind.key) for kind in KINDS}
        return [kind.of(text, folder) for kind, text in given.items() if text is not None]


if TYPE_CHECKING:
    ModelTable = _ModelTable
else:
    ModelTable = create_model("ModelTable", __base__=_ModelTable, **{kind.key: (str | None, None) for kind in KINDS})


class Spec(_Table):
    """A whole spec file, its keys checked, with nothing that it names yet read or run."""

    data: DataTable = DataTable()
    model: ModelTable = ModelTable()
    prior: Annotated[dict[str, str | None], Field(min_length=1)] = {}


_KEYS: dict[tuple[str, ...], list[str]] = {
    (): list(Spec.model_fields),
    ("data",): list(DataTable.model_fields),
    ("model",): list(ModelTable.model_fields),
}
_TABLES = {("data",), ("model",), ("data", "inputs"), ("prior",)}
_EXAMPLES = {
    ("data",): '[data] with file = "ball.csv"',
    ("data", "file"): 'file = "ball.csv"',
    ("data", "response"): 'response = "time"',
    ("data", "inputs"): "[data.inputs] with height = [0, 5]",
    ("model",): '[model] with expression = "a + b * x"',
    ("prior",): '[prior] with g = "uniform(0, 20)"',
}
_REMEDIES = {
    "data": "make it a table, [data]",
    "model": "make it a table, [model]",
    "inputs": "give a table with a range for every input, like height = [0, 5]",
    "prior": 'give a table with a prior for every parameter, like g = "uniform(0, 20)"',
    "box": "give two finite numbers, like [0, 5]",
    "text": "write it as text in quotes",
}


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
        f"'{spec}' {trouble}{suggest(str(spec), packaged)}; "
        f"give a TOML file or a packaged example ({', '.join(packaged)})."
    )


def text_of(path: Path) -> str:
    """Read a spec file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SpecError(f"'{path}' cannot be read: {error.strerror}; give a TOML file that can.") from None
    except UnicodeDecodeError:
        raise SpecError(f"'{path}' is not UTF-8 text; give a TOML file.") from None


def read_tables(text: str, findings: Findings) -> Spec:
    """Check the tables of a spec, and return what of them is sound."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"it is not valid TOML: {_lower(str(error)).rstrip('.')}; correct it there.") from None
    except RecursionError:
        raise SpecError("it is not valid TOML: its brackets are nested too deep; correct them.") from None
    spec, errors = _validated(raw)
    unknown = [_path(each) for each in errors if each["type"] == "extra_forbidden"]
    for each in errors:
        findings.add(SpecError(f"{_complaint(each)}."), *_path(each)[:3])
    for path in _missing(raw):
        # A misspelt or misplaced key is a missing key too; its spelling or its place is what the user can act on.
        if not any(_stands_for(each, path) for each in unknown):
            lacks = f"the spec lacks the key '{path[-1]}' {_place(path[:-1])}"
            findings.add(SpecError(f"{lacks}; add {_EXAMPLES[path]}."), *path)
    return spec


def _validated(raw: dict[str, Any]) -> tuple[Spec, list[ErrorDetails]]:
    try:
        return Spec.model_validate(raw), []
    except ValidationError as error:
        # Of a range with two wrong ends, the first says enough.
        errors = list({_path(each)[:3]: each for each in reversed(error.errors())}.values())[::-1]
    sound = copy.deepcopy(raw)
    for each in errors:
        _blank(sound, _path(each))
    return Spec.model_validate(sound), errors


def _blank(tables: dict[str, Any], path: tuple[str, ...]) -> None:
    """Take out what is wrong; an input and a parameter leave their names behind."""
    *above, key = path[:3]
    table = tables
    for part in above:
        table = table[part]
    if tuple(above) in {("data", "inputs"), ("prior",)}:
        table[key] = None
    else:
        table.pop(key, None)


def _stands_for(unknown: tuple[str, ...], missing: tuple[str, ...]) -> bool:
    """Whether an unknown key is a missing one in another place, or resembles it or the table that it should be in."""
    level = len(unknown) - 1
    beside = unknown[:-1] == missing[:level] and level < len(missing)
    return unknown[-1] == missing[-1] or (beside and bool(suggest(unknown[-1], [missing[level]])))


def _missing(raw: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The paths of keys that are needed and not there, of whole tables first."""
    tables = [(name,) for name in Spec.model_fields if name not in raw]
    data = raw.get("data")
    keys = [("data", name) for name in DataTable.model_fields if isinstance(data, dict) and name not in data]
    return [*tables, *keys]


def _complaint(error: ErrorDetails) -> str:
    *table, key = _path(error)
    where = _place(tuple(table))
    if error["type"] == "extra_forbidden":
        keys, homes = _KEYS[tuple(table)], [home for home, known in _KEYS.items() if key in known]
        if homes:
            return f"there is an unknown key '{key}' {where}; it belongs {_place(homes[0])}"
        return f"there is an unknown key '{key}' {where}{suggest(key, keys)}; the keys there are {', '.join(keys)}"
    problem = _lower(error["msg"]).replace(" after validation", "")
    remedy = _REMEDIES["box" if table[:2] == ["data", "inputs"] else key if (*table, key) in _TABLES else "text"]
    return f"wrong value for '{key}' {where}: {problem}, but received {error['input']!r:.60}; {remedy}"


def _path(error: ErrorDetails) -> tuple[str, ...]:
    return tuple(str(part) for part in error["loc"])


def _place(table: tuple[str, ...]) -> str:
    return f"in [{'.'.join(table)}]" if table else "at the top level"


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]
