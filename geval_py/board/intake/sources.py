"""What a submission comes as is told from how it is named: git+URL@BRANCH, an archive by its ending, a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from geval_py.board.intake.archives import ARCHIVES, TARS, is_archive
from geval_py.board.intake.budget import Budget
from geval_py.board.intake.doors import GIT, shown_address
from geval_py.board.intake.members import Source
from geval_py.errors import MissingFileError, UsageError
from geval_py.text import visible

# An address without git+: it may hold a password, which stands between the first colon and the last @. The path of a
# file may hold these too, but behind a slash.
_ADDRESS = re.compile(r".*://|[^/]*:.*@", re.DOTALL)


def check_source(source: str, transports: Sequence[str]) -> None:
    """Raise MissingFileError for what is not there, and UsageError for what is none, before it is opened."""
    if source.startswith(GIT):
        from geval_py.board.intake.git import address_of

        address_of(source, transports)
    elif _ADDRESS.match(source) and not os.path.exists(source):
        raise UsageError(
            message=f"`{visible(shown_address(source))}` is no submission: write git+URL@BRANCH for a branch"
        )
    elif not os.path.exists(source):
        raise MissingFileError(what="No submission", path=source)
    elif not os.path.isdir(source) and not (is_archive(source) and os.path.isfile(source)):
        kinds = ", ".join(ARCHIVES)
        message = f"`{visible(source)}` is no submission: it is a folder, an archive ({kinds}) or git+URL@BRANCH"
        raise UsageError(message=message)


@contextmanager
def open_source(source: str, place: str, budget: Budget, transports: Sequence[str]) -> Iterator[Source]:
    """Open a source; of git, its branch is fetched into the place."""
    if source.startswith(GIT):
        from geval_py.board.intake.git import Branch, address_of

        yield Branch(address_of(source, transports), place, budget)
    elif os.path.isdir(source):
        from geval_py.board.intake.folders import Folder

        yield Folder(source)
    elif source.lower().endswith(TARS):
        from geval_py.board.intake.tars import Tar

        yield Tar(source, budget)
    else:
        from geval_py.board.intake.zips import Zip

        with Zip(source, budget) as opened:
            yield opened
