"""The challenge's README.md as HTML: no HTML of its own, no image, no link but to web pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from geval_py.board.publishing.site.rendering import link_of

_BOX = '<div class="scroll" role="region" tabindex="0" aria-label="Table">'


def readme_html(text: str) -> Markup:
    """Render Markdown with tables; images stand as their text, since a page loads nothing from elsewhere."""
    markdown = _markdown()
    return Markup(markdown.renderer.render(list(_tamed(markdown.parse(text))), markdown.options, {}))


def has_title(text: str) -> bool:
    """Tell whether a README has a heading of the first level."""
    return any(token.tag == "h1" for token in _markdown().parse(text))


def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def _tamed(tokens: Iterable[Token]) -> Iterator[Token]:
    """Put what may be wide into boxes that scroll, by keyboard too, and take out styles, which the policy refuses."""
    for token in tokens:
        if token.type == "table_open":
            yield _raw(_BOX)
        if token.type in ("th_open", "td_open"):
            _align(token)
        if token.type in ("fence", "code_block"):
            yield _raw(f'<pre tabindex="0"><code>{escape(token.content)}</code></pre>\n')
        else:
            token.children = list(_inline(token.children)) if token.children else token.children
            yield token
        if token.type == "table_close":
            yield _raw("</div>\n")


def _raw(html: str) -> Token:
    return Token("html_block", "", 0, content=html)


def _align(cell: Token) -> None:
    """Say by a class how a cell is aligned, and what a header heads."""
    right = "right" in str(cell.attrGet("style") or "")
    cell.attrs = {"class": "number"} if right else {}
    if cell.tag == "th":
        cell.attrs["scope"] = "col"


def _inline(tokens: Iterable[Token]) -> Iterator[Token]:
    opened: list[str] = []
    for token in tokens:
        if token.type == "image":
            yield Token("text", "", 0, content=token.content)
            continue
        if token.type == "link_open":
            url = link_of(str(token.attrGet("href") or ""))
            token.tag, token.attrs = ("span", {}) if url is None else ("a", {"href": url, "rel": "nofollow noopener"})
            opened.append(token.tag)
        elif token.type == "link_close":
            token.tag = opened.pop()
        yield token
