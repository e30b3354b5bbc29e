r"""The examples in the documentation: find them, run them, and write what they print into their pages.

    example = "$ " command *( line of what it prints )   in a block marked console; "\" at a line's end continues it
            | ">>> " code *( "... " code ) *( line )     in a block marked pycon

A page's examples run in order, as one session: in a copy of the challenges, so that they may write files. The pages
of the project begin in the copy's root, where the folder ``challenges`` is, and a challenge's page in its folder;
``cd`` changes that for the commands behind it. All Python of a page shares its names, and runs in the first folder.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple
from unittest.mock import patch

from geval_py.version import __version__, build_version

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("challenges/*/README.md")),
)
CHALLENGES = "challenges"
BIN = Path(sys.executable).parent
WIDTH = 80  # columns of the terminal for which pandas lays tables out

_BLOCK = re.compile(r"^```(console|pycon)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_EXAMPLE = {
    "console": re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE),
    "pycon": re.compile(r"^>>> (.*(?:\n\.\.\. ?.*)*)\n((?:(?!>>> ).*\n)*)", re.MULTILINE),
}


class Example(NamedTuple):
    """A command or a piece of Python, and what its page says that it prints; ``start`` is where that begins."""

    language: Literal["console", "pycon"]
    code: str
    shown: str
    start: int


def examples_of(text: str) -> Iterator[Example]:
    """Yield the examples of a page, in order."""
    for block in _BLOCK.finditer(text):
        language: Literal["console", "pycon"] = "console" if block[1] == "console" else "pycon"
        for match in _EXAMPLE[language].finditer(text, block.start(2), block.end(2)):
            code = match[1] if language == "console" else re.sub(r"(?m)^\.\.\. ?", "", match[1])
            yield Example(language, code, match[2], match.start(2))


def run_page(
    page: Path, folder: Path, start_session: Callable[[Path], Session] | None = None
) -> list[tuple[Example, str]]:
    """Run a page's examples, with a copy of the challenges in an empty folder; return what each prints."""
    shutil.copytree(ROOT / CHALLENGES, folder / CHALLENGES)
    place = page.parent.relative_to(ROOT)
    first = folder / place if CHALLENGES in place.parts else folder
    session = (start_session or Session)(first)
    return [(example, session.run(example)) for example in examples_of(page.read_text(encoding="utf-8"))]


def rewritten(text: str, runs: list[tuple[Example, str]]) -> str:
    """Return a page's text with the new output of its examples."""
    for example, printed in reversed(runs):
        text = text[: example.start] + printed + text[example.start + len(example.shown) :]
    return text


def without_commit(text: str) -> str:
    """Leave out the commit of a build, which is another one for each reader."""
    return text.replace(build_version(), __version__)


class Session:
    """A shell and an interpreter in a folder; ``commands`` is the folder with the command ``geval``."""

    def __init__(self, folder: Path, commands: Path = BIN) -> None:
        self._first = self.folder = folder
        self._commands = commands
        self._names: dict[str, Any] = {}

    def run(self, example: Example) -> str:
        """Run an example; return all that it prints, as a terminal shows it."""
        if example.language == "pycon":
            return without_commit(self._run_python(example.code))
        if example.code.startswith("cd "):
            self.folder /= example.code.removeprefix("cd ")
            return ""
        return without_commit(self.run_command(example.code))

    def run_command(self, command: str) -> str:
        """Run a command in a shell; return all that it prints."""
        run = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env={
                **os.environ,
                "PATH": os.pathsep.join([str(self._commands), str(BIN), os.environ["PATH"]]),
                "PYTHONUNBUFFERED": "1",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            check=False,
        )
        return run.stdout

    def _run_python(self, code: str) -> str:
        printed = io.StringIO()
        environment = patch.dict(os.environ, {"COLUMNS": str(WIDTH)})
        with contextlib.redirect_stdout(printed), contextlib.chdir(self._first), environment:
            try:
                exec(compile(code + "\n", "<example>", "single"), self._names)
            except Exception as error:
                printed.write("Traceback (most recent call last):\n  ...\n")
                printed.writelines(traceback.format_exception_only(error))
        return printed.getvalue()
