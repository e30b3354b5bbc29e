"""A branch of a git repository as a source: fetched bare, never checked out, and read object by object.

No hook, link, submodule or filter of the repository is ever run: there is no working tree. The transports are those
that board.yaml allows while the branch is fetched, and none from then on: a file that the fetch left out, since it is
larger than is allowed, would be fetched else once it is asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from geval_py.board.intake.budget import Budget
from geval_py.board.intake.doors import HIDDEN, SCHEME, address_in, own_name, shown_address, without_password
from geval_py.board.intake.members import MOST_NAMES, Commit, Readable, checked_name, refused
from geval_py.board.intake.running import Objects, run_git
from geval_py.board.values import FailedError, RejectedError
from geval_py.errors import UsageError
from geval_py.text import visible

REPOSITORY = "repository"
UNFETCHED = "the branch cannot be fetched"  # git's own words, with its address, are not for everyone
MOST_LISTING = 32_000_000  # bytes of the names in a tree
MOST_MESSAGE = 65_536  # bytes of a commit
PLAIN = (b"100644", b"100755")
LINK, SUBMODULE = b"120000", b"160000"
_BRANCH = re.compile(r"(?!-|/|.*(?:\.\.|//|@\{|/\.|\.lock(?:/|$)|[./]$))[^\0-\x20\x7f~^:?*\[\\]+")
CONFIGURATION = (  # of every command; that of the machine and of the user is not read
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a branch is; ``shown`` is the URL without a password."""

    url: str
    branch: str
    transport: str
    shown: str


def address_of(source: str, transports: Sequence[str]) -> Address:
    """Read git+URL@BRANCH; raises UsageError for what is none, and for a transport that is not allowed."""
    url, branch = address_in(source)
    form = f"`{visible(shown_address(source))}` is no address of a branch: write git+URL@BRANCH"
    try:
        parts = urlsplit(url)
        _ = parts.port  # which is no number where a password has a / in it
    except ValueError:
        raise UsageError(message=form) from None
    is_whole = SCHEME.match(url) and parts.path.strip("/") and url.isprintable()
    if branch is None or not is_whole:
        raise UsageError(message=f"{form}, such as git+https://example.org/anna/gap.git@main")
    if HIDDEN in without_password(url):  # and git takes the first @ for the end of a login
        raise UsageError(message=f"{form}, and in a login %40 for @, %2F for /")
    if not _BRANCH.fullmatch(branch):
        raise UsageError(message=f"`{visible(branch)}` is no name of a branch")
    if parts.scheme not in transports:
        allowed = ", ".join(transports) or "none"
        message = f"board.yaml does not allow git to fetch by {visible(parts.scheme)}; `transports` are {allowed}"
        raise UsageError(message=message)
    if parts.netloc.startswith("-"):
        raise UsageError(message=form)
    return Address(url=url, branch=branch, transport=parts.scheme, shown=without_password(url))


def _without_login(said: str, address: Address) -> str:
    """Leave the login of an address out of what git says of it, be it written as there or plainly."""
    parts, shown = urlsplit(address.url), urlsplit(address.shown)
    said = said.replace(address.url, address.shown).replace(parts.netloc, shown.netloc)
    for secret in (parts.password, None if shown.username else parts.username):
        for written in (secret, unquote(secret)) if secret else ():
            said = re.sub(rf"(?<!\w){re.escape(written)}(?!\w)", HIDDEN, said)
    return said


class Branch:
    """A branch that was fetched into a folder of a place."""

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
        outcome = run_git(settings, words, self._budget, folder=self._git, most=MOST_MESSAGE)
        if outcome.status:
            said = visible(_without_login(outcome.said, address))
            kind = RejectedError if "branch" in said or "fsck" in said else FailedError
            raise kind(reason=UNFETCHED, aside=f"{visible(address.shown)}: {said}")

    def _last_commit(self) -> Commit:
        words = ["log", "-1", "--format=%H%x00%an%x00%B", "--no-mailmap", "--no-notes", "--no-show-signature"]
        data = self._run([*words, "--no-color", "--encoding=UTF-8", "HEAD"], MOST_MESSAGE)
        revision, author, message = (*data.decode("utf-8", "replace").split("\0", 2), "", "")[:3]
        return Commit(revision=revision, author=author, message=message)

    def _run(self, words: Sequence[str], most: int) -> bytes:
        outcome = run_git(CONFIGURATION, ["--git-dir", self._git, *words], self._budget, folder=self._git, most=most)
        if outcome.status:
            raise RejectedError(reason="its repository cannot be read", aside=visible(outcome.said))
        return outcome.output

    def walk(self, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Readable]]:
        listing = self._run(["ls-tree", "-rz", "--full-tree", "HEAD"], MOST_LISTING)
        entries = listing.split(b"\0")[:-1]
        if len(entries) > MOST_NAMES:
            raise RejectedError(reason=f"its repository holds more than {MOST_NAMES} files")
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
