"""Names of submitters: those that a reader cannot tell apart are one. No name ever becomes a path."""

from __future__ import annotations

import os
import re
import unicodedata
from hashlib import sha256
from itertools import islice
from stat import S_ISREG

from geval_py.board.intake.archives import bare_name, is_archive
from geval_py.board.submission import RejectedError
from geval_py.text import natural_order, shorten, visible

MOST_NAME = 100  # characters
_INVISIBLE = {"Cc", "Cf", "Cs"}  # control and format characters, and surrogates

# Of Unicode's Default_Ignorable_Code_Point, what is none of those; and the letters that are drawn as a blank.
_IGNORABLE = re.compile("[\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_BLANK = re.compile("[\t-\r\x85\u115f\u1160\u2800\u3164\uffa0]")


def folded(name: str) -> str:
    """Fold a name: names that differ only in case, Unicode form, spaces or invisible characters have one fold.

    Raises RejectedError for a name of which nothing is left, and for one of more than 100 characters.

    >>> folded("  Anna\u00a0Nowak "), folded("anna \u200bNOWAK")
    ('anna nowak', 'anna nowak')
    """
    if len(name) > MOST_NAME:
        shown = visible(shorten(name))
        raise RejectedError(reason=f"the name `{shown}` has more than {MOST_NAME} characters")
    key = name
    for _ in range(3):  # folding may compose what has a fold of its own; it comes to rest after two rounds
        key = unicodedata.normalize("NFKC", _seen(unicodedata.normalize("NFKC", key)).casefold())
    key = re.sub(r"\s+", " ", key).strip()
    if not any(unicodedata.category(character)[0] in "LNPS" for character in key):
        raise RejectedError(reason=f"the name `{visible(name)}` has no letter that can be seen")
    return key


def _seen(text: str) -> str:
    """Leave out what cannot be seen, and write every blank as a space."""
    text = _BLANK.sub(" ", _IGNORABLE.sub("", text))
    return "".join(
        " " if unicodedata.category(character)[0] == "Z" else character
        for character in text
        if unicodedata.category(character) not in _INVISIBLE
    )


# What can be told of a submission from outside, before anything of it is opened.


GIT = "git+"
MOST_ENTRIES = 10_000  # of a folder that are looked at
CHUNK_BYTES = 1 << 20
MOST_OF_AN_ADDRESS = 60  # characters of one that names a submitter
DIGITS = 8  # of the digest of a longer one
HIDDEN = "…"  # what cannot be told from a password


def own_name(source: str) -> str:
    """Name a submission: as its folder, as its archive without the ending, or as its repository and branch.

    >>> own_name("uploads/ann.tar.gz"), own_name("uploads/bob/"), own_name("git+https://host/team.git@main")
    ('ann', 'bob', 'team@main')
    """
    if source.startswith(GIT):
        url, branch = address_in(source)
        name = _repository(without_password(url)).rpartition("/")[2]
        return name if branch is None else f"{name}@{branch}"
    path = os.path.abspath(source)
    return (os.path.basename(path) if os.path.isdir(path) else bare_name(path)) or source


def submitter_of(source: str) -> str:
    """Name who submits where no one says it: as the submission or, of a branch, as its whole repository.

    Of a long address the beginning and the end are kept, and a digest of all between them.

    >>> submitter_of("uploads/ann.tar.gz"), submitter_of("git+https://anna:secret@host/ann/gap.git@main")
    ('ann', 'host/ann/gap')
    """
    if not source.startswith(GIT):
        return own_name(source)
    name = _repository(without_password(address_in(source)[0])).partition("://")[2].lstrip("/")
    if len(name) <= MOST_OF_AN_ADDRESS:
        return name
    kept = MOST_OF_AN_ADDRESS // 2 - DIGITS
    return f"{name[:kept]}…{sha256(_bytes(name)).hexdigest()[:DIGITS]}…{name[-kept:]}"


def _repository(url: str) -> str:
    return url.rstrip("/").removesuffix(".git")


def address_in(source: str) -> tuple[str, str | None]:
    """Split git+URL@BRANCH into the URL and the branch, None where there is none: the @ may stand before the host.

    >>> address_in("git+ssh://git@host/team.git@main"), address_in("git+ssh://git@host/team.git")
    (('ssh://git@host/team.git', 'main'), ('ssh://git@host/team.git', None))
    """
    address = source.removeprefix(GIT)
    url, _, branch = address.rpartition("@")
    is_whole = "/" in url.partition("://")[2] and not _HOST_AND_PATH.match(branch)
    return (url, branch) if is_whole else (address, None)


def shown_source(source: str) -> str:
    """Say where a submission comes from; of an address, without who logs in.

    >>> shown_source("git+https://anna:secret@host/team.git@main"), shown_source("git+https://anna:secret@host/team.git")
    ('git+https://host/team.git@main', 'git+https://…@host/team.git')
    """
    return GIT + shown_address(source) if source.startswith(GIT) else source


def shown_address(source: str) -> str:
    """Show what should be an address, with ``git+`` or without, and be it one or not, without who logs in.

    >>> shown_address("https://anna:secret@host/team.git"), shown_address("anna:secret@host/team")
    ('https://…@host/team.git', '…@host/team')
    """
    url, branch = address_in(source)
    scheme = SCHEME.match(url)
    if branch is not None and scheme:
        return f"{without_password(url)}@{branch}"
    before, at, after = source.removeprefix(GIT).rpartition("@")  # which may stand behind a login, or before a branch
    if not at:
        return without_password(url)
    known = "" if _QUERY.search(before) else f"@{_QUERY.split(after, maxsplit=1)[0]}"
    return f"{scheme[0] if scheme else ''}{HIDDEN}{known}"


SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)  # what an address begins with
_HOST_AND_PATH = re.compile(r"[^/]*\.[^/]*/|.*\.git/*$", re.DOTALL)  # what is no branch, but a login's host
_QUERY = re.compile(r"[?#]")  # what begins what may be a key

