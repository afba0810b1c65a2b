"""The pages of the guide and of the README, as code that can be run.

Fenced blocks of `python` run in one namespace, and `$ l2calib ...` lines of `console` blocks through the command line;
what a page shows below such a line must be in the output. A block whose first line is a comment with a file name, like
`# ball.toml`, is that file. A block that is marked, as in ```python no-run, is only shown.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from l2calib.spec import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ANYTHING = "..."


class Block(NamedTuple):
    language: str
    text: str

    @property
    def file(self) -> str | None:
        named = re.match(r"# (\S+\.(?:toml|py|csv))\n", self.text)
        return named[1] if named else None


def blocks(page: Path, *languages: str) -> list[Block]:
    """The blocks of a page that are in these languages and not marked, in their order."""
    fenced = re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [Block(*each) for each in fenced if each[0] in languages]


def lay_out(folder: Path) -> None:
    """Put the data that the pages speak of into a folder."""
    (folder / "ball.csv").write_bytes((examples()["wiffle"].parent / "wiffle.csv").read_bytes())


def run_page(page: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    """Run all blocks of a page in the current folder; `run` calls the command line."""
    namespace: dict[str, object] = {}
    for block in blocks(page, "python", "console", "toml"):
        if block.file:
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            exec(compile(block.text, str(page), "exec"), namespace)
        elif block.language == "console":
            for command, shown in commands(block.text):
                status, out, err = run(*command[1:])
                assert status == 0, err
                assert [line for line in shown if not is_shown_in(line, out)] == [], out


def commands(console: str) -> Iterator[tuple[list[str], list[str]]]:
    """The commands of a console block with the lines that are shown below each."""
    whole = console.replace("\\\n", "")
    for part in re.split(r"^\$ ", whole, flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        yield shlex.split(command), [line for line in shown if re.search(r"\w", line)]


def is_shown_in(line: str, output: str) -> bool:
    """Whether a line of the output has the same words and numbers, but for those that the page leaves open."""
    words = line.split()
    printed = [each for each in map(str.split, output.splitlines()) if len(each) == len(words)]
    return any(all(map(_agree, words, each)) for each in printed)


def _agree(shown: str, actual: str) -> bool:
    """Equal but for one unit in the last digit of a number, which another processor may round differently."""
    if shown in (ANYTHING, actual):
        return True
    if not re.fullmatch(r"-?\d+\.?\d*", shown):
        return False
    try:
        return abs(float(shown) - float(actual)) <= 1.001 * 10.0 ** -len(shown.partition(".")[2])
    except ValueError:
        return False
