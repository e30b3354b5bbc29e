"""Commands that work for long: a bar on a terminal says so from the first second on, and an interrupt ends them."""

import lzma
import os
import pty
import random
import select
import shlex
import shutil
import signal
import subprocess
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path

import pytest
from command_lines import LONG_LINES
from test_frozen_outputs import FROZEN, WITH_FORMATS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal is Unix's")
GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"
TIMES = 60  # that each line of the sample challenge is there: then no command is done before it is interrupted
PROGRAM = """\
import sys
from geval_py.__main__ import main
from geval_py.cli import terminal
terminal.PATIENCE_SECONDS = 0
sys.exit(main())
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    place = tmp_path_factory.mktemp("large") / "challenge"
    shutil.copytree(GAZETTE, place)
    for name in ("dev-0", "test-A", "train"):
        compressed = place / name / "in.tsv.xz"
        (place / name / "in.tsv").write_bytes(lzma.decompress(compressed.read_bytes()))
        compressed.unlink()
        for path in (place / name).glob("*.tsv"):
            path.write_bytes(path.read_bytes() * TIMES)
    shutil.copy(place / "train/in.tsv", place / "words.txt")
    return place


def on_terminal(program, folder, columns=80):
    """Start a program on a terminal; return the process, and what reads the terminal."""
    reader, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, columns))
    env = os.environ | {"TERM": "xterm", "NO_COLOR": "1"}
    process = subprocess.Popen(program, cwd=folder, stdin=terminal, stdout=terminal, stderr=terminal, env=env)
    os.close(terminal)
    return process, reader


def read_until(reader, text):
    shown = ""
    while text not in shown:
        try:
            shown += os.read(reader, 1 << 16).decode(errors="replace")
        except OSError:  # the process ended
            break
    return shown


def interrupt(process):
    """Interrupt a process; return the seconds of processor time that it took to end, however busy the machine is."""
    stat = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    before = sum(map(int, stat[11:13])) / os.sysconf("SC_CLK_TCK")
    process.send_signal(signal.SIGINT)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == -signal.SIGINT
    return usage.ru_utime + usage.ru_stime - before


@pytest.mark.parametrize("words", [
    pytest.param(words, marks=pytest.mark.long if n % 6 else ()) for n, words in enumerate(LONG_LINES)
], ids=" ".join)  # fmt: skip
def test_a_long_command_shows_a_bar_and_is_interrupted(words, large):
    """Nothing is there that is written in part."""
    before = {path.name for path in large.rglob("*")}
    process, reader = on_terminal([sys.executable, "-c", PROGRAM, *words], large)
    assert "00:0" in read_until(reader, "00:0")  # the time of what is done, or of a part of it
    interrupt(process)
    os.close(reader)
    new = {path.name for path in large.rglob("*") if path.suffix != ".journal"} - before  # a journal is kept
    assert new <= {*words}  # what was done just then, if anything


@pytest.mark.slow
def test_an_interrupt_amid_a_destructor_is_not_forgotten():
    program = """\
import signal, sys, time
from geval_py import __main__
class Interrupted:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
def run():
    Interrupted()
    time.sleep(1)
    print("done")
__main__.run = run
sys.exit(__main__.main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def write_texts(folder, lines, words):
    """Write lines of random words, and the same with a third of the words changed."""
    draw = random.Random(1)
    vocabulary = [f"w{n}" for n in range(3000)]
    for name, share in (("expected.tsv", 0), ("out.tsv", 0.3)):
        text = random.Random(2)
        rows = ([text.choice(vocabulary) for _ in range(words)] for _ in range(lines))
        changed = ((draw.choice(vocabulary) if draw.random() < share else word for word in row) for row in rows)
        (folder / name).write_text("".join(" ".join(row) + "\n" for row in changed))


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "lines", "words"), [
    ("TER", 10_000, 30), pytest.param("chrF", 30_000, 30, marks=pytest.mark.long), ("CER", 1, 100_000),
])  # fmt: skip
def test_a_slow_metric_is_interrupted(metric, lines, words, tmp_path):
    """Also while its work is in threads, or in a library's function that Python cannot interrupt."""
    write_texts(tmp_path, lines, words)
    arguments = ["-o", "out.tsv", "-e", "expected.tsv", "-m", metric]
    process, reader = on_terminal([sys.executable, "-m", "geval_py", *arguments], tmp_path)
    assert "out.tsv: " in read_until(reader, "out.tsv: ")
    time.sleep(0.5)
    seconds = interrupt(process)
    os.close(reader)
    assert seconds < 3  # where the rest of the work takes 4 to 16


