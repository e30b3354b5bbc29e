"""Names and addresses: the submitter, kind, address and fingerprint of a submission that is not opened yet.

Names that differ only in letter case, spaces or invisible characters are one name. No name is ever used as a path.

Names look alike by the skeletons of Unicode Technical Standard 39, https://www.unicode.org/reports/tr39/, section 4.
The table of characters is ``confusables.txt`` beside this file.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from hashlib import sha256
from itertools import islice
from stat import S_ISREG
from typing import NamedTuple, TypeAlias

from geval_py.board.intake.archives import ARCHIVES, GIT, bare_name, is_archive
from geval_py.board.intake.sources import open_no_link
from geval_py.errors import MissingFileError, RejectedError, UsageError
from geval_py.text import natural_order, shorten, visible

TABLE = os.path.join(os.path.dirname(__file__), "confusables.txt")
MAX_NAME_LENGTH = 100  # characters
MAX_MARKS = 2  # combining marks in a row
MAX_SHOWN = 60  # characters of a name in a message
ALPHABETS = ("CYRILLIC", "GREEK", "LATIN")  # as the names of their letters begin; many of these look alike
_INVISIBLE = {"Cc", "Cf", "Cs"}  # control and format characters, and surrogates

# The rest of Unicode's Default_Ignorable_Code_Point, and the letters that are drawn as a blank.
_IGNORABLE = re.compile("[\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_BLANK = re.compile("[\t-\r\x85\u115f\u1160\u2800\u3164\uffa0]")

_MARKS = ("Mn", "Me")
# Control characters, what else begins a line, and Bidi_Control, which changes the direction of text.
_REFUSED = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@lru_cache(maxsize=20_000)
def casefolded(name: str) -> str:
    """Fold a name: names that differ only in case, Unicode form, spaces or invisible characters have one fold.

    Raises RejectedError for a name without a visible letter, digit or sign, and for one of more than 100 characters.

    >>> casefolded("  Anna\u00a0Nowak "), casefolded("anna \u200bNOWAK")
    ('anna nowak', 'anna nowak')
    """
    if len(name) > MAX_NAME_LENGTH:
        shown = visible(shorten(name))
        raise RejectedError(f"the name `{shown}` has more than {MAX_NAME_LENGTH} characters")
    key = name
    for _ in range(3):  # folding may compose characters that fold again; nothing changes after two rounds
        key = unicodedata.normalize("NFKC", visible_part(unicodedata.normalize("NFKC", key)).casefold())
    key = re.sub(r"\s+", " ", key).strip()
    if not any(unicodedata.category(character)[0] in "LNPS" for character in key):
        raise RejectedError(f"the name `{visible(name)}` has no visible letter")
    return key


def visible_part(text: str) -> str:
    """Remove invisible characters, and write every blank as a space."""
    text = _BLANK.sub(" ", _IGNORABLE.sub("", text))
    return "".join(
        " " if unicodedata.category(character)[0] == "Z" else character
        for character in text
        if unicodedata.category(character) not in _INVISIBLE
    )


def check_name(name: str) -> None:
    """Check a submitter's name; raises RejectedError for one that is not allowed.

    A name has a letter, digit or sign that can be seen, and at most 100 characters; no control characters, none that
    change the direction of text, and at most two combining marks in a row. A word has letters of one alphabet.
    """
    folded, shown = casefolded(name), visible(shorten(name, MAX_SHOWN))
    if refused := _REFUSED.search(name):
        code = f"U+{ord(refused[0]):04X} {unicodedata.name(refused[0], '')}".rstrip()
        raise RejectedError(f"the name `{shown}` has the character {code}, which no name may have")
    marks = 0
    for character in unicodedata.normalize("NFD", name):
        marks = marks + 1 if unicodedata.category(character) in _MARKS else 0
        if marks > MAX_MARKS:
            raise RejectedError(f"the name `{shown}` has more than {MAX_MARKS} combining marks in a row")
    for word in folded.split():
        alphabets = {unicodedata.name(character, "").partition(" ")[0] for character in word}.intersection(ALPHABETS)
        if len(alphabets) > 1:
            mixed = " and ".join(map(str.capitalize, sorted(alphabets)))
            raise RejectedError(f"the name `{shown}` mixes {mixed} letters in one word")


def skeleton(text: str) -> str:
    """Return the skeleton of a text, without invisible characters, and with one space between words.

    >>> skeleton("\N{CYRILLIC SMALL LETTER A}nn"), skeleton("Tom I0")
    ('ann', 'Torn lO')
    """
    alike = unicodedata.normalize("NFD", visible_part(text)).translate(_prototypes())
    return re.sub(r"\s+", " ", unicodedata.normalize("NFD", alike)).strip()


@cache
def _prototypes() -> dict[int, str]:
    with open(TABLE, encoding="ascii") as file:
        rows = [line.split(";") for line in file if not line.startswith("#")]
    return {
        int(code, 16): "".join(chr(int(part, 16)) for part in prototype.split())
        for prototype, alike in rows
        for code in alike.split()
    }


@lru_cache(maxsize=20_000)
def skeletons(name: str) -> frozenset[tuple[str, str]]:
    """Return the skeletons of a name as written and in small letters: names look alike if they have one in common.

    Each is compared with its own kind: `Ian` looks like `lan`, which is `Lan` in small letters, but not like `Lan`.
    """
    small = unicodedata.normalize("NFKC", name).casefold()
    return frozenset({("small", skeleton(small)), ("written", skeleton(name))})


# The kinds of submissions: a folder, an archive by its ending, git+URL@BRANCH.


# An address without git+: it may hold a password, which stands between the first colon and the last @. The path of a
# file may hold these too, but behind a slash.
_LIKE_ADDRESS = re.compile(r".*://|[^/]*:.*@", re.DOTALL)

# What git understands: a login, host or path with an unescaped @, / or : is against the rules of URLs.
_ADDRESS = re.compile(
    r"git\+(?P<url>(?P<scheme>[a-z][a-z0-9+.-]*)://(?:(?P<user>[^@:/?#]*)(?::[^@:/?#]*)?@)?"
    r"(?P<host>(?:\[[0-9a-f:.]+\]|(?!-)[^][@:/?#]*)(?::\d+)?)(?P<path>/+[^/@?#][^@?#]*)(?:\?[^@#]*)?)"
    r"@(?![^/]*\.[^/]*/|.*\.git/*$)(?P<branch>[^@]*)",  # no branch, but the host behind a login
    re.IGNORECASE,
)
_BRANCH = re.compile(r"(?!-|/|.*(?:\.\.|//|@\{|/\.|\.lock(?:/|$)|[./]$))[^\0-\x20\x7f~^:?*\[\\]+")


class Address(NamedTuple):
    """The address of a branch; ``shown`` is the source without a login and a query, ``name`` that of the repository.

    The user's name stays in it for ssh, where it is needed.
    """

    url: str
    branch: str
    transport: str
    shown: str
    name: str


def parse_address(source: str) -> Address:
    """Read git+URL@BRANCH; raises UsageError if it is malformed, without repeating what may be a password.

    >>> parse_address("git+https://anna:secret@host/team.git@main").shown
    'git+https://host/team.git@main'
    """
    parts = _ADDRESS.fullmatch(source)
    if not parts or not source.isprintable():
        raise UsageError(
            "not the address of a branch: write git+URL@BRANCH, such as git+https://example.org/anna/gap.git@main"
            "\n  in a login write %40 for @, %2F for / and %3A for :"
        )
    if not _BRANCH.fullmatch(parts["branch"]):
        raise UsageError(f"`{visible(parts['branch'])}` is not the name of a branch")
    user = f"{parts['user']}@" if parts["user"] and parts["scheme"].lower() == "ssh" else ""
    place = user + parts["host"] + parts["path"]
    return Address(
        url=parts["url"],
        branch=parts["branch"],
        transport=parts["scheme"].lower(),
        shown=f"{GIT}{parts['scheme']}://{place}@{parts['branch']}",
        name=place.strip("/").removesuffix(".git"),
    )


def address_of(source: str, transports: Sequence[str]) -> Address:
    """Read git+URL@BRANCH; raises UsageError if it is malformed, or its transport is not allowed."""
    address = parse_address(source)
    if address.transport not in transports:
        allowed = ", ".join(transports) or "none"
        raise UsageError(f"board.yaml does not allow git to fetch by {address.transport}; `transports` are {allowed}")
    return address


def check_source(source: str, transports: Sequence[str]) -> None:
    """Check that a source is of a known kind, before it is opened; raises MissingFileError and UsageError."""
    if source.startswith(GIT):
        address_of(source, transports)
    elif not os.path.exists(source):
        if _LIKE_ADDRESS.match(source):
            raise UsageError("an address alone is not a submission: write git+URL@BRANCH for a branch")
        raise MissingFileError(what="No submission", path=source)
    elif not (os.path.isdir(source) or (is_archive(source) and os.path.isfile(source))):
        raise UsageError(
            f"`{visible(source)}` is not a submission: "
            f"give a folder, an archive ({', '.join(ARCHIVES)}) or git+URL@BRANCH"
        )


def submissions_in(folder: str) -> list[str]:
    """List the paths of the folders and archives (or links to them) in a folder, in natural order; raises OSError.

    Hidden ones are left out. Who takes them must not follow the links: they may lead to the folder of another.
    """
    with os.scandir(folder) as entries:
        shown = (entry for entry in entries if not entry.name.startswith("."))
        names = [entry.name for entry in shown if is_archive(entry.name) or os.path.isdir(entry.path)]
    return [os.path.join(folder, name) for name in sorted(names, key=natural_order)]


# Names of submissions.


def own_name(source: str) -> str:
    """Return the name of a submission: of its folder, its archive without the ending, or its repository and branch.

    >>> own_name("uploads/ann.tar.gz"), own_name("uploads/bob/"), own_name("git+https://host/team.git@main")
    ('ann', 'bob', 'team@main')
    """
    if source.startswith(GIT):
        address = parse_address(source)
        return f"{address.name.rpartition('/')[2]}@{address.branch}"
    path = os.path.abspath(source)
    return (os.path.basename(path) if os.path.isdir(path) else bare_name(path)) or source


def submitter_of(source: str) -> str:
    """Return the default name of the submitter: the submission's own name or, of a branch, its whole repository.

    >>> submitter_of("uploads/ann.tar.gz"), submitter_of("git+https://anna:secret@host/ann/gap.git@main")
    ('ann', 'host/ann/gap')
    """
    return parse_address(source).name if source.startswith(GIT) else own_name(source)


def shown_source(source: str) -> str:
    """Return the source of a submission; without the login, if it is the address of a branch.

    >>> shown_source("git+https://anna:secret@host/team.git@main")
    'git+https://host/team.git@main'
    """
    return parse_address(source).shown if source.startswith(GIT) else source


# Digests of submissions that are not opened.


MAX_ENTRIES = 10_000  # files and folders of a folder that are looked at
MAX_HASHED = 2_000_000_000  # bytes of an archive or a folder
CHUNK_BYTES = 1 << 20
Mark: TypeAlias = "Callable[[str, os.stat_result], object]"  # of a file in a listing


def unopened_digest(source: str) -> str:
    """Digest a source that cannot be received: an address, or the names and bytes of files as far as they fit."""
    left = MAX_HASHED

    def content(path: str, status: os.stat_result) -> str:
        """Return the digest of a file; "" if it is not a regular file, or would be too much."""
        nonlocal left
        if not S_ISREG(status.st_mode) or status.st_size > left:
            return ""
        left -= status.st_size
        digest = sha256()
        with suppress(OSError), open(path, "rb", opener=open_no_link) as file:
            for start in range(0, status.st_size, CHUNK_BYTES):  # no more of a file that grows
                digest.update(file.read(min(CHUNK_BYTES, status.st_size - start)))
        return digest.hexdigest()

    if source.startswith(GIT):
        return sha256(_bytes(shown_source(source))).hexdigest()
    return sha256(_listing(source, MAX_ENTRIES, content)).hexdigest()


def fingerprint(source: str, most: int = MAX_ENTRIES) -> str:
    """Digest the path, and the names, sizes and times of a submission's files: with the same, nothing has changed.

    Only so many entries are looked at.
    """
    listing = _listing(source, most, lambda _, status: status.st_mtime_ns)
    return sha256(_bytes(os.path.abspath(source)) + b"\n" + listing).hexdigest()


def _listing(source: str, most: int, mark: Mark) -> bytes:
    """List a file, or the files of a folder: relative names, sizes, and a mark of each, made in order of the names.

    Links in the folder are not followed, and hidden files are left out, as they are of a submission. One entry more
    than ``most`` is listed, hidden ones too, so that the listing of a folder with too many differs from that of one
    that has as many.
    """
    source, left = os.path.realpath(source), most + 1
    folders = deque([source] if os.path.isdir(source) else [])
    paths = [] if folders else [source]
    while folders and left > 0:
        with suppress(OSError), os.scandir(folders.popleft()) as entries:
            for entry in islice(entries, left):
                left -= 1
                if not entry.name.startswith("."):
                    (folders if entry.is_dir(follow_symlinks=False) else paths).append(entry.path)
    lines: list[bytes] = []
    for path in sorted(paths):
        with suppress(OSError):  # it was removed meanwhile
            status = os.lstat(path)
            name = _bytes(os.path.relpath(path, source))
            lines.append(b"%d %s %s" % (status.st_size, str(mark(path, status)).encode(), name))
    return b"\n".join(lines)


def _bytes(text: str) -> bytes:
    """Encode a path or an address; unlike os.fsencode, alike in all locales."""
    return text.encode("utf-8", "surrogateescape")
