"""The scoring kernel, from blocks of lines to losses, in two backends with the same results.

The native one, in C++, is used if it was built; the environment variable GEVAL_PY_BACKEND (native or python) forces
one of them. Call the kernel's functions through this module: ``backends.bounded_losses(…)`` is that of the chosen
backend, looked up when it is called. The backend in Python describes the functions; its modules are in PYTHON.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from geval_py.errors import UsageError
from geval_py.text import visible

if TYPE_CHECKING:
    from geval_py.scoring.kernel.packed_words import array_losses, pack_words
    from geval_py.scoring.kernel.profile import line_profiles
    from geval_py.scoring.kernel.reference import (
        bounded_losses,
        bucket_shares,
        count_lines,
        format_entries,
        score_lines,
    )
    from geval_py.scoring.kernel.rewriting import rewrite_lines
    from geval_py.scoring.kernel.tokens import TokenTable, take_column

__all__ = [  # the functions of a backend
    "TokenTable", "array_losses", "bounded_losses", "bucket_shares", "count_lines", "format_entries",
    "line_profiles", "pack_words", "rewrite_lines", "score_lines",
    "take_column",
]  # fmt: skip
VARIABLE = "GEVAL_PY_BACKEND"
WRAPPED = ("rewrite_lines", "score_lines")  # functions of C++, by native.py
PYTHON = ("reference", "profile", "tokens", "rewriting", "packed_words")  # the last one imports numpy


@cache
def choose_backend() -> Literal["native", "python"]:
    """Return the backend to use; raises UsageError if a forced one is unknown or was not built.

    Only the native one releases the GIL.
    """
    forced = os.environ.get(VARIABLE)
    if forced not in {None, "native", "python"}:
        raise UsageError(f"{VARIABLE} is `{visible(forced or '')}`; it may be native or python")
    if forced == "python":
        return "python"
    try:
        import_module("geval_py.scoring.kernel._native")
    except ModuleNotFoundError as error:  # it was not built
        if forced == "native":
            message = f"{VARIABLE} is native, but the native kernel was not built with this package"
            raise UsageError(message) from error
        return "python"
    except ImportError as error:
        advice = f"{VARIABLE}=python does without it"
        message = f"the native kernel cannot be loaded: {visible(str(error))}\n  {advice}"
        raise UsageError(message) from error
    return "native"


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Return a function of the chosen backend."""
        if name in __all__:
            native = ("native" if name in WRAPPED else "_native",)
            for module in native if choose_backend() == "native" else PYTHON:
                functions = import_module(f"geval_py.scoring.kernel.{module}")
                if hasattr(functions, name):
                    return getattr(functions, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
