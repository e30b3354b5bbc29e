"""A branch of a git repository as a source: cloned bare, never checked out, and read object by object.

git runs without the settings of the machine or the user, under the limits of the child. The objects are read by
``git cat-file``, not by ``git archive``, which lets a submitter's attributes change the bytes of files.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

from geval_py.board.intake.archives import GIT
from geval_py.board.intake.identity import Address, own_name
from geval_py.board.intake.sources import (
    MAX_NAME_LENGTH,
    MAX_TEXT,
    Budget,
    Details,
    Read,
    SubmissionSource,
    Wanted,
    checked_name,
    refused,
)
from geval_py.errors import FailedError, RejectedError
from geval_py.text import visible

MAX_SHOWN = 500  # characters of git's errors that are shown
MAX_ENTRY = 4 * MAX_NAME_LENGTH + 100  # bytes of the entry of a file whose name is not too long
REPOSITORY = "repository"
PLAIN = ("100644", "100755")
CONFIGURATION = (  # of every git command
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "credential.helper=",
    "protocol.allow=never",
    "http.followRedirects=false",
    "transfer.fsckObjects=true",
    "transfer.unpackLimit=1",  # one pack, whose size the limit on files holds
    "transfer.bundleURI=false",
    "fetch.recurseSubmodules=false",
    "maintenance.auto=false",
)
ENVIRONMENT = {  # beside that of the child: no settings of machine or user, and no prompts
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
}


def branch_source(address: Address, place: str, budget: Budget) -> SubmissionSource:
    """Clone a branch into a folder of a place; raises RejectedError, FailedError."""
    repository = os.path.join(place, REPOSITORY)
    words = ["-c", f"protocol.{address.transport}.allow=always", "clone", "--bare", "--depth=1", "--no-tags"]
    words += ["--template=", "--quiet", "--no-local", f"--branch={address.branch}", "--", address.url, repository]
    try:
        with _started(place, *words, stderr=subprocess.PIPE) as clone:
            errors = clone.communicate()[1].decode("utf-8", "replace")
    except FileNotFoundError as error:
        raise FailedError("git is not installed") from error
    if clone.returncode:
        reasons = "; ".join(line for line in errors.splitlines() if line.startswith(("fatal:", "error:")))
        if f"{GIT}{address.url}@{address.branch}" != address.shown:
            reasons = "git's reason is not shown, because the address has a login"
        raise FailedError("the branch cannot be fetched", aside=visible(f"{address.shown}: {reasons[:MAX_SHOWN]}"))

    @contextmanager
    def reading(*words: str) -> Iterator[IO[bytes]]:
        """Yield what a command writes about the repository, which need not be read to the end."""
        with _started(place, "--git-dir", repository, *words, stderr=subprocess.DEVNULL) as process:
            yield cast(IO[bytes], process.stdout)
        if process.returncode not in (0, -signal.SIGPIPE):
            raise FailedError("git cannot read the branch")

    def members(wanted: Wanted) -> Iterator[tuple[str, Read]]:
        with reading("ls-tree", "-rz", "--full-tree", "HEAD") as listing:
            entries = listing.read((budget.listed + 1) * MAX_ENTRY).decode("utf-8", "surrogateescape").split("\0")
        if len(entries) > budget.listed + 1:
            raise RejectedError(f"its repository has more than {budget.listed} files")
        for entry in entries[:-1]:
            about, _, path = entry.partition("\t")
            mode, _, digest = about.split(" ")
            name = checked_name(path)
            if wanted(name):
                if mode not in PLAIN:
                    raise refused(name, "is a link or a submodule; neither is followed")
                with reading("cat-file", "blob", digest) as blob:
                    yield name, blob.read

    with reading("log", "-1", "--format=%H%n%an%n%s", "--no-mailmap", "--encoding=UTF-8", "HEAD") as log:
        revision, author, description = log.read().decode("utf-8", "replace").split("\n")[:3]
    details = Details(description=description[:MAX_TEXT], author=author[:MAX_TEXT], revision=revision)
    return SubmissionSource(name=own_name(address.shown), address=address.shown, members=members, details=details)


def _started(place: str, *words: str, **streams: Any) -> subprocess.Popen[bytes]:
    """Start a git command in a folder; its standard output is a pipe."""
    settings = [word for setting in CONFIGURATION for word in ("-c", setting)]
    streams |= {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
    return subprocess.Popen(["git", *settings, *words], cwd=place, env=os.environ | ENVIRONMENT, **streams)
