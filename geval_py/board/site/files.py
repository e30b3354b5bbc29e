"""The files of a site: their names, how a new site replaces an old one in one step, and the Atom feed.

Names are made from board.yaml, submissions' codes and digests of submitters' names, never from a submitter's text.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

from geval_py.board.ranking.leaderboard import front_phase
from geval_py.board.ranking.views import Standings
from geval_py.board.settings import BoardSettings
from geval_py.board.site.rendering import POLICY, render
from geval_py.board.site.view import SiteView
from geval_py.errors import UsageError
from geval_py.text import named, visible


class Addresses(NamedTuple):
    """The paths of pages, relative to the folder of the site. Dots separate the parts of a name; no part has any."""

    settings: BoardSettings
    phase: str  # the present one

    def board(self, test: str, phase: str, page: int = 1) -> str:
        """Return the page of a leaderboard: index.html for the first test of the phase of the front page."""
        front = front_phase(self.settings, self.phase)
        if (test, phase, page) == (self.settings.in_phase(front).tests[0].name, front, 1):
            return "index.html"
        return self.of_test("board", test, phase, f"{page}.html" if page > 1 else "html")

    def of_test(self, kind: str, test: str, phase: str | None = None, ending: str = "html") -> str:
        """Return a test's page of a kind: progress, parameters, compare; with another ending, its table's data."""
        tests = [one.name for one in self.settings.tests]
        names, phases = [kind, slugs(tests)[tests.index(test)]], self.settings.phase_names
        if phase is not None and len(phases) > 1:
            names.append(slugs(phases)[phases.index(phase)])
        return ("" if ending.endswith("html") else "data/") + ".".join([*names, ending])

    @staticmethod
    def submissions(page: int = 1) -> str:
        """Return a page of the list of submissions."""
        return "submissions.html" if page == 1 else f"submissions.{page}.html"

    @staticmethod
    def submission(code: str) -> str:
        """Return the page of a submission."""
        return f"submissions/{code}.html"

    @staticmethod
    def submitter(name: str) -> str:
        """Return the page of a submitter, named by a digest of the name."""
        return f"submitters/{hashlib.sha256(name.encode()).hexdigest()[:12]}.html"

    def sections(self, test: str) -> list[tuple[str, str, str]]:
        """Return the links to the sections of a site, for a test: each a key, a name and an address."""
        return [
            ("leaderboard", "Leaderboard", self.board(test, front_phase(self.settings, self.phase, test))),
            ("progress", "Best so far", self.of_test("progress", test)),
            ("parameters", "Parameters", self.of_test("parameters", test)),
            ("compare", "Compare", self.of_test("compare", test)),
            ("submissions", "Submissions", self.submissions()),
            ("challenge", "Challenge", "challenge.html"),
            ("submit", "How to submit", "submit.html"),
        ]


def slugs(names: Sequence[str]) -> list[str]:
    """Return names of files that differ even where file systems ignore case.

    >>> slugs(["test-A", "Test A", "../x"])
    ['test-A', 'Test-A-2', 'x']
    """
    made: list[str] = []
    for number, name in enumerate(names, start=1):
        slug = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:60]
        if slug.lower() in ("", *map(str.lower, made)):
            slug = f"{slug}-{number}".strip("-")
        made.append(slug)
    return made


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What stands around the content of a page: links to the sections and, on a server, to pages of its own.

    ``phase`` is the present one. ``served`` is the address of the server, "" for a folder of files; ``several`` says
    whether it has other boards. ``policy`` is the Content-Security-Policy; pages of the site show a ``view``.
    """

    settings: BoardSettings
    phase: str
    served: str = ""
    several: bool = False
    policy: str = POLICY
    view: SiteView | None = None

    @property
    def addresses(self) -> Addresses:
        """The addresses of the pages."""
        return Addresses(self.settings, self.phase)

    def page(
        self, section: str, title: str, *, root: str = "", standings: Standings | None = None, **values: object
    ) -> str:
        """Render a page by the template of its section; ``root`` leads to the first page."""
        return render(
            f"{section}.html",
            title=title,
            section=section,
            root=root,
            standings=standings,
            settings=self.settings,
            addresses=self.addresses,
            served=self.served,
            several=self.several,
            policy=self.policy,
            view=self.view,
            **values,
        )


# Writing: the new folder is written in a temporary folder beside the old one, and takes its place when it is whole


TEMPORARY, MAX_SECONDS = ".geval-board-site-", 3600  # an older folder is that of a run that was killed
MARK = "site.json"  # in the folder of every site: only such a folder is replaced
Page: TypeAlias = tuple[str, str | bytes]  # path, with / between folders, and content


def write_site(folder: str, pages: Iterable[Page]) -> None:
    """Write the files of a site, and replace an earlier one when all are written.

    Raises UsageError for a folder that cannot be written, or that holds anything but a site.
    """
    target = Path(os.path.abspath(folder))
    try:
        if os.path.lexists(target) and (target.is_symlink() or not is_site(target)):
            target.rmdir()  # an error for anything but an empty folder
        target.parent.mkdir(parents=True, exist_ok=True)
        for left in target.parent.glob(f"{TEMPORARY}*"):
            with suppress(OSError):  # another run may remove it
                if left.stat().st_mtime < time.time() - MAX_SECONDS:
                    shutil.rmtree(left)
        with TemporaryDirectory(prefix=TEMPORARY, dir=target.parent) as place:
            new = Path(place, "new")
            for address, content in pages:
                path = new / address
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as file:
                    file.write(content_of(content))
            if os.path.lexists(target):
                target.rename(Path(place, "old"))
            new.rename(target)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"Cannot write {named(folder)}: {visible(reason)}") from error


def content_of(page: str | bytes) -> bytes:
    """Return the bytes of a page."""
    return page.encode() if isinstance(page, str) else page


def is_site(folder: Path) -> bool:
    """Return whether a folder holds a site, which has a mark."""
    try:
        return "generator" in json.loads((folder / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False


# The Atom feed (RFC 4287) of the latest submissions. Ids are `tag:` URIs (RFC 4151), the same at every address.


MAX_ENTRIES = 50
NOBODY = "geval.invalid"  # the authority of a board that has no address
BEGINNING = "1970-01-01T00:00:00Z"


def feed(view: SiteView) -> str:
    """Write the feed; it has no scores, so it never reveals more than the pages.

    Without an address of the board, a digest of its title stands in its id.
    """
    url = urlsplit(view.settings.url)
    title = hashlib.sha256(view.settings.title.encode()).hexdigest()[:16]
    authority = f"tag:{(url.hostname or NOBODY).lower()}"
    return render(
        "feed.xml",
        view=view,
        base=f"{view.settings.url.rstrip('/')}/" if url.hostname else "",
        identity=f"{authority},2026:board/{url.path.strip('/') if url.hostname else title}",
        tag_of=lambda code, arrived: f"{authority},{arrived:%Y-%m-%d}:{code}",
        submissions=[one for one in view.submissions if not one.withdrawn][:MAX_ENTRIES],
        beginning=BEGINNING,
    )
