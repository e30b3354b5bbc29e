"""``--watch`` on a real terminal: a command that runs again when a file changes."""

import os
import pty
import re
import signal
import subprocess
import sys
import time

import pytest

NEWS = r"\x1b\[H\x1b\[2J\d\d:\d\d:\d\d UTC, changed: dev-0/out\.tsv\r\n"
GOOD = "a:0.5 :0.5\nb:0.5 :0.5\n"


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    (tmp_path / "config.txt").write_text("--metric PerplexityHashed --precision 2\n")
    (tmp_path / "dev-0").mkdir()
    (tmp_path / "dev-0/in.tsv").write_text("x\ny\n")
    (tmp_path / "dev-0/expected.tsv").write_text("a\nb\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "bad", "good"),
    [
        ("-t dev-0", r"geval: Line 1: .*", "2.00"),
        ("check -t dev-0 --also json=out.json", r"\./dev-0/out\.tsv\r\n.* 1 file", "no problems in 1 file"),
        ("-t dev-0 --output out.txt", r"geval: Line 1: .*", "2.00\n"),
    ],
    ids=["scores", "check", "output"],
)
def test_a_command_runs_again_when_a_file_changes(words, bad, good, challenge):
    """If a file is written, and if it is replaced, as editors do; what the command itself writes starts no run."""
    output, result = challenge / "dev-0/out.tsv", challenge / "out.txt"
    output.write_text("a:0,5 :0.5\nb:0.5 :0.5\n")
    terminal, theirs = pty.openpty()
    command = [sys.executable, "-m", "geval_py", *words.split(), "--watch"]
    env = os.environ | {"TERM": "xterm", "NO_COLOR": "1"}
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        shown, rest = "", ""

        def read_until(pattern):
            nonlocal shown, rest
            while (match := re.search(f"(?s){pattern}", rest)) is None:
                new = os.read(terminal, 1 << 16).decode()
                shown, rest = shown + new, rest + new
            rest = rest[match.end() :]

        def run_again(change, *arguments):
            change(*arguments)
            read_until(NEWS)
            if "--output" not in words:
                read_until(re.escape(good))
            else:
                while not result.exists() or result.read_text() != good:
                    time.sleep(0.01)
                result.unlink()

        try:
            read_until(bad)
            run_again(output.write_text, GOOD)
            for name in ("new", "newer"):
                (challenge / name).write_text(GOOD)
                run_again((challenge / name).rename, output)
                time.sleep(0.3)
        finally:
            process.send_signal(signal.SIGINT)
    assert process.returncode == -signal.SIGINT
    os.close(terminal)
    assert shown.count(" changed: ") == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-o -", "Cannot watch standard input: --watch needs files on this machine"),
        ("-e s3://runs/expected.tsv", "Cannot watch `s3://runs/expected.tsv`: --watch needs files on this machine"),
        ("check - -t dev-0", "Cannot watch standard input: --watch needs files on this machine"),
        ("check --fix", "argument --watch: not allowed with argument --fix\n  geval check --help shows the options"),
        ("--init", "--watch has no effect with --init: leave it out"),
        ("-j", "--watch has no effect with --just-tokenize: leave it out"),
    ],
)
def test_what_cannot_be_watched(words, message, challenge, geval):
    assert geval(*words.split(), "--watch") == (2, "", f"geval: {message}\n")


def test_the_package_is_named_if_it_is_missing(challenge, geval, monkeypatch):
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    message = "--watch needs watchfiles, of the extra watch: pip install 'watchfiles>=1'"
    assert geval("-t", "dev-0", "--watch") == (2, "", f"geval: {message}\n")
