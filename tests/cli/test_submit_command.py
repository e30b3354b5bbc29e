"""``geval submit`` against ``geval board serve``, in processes of their own; and all that it refuses."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, build_opener, urlopen

import pytest
from joserfc import jws
from joserfc.jwk import OKPKey
from servers import free_port

from geval_py.cli import submit
from geval_py.cli.submit import _NoRedirect

GAZETTE = Path(__file__).parents[2] / "challenges/gazette"
GOOD = "the:0.06 of:0.03 :0.91\n" * 123


def start_alone(*words):
    """Start the command in a process that is no child of the fork server, and so can be killed."""
    command = [sys.executable, "-m", "geval_py", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def start(fork_server):
    def start_forked(*words):
        command = [fork_server.bin / "geval", *map(str, words)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start_forked


@pytest.fixture(scope="module")
def run(fork_server):
    """Run the command in a process of its own, which has all imported; gives standard output and standard error."""

    def run_forked(*words, status=0, **variables):
        command = [fork_server.bin / "geval", *map(str, words)]
        done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, timeout=60)
        assert done.returncode == status, done.stderr
        return done.stdout, done.stderr

    return run_forked


def wait_for(url):
    for _ in range(200):
        try:
            with urlopen(url, timeout=5) as answer:
                return answer.read().decode()
        except OSError:
            time.sleep(0.1)
    raise AssertionError(url)


class Board:
    """A board that is served by processes of its own."""

    def __init__(self, folder, run, start):
        self.run, self.start = run, start
        shutil.copytree(GAZETTE, folder / "gazette")
        (folder / "hidden/test-A").mkdir(parents=True)
        (folder / "gazette/test-A/expected.tsv").rename(folder / "hidden/test-A/expected.tsv")
        self.folder = folder / "board"
        run("board", "init", self.folder, "--challenge", folder / "gazette", "--answers", folder / "hidden")
        path = self.folder / "board.yaml"
        path.write_text(path.read_text().replace("submissions_a_day: 1\n", "submissions_a_day: 30\n"))
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.process = self.serve()

    def serve(self, start=None):
        words = ("board", "serve", self.folder, "--port", self.port, "--url", self.address, "--workers", 1)
        process = (start or self.start)(*words)
        wait_for(f"{self.address}/healthz")
        return process

    def token(self, name):
        link = self.run("board", "invite", self.folder, name, "--url", self.address)[0].strip()
        assert re.fullmatch(rf"{self.address}/invitation/[\w-]{{43}}", link)
        request = Request(link, method="POST", headers={"Origin": self.address})
        with pytest.raises(HTTPError) as answer:  # a redirection, which is not followed
            build_opener(_NoRedirect).open(request, timeout=20)
        with answer.value as found:
            assert (found.code, found.headers["Server"]) == (303, None)
        return self.run("board", "token", self.folder, name)[0].strip()


@pytest.fixture(scope="module")
def board(tmp_path_factory, run, start):
    board = Board(tmp_path_factory.mktemp("served"), run, start)
    yield board
    board.process.terminate()
    board.process.communicate(timeout=20)


@pytest.fixture(scope="module")
def token(board):
    return board.token("anna")


def output_in(folder, text=GOOD):
    (folder / "test-A").mkdir(exist_ok=True)
    (folder / "test-A/in.tsv").write_text("a\tb\n" * 123)
    (folder / "test-A/out.tsv").write_text(text)
    return folder / "test-A/out.tsv"


@pytest.mark.slow
def test_an_output_is_sent_and_scored(run, board, token, tmp_path):
    out, err = run("submit", output_in(tmp_path), "--board", board.address, GEVAL_BOARD_TOKEN=token)
    code = out.splitlines()[2][:12]
    assert re.fullmatch(
        rf"[0-9a-f]{{12}}  arrived [\dT:-]+Z\n  receipt  [\w.-]+\n{code}  scored\n"
        r"  score    test-A: PerplexityHashed 630, which changes only when a new score is significantly better\n"
        r"  quota    counts as 1: it was scored\n"
        r"  left     \d\d of 30 submissions of [\d-]+ \(UTC\)\n"
        rf"  page     {board.address}/submissions/{code}.html\n", out,
    )  # fmt: skip
    assert err == ""
    again = run("submit", output_in(tmp_path), "--board", board.address, GEVAL_BOARD_TOKEN=token)
    assert again[0] == out
    assert re.fullmatch(rf"geval: note: this is the submission {code} of [\dT:-]+Z again\n", again[1])


def test_a_receipt_is_printed(run, board, token, tmp_path):
    path = output_in(tmp_path, GOOD.replace("0.06", "0.05").replace("0.91", "0.92"))
    out, _ = run("submit", path, "--board", board.address, "--no-wait", GEVAL_BOARD_TOKEN=token)
    key = OKPKey.import_key(json.loads(wait_for(f"{board.address}/receipt-key")))
    told = json.loads(jws.deserialize_compact(out.strip(), key, ["Ed25519"]).payload)
    sent = {name: told[name] for name in ("submitter", "file", "test", "bytes")}
    assert sent == {"submitter": "anna", "file": "out.tsv", "test": "test-A", "bytes": len(path.read_text())}


@pytest.mark.slow
def test_a_trial_of_a_folder_with_a_problem_and_of_an_output_without(run, board, token, tmp_path):
    output_in(tmp_path, GOOD.replace("0.91", "0,91", 1))
    (tmp_path / "secret.txt").write_text("not to be sent")
    out, _ = run("submit", tmp_path, "--board", board.address, "--trial", status=1, GEVAL_BOARD_TOKEN=token)
    _, first, path, *lines = out.splitlines()
    assert re.match(r"[0-9a-f]{12,16}  rejected: `test-A/out\.tsv`: ", first)
    assert (path, lines[0][:6]) == ("  test-A/out.tsv", "  E114")
    assert any(line.startswith("    test-A/out.tsv:1:") for line in lines)
    (tmp_path / "secret.txt").unlink()
    out, _ = run("submit", output_in(tmp_path), "--board", board.address, "--trial", GEVAL_BOARD_TOKEN=token)
    _, first, trial, left = out.splitlines()
    assert re.fullmatch(r"[0-9a-f]{12,16}  done", first)
    assert trial == "  trial    0 problems"
    assert left.startswith("  left     ")


@pytest.mark.slow
def test_an_output_with_errors_is_not_sent(run, board, token, tmp_path):
    path = output_in(tmp_path, GOOD.replace("0.91", "0,91", 2))
    for words in ([path], [path, "--no-wait"], [tmp_path]):
        out, err = run("submit", *words, "--board", board.address, status=1, GEVAL_BOARD_TOKEN=token)
        assert out == ""
        assert f"{path}:1:" in err
        assert err.endswith(
            "geval: Nothing was sent, because the board would reject it\n  --no-check sends it anyway\n"
        )
    words = ["submit", path, "--board", board.address, "--no-check"]
    assert "  rejected: " in run(*words, status=1, GEVAL_BOARD_TOKEN=token)[0]


@pytest.mark.parametrize(("words", "message"), [
    (["--board", "http://board.example.org"], "argument --board: the token would be sent unencrypted; use an address that begins with https://\n  geval submit --help shows the options"),
    (["--board", "board.example.org"], "argument --board: `board.example.org` is not an address such as https://board.example.org\n  geval submit --help shows the options"),
    (["--board", "https://a:b@example.org"], "argument --board: `https://a:b@example.org` is not an address such as https://board.example.org\n  geval submit --help shows the options"),
    (["--board", "https://example.org"],
        "the token is missing\n  set GEVAL_BOARD_TOKEN, or name a file with --token-file; "
         "your page of the board makes one"),
    (["--board", "https://example.org", "--token-file", "open"],
        "others can read the token in `open`\n  chmod 600 open"),
])  # fmt: skip
def test_what_is_refused_before_anything_is_sent(geval, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GEVAL_BOARD_TOKEN", raising=False)
    output_in(tmp_path)
    Path("open").write_text("token")
    Path("open").chmod(0o644)
    assert geval("submit", "test-A/out.tsv", *words) == (2, "", f"geval: {message}\n")


@pytest.mark.parametrize("more", [[], ["--no-check"], ["--trial"]])
def test_a_file_that_is_not_named_as_an_output_is_not_sent(geval, tmp_path, monkeypatch, more):
    monkeypatch.setenv("GEVAL_BOARD_TOKEN", "x")
    output_in(tmp_path).rename(tmp_path / "test-A/good.tsv")
    words = [f"{tmp_path}/test-A/good.tsv", "-t", "test-A", "--board", f"http://127.0.0.1:{free_port()}", *more]
    message = "geval: `good.tsv` is neither an archive (.zip, .tar, .tar.gz, .tgz, .tar.xz, .tar.zst) "
    message += "nor an output such as out.tsv: rename it to out.tsv, or out-NAME.tsv\n"
    assert geval("submit", *words) == (2, "", message)


def test_a_board_that_is_not_there(run, tmp_path):
    address = f"http://127.0.0.1:{free_port()}"
    _, err = run("submit", output_in(tmp_path), "--board", address, status=1, GEVAL_BOARD_TOKEN="x")
    message = "geval: The upload may not have arrived: the board does not answer ([Errno 111] Connection refused)\n"
    assert err == message + "  send it again: the same file counts once\n"


class Deaf(BaseHTTPRequestHandler):
    """A board that takes an upload, and then answers nothing but 503."""

    def do_PUT(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        content = json.dumps({"number": "0123", "arrived": "2027-01-09T00:00:00Z", "receipt": "a.b.c", "note": ""})
        self.send_response(201)
        self.end_headers()
        self.wfile.write(content.encode())
        Deaf.sent.append(self.path)

    def do_GET(self):
        self.send_response(503)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def deaf(monkeypatch):
    monkeypatch.setenv("GEVAL_BOARD_TOKEN", "x")
    monkeypatch.setattr(submit, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(submit, "PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(Deaf, "sent", [], raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Deaf) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_what_has_arrived_is_never_told_as_refused(geval, deaf, tmp_path):
    status, out, err = geval("submit", str(output_in(tmp_path)), "--board", deaf)
    assert (status, out) == (0, "0123  arrived 2027-01-09T00:00:00Z\n  receipt  a.b.c\n")
    assert err == "geval: note: it has arrived, and its state is not known yet: look at your page of the board\n"


def test_archives_are_checked_and_the_test_name_is_honoured(geval, deaf, tmp_path):
    output_in(tmp_path)
    (tmp_path / "dev-0").mkdir()
    (tmp_path / "dev-0/out.tsv").write_text("a\n")
    packed = shutil.make_archive(str(tmp_path / "team"), "zip", tmp_path, "dev-0")
    status, out, err = geval("submit", packed, "--board", deaf)
    assert (status, out, Deaf.sent) == (1, "", [])
    assert "E113 no-colon (error): 1 line, 100 %" in err
    status, _, err = geval("submit", packed, "-t", "test-B", "--board", deaf)
    told = "it has no output: test-B/out.tsv, or variants such as out-NAME.tsv; `dev-0/out.tsv` is not in its place"
    assert (status, Deaf.sent, told in err) == (1, [], True)
    assert geval("submit", str(tmp_path), "-t", "test-B", "--board", deaf) == (
        2, "", f"geval: `{tmp_path}` has no test set `test-B`\n  there are test-A, dev-0\n",
    )  # fmt: skip
    assert geval("submit", str(tmp_path), "-t", "test-A", "--board", deaf)[0] == 0
    assert Deaf.sent == [f"/upload/{tmp_path.name}.zip?"]


def test_an_archive_is_written_to_be_uploaded(geval, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = output_in(tmp_path)
    (tmp_path / "gonito.yaml").write_text("description: mine\n")
    (tmp_path / "secret.txt").write_text("not to be sent")
    for words, names in ((["."], ["gonito.yaml", "test-A/out.tsv"]), ([str(path)], ["test-A/out.tsv"])):
        assert geval("submit", *words, "--pack", "team.zip")[::2] == (
            0, "geval: wrote `team.zip`, which a board takes\n",
        )  # fmt: skip
        with zipfile.ZipFile("team.zip") as archive:
            assert sorted(archive.namelist()) == names
    path.write_text("a:0,5\n")
    status, out, err = geval("submit", ".", "--pack", "other.zip")
    assert (status, out, Path("other.zip").exists()) == (1, "", False)
    assert "E114 not-a-number (error)" in err
    message = "geval: argument --pack: `team.tar` is not the name of an archive such as team.zip\n  geval submit --help shows the options\n"
    assert geval("submit", ".", "--pack", "team.tar") == (2, "", message)


@pytest.mark.slow
def test_a_server_that_is_killed_loses_nothing_that_has_a_receipt(run, board, token, tmp_path):
    board.process.terminate()
    board.process.communicate(timeout=20)
    process = board.serve(start_alone)
    path = output_in(tmp_path, GOOD.replace("0.06", "0.04").replace("0.91", "0.93"))
    out, _ = run("submit", path, "--board", board.address, "--no-wait", GEVAL_BOARD_TOKEN=token)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=20)  # and its worker has ended, which has its standard error too
    board.process = board.serve()
    told, _ = run("submit", path, "--board", board.address, GEVAL_BOARD_TOKEN=token)
    assert "  scored\n" in told
    assert out.count(".") == 2  # a JSON Web Signature


COLUMNS = "Cannot read `{path}`: line 2: it needs one value for each column"
NO_NAME = "nobody in `{path}` was invited\n  line 2: the name `` has no visible letter"


@pytest.mark.parametrize(("text", "message"), [
    ("name,team\nann\n", COLUMNS), ("name,team\nann,a,b\n", COLUMNS), ("name,team\n,a\n", NO_NAME),
])  # fmt: skip
def test_a_list_of_people_that_is_wrong(geval, board, tmp_path, text, message):
    path = tmp_path / "people.csv"
    path.write_text(text)
    words = ["--list", str(path), "--url", "https://board.example.org"]
    assert geval("board", "invite", str(board.folder), *words) == (1, "", f"geval: {message.format(path=path)}\n")


def test_a_link_needs_an_address(geval, board):
    message = "geval: the address of the server is missing\n  set it with --url URL, or with `url` in board.yaml\n"
    assert geval("board", "invite", str(board.folder), "eve") == (2, "", message)


def test_a_token_that_the_board_does_not_know_is_refused(run, board, tmp_path):
    _, err = run("submit", output_in(tmp_path), "--board", board.address, status=1, GEVAL_BOARD_TOKEN="x")
    assert err == "geval: The upload was refused: the board does not know this token\n"


@pytest.mark.slow
def test_work_ends_when_nothing_waits(run, board):
    assert run("board", "work", board.folder, "--once") == ("", "geval: note: 0 jobs done\n")
