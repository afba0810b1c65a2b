"""A straight line as a spec file with its data: the smallest problem that the command line can be given."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

EXPRESSION = 'expression = "a + b * x"'
SPEC = f"""
[data]
file = "line.csv"
response = "y"

[data.inputs]
x = [0, 1]

[model]
{EXPRESSION}

[prior]
a = "uniform(-5, 5)"
b = "uniform(-5, 5)"
"""
HEADER = "x,y,note"
ROWS = [f"{i / 9:.3f},{1 + 2 * i / 9 + 0.05 * (-1) ** i:.3f},n{i}" for i in range(10)]


def csv(*rows: str) -> str:
    """The text of a data file with these rows."""
    return "\n".join([HEADER, *rows])


def write(folder: Path, text: str = SPEC) -> Path:
    """Put the spec and its data into a folder, and return the path of the spec."""
    (folder / "line.csv").write_text(csv(*ROWS))
    path = folder / "spec.toml"
    path.write_text(text)
    return path
