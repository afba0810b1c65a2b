"""How the guide is built: from Markdown and the code, offline."""

import sys
from pathlib import Path

import l2calib

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "l2calib"
author = "The l2calib authors"
copyright = "the l2calib authors"  # noqa: A001 (Sphinx gives it this name)
version = release = l2calib.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "mathml", "reference"]
exclude_patterns = ["_build"]

myst_enable_extensions = ["amsmath", "dollarmath", "colon_fence"]
myst_heading_anchors = 3
default_role = "code"  # as in the docstrings

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = "l2calib"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["guide.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#005a8c", "color-brand-content": "#005a8c"},
    "dark_css_variables": {"color-brand-primary": "#7cc4ee", "color-brand-content": "#7cc4ee"},
}
