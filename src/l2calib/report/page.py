"""From a context to one self-contained page: templates, style sheet and script are files of the package."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from l2calib.report.methods import looks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinja2 import Environment


def render(template: str, content: Mapping[str, Any]) -> str:
    """The page as HTML; whatever users wrote is escaped by the templates."""
    from l2calib import __version__

    script = _asset("charts.js")
    return (
        _environment()
        .get_template(template)
        .render(
            **content,
            looks=looks(content["methods"]),
            version=__version__,
            style=_asset("report.css"),
            script=script,
            script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("l2calib.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def _asset(name: str) -> str:
    return (files("l2calib.report") / "assets" / name).read_text(encoding="utf-8")
