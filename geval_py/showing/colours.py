"""Colours: where they are wanted, and the escape codes (ECMA-48) of those that there are."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

BOLD_RED, RED, YELLOW, DIM = "\x1b[1;31m", "\x1b[31m", "\x1b[33m", "\x1b[2m"
PLAIN = "\x1b[0m"  # ends each of them


def colours_are_unwanted() -> bool:
    """Tell whether ``NO_COLOR`` is set, which nothing overrides (https://no-color.org)."""
    return bool(os.environ.get("NO_COLOR"))


def shows_colours(stream: TextIO) -> bool:
    """Tell whether text for a stream has colours: where it is a terminal that can show them, or they are forced.

    ``NO_COLOR``, if it is not empty, forbids them everywhere; ``FORCE_COLOR``, if it is not empty nor ``0``, puts
    them into files, pipes and ``TERM=dumb`` too.
    """
    if colours_are_unwanted():
        return False
    return os.environ.get("FORCE_COLOR", "") not in ("", "0") or is_able_terminal(stream)


def is_able_terminal(stream: TextIO) -> bool:
    """Tell whether a stream is a terminal that can do more than print: not ``TERM=dumb``."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"
