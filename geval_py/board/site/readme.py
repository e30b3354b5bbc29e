"""The challenge's README.md as HTML: no HTML of its own, no image, no link but to web pages and headings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from geval_py.board.site.rendering import link_of

_BOX = '<div class="scroll" role="region" tabindex="0" aria-label="Table">'


def readme_html(text: str) -> Markup:
    """Render Markdown with tables; images stand as their text, since a page loads nothing from elsewhere."""
    markdown = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable("table")
    return Markup(markdown.render(text))


def has_title(text: str) -> bool:
    """Tell whether a README begins its page with a heading of the first level."""
    return any(token.tag == "h1" for token in MarkdownIt("commonmark").parse(text))


class _Renderer(RendererHTML):
    """Renders what may be wide in boxes that scroll, by keyboard too."""

    def link_open(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        url = link_of(str(tokens[index].attrGet("href") or ""))
        return "<span>" if url is None else f'<a href="{escape(url)}" rel="nofollow noopener">'

    def link_close(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        opening = next(token for token in reversed(tokens[:index]) if token.type == "link_open")
        return "</span>" if link_of(str(opening.attrGet("href") or "")) is None else "</a>"

    def image(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        return str(escape(tokens[index].content))

    def table_open(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        return f"{_BOX}<table>\n"

    def table_close(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        return "</table></div>\n"

    def th_open(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        return f'<th scope="col"{_alignment(tokens[index])}>'

    def td_open(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        return f"<td{_alignment(tokens[index])}>"

    def fence(self, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        return f'<pre tabindex="0"><code>{escape(tokens[index].content)}</code></pre>\n'

    code_block: Callable[..., str] = fence


def _alignment(cell: Token) -> str:
    """Say by a class how a cell is aligned: markdown-it has a style, which the policy refuses."""
    return ' class="number"' if "right" in str(cell.attrGet("style") or "") else ""
