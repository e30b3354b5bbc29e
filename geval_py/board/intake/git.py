"""A branch of a git repository as a source: cloned bare, never checked out, and read object by object.

git runs without the settings of the machine or the user, under the limits of the child. The objects are read by
``git cat-file``, not by ``git archive``, which lets a submitter's attributes change the bytes of files.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import IO, Any, cast
from urllib.parse import unquote, urlsplit

from geval_py.board.intake.identity import HIDDEN, Address, own_name
from geval_py.board.intake.sources import CHUNK_BYTES, Budget, Read, SubmissionSource, Wanted, checked_name, refused
from geval_py.board.submission import (
    MAX_NAME,
    MAX_TAGS,
    MAX_TEXT,
    PASSED_VARIABLES,
    Details,
    FailedError,
    RejectedError,
)
from geval_py.text import visible

MAX_SHOWN = 500  # characters of git's errors that are shown
MAX_HEADER = 200  # bytes of the line before an object
MAX_LISTING = 32_000_000  # bytes of the names in a tree, and of a commit
MAX_AUTHOR = 1000  # characters
REPOSITORY = "repository"
UNFETCHED = "the branch cannot be fetched"  # git's own message holds the address, so only the organiser sees it
TAGS_LINE = re.compile(r"(?:tags|labels|Tags|Labels):[ \t]*(.*)")
PLAIN = (b"100644", b"100755")
NOT_FILES = {
    b"120000": "is a link; links are not followed",
    b"160000": "is a submodule; submodules are not fetched",
}
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


def environment(home: str) -> dict[str, str]:
    """Return the environment of git: no settings of machine or user, no prompts, no other repository."""
    passed = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
    return passed | {
        "HOME": home,
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "false",
        "SSH_ASKPASS": "false",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
    }


def branch_source(address: Address, place: str, budget: Budget) -> SubmissionSource:
    """Clone a branch into a folder of a place; raises RejectedError, FailedError."""
    settings = [word for setting in CONFIGURATION for word in ("-c", setting)]
    repository = os.path.join(place, REPOSITORY)

    def start(*words: str, **streams: Any) -> subprocess.Popen[bytes]:
        """Start a git command that reads the repository."""
        command = ["git", *settings, "--git-dir", repository, *words]
        streams |= {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, cwd=place, env=environment(place), **streams)

    def output(*words: str) -> bytes:
        with start(*words, stdin=subprocess.DEVNULL) as process:
            data = cast(IO[bytes], process.stdout).read(MAX_LISTING + 1)
        if process.returncode or len(data) > MAX_LISTING:
            raise RejectedError(f"its repository cannot be read, or its names have more than {MAX_LISTING} bytes")
        return data

    words = ["-c", f"protocol.{address.transport}.allow=always", "clone", "--bare", "--depth=1", "--no-tags"]
    words += ["--template=", "--quiet", f"--filter=blob:limit={budget.bytes + 1}", "--no-local"]
    words += [f"--branch={address.branch}", "--", address.url, repository]
    try:
        clone = subprocess.run(
            ["git", *settings, *words],
            cwd=place,
            env=environment(place),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=budget.ends - time.monotonic(),
        )
    except FileNotFoundError as error:
        raise FailedError("git is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise FailedError("it exceeded the time limit") from error
    if clone.returncode:
        lines = clone.stderr.decode("utf-8", "replace").splitlines()
        errors = "; ".join(line for line in lines if line.startswith(("fatal:", "error:")))
        message = visible(_without_login(errors[:MAX_SHOWN], address))
        raise FailedError(UNFETCHED, aside=f"{visible(address.shown)}: {message}")

    words = ["log", "-1", "--format=%H%x00%an%x00%B", "--no-mailmap", "--no-notes", "--no-show-signature"]
    data = output(*words, "--no-color", "--encoding=UTF-8", "HEAD")
    revision, author, message = data.decode("utf-8", "replace").split("\0", 2)
    description, tags = parse_message(message)

    def members(wanted: Wanted) -> Iterator[tuple[str, Read]]:
        entries = output("ls-tree", "-rz", "--full-tree", "HEAD").split(b"\0")[:-1]
        if len(entries) > budget.listed:
            raise RejectedError(f"its repository has more than {budget.listed} files")
        digests: dict[str, bytes] = {}
        for entry in entries:
            about, _, path = entry.partition(b"\t")
            mode, _, digest = about.split(b" ")
            name = checked_name(path.decode("utf-8", "surrogateescape"))
            if not wanted(name):
                continue
            if mode not in PLAIN:
                other = f"is not a regular file (mode {mode.decode('ascii', 'replace')})"
                raise refused(name, NOT_FILES.get(mode, other))
            digests[name] = digest
        with tempfile.TemporaryFile() as requests:
            requests.write(b"".join(digest + b"\n" for digest in digests.values()))
            requests.seek(0)
            with start("cat-file", "--batch", stdin=requests) as process:
                yield from _blobs(digests, cast(IO[bytes], process.stdout), budget)

    shown = f"git+{address.shown}@{address.branch}"
    details = Details(description=description, author=author[:MAX_AUTHOR], revision=revision, tags=tags)
    return SubmissionSource(name=own_name(shown), address=shown, members=members, details=details)


def _blobs(names: Iterable[str], stream: IO[bytes], budget: Budget) -> Iterator[tuple[str, Read]]:
    """Yield files with some names, one after the other, from what ``git cat-file --batch`` writes."""
    for name in names:
        header = stream.readline(MAX_HEADER).split()
        if len(header) != 3 or header[1] != b"blob":
            raise refused(name, f"was not sent: it has more than {budget.bytes} bytes, or is not a file")
        left = int(header[2])

        def read(size: int) -> bytes:
            nonlocal left
            data = stream.read(min(size, left))
            left -= len(data)
            if left and not data:
                raise FailedError("git ended before the end of a file")
            return data

        yield name, read
        while read(CHUNK_BYTES):
            pass
        stream.read(1)  # a line end


def parse_message(message: str) -> tuple[str, tuple[str, ...]]:
    r"""Read the first line of a commit's message, and the tags of a line ``tags: one, another`` below it.

    >>> parse_message("A bigram model\n\ntags: n-gram, baseline\n")
    ('A bigram model', ('n-gram', 'baseline'))
    """
    lines = [line.strip("\r") for line in message.split("\n")]
    start = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
    description = "".join(lines[start : start + 1]).strip()[:MAX_TEXT]
    tags = next((match[1] for line in lines[start + 1 :] if (match := TAGS_LINE.match(line))), "")
    return description, tuple(tag.strip()[:MAX_NAME] for tag in tags.split(",", MAX_TAGS + 1) if tag.strip())


def _without_login(message: str, address: Address) -> str:
    """Remove the login of an address, percent-encoded or not, from git's error message."""
    parts, shown = urlsplit(address.url), urlsplit(address.shown)
    message = message.replace(address.url, address.shown).replace(parts.netloc, shown.netloc)
    for secret in (parts.password, None if shown.username else parts.username):
        for written in (secret, unquote(secret)) if secret else ():
            message = re.sub(rf"(?<!\w){re.escape(written)}(?!\w)", HIDDEN, message)
    return message
