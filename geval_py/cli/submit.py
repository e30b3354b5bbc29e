"""``geval submit``: send an output, a folder or an archive to the server of a board, and show what becomes of it."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import stat
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from geval_py.board.intake.identity import is_archive, upload_name_problem
from geval_py.cli import terminal
from geval_py.cli.commands import option, parser_maker, switch
from geval_py.errors import DataError, MissingFileError, UsageError
from geval_py.reading.outputs import OUTPUT_NAME
from geval_py.tables.numbers import counted
from geval_py.text import named, shows_colours, shows_links, visible, width_of

TOKEN_VARIABLE = "GEVAL_BOARD_TOKEN"
LOCAL = ("localhost", "127.0.0.1", "::1")
CHUNK_BYTES = 1 << 16
SECONDS = 60  # for which the server's answer is waited for
MAX_PLACES = 3  # that are shown of each problem
PAUSE_SECONDS, MAX_PAUSE = 1.0, 15.0  # between two looks at an upload
FINE = ("scored", "done")
NOT_SHOWN = "–"  # in the place of a score that the pages do not show
LADDER = ", which changes only when a new score is significantly better"


class SubmitError(DataError):
    """The server did not take an upload; ``reason`` is one sentence."""

    reason: str

    def __str__(self) -> str:
        return f"The upload was refused: {visible(self.reason)}"


class ProblemsError(DataError):
    """An output has errors, so that it was not sent."""

    def __str__(self) -> str:
        return "Nothing was sent, because the board would reject it\n  --no-check sends it anyway"


make_submit_parser = parser_maker(
    "submit",
    "Upload an output, a folder or an archive to the server of a board, and show the result.",
    """\
  geval submit test-A/out.tsv --board https://board.example.org
  geval submit . --board https://board.example.org
  geval submit team.zip --board https://board.example.org --no-wait >receipt.jws
""",
    option("file", metavar="FILE", help="an output such as test-A/out.tsv, a submission's folder, or an archive"),
    option("--board", required=True, metavar="URL", help="the address of the board"),
    option("-t", "--test-name", metavar="NAME", help="the test set of an output (default: the name of its folder)"),
    option("--token-file", metavar="FILE", help="a file of mode 600 with the token"),
    switch("--trial", help="only check it on the board: it is not scored, and does not count"),
    switch("--no-check", help="send it without checking it here first"),
    switch("--no-wait", help="print the signed receipt at once, and do not wait for the score"),
    status="""\
Exit status: 0 it is scored, or was sent with --no-wait; 1 it has errors and was not sent, or it is rejected, \
refused or failed; 2 an error in the command line.""",
    before="""\
The token is read from the variable GEVAL_BOARD_TOKEN, or from a file that nobody else can read. Create one \
on your page of the board, or ask the organiser for one.

