"""The manual pages: ``geval``, and one for each command, made from the parsers that ``--help`` shows."""

from __future__ import annotations

import re
from pathlib import Path

from tables import PARSERS, Option, options

from geval_py import __version__

HEADED = re.compile(r"(\w+)\b.*:\n|(Exit status): ")


def write_man_pages(folder: Path) -> list[Path]:
    """Write the pages of section 1 into a folder; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {folder / f"{_page(command)}.1": man_page(command) for command in PARSERS}
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    return list(pages)


def man_page(command: str) -> str:
    """Return the page of a command, in roff."""
    parser = PARSERS[command]()
    description = parser.description or ""
    lines = [
        f'.TH "{_page(command).upper()}" 1 "" "geval-py {__version__}" "geval-py"',
        ".SH NAME",
        f"{_text(_page(command))} \\- {_text(_summary(description))}",
        ".SH SYNOPSIS",
        *_synopsis(parser.format_usage()),
        ".SH DESCRIPTION",
        *(line for paragraph in description.split("\n\n") for line in (".PP", _text(paragraph))),
    ]
    shown = [option for option in options()[command] if not option.hidden]
    for group in dict.fromkeys(option.group for option in shown):
        lines.append(f'.SH "{_text(group).upper()}"')
        for option in shown:
            if option.group == group:
                lines += [".TP", _name(option), _text(option.help)]
    return "\n".join([*lines, *_sections(parser.epilog or ""), ".SH SEE ALSO", *_see_also(command), ""])


def _page(command: str) -> str:
    return command.replace(" ", "-")


def _summary(description: str) -> str:
    """Return the first sentence, as a line of ``whatis`` begins."""
    sentence = re.split(r"[.:](?:\s|$)", " ".join(description.split()), maxsplit=1)[0]
    return sentence[:1].lower() + sentence[1:]


def _escaped(text: str) -> str:
    """Escape what roff would take for its own; a hyphen can then be copied."""
    return text.replace("\\", "\\e").replace("-", "\\-")


def _text(text: str) -> str:
    """Write plain text, no line of which is a request."""
    text = _escaped(" ".join(text.split()))
    return f"\\&{text}" if text[:1] in {".", "'"} else text


def _synopsis(usage: str) -> list[str]:
    """Write each way to call the command on a line, broken where the page ends and not where the terminal does."""
    ways = re.split(r"\n *(?=geval\b)", usage.removeprefix("usage: "))
    return [line for way in ways for line in (_text(way), ".br")]


def _sections(epilog: str) -> list[str]:
    """Write what stands below the options: lists under their headings, as they are, and notes."""
    lines = []
    for text in filter(None, re.split(r"\n\n|\n(?=Exit status:)", epilog.strip())):
        heading = HEADED.match(text)
        if heading is None:
            lines += [".SH NOTES", _text(text)]
        elif heading[2]:
            lines += [".SH EXIT STATUS", _text(text[heading.end() :])]
        else:
            rows = [_escaped(row) for row in text[heading.end() :].splitlines()]
            lines += [f".SH {heading[1].upper()}", ".nf", *(f"\\&{row}" for row in rows), ".fi"]
    return lines


def _name(option: Option) -> str:
    names = ", ".join(rf"\fB{_text(name)}\fR" for name in option.names)
    argument = rf"\fI{_text(option.argument)}\fR" if option.argument else ""
    return f"{names} {argument}".strip()


def _see_also(command: str) -> list[str]:
    """Name the page above, and those one level below."""
    near = [
        name for name in PARSERS if command in (name, name.rpartition(" ")[0]) or name == command.rpartition(" ")[0]
    ]
    return [f".BR {_text(_page(name))} (1)" for name in near if name != command]
