"""A branch of a git repository as a source: cloned bare, never checked out, and read object by object.

git runs without the settings of the machine or the user, and is watched for time, disk and output.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO
from urllib.parse import unquote, urlsplit

from geval_py.board.intake.identity import HIDDEN, Address, own_name
from geval_py.board.intake.members import Budget, Commit, Readable, checked_name, refused
from geval_py.board.submission import PASSED_VARIABLES, FailedError, RejectedError
from geval_py.text import visible

POLL_SECONDS = 0.02
MOST_SHOWN = 500  # characters of git's errors that are shown
MOST_HEADER = 200  # bytes of the line before an object


@dataclass(frozen=True, slots=True, kw_only=True)
class GitResult:
    """The result of a git command: its exit status, output and error message."""

    status: int
    output: bytes
    error: str


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


def _command(settings: Sequence[str], words: Sequence[str]) -> list[str]:
    return ["git", *(word for setting in settings for word in ("-c", setting)), *words]


def run_git(settings: Sequence[str], words: Sequence[str], budget: Budget, *, folder: str, most: int) -> GitResult:
    """Run a git command to its end, or kill it when it exceeds a limit.

    ``folder`` is where it writes. Raises RejectedError if that folder has more bytes than the budget, or the output
    more than ``most``; FailedError without git, and when the time is over.
    """
    home = os.path.dirname(folder)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                _command(settings, words),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                cwd=home,
                env=clean_environment(home),
            )
        except FileNotFoundError as error:
            raise FailedError(reason="there is no git on this machine") from error
        try:
            while process.poll() is None:
                _watch(budget, folder, os.fstat(output.fileno()).st_size, most)
                time.sleep(POLL_SECONDS)
            _watch(budget, folder, os.fstat(output.fileno()).st_size, most)
        finally:
            process.kill()
            process.wait()
        output.seek(0)
        errors.seek(0)
        lines = [line.strip() for line in errors.read(MOST_SHOWN * 8).decode("utf-8", "replace").splitlines()]
        fatal = [line for line in lines if line.startswith(("fatal:", "error:"))]
        message = "; ".join(fatal or [line for line in lines if line][-1:])[:MOST_SHOWN] or "it says nothing"
        return GitResult(status=process.returncode, output=output.read(most), error=message)


def _watch(budget: Budget, folder: str, output: int, most: int) -> None:
    budget.check_time()
    if output > most:
        raise RejectedError(reason="its repository has too many files, or too long names")
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # git is still at work
                total += os.lstat(os.path.join(path, name)).st_size
    if total > budget.bytes:
        raise RejectedError(reason=f"its repository has more than {budget.bytes} bytes")


class Objects:
    """The objects of a repository, read one after the other by ``git cat-file --batch``."""

    def __init__(self, settings: Sequence[str], repository: str, budget: Budget) -> None:
        self._budget = budget
        folder = os.path.dirname(repository)
        self._process = subprocess.Popen(
            _command(settings, ["--git-dir", repository, "cat-file", "--batch"]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=clean_environment(folder),
        )
        self._left = 0

    def __enter__(self) -> Objects:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def open(self, digest: bytes, name: str) -> Objects:
        """Request an object; :meth:`read` reads it until the next request."""
        requests, answers = self._pipes()
        while self.read(1 << 20):
            pass
        try:
            requests.write(digest + b"\n")
            requests.flush()
            header = answers.readline(MOST_HEADER).split()
        except BrokenPipeError:
            header = []
        if len(header) != 3 or header[1] != b"blob":
            raise refused(name, f"was not sent: it has more than {self._budget.bytes} bytes, or is no file")
        self._left = int(header[2]) + 1  # and a line end
        return self

    def read(self, size: int, /) -> bytes:
        """Return the next bytes of the requested object."""
        _, answers = self._pipes()
        if self._left <= 1:
            answers.read(self._left)
            self._left = 0
            return b""
        data = answers.read(min(size, self._left - 1))
        if not data:
            raise FailedError(reason="git ended before the end of a file")
        self._left -= len(data)
        return data

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("both are pipes")
        return self._process.stdin, self._process.stdout


REPOSITORY = "repository"
UNFETCHED = "the branch cannot be fetched"  # git's own message holds the address, so only the organiser sees it
MOST_LISTING = 32_000_000  # bytes of the names in a tree
MOST_MESSAGE = 65_536  # bytes of a commit
PLAIN = (b"100644", b"100755")
LINK, SUBMODULE = b"120000", b"160000"
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


def _without_login(message: str, address: Address) -> str:
    """Remove the login of an address, percent-encoded or not, from git's error message."""
    parts, shown = urlsplit(address.url), urlsplit(address.shown)
    message = message.replace(address.url, address.shown).replace(parts.netloc, shown.netloc)
    for secret in (parts.password, None if shown.username else parts.username):
        for written in (secret, unquote(secret)) if secret else ():
            message = re.sub(rf"(?<!\w){re.escape(written)}(?!\w)", HIDDEN, message)
    return message


