"""``geval sample``: a sample challenge, to try things on."""

from __future__ import annotations

import argparse
import shlex
import shutil
from pathlib import Path

from geval_py.cli import terminal
from geval_py.cli.commands import command, option
from geval_py.errors import UnreadableFileError
from geval_py.reading.rewriting import new_folder
from geval_py.text import named, visible

PACKAGE = Path(__file__).parents[1]
NOT_COPIED = ("gazette.txt",)  # the text that the challenge was cut from


@command(
    "sample",
    "Copy a sample challenge, words missing from an old newspaper, into a new folder.",
    """\
  geval sample gazette                 copy it into the folder gazette, which must not be there yet
  cd gazette; geval -t dev-0           and score its two outputs
""",
    option("folder", metavar="DIR", help="the folder to make"),
    status="Exit status: 0 success, 1 it is there already, 2 it cannot be written, or an error in the command line.",
)
def run_sample(args: argparse.Namespace) -> None:
    """Run the command; raises UsageError, ExistingFileError and UnreadableFileError."""
    origin = source()
    with new_folder(args.folder):
        for path in sorted(origin.rglob("*")):
            copy = Path(args.folder, path.relative_to(origin))
            if path.is_dir():
                copy.mkdir()
            elif path.name not in NOT_COPIED:
                shutil.copyfile(path, copy)
    terminal.say(
        f"The sample challenge is in {named(args.folder)}, with two outputs for its test set dev-0. Now try\n"
        f"  cd {shlex.quote(visible(args.folder))}\n"
        "  geval -t dev-0                                  # their scores\n"
        "  geval -t dev-0 -o bigram --line-by-line --sort  # the worst lines of one\n"
        "  geval compare -t dev-0                          # whether bigram is better\n"
        "  geval check -t dev-0                            # whether all is well formed"
    )


def source() -> Path:
    """Find the sample challenge: in the installed package, or beside it in a clone. Raises UnreadableFileError."""
    installed = PACKAGE / "sample" / "gazette"
    for place in (installed, PACKAGE.parent / "challenges" / "gazette"):
        if place.is_dir():
            return place
    raise UnreadableFileError(path=str(installed), reason="it was not installed with geval-py")
