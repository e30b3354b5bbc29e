"""A branch of a git repository as a source: cloned bare, never checked out, and read object by object.

git runs without the settings of the machine or the user, and is watched for time, disk and output. The objects are
read by ``git cat-file``, not by ``git archive``, which lets a submitter's attributes change the bytes of files.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO, Any, cast
from urllib.parse import unquote, urlsplit

from geval_py.board.intake.gonito import parse_message
from geval_py.board.intake.identity import HIDDEN, Address, own_name
from geval_py.board.intake.sources import CHUNK_BYTES, Budget, Read, SubmissionSource, Wanted, checked_name, refused
from geval_py.board.submission import PASSED_VARIABLES, Details, FailedError, RejectedError
from geval_py.text import visible

POLL_SECONDS = 0.02
MAX_SHOWN = 500  # characters of git's errors that are shown
MAX_HEADER = 200  # bytes of the line before an object
MAX_LISTING = 32_000_000  # bytes of the names in a tree
MAX_MESSAGE = 65_536  # bytes of a commit
MAX_AUTHOR = 1000  # characters
REPOSITORY = "repository"
UNFETCHED = "the branch cannot be fetched"  # git's own message holds the address, so only the organiser sees it
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
    "fetch.fsckObjects=true",
    "transfer.unpackLimit=1",  # one pack, whose size the limit on files holds
    "fetch.unpackLimit=1",
    "transfer.bundleURI=false",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
)


def clean_environment(folder: str) -> dict[str, str]:
    """Return the environment of git: no settings of machine or user, no prompts, no other repository."""
    passed = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
    return passed | {
        "HOME": folder,
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "false",
        "SSH_ASKPASS": "false",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_OPTIONAL_LOCKS": "0",
    }


def _start(words: Sequence[str], home: str, **streams: Any) -> subprocess.Popen[bytes]:
    settings = (word for setting in CONFIGURATION for word in ("-c", setting))
    process: subprocess.Popen[bytes] = subprocess.Popen(
        ["git", *settings, *words], cwd=home, env=clean_environment(home), **streams
    )
    return process


def run_git(words: Sequence[str], budget: Budget, *, folder: str, max_bytes: int) -> tuple[int, bytes, str]:
    """Run a git command, and return its exit status, output and error message.

    It is killed when it exceeds a limit. ``folder`` is where it writes. Raises RejectedError if that folder has more
    bytes than the budget, or the output more than ``max_bytes``; FailedError without git, and when the time is over.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            process = _start(words, os.path.dirname(folder), stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
        except FileNotFoundError as error:
            raise FailedError("git is not installed") from error
        try:
            is_running = True
            while is_running:
                is_running = process.poll() is None  # the end too is looked at below
                budget.check_time()
                if os.fstat(output.fileno()).st_size > max_bytes:
                    raise RejectedError("its repository has too many files, or too long names")
                total = 0
                for path, _, names in os.walk(folder):
                    for name in names:
                        with suppress(FileNotFoundError):  # git is still at work
                            total += os.lstat(os.path.join(path, name)).st_size
                if total > budget.bytes:
                    raise RejectedError(f"its repository has more than {budget.bytes} bytes")
                if is_running:
                    time.sleep(POLL_SECONDS)
        finally:
            process.kill()
            process.wait()
        output.seek(0)
        errors.seek(0)
        lines = [line.strip() for line in errors.read(MAX_SHOWN * 8).decode("utf-8", "replace").splitlines()]
        fatal = [line for line in lines if line.startswith(("fatal:", "error:"))]
        message = "; ".join(fatal or [line for line in lines if line][-1:])[:MAX_SHOWN] or "it says nothing"
        return process.returncode, output.read(max_bytes), message


def _without_login(message: str, address: Address) -> str:
    """Remove the login of an address, percent-encoded or not, from git's error message."""
    parts, shown = urlsplit(address.url), urlsplit(address.shown)
    message = message.replace(address.url, address.shown).replace(parts.netloc, shown.netloc)
    for secret in (parts.password, None if shown.username else parts.username):
        for written in (secret, unquote(secret)) if secret else ():
            message = re.sub(rf"(?<!\w){re.escape(written)}(?!\w)", HIDDEN, message)
    return message


def branch_source(address: Address, place: str, budget: Budget) -> SubmissionSource:
    """Clone a branch into a folder of a place; raises RejectedError, FailedError."""
    repository = os.path.join(place, REPOSITORY)
    words = ["-c", f"protocol.{address.transport}.allow=always", "clone", "--bare", "--depth=1", "--single-branch"]
    words += ["--no-tags", "--template=", "--quiet", f"--filter=blob:limit={budget.bytes + 1}", "--no-local"]
    words += [f"--branch={address.branch}", "--", address.url, repository]
    status, _, error = run_git(words, budget, folder=repository, max_bytes=MAX_MESSAGE)
    if status:
        message = visible(_without_login(error, address))
        kind = RejectedError if "branch" in message or "fsck" in message else FailedError
        raise kind(UNFETCHED, aside=f"{visible(address.shown)}: {message}")

    def read_repository(words: Sequence[str], max_bytes: int) -> bytes:
        words = ["--git-dir", repository, *words]
        status, output, error = run_git(words, budget, folder=repository, max_bytes=max_bytes)
        if status:
            raise RejectedError("its repository cannot be read", aside=visible(error))
        return output

    words = ["log", "-1", "--format=%H%x00%an%x00%B", "--no-mailmap", "--no-notes", "--no-show-signature"]
    data = read_repository([*words, "--no-color", "--encoding=UTF-8", "HEAD"], MAX_MESSAGE)
    revision, author, message = (*data.decode("utf-8", "replace").split("\0", 2), "", "")[:3]
    description, tags = parse_message(message)

    def members(wanted: Wanted) -> Iterator[tuple[str, Read]]:
        listing = read_repository(["ls-tree", "-rz", "--full-tree", "HEAD"], MAX_LISTING)
        if listing.count(b"\0") > budget.listed:
            raise RejectedError(f"its repository has more than {budget.listed} files")
        digests: dict[str, bytes] = {}
        for entry in listing.split(b"\0")[:-1]:
            about, _, path = entry.partition(b"\t")
            mode, _, digest = about.split(b" ")
            name = checked_name(path.decode("utf-8", "surrogateescape"))
            if not wanted(name):
                continue
            if mode not in PLAIN:
                other = f"is not a regular file (mode {mode.decode('ascii', 'replace')})"
                raise refused(name, NOT_FILES.get(mode, other))
            digests[name] = digest
        yield from _blobs(digests, repository, budget)

    shown = f"git+{address.shown}@{address.branch}"
    details = Details(description=description, author=author[:MAX_AUTHOR], revision=revision, tags=tags)
    return SubmissionSource(name=own_name(shown), address=shown, members=members, details=details)


def _blobs(digests: dict[str, bytes], repository: str, budget: Budget) -> Iterator[tuple[str, Read]]:
    """Yield the files with some names and digests of objects, one after the other."""
    with tempfile.TemporaryFile() as requests:
        requests.write(b"".join(digest + b"\n" for digest in digests.values()))
        requests.seek(0)
        words = ["--git-dir", repository, "cat-file", "--batch"]
        home = os.path.dirname(repository)
        process = _start(words, home, stdin=requests, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        stream = cast(IO[bytes], process.stdout)
        for name in digests:
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
    finally:
        process.kill()
        process.communicate()