@pytest.mark.parametrize(("words", "pipe"), [
    pytest.param(["calibration"], "", marks=pytest.mark.long), pytest.param(["-l"], " | cat", marks=pytest.mark.slow),
])  # fmt: skip
def test_a_bar_is_cleared_before_results(words, pipe, large):
    program = [sys.executable, "-c", PROGRAM, *words, "-t", "dev-0", "-o", "bigram"]
    process, reader = on_terminal(["sh", "-c", shlex.join(program) + pipe], large)
    shown = read_until(reader, "no such text")
    assert process.wait(60) == 0
    os.close(reader)
    bar, _, results = shown.rpartition("\r" + " " * 5)
    assert "00:0" in bar
    assert "00:0" not in results


@pytest.mark.parametrize("columns", [80, 40])
def test_a_real_terminal_shows_what_is_frozen(columns, tmp_path):
    shutil.copytree(GAZETTE, tmp_path / "gazette")
    program = PROGRAM.replace("PATIENCE_SECONDS = 0", "PATIENCE_SECONDS = 600")  # without a bar
    words = [sys.executable, "-c", program, *WITH_FORMATS["compare"].split()]
    process, reader = on_terminal(words, tmp_path, columns)
    shown = read_until(reader, "no such text").replace("\r\n", "\n")
    assert process.wait(60) == 0
    os.close(reader)
    frozen = (FROZEN / f"compare.{columns}.txt").read_text(encoding="utf-8")
    assert frozen.startswith(f"status 0\n--- standard output\n{shown}--- standard error\n")


@pytest.mark.slow
def test_no_bar_for_a_command_that_reads_what_is_typed(tmp_path):
    process, reader = on_terminal([sys.executable, "-c", PROGRAM, "-j", "-T", "minimalistic"], tmp_path)
    assert "00:0" in read_until(reader, "\r      ")  # it is cleared
    time.sleep(0.5)
    os.set_blocking(reader, False)
    with suppress(BlockingIOError):
        assert "00:0" not in os.read(reader, 1 << 16).decode()
    interrupt(process)
    os.close(reader)


LONG_LINES = "lines of 50,000 words or more take long: the time for edits grows with the square of a line"
LONG_TER = "TER needs over 3 GB for a line of 16,000 words, and four times as much for twice"


@pytest.mark.parametrize(("metric", "words", "notes"), [
    *((metric, 50_000, [LONG_LINES]) for metric in ("WER", "CER", "Mean/CAR", "Fuzzy/Accuracy", "CharMatch")),
    *((metric, 49_999, []) for metric in ("WER", "CER")),
])  # fmt: skip
def test_a_note_on_a_long_line(metric, words, notes, tmp_path, geval):
    for name in ("in.tsv", "expected.tsv", "out.tsv"):
        (tmp_path / name).write_text(f"{'a ' * (words - 1)}a\nb\n")
    status, _, err = geval("-o", f"{tmp_path}/out.tsv", "-e", f"{tmp_path}/expected.tsv", "-m", metric)
    assert (status, err) == (0, "".join(f"geval: note: {note}\n" for note in notes))


@pytest.mark.parametrize("words", [16_000, pytest.param(15_999, marks=pytest.mark.long)])
def test_a_note_on_the_memory_of_ter_comes_before_its_work(words, tmp_path):
    for name in ("expected.tsv", "out.tsv"):
        (tmp_path / name).write_text(f"{'a ' * (words - 1)}a\n")
    line = [sys.executable, "-m", "geval_py", "-o", "out.tsv", "-e", "expected.tsv", "-m", "TER"]
    with subprocess.Popen(line, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        noted = select.select([process.stderr], [], [], 60 if words == 16_000 else 5)[0]
        process.kill()
        assert process.stderr.read() == (f"geval: note: {LONG_TER}\n" if words == 16_000 else "")
        assert bool(noted) == (words == 16_000)
