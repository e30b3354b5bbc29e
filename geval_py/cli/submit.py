"""``geval submit``: send an output, a folder or an archive to the server of a board, and show what becomes of it."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from geval_py.board.intake.archives import bare_name, is_archive, upload_name_problem
from geval_py.checking import targets
from geval_py.cli import terminal
from geval_py.cli.commands import command, one_of, option, switch
from geval_py.cli.terminal import width_of
from geval_py.errors import DataError, MissingFileError, UsageError
from geval_py.reading.config import argument_type
from geval_py.reading.files import naming
from geval_py.reading.rewriting import written_whole
from geval_py.text import counted, named, visible

TOKEN_VARIABLE = "GEVAL_BOARD_TOKEN"
LOCAL = ("localhost", "127.0.0.1", "::1")
CHUNK_BYTES = 1 << 16
SECONDS = 60  # for which the server's answer is waited for
MAX_PLACES = 3  # that are shown of each problem
PAUSE_SECONDS = 2  # between two looks at an upload
PATIENCE_SECONDS = 60  # for which the state of an upload is asked for while the board does not tell it
FINE = ("scored", "done")
LADDER = ", which changes only when a new score is significantly better"


class SubmitError(DataError):
    """The server did not take an upload, or this is not known; ``reason`` is one sentence."""

    reason: str
    refused: bool = True

    def __str__(self) -> str:
        if self.refused:
            return f"The upload was refused: {visible(self.reason)}"
        return f"The upload may not have arrived: {visible(self.reason)}\n  send it again: the same file counts once"


def _address(url: str) -> str:
    """Return the address of a board without its last slash; raises ValueError if a token would be sent in clear."""
    parts = urlsplit(url)
    if not parts.hostname or parts.scheme not in ("http", "https") or parts.username is not None:
        raise ValueError(f"`{visible(url)}` is not an address such as https://board.example.org")
    if parts.scheme == "http" and parts.hostname not in LOCAL:
        raise ValueError("the token would be sent unencrypted; use an address that begins with https://")
    return url.rstrip("/")


def _archive_name(name: str) -> str:
    if not name.endswith(".zip"):
        raise ValueError(f"`{visible(name)}` is not the name of an archive such as team.zip")
    return name


@command(
    "submit",
    "Upload an output, a folder or an archive to the server of a board, and show the result.",
    """\
  geval submit test-A/out.tsv --board https://board.example.org
  geval submit . --board https://board.example.org
  geval submit . --pack team.zip
  geval submit team.zip --board https://board.example.org --no-wait >receipt.jws
""",
    option("file", metavar="FILE", help="an output such as test-A/out.tsv, a submission's folder, or an archive"),
    one_of(
        option("--board", type=argument_type(_address), metavar="URL", help="the address of the board"),
        option(
            "--pack",
            type=argument_type(_archive_name),
            metavar="FILE",
            help="check it, and write the archive that a board takes (.zip); nothing is sent",
        ),
        required=True,
    ),
    option(
        "--challenge", metavar="DIR", help="the challenge's folder (default: the submission's, or the current one)"
    ),
    option(
        "-t",
        "--test-name",
        metavar="NAME",
        help="the test set of an output (default: the name of its folder), or the only one to send",
    ),
    option("--token-file", metavar="FILE", help="a file of mode 600 with the token"),
    switch("--trial", help="only check it on the board: it is not scored, and does not count"),
    switch("--no-check", help="send it without checking it here first"),
    switch("--no-wait", help="print the signed receipt at once, and do not wait for the score"),
    status="""\
Exit status: 0 it is scored, was written by --pack, was sent with --no-wait, or has arrived and its state is not \
known yet; 1 it has errors and was not sent, or it is rejected, refused or failed; 2 an error in the command line.""",
    before="""\
The token is read from the variable GEVAL_BOARD_TOKEN, or from a file that nobody else can read. Create one \
on your page of the board, or ask the organiser for one.

