"""Text in messages: escaped, measured, counted, shortened, with a caret below; names near others, in natural order.

At the end: colours, and texts that are cut or broken to the width of a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

Alignment: TypeAlias = Literal["left", "centre", "right"]

# White space by Haskell's Data.Char.isSpace, for a regular expression: without U+0085, U+001C to 1F, U+2028 and 2029.
SPACES = r"\t-\r \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_SPACES = "\t\n\v\f\r \u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))  # the same


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text: ``words("a b")`` is ``("a", "b")``."""
    return tuple(text.split())


def visible(text: str) -> str:
    r"""Escape every character that a terminal would not print: control characters, marks of direction and the like.

    In an error message, text from strangers must not move the cursor, change a colour or reverse the line.

    >>> visible("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def strip_spaces(text: str) -> str:
    r"""Strip white space at both ends like Haskell's ``Data.Text.strip``, which strips less than ``str.strip``.

    >>> strip_spaces(" a\u00a0"), strip_spaces("a\x1c")
    ('a', 'a\x1c')
    """
    return text.strip(_SPACES)


def split_words(text: str) -> list[str]:
    r"""Split at white space like Haskell's ``Data.Text.words``: at space, TAB to CR, U+00A0 and the category Zs.

    >>> split_words(" a\tb\u3000c\u2028d ")
    ['a', 'b', 'c\u2028d']
    """
    return re.findall(f"[^{SPACES}]+", text)


# Characters that take one column: ASCII, Latin letters, and the dashes, quotes and dots of Western texts.
_NARROW = re.compile(r"[ -~\u00a1-\u02ff\u2010-\u2027]*")


def display_width(text: str) -> int:
    """Count the terminal columns of a text: two for wide characters, none for combining ones.

    >>> display_width("水e\N{COMBINING ACUTE ACCENT}")
    3
    """
    return len(text) if _NARROW.fullmatch(text) else sum(width for _, width in characters(text))


def characters(text: str) -> Iterator[tuple[str, int]]:
    """Yield the characters of a text, each with the marks that combine with it, and how many columns it takes."""
    if _NARROW.fullmatch(text):
        yield from ((character, 1) for character in text)
        return
    from wcwidth import iter_graphemes, width  # here: its tables take longer to load than Python takes to start

    yield from ((character, width(character)) for character in iter_graphemes(text))


def nearest(word: str, words: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known word most similar to a misspelt one, None if no word is; ``cutoff`` is from 0, to 1 for equal.

    Case does not count.

    >>> nearest("LOGLOS", ["Perplexity", "LogLoss"])
    'LogLoss'
    """
    from difflib import get_close_matches

    known = {name.casefold(): name for name in reversed(list(words))}  # of equal ones, the first counts
    return next((known[close] for close in get_close_matches(word.casefold(), known, n=1, cutoff=cutoff)), None)


def suggestion(word: str, words: Iterable[str], written: str = "{}") -> str:
    """Return the beginning of a hint for a misspelt word, "" if no known word is similar.

    >>> suggestion("perplexity", ["Perplexity", "LogLoss"])
    'did you mean Perplexity? '
    """
    close = nearest(word, words)
    return f"did you mean {written.format(visible(close))}? " if close else ""


def shorten(text: str, limit: int = 40) -> str:
    """Cut a long token in the middle, for a message."""
    return text if len(text) <= limit else f"{text[: limit // 2]}…{text[-(limit // 2 - 1) :]}"


def some_of(names: Iterable[str], most: int = 8) -> str:
    r"""Name a few of many things in a message, escaped, and count the rest.

    >>> some_of(["a", "b\t"]), some_of("abcdefghijk", 3)
    ('a, b\\t', 'a, b, c and 8 more')
    """
    escaped = [visible(name) for name in names]
    rest = len(escaped) - most
    return ", ".join(escaped[:most]) + (f" and {rest} more" if rest > 0 else "")


def shown(value: object) -> str:
    """Return the ``repr()`` of any value, shortened and escaped.

    >>> print(shown(1.5), shown("out.tsv"))
    1.5 'out.tsv'
    """
    return visible(shorten(repr(value)))


