"""The references, written by the code itself: `{command-line}` from the typer app, `{public-names}` by autodoc.

{command-line} l2calib.cli:app
{public-names} calibration losses     (with `:undocumented:`, members that need no docstring too)
{public-names}                        (what no directive of the page has named)
"""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any, ClassVar

import typer
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

import l2calib

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docutils import nodes
    from sphinx.application import Sphinx


class CommandLine(SphinxDirective):
    """Every command of a typer app: a heading, its usage, its arguments and its options."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module, _, name = self.arguments[0].partition(":")
        root = typer.main.get_command(getattr(importlib.import_module(module), name))
        text = "\n".join(line for path, command in _commands(root, ("l2calib",)) for line in _described(path, command))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def _commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The command and all below it that can be called, by name."""
    below = getattr(command, "commands", {})
    if not below:
        yield path, command
    for name in sorted(below):
        yield from _commands(below[name], (*path, name))


def _described(path: tuple[str, ...], command: Any) -> Iterator[str]:
    context = command.context_class(command, info_name=path[-1])
    name = " ".join(path)
    arguments = " ".join(command.collect_usage_pieces(context))
    yield from ("", f"## `{name}`", "", inspect.cleandoc(command.help or ""), "")
    yield from ("```text", f"{name} {arguments}", "```", "")
    records = [record for parameter in command.params if (record := parameter.get_help_record(context))]
    if records:
        yield from ("| | |", "|---|---|", *(f"| `{_cell(what)}` | {_cell(said)} |" for what, said in records), "")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


class PublicNames(SphinxDirective):
    """The public names that some modules of the package give it, or those that nothing before has named."""

    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {"undocumented": directives.flag}

    def run(self) -> list[nodes.Node]:
        shown: set[str] = self.env.temp_data.setdefault("public-names", set())
        homes = self.arguments[0].split() if self.arguments else [h for h in l2calib._HOMES if h not in shown]
        shown.update(homes)
        members = ["   :members:", *(["   :undoc-members:"] if "undocumented" in self.options else [])]
        names = [name for home in homes for name in l2calib._HOMES[home]]
        text = "\n".join(line for name in names for line in _documented(name, members))
        return self.parse_text_to_nodes(f"```{{eval-rst}}\n{text}\n```")


def _documented(name: str, members: list[str]) -> Iterator[str]:
    value = getattr(l2calib, name)
    if inspect.isclass(value):
        yield from (f".. autoclass:: l2calib.{name}", *members, "")
    elif inspect.isroutine(value):
        yield from (f".. autofunction:: l2calib.{name}", "")
    else:
        held = ", ".join(f"`{each}`" for each in value)
        yield from (f".. py:data:: l2calib.{name}", "", f"   A {type(value).__name__} of {held}.", "")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register both."""
    app.add_directive("command-line", CommandLine)
    app.add_directive("public-names", PublicNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