""",
)


def run_submit(args: argparse.Namespace) -> int:
    """Run the command; returns the exit status, raises GevalError."""
    base, token = _address(args.board), _token(args.token_file)
    if os.path.isfile(args.file) and (problem := upload_name_problem(os.path.basename(args.file))):
        raise UsageError(message=problem)
    if not (args.no_check or args.trial or is_archive(args.file)) and os.path.exists(args.file):
        _check(args.file)
    with _packed(args.file) as path:
        query = {"dry": "yes"} if args.trial else {}
        if not is_archive(path):
            query["test"] = args.test_name or os.path.basename(os.path.dirname(os.path.abspath(path)))
        sent = _send(f"{base}/upload/{quote(os.path.basename(path))}?{urlencode(query)}", token, path)
    if sent["note"]:
        terminal.note(visible(str(sent["note"])))
    if args.no_wait:
        sys.stdout.write(f"{sent['receipt'] or sent['number']}\n")
        return 0
    pause = PAUSE_SECONDS
    while not (upload := _ask(Request(f"{base}/api/uploads/{quote(str(sent['number']))}"), token)).get("settled"):
        time.sleep(pause)
        pause = min(pause * 1.3, MAX_PAUSE)
    terminal.say("\n".join(map(visible, _told(upload, base))))
    return int(upload["state"] not in FINE)


def _address(url: str) -> str:
    """Return the address of a board without its last slash; raises UsageError if a token would be sent in clear."""
    parts = urlsplit(url)
    if os.path.isdir(url):
        raise UsageError(
            message=f"argument --board: {named(url)} is a folder, not the address of a server\n"
            "  geval board add adds a submission to a board in a folder"
        )
    if not parts.hostname or parts.scheme not in ("http", "https") or parts.username is not None:
        raise UsageError(
            message=f"argument --board: `{visible(url)}` is not an address such as https://board.example.org"
        )
    if parts.scheme == "http" and parts.hostname not in LOCAL:
        raise UsageError(
            message="argument --board: the token would be sent unencrypted\n  use an address that begins with https://"
        )
    return url.rstrip("/")


def _token(path: str | None) -> str:
    """Return the token; raises UsageError without one, and for a file that others can read."""
    if path is None:
        token = os.environ.get(TOKEN_VARIABLE, "").strip()
    else:
        if not os.path.isfile(path):
            raise MissingFileError(what="No file with the token", path=path)
        if os.name == "posix" and stat.S_IMODE(os.stat(path).st_mode) & 0o077:
            raise UsageError(message=f"others can read the token in {named(path)}\n  chmod 600 {path}")
        with open(path, encoding="ascii", errors="replace") as file:
            token = file.read().strip()
    if not token or not token.isascii() or not token.isprintable():
        message = f"the token is missing\n  set {TOKEN_VARIABLE}, or name a file with --token-file"
        raise UsageError(message=message)
    return token


def _check(path: str) -> None:
    """Check outputs as ``geval check`` does, before the board does; raises ProblemsError for one with errors."""
    from geval_py.checking import problem_formats, rules, targets
    from geval_py.checking.check import check_targets

    is_folder = os.path.isdir(path)
    paths = [os.path.join(path, *one.split("/")) for one in _members(path) if "/" in one] if is_folder else [path]
    outputs = [one for one in targets.find_targets(paths) if isinstance(one, targets.Target)]
    report = check_targets(outputs, rules.select_rules(None), max_places=MAX_PLACES, progress_of=terminal.ProgressBar)
    if report.status:
        style = {"colour": shows_colours(sys.stderr), "links": shows_links(sys.stderr)}
        shown = problem_formats.render(report, "text", width=width_of(sys.stderr), **style)
        sys.stderr.write(shown)
        raise ProblemsError


@contextmanager
def _packed(path: str) -> Iterator[str]:
    """Yield the path of a file; of a folder, that of a new archive of its test sets."""
    if not os.path.exists(path):
        raise MissingFileError(what="Nothing to submit", path=path)
    if not os.path.isdir(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="geval-submit-") as folder:
        name = os.path.basename(os.path.abspath(path)).lstrip(".") or "submission"
        archive = os.path.join(folder, f"{name}.zip")
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            members = list(_members(path))
            for member in members:
                packed.write(os.path.join(path, *member.split("/")), member)
        if not any("/" in member for member in members):
            raise UsageError(message=f"{named(path)} has no output such as test-A/out.tsv")
        yield archive


def _members(folder: str) -> Iterator[str]:
    """Yield what a board takes of a folder: outputs of test sets, and gonito.yaml."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_file() and entry.name == "gonito.yaml":
            yield entry.name
        elif entry.is_dir() and not entry.name.startswith("."):
            names = sorted(one.name for one in os.scandir(entry.path) if one.is_file())
            yield from (f"{entry.name}/{name}" for name in names if re.fullmatch(OUTPUT_NAME, name))


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirection, which could carry the token to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _ask(request: Request, token: str) -> dict[str, Any]:
    """Return the JSON that a server answers; raises SubmitError."""
    request.add_header("Authorization", f"Bearer {token}")
    try:
        with build_opener(_NoRedirect).open(request, timeout=SECONDS) as answer:
            document = json.load(answer)
    except HTTPError as error:
        reason = f"the board responded with status {error.code}"
        with error, suppress(ValueError, KeyError, TypeError, OSError):
            reason = "the board does not know this token" if error.code == 401 else str(json.load(error)["error"])
        raise SubmitError(reason=reason) from None
    except URLError as error:
        raise SubmitError(reason=f"the board does not answer ({error.reason})") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise SubmitError(reason=f"the board's response cannot be read ({type(error).__name__})") from None
    if not isinstance(document, dict):
        raise SubmitError(reason="the board's response is not that of a geval board")
    return document


def _send(url: str, token: str, path: str) -> dict[str, Any]:
    size = os.path.getsize(path)
    with open(path, "rb") as file, terminal.ProgressBar("sending") as progress:

        def body() -> Iterator[bytes]:
            while data := file.read(CHUNK_BYTES):
                progress(file.tell(), size)
                yield data

        request = Request(url, data=body(), method="PUT")
        request.add_header("Content-Length", str(size))
        request.add_header("Content-Type", "application/octet-stream")
        answer = _ask(request, token)
    if not {"number", "receipt", "note"} <= answer.keys():
        raise SubmitError(reason="the board's response is not that of a geval board")
    return answer


def _told(upload: dict[str, Any], base: str) -> Iterator[str]:
    reason = f": {upload['reason']}" if upload.get("reason") else ""
    problems = upload.get("problems") or []
    yield f"{upload['code'] or upload['number']}  {upload['state']}{reason}"
    if upload.get("dry") and (problems or upload["state"] in FINE):
        yield f"  trial    {counted(len(problems), 'problem') if problems else 'no problems'}"
    for problem in problems:
        place = (problem.get("places") or [{}])[0]
        where = ":".join(str(part) for part in (problem.get("path"), place.get("line"), place.get("column")) if part)
        yield f"  {where}  {problem.get('summary', '')} [{problem.get('rule', '')}]"
    yield f"  arrived  {upload['arrived']}"
    for one in upload.get("scores") or []:
        score = "the board shows none now" if one["score"] == NOT_SHOWN else f"{one['metric']} {one['score']}"
        yield f"  score    {one['test']}: {score}{LADDER if one['ladder'] else ''}"
    if upload.get("charge"):
        yield f"  quota    counts as {upload['cost']}: {upload['charge']}"
    quota = upload.get("quota") or {}
    if quota.get("allowed"):
        left = max(quota["allowed"] - quota["used"], 0)
        yield f"  left     {left} of {counted(quota['allowed'], 'submission')} of {quota['day']} ({quota['zone']})"
    if upload.get("code"):
        yield f"  page     {base}/submissions/{upload['code']}.html"
