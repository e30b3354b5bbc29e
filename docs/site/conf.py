"""Sphinx's settings for the site; scripts/docs builds it from pages that scripts/build_docs.py has prepared."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes

from geval_py import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# Types that stand in signatures, but that a user neither makes nor looks into.
INTERNAL = (
    "explaining.comparison.System",
    "explaining.derived.Derived",
    "modelling.backoff.BackoffModel",
    "reading.config.Task",
    "reading.files.File",
    "reading.items.ItemColumns",
    "reading.items.ScoredItem",
    "reading.splits.Split",
    "reports.charts.Chart",
    "scoring.arrays.Vocabulary",
    "scoring.kernel.packed_words.Unit",
    "scoring.metrics.base.LineStatistics",
    "scoring.metrics.base.Measure",
    "scoring.metrics.base.StatisticsColumn",
    "tables.table.Table",
)

project = "geval-py"
author = "the geval-py developers"
copyright = author
version = release = __version__
html_title = f"geval-py {version}"
language = "en"
smartquotes = False  # which would turn --format into a dash and a word
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]

myst_heading_anchors = 4
myst_url_schemes = {"http": None, "https": None, "schema": "schemas/{{path}}"}

# Every name of geval_py's own must be known; types of other libraries are not looked up, since nothing is fetched.
nitpicky = True
nitpick_ignore_regex = [(r"py:(class|data)", r"(?!geval_py\b).*"), ("py:mod", "decimal")]
nitpick_ignore = [("py:class", f"geval_py.{name}") for name in INTERNAL]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_maximum_signature_line_length = 60
python_use_unqualified_type_names = True

# Of a block with prompts, the lines after them are copied; a lone "..." is the empty line that ends a statement.
copybutton_prompt_text = r">>> |\.\.\.(?: |$)|\$ "
copybutton_prompt_is_regexp = True
copybutton_copy_empty_lines = False
copybutton_line_continuation_character = "\\"

html_theme = "furo"
templates_path = ["templates"]
html_static_path = ["static"]
html_favicon = "static/favicon.svg"
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_copy_source = False
html_show_sphinx = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"


def _signature(
    _app: Sphinx,
    _kind: str,
    _name: str,
    _value: object,
    _options: object,
    arguments: str | None,
    returned: str | None,
) -> tuple[str | None, str | None]:
    """Leave out the arguments of a value's class, which are the fields below it."""
    return (None if arguments == "(**values: Any)" else arguments), returned


def _levels(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    """Add the level to the headings of the table of contents, which are paragraphs."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


def _description(
    _app: Sphinx, _page: str, _template: str, context: dict[str, Any], tree: nodes.document | None
) -> None:
    """Describe a page by its first sentence, which search engines show."""
    if tree and (paragraph := next(tree.findall(nodes.paragraph), None)):
        sentence = re.split(r"(?<=\.)\s", paragraph.astext(), maxsplit=1)[0].replace("\n", " ")
        context["metatags"] += f'<meta name="description" content="{escape(sentence)}">'


def setup(app: Sphinx) -> None:
    """Change what autodoc finds."""
    app.connect("autodoc-process-signature", _signature)
    app.connect("html-page-context", _levels, priority=900)  # after Furo's
    app.connect("html-page-context", _description)
