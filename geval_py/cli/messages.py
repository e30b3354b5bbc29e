"""What goes to standard error."""

from __future__ import annotations

import sys

from geval_py.reading.options import said_option
from geval_py.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from geval_py.errors import GevalError


def show_error(error: GevalError) -> None:
    """Say what is wrong, and which options mend it.

    Errors escape what they show; this is a second wall, against what one may have missed.
    """
    complain("\n".join(map(visible, error.said(said_option).split("\n"))))


def complain(message: str) -> None:
    """Say what is wrong, in text that is safe to show."""
    print(f"geval: {message}", file=sys.stderr)


def note(message: str) -> None:
    """Say what a user should know beside the result."""
    print(f"geval: note: {message}", file=sys.stderr)