class Branch:
    """A branch, cloned into a folder of a place."""

    strips = False

    def __init__(self, address: Address, place: str, budget: Budget) -> None:
        self.address = f"git+{address.shown}@{address.branch}"
        self.name = own_name(self.address)
        self._git = os.path.join(place, REPOSITORY)
        self._budget = budget
        self._fetch(address)
        self.commit: Commit | None = self._last_commit()

    def _fetch(self, address: Address) -> None:
        settings = (*CONFIGURATION, f"protocol.{address.transport}.allow=always")
        words = ["clone", "--bare", "--depth=1", "--single-branch", "--no-tags", "--template=", "--quiet"]
        words += [f"--filter=blob:limit={self._budget.bytes + 1}", f"--branch={address.branch}", "--no-local"]
        words += ["--", address.url, self._git]
        result = run_git(settings, words, self._budget, folder=self._git, most=MOST_MESSAGE)
        if result.status:
            message = visible(_without_login(result.error, address))
            kind = RejectedError if "branch" in message or "fsck" in message else FailedError
            raise kind(reason=UNFETCHED, aside=f"{visible(address.shown)}: {message}")

    def _last_commit(self) -> Commit:
        words = ["log", "-1", "--format=%H%x00%an%x00%B", "--no-mailmap", "--no-notes", "--no-show-signature"]
        data = self._run([*words, "--no-color", "--encoding=UTF-8", "HEAD"], MOST_MESSAGE)
        revision, author, message = (*data.decode("utf-8", "replace").split("\0", 2), "", "")[:3]
        return Commit(revision=revision, author=author, message=message)

    def _run(self, words: Sequence[str], most: int) -> bytes:
        result = run_git(CONFIGURATION, ["--git-dir", self._git, *words], self._budget, folder=self._git, most=most)
        if result.status:
            raise RejectedError(reason="its repository cannot be read", aside=visible(result.error))
        return result.output

    def walk(self, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Readable]]:
        listing = self._run(["ls-tree", "-rz", "--full-tree", "HEAD"], MOST_LISTING)
        if listing.count(b"\0") > self._budget.listed:
            raise RejectedError(reason=f"its repository holds more than {self._budget.listed} files")
        entries = listing.split(b"\0")[:-1]
        with Objects(CONFIGURATION, self._git, self._budget) as objects:
            for entry in entries:
                about, _, path = entry.partition(b"\t")
                mode, _, digest = about.split(b" ")
                name = checked_name(path.decode("utf-8", "surrogateescape"))
                if wanted(name):
                    yield name, objects.open(_checked(mode, digest, name), name)


def _checked(mode: bytes, digest: bytes, name: str) -> bytes:
    if mode == LINK:
        raise refused(name, "is a link; links are not followed")
    if mode == SUBMODULE:
        raise refused(name, "is a submodule; submodules are not fetched")
    if mode not in PLAIN:
        raise refused(name, f"is not a regular file (mode {mode.decode('ascii', 'replace')})")
    return digest
