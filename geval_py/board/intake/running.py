"""Run git as if it were the first time on this machine, watched: for time, for disk, for what it says."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO

from geval_py.board.intake.budget import Budget
from geval_py.board.intake.members import refused
from geval_py.board.values import FailedError, RejectedError

POLL_SECONDS = 0.02
MOST_SAID = 500  # bytes of what git says that are shown
MOST_HEADER = 200  # bytes of the line before an object
PASSED = (  # of the environment: to find programs and certificates, a proxy, the agent with the ssh keys
    "PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SSH_AUTH_SOCK",
    "SYSTEMROOT",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a command of git ended: its status, its output, what it said is wrong."""

    status: int
    output: bytes
    said: str


def clean_environment(folder: str) -> dict[str, str]:
    """Give the environment of git: no settings of anyone's, no questions, no other repository."""
    passed = {name: os.environ[name] for name in PASSED if name in os.environ}
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


def run_git(settings: Sequence[str], words: Sequence[str], budget: Budget, *, folder: str, most: int) -> Outcome:
    """Run a command until its end, or kill it.

    ``folder`` is where it writes; raises RejectedError where that, or the output, has more bytes than are allowed
    (``most`` of output), and FailedError where there is no git and beyond the time.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as said:
        process = _start(_command(settings, words), os.path.dirname(folder), output, said)
        try:
            while process.poll() is None:
                _watch(budget, folder, os.fstat(output.fileno()).st_size, most)
                time.sleep(POLL_SECONDS)
            _watch(budget, folder, os.fstat(output.fileno()).st_size, most)
        finally:
            process.kill()
            process.wait()
        output.seek(0)
        said.seek(0)
        return Outcome(status=process.returncode, output=output.read(most), said=_wrong(said.read(MOST_SAID * 8)))


def _start(words: Sequence[str], folder: str, output: IO[bytes], said: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=said,
            cwd=folder,
            env=clean_environment(folder),
        )
    except FileNotFoundError as error:
        raise FailedError(reason="there is no git on this machine") from error


def _watch(budget: Budget, folder: str, output: int, most: int) -> None:
    budget.check_time()
    if output > most:
        raise RejectedError(reason="its repository has too many files, or too long names")
    if _size_of(folder) > budget.bytes:
        raise RejectedError(reason=f"its repository has more than {budget.bytes} bytes")


def _size_of(folder: str) -> int:
    """Sum the sizes of the files in a folder that another process writes."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size
            except FileNotFoundError:
                continue
    return total


def _wrong(said: bytes) -> str:
    """Give what git said is wrong, on one line."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    told = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines[-1:]
    return "; ".join(told)[:MOST_SAID] or "it says nothing"


class Objects:
    """The objects of a repository, asked for one after the other (``git cat-file --batch``)."""

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def open(self, digest: bytes, name: str) -> Objects:
        """Ask for an object; it is read by :meth:`read` until the next one is asked for."""
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
        """Give the next bytes of the object that was asked for."""
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