""",
)
def run_submit(args: argparse.Namespace) -> int:
    """Run the command; returns the exit status, raises GevalError."""
    from geval_py.board.intake.receiving import user_submission

    token = "" if args.pack else _token(args.token_file)
    if not os.path.exists(args.file):
        raise MissingFileError(what="Nothing to submit", path=args.file)
    path, query = args.file, {"dry": "yes"} if args.trial else {}
    tests = [args.test_name] if args.test_name else []
    is_output = not (os.path.isdir(path) or is_archive(path))
    if is_output:
        if problem := upload_name_problem(os.path.basename(path)):
            raise UsageError(problem)
        query["test"] = args.test_name or os.path.basename(os.path.dirname(os.path.abspath(path)))
    if not (args.no_check or args.trial) and _has_errors(path, args.challenge, tests):
        terminal.complain("Nothing was sent, because the board would reject it\n  --no-check sends it anyway")
        return 1
    with tempfile.TemporaryDirectory(prefix="geval-submit-") as place:
        if args.pack or os.path.isdir(path) or (tests and not is_output):
            files = {f"{query.get('test')}/{os.path.basename(path)}": path}
            path = os.path.join(place, f"{bare_name(os.path.abspath(path)).lstrip('.') or 'submission'}.zip")
            with ExitStack() as stack:
                if not is_output:
                    tests = tests or targets.challenge_and_tests(args.file, args.challenge)[1]
                    _, files = stack.enter_context(user_submission(args.file, tests))
                draft = stack.enter_context(written_whole(args.pack or path))
                packed = stack.enter_context(zipfile.ZipFile(draft.stream, "w", zipfile.ZIP_DEFLATED))
                for name, file in files.items():
                    packed.write(file, name)
        if args.pack:
            terminal.tell(f"wrote {named(args.pack)}, which a board takes")
            return 0
        sent = _send(f"{args.board}/upload/{quote(os.path.basename(path))}?{urlencode(query)}", token, path)
    number, receipt = str(sent["number"]), str(sent["receipt"])
    if sent["note"]:
        terminal.note(visible(sent["note"]))
    if args.no_wait:
        sys.stdout.write(f"{receipt or number}\n")
        return 0
    terminal.say(visible(f"{number}  arrived {sent['arrived']}"))
    if receipt:
        sys.stdout.write(f"  receipt  {visible(receipt)}\n")  # on one line, to be copied
    sys.stdout.flush()
    upload = _settled(f"{args.board}/api/uploads/{quote(number)}", token)
    if upload is None:
        terminal.note("it has arrived, and its state is not known yet: look at your page of the board")
        return 0
    terminal.say("\n".join(map(visible, _told(upload, args.board))))
    return int(upload["state"] not in FINE)


def _settled(url: str, token: str) -> dict[str, Any] | None:
    """Wait until an upload is settled, and return its state; None if the board does not tell it for a while."""
    ends = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < ends:
        with suppress(SubmitError):
            upload = _ask(Request(url), token, "settled")
            if upload["settled"]:
                return upload
            ends = time.monotonic() + PATIENCE_SECONDS
        time.sleep(PAUSE_SECONDS)
    return None


def _token(path: str | None) -> str:
    """Return the token; raises UsageError without one, and for a file that others can read."""
    token = os.environ.get(TOKEN_VARIABLE, "")
    if path is not None:
        with naming(path), open(path, encoding="ascii", errors="replace") as file:
            if os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077:
                raise UsageError(f"others can read the token in {named(path)}\n  chmod 600 {path}")
            token = file.read()
    if not re.fullmatch("[!-~]+", token := token.strip()):
        advice = f"set {TOKEN_VARIABLE}, or name a file with --token-file; your page of the board makes one"
        raise UsageError(f"the token is missing\n  {advice}")
    return token


def _has_errors(path: str, challenge: str | None, tests: Sequence[str]) -> bool:
    """Check a submission as ``geval check`` does, before the board does, and show the report if it has errors."""
    from geval_py.checking import problem_formats, rules
    from geval_py.checking.check import check_targets

    found = targets.find_targets([path], challenge, tests)
    report = check_targets(found, rules.select_rules(None), max_places=MAX_PLACES, progress_of=terminal.ProgressBar)
    if report.problems:
        sys.stderr.write(problem_formats.render(report, "text", width=width_of(sys.stderr)))
    return report.status > 0


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirection, which could carry the token to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _ask(request: Request, token: str, *names: str) -> dict[str, Any]:
    """Return the JSON that a board answers, which has some names; raises SubmitError."""
    request.add_header("Authorization", f"Bearer {token}")
    try:
        with build_opener(_NoRedirect).open(request, timeout=SECONDS) as answer:
            document = json.load(answer)
    except HTTPError as error:
        reason = f"the board responded with status {error.code}"
        with error, suppress(ValueError, KeyError, TypeError, OSError):
            reason = "the board does not know this token" if error.code == 401 else str(json.load(error)["error"])
        raise SubmitError(reason=reason, refused=error.code < 500) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = f"the board does not answer ({getattr(error, 'reason', None) or type(error).__name__})"
        raise SubmitError(reason=reason, refused=False) from None
    if not isinstance(document, dict) or not document.keys() >= set(names):
        raise SubmitError(reason="the board's response is not that of a geval board")
    return document


def _send(url: str, token: str, path: str) -> dict[str, Any]:
    size = os.path.getsize(path)
    with open(path, "rb") as file, terminal.ProgressBar("sending") as progress:

        def body() -> Iterator[bytes]:
            while data := file.read(CHUNK_BYTES):
                progress(file.tell(), size)
                yield data

        headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        request = Request(url, data=body(), headers=headers, method="PUT")
        return _ask(request, token, "number", "arrived", "receipt", "note")


def _told(upload: dict[str, Any], base: str) -> Iterator[str]:
    """Yield the lines that tell what became of an upload."""
    reason = f": {upload['reason']}" if upload["reason"] else ""
    yield f"{upload['code'] or upload['number']}  {upload['state']}{reason}"
    if upload["dry"] and upload["state"] in FINE:
        yield f"  trial    {counted(len(upload['problems']), 'problem')}"
    for problem in upload["problems"]:
        yield f"  {problem['path']}"
        yield from problem.get("text", [f"    {problem['summary']}"])
    for one in upload["scores"]:
        yield f"  score    {one['test']}: {one['metric']} {one['score']}{LADDER if one['ladder'] else ''}"
    if upload["charge"]:
        yield f"  quota    counts as {upload['cost']}: {upload['charge']}"
    quota = upload["quota"]
    if quota["allowed"]:
        left = max(quota["allowed"] - quota["used"], 0)
        yield f"  left     {left} of {counted(quota['allowed'], 'submission')} of {quota['day']} ({quota['zone']})"
    if upload["code"]:
        yield f"  page     {base}/submissions/{upload['code']}.html"
