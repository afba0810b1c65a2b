"""Formulas as MathML, which browsers draw by themselves: no script, no font and no network.

docutils has the translator. An accent with an index is put into braces for it: it would set the index below the letter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

_ACCENTED = re.compile(r"\\(hat|tilde|bar)\s*(\\[A-Za-z]+|\{[^{}]*\}|[A-Za-z])")
_logger = logging.getLogger(__name__)


def as_mathml(formula: str, *, block: bool) -> str:
    """One formula of TeX as a MathML element."""
    return str(tex2mathml(_ACCENTED.sub(r"{\\\1{\2}{}}", formula), as_block=block))


def _render(translator: HTML5Translator, node: nodes.Element, *, block: bool) -> None:
    try:
        translator.body.append(as_mathml(node.astext(), block=block))
    except MathError as error:
        _logger.warning("the formula %r cannot be drawn: %s", node.astext(), error, location=node)
    raise nodes.SkipNode


def _inline(translator: HTML5Translator, node: nodes.Element) -> None:
    _render(translator, node, block=False)


def _block(translator: HTML5Translator, node: nodes.Element) -> None:
    _render(translator, node, block=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the renderer that `html_math_renderer` chooses."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