def excerpt(text: str, column: int, width: int = 76) -> str:
    """Return two lines: the part of a line around a column (from 1), and a caret below that column."""
    start = max(0, column - 1 - width // 2)
    end = start + width
    head, tail = ("…" if start else ""), ("…" if end < len(text) else "")
    before = head + visible(text[start : column - 1])
    return f"{before}{visible(text[column - 1 : end])}{tail}\n{' ' * display_width(before)}^"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Write a number of things; the board's pages give the plural of "entry".

    >>> counted(1, "line"), counted(2322, "line"), counted(2, "entry", "entries")
    ('1 line', '2,322 lines', '2 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def named(path: str) -> str:
    """Quote a file's name for a sentence; an address loses its credentials.

    >>> named("out.tsv"), named("-"), named("sftp://me:secret@host/out.tsv")
    ('`out.tsv`', 'standard input', '`sftp://host/out.tsv`')
    """
    return "standard input" if path == "-" else f"`{visible(without_credentials(path))}`"


def without_credentials(text: str) -> str:
    """Remove user names and passwords from the addresses in a text.

    >>> without_credentials("cannot connect to sftp://me:secret@host:22/runs")
    'cannot connect to sftp://host:22/runs'
    """
    return re.sub(r"(://)[^/\s]*@", r"\1", text) if "://" in text else text


def natural_order(name: str) -> tuple[list[str | float], str]:
    """Return a key that sorts numbers in names by size.

    >>> sorted(["out-10", "out-2", "lr=0.1", "lr=0.05", "lr=1e-4"], key=natural_order)
    ['lr=1e-4', 'lr=0.05', 'lr=0.1', 'out-2', 'out-10']
    """
    parts = re.split(r"([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)", name)  # every second part is a number
    return [float(part) if place % 2 else part for place, part in enumerate(parts)], name


# Terminals. The colours are those of ECMA-48.
BOLD_RED, RED, YELLOW, DIM = "\x1b[1;31m", "\x1b[31m", "\x1b[33m", "\x1b[2m"
PLAIN = "\x1b[0m"  # ends each of them


# Texts on a terminal, which may contain styles: cut, or broken into lines

INDENT = "  "  # of the lines that continue a text
BREAK = r" (?!%|[^ ]*\])"  # a space, but not before a percent sign or the upper end of an interval
_STYLE = "\x1b\\[[0-9;]*m"  # a colour


def styled_width(text: str) -> int:
    """Return how many columns a text takes without its styles."""
    return display_width(re.sub(_STYLE, "", text) if "\x1b" in text else text)


def _parts(text: str) -> Iterator[tuple[str, int]]:
    """Yield styles and characters, and how many columns they take."""
    for part in re.split(f"({_STYLE})", text) if "\x1b" in text else [text]:
        yield from [(part, 0)] if part.startswith("\x1b") else characters(part)


def cut(text: str, width: int, *, keep_end: bool = False) -> str:
    r"""Shorten a text to ``width`` columns: to its beginning, or its end; no style is lost.

    >>> cut("prayers", 7), cut("prayers", 6), cut("prayers", 6, keep_end=True), cut("水水水", 4)
    ('prayers', 'praye…', '…ayers', '水…')
    """
    if styled_width(text) <= width:
        return text
    parts = list(_parts(text))[:: -1 if keep_end else 1]
    kept, left = 0, width - 1
    while parts[kept][1] <= left:
        left -= parts[kept][1]
        kept += 1
    styles = [part for part, _ in parts[kept:] if part.startswith("\x1b")]
    shown = [*(part for part, _ in parts[:kept]), "…", *styles]
    return "".join(shown[:: -1 if keep_end else 1])


def picture(text: str, column: int, width: int) -> str:
    """Return two lines of ``width`` columns: the part of a line around a column (from 1), and a caret below it.

    >>> print(picture("abcdefghij", 6, 6))
    …efgh…
      ^
    """
    near = 8 * width  # characters: the line may have millions, and some of them take no column
    place = column - 1
    before, after = visible(text[max(0, place - near) : place]), visible(text[place : place + near])
    left = min(styled_width(before), max((width - 1) // 2, width - styled_width(after)), width - 1)
    before = cut(before, left, keep_end=True) if left else ""
    return f"{before}{cut(after, width - styled_width(before))}\n{' ' * styled_width(before)}^"


def fitted(lines: Iterable[str], width: int | None) -> Iterator[str]:
    """Yield lines with their ends, broken between words where a terminal's ``width`` is too narrow for them."""
    for line in lines:
        yield from (f"{part}\n" for part in ([line] if width is None else wrapped(line, width)))


def wrapped(line: str, width: int, *, is_text: bool = True) -> Iterator[str]:
    """Break a line between words. A text is also broken in words that are too long, and the rest is indented.

    Such a word is broken behind a comma or a slash, if it has one.

    >>> list(wrapped("won: lines with a lower loss", 20)), list(wrapped("549.9 [512, 598]", 8, is_text=False))
    (['won: lines with a', '  lower loss'], ['549.9', '[512, 598]'])
    """
    if styled_width(line) <= width:
        yield line
        return
    written = line.lstrip(" ")
    current = " " * min(len(line) - len(written), width // 2)
    indent = current + INDENT * is_text
    for word in re.split(BREAK, written):
        longer = f"{current} {word}" if current.strip(" ") else current + word
        if styled_width(longer) <= width:
            current = longer
            continue
        if current.strip(" "):
            yield current.rstrip(" ")
            current = indent
        taken = len(current)
        for part, space in _parts(word):
            if is_text and taken + space > width and current.strip(" "):
                end = max(map(current.rfind, ",/")) + 1 or len(current)  # parameters and folders are kept whole
                yield current[:end]
                current = indent + current[end:]
                taken = styled_width(current)
            current, taken = current + part, taken + space
    yield current