# Who logs in stands before the last @, and what follows that is an address if a port is one; neither a login nor a
# password may hold what ends them, yet people write them as they are.
_REST = re.compile(r"(?:([^/?#]*)@)?((?:\[[^]/?#@]*\]|[^][:/?#@]*)(?::\d*)?(?:/[^?#@]*)?)(?:[?#][^@]*)?", re.DOTALL)
_USER = re.compile(r"([^@:]+)(?::[^@]*)?", re.DOTALL)


def without_password(url: str) -> str:
    """Leave out who logs in, and with what, and what may be a key behind ``?``; for ssh, the name is of the address.

    What cannot be told from a password is an ellipsis: ``…@`` where an @ stands in a login, ``…`` where one stands
    behind the host.

    >>> without_password("https://anna:secret@host:8080/team.git?key=1"), without_password("ssh://git:x@host/team.git")
    ('https://host:8080/team.git', 'ssh://git@host/team.git')
    >>> without_password("https://anna@x.org:secret@host/team.git"), without_password("https://anna:1/2@host/team.git")
    ('https://…@host/team.git', 'https://…')
    """
    scheme, separator, rest = url.partition("://")
    found = _REST.fullmatch(rest) if separator else None
    if found is None:
        return scheme + separator + HIDDEN if separator else HIDDEN
    login, address = found[1] or "", found[2]
    user = _USER.fullmatch(login)
    if user is None:
        return f"{scheme}://{f'{HIDDEN}@' if login else ''}{address}"
    return f"{scheme}://{f'{user[1]}@' if scheme == 'ssh' else ''}{address}"


def is_submission(entry: os.DirEntry[str]) -> bool:
    """Tell whether something in a folder is a submission: a folder or an archive, or a link to one, not hidden."""
    return not entry.name.startswith(".") and (is_archive(entry.name) or os.path.isdir(entry.path))


def submissions_in(folder: str) -> list[str]:
    """Give the paths of the submissions in a folder, in natural order of their names; raises OSError."""
    with os.scandir(folder) as entries:
        names = sorted((entry.name for entry in entries if is_submission(entry)), key=natural_order)
    return [os.path.join(folder, name) for name in names]


def digest_at_the_door(source: str) -> str:
    """Give a digest of what could not be received: of an archive's bytes, a folder's names and sizes, an address."""
    found = sha256(b"door\n")
    if os.path.isfile(source):
        with open(source, "rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                found.update(chunk)
    else:
        found.update(_listing(source, moments=False) if os.path.isdir(source) else _bytes(shown_source(source)))
    return found.hexdigest()


def fingerprint(source: str) -> str:
    """Give a digest of the names, sizes and times of a submission's files: equal ones need no second look."""
    return sha256(_listing(source, moments=True)).hexdigest()


def _listing(source: str, *, moments: bool) -> bytes:
    """List what is below a path: relative names, sizes, times; links are not followed."""
    lines = [_line(source, source, moments=moments)]
    walked = (os.path.join(top, name) for top, _, names in os.walk(source) for name in names)
    lines += sorted(_line(path, source, moments=moments) for path in islice(walked, MOST_ENTRIES))
    return b"\n".join(lines)


def _line(path: str, source: str, *, moments: bool) -> bytes:
    status = _status(path, follow=path == source)
    moment = status.st_mtime_ns if moments else 0
    size = status.st_size if path != source or S_ISREG(status.st_mode) else 0  # that of a folder is its disk's affair
    return b"%d %d %s" % (size, moment, _bytes(os.path.relpath(path, source)))


def _status(path: str, *, follow: bool) -> os.stat_result:
    """Look at a path; a link may be followed, unless it leads nowhere."""
    try:
        return os.stat(path, follow_symlinks=follow)
    except OSError:
        return os.lstat(path)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
