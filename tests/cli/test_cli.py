"""The ``geval`` command from the outside: what it prints where, and its exit status."""

import gzip
import io
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from geval_py.cli import terminal
from geval_py.version import __version__


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    (tmp_path / "config.txt").write_text("--metric PerplexityHashed --precision 2\n")
    (tmp_path / "dev-0").mkdir()
    (tmp_path / "dev-0/in.tsv").write_text("x\ty\none\ntwo\n")
    (tmp_path / "dev-0/expected.tsv").write_text("a\nb\nc\n")
    (tmp_path / "dev-0/out.tsv").write_text("a:0.5 :0.5\nb:1\n:1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


SCORES = {
    "": "12.70\n", "-p 0": "13\n", "-a LikelihoodHashed -%": "8\n",
    "-a {LogLoss,Perplexity}Hashed": "LogLossHashed\t2.54\nPerplexityHashed\t12.70\n",
    "-a {LogLoss,Perplexity}Hashed{2,4}": "\t2\t4\nLogLossHashed\t0.62\t1.14\nPerplexityHashed\t1.86\t3.11\n",
    "-m LogLossHashed:N<loss> --select-metric loss": "2.54\n",
    "-m LogLossHashed10 --select-metric LogLossHashed": "2.54\n",
    "-a LogLossHashed10:P<2> -a LogLossHashed10:N<Log10>": "LogLossHashed:P<2>\t2.54\nLog10\t2.54\n",
}  # fmt: skip


@pytest.mark.parametrize("words", SCORES)
def test_scores(words, challenge, geval):
    assert geval("-t", "dev-0", *words.split()) == (0, SCORES[words], "")


def test_standard_input_is_read_once_for_all_metrics(challenge, geval, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO((challenge / "dev-0/out.tsv").read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    words = ["-t", "dev-0", "-o", "-", "-m", "LogLossHashed"]
    assert geval(*words) == (0, "PerplexityHashed\t12.70\nLogLossHashed\t2.54\n", "")


SIX = "out-n=1.tsv, out-n=2.tsv, out-n=3.tsv, out-n=4.tsv, out-n=5.tsv, out-n=6.tsv"
EIGHT = f"{SIX}, out-n=7.tsv, out-n=8.tsv and 34 more"
ERRORS_ABOUT_MANY = {
    "-l": f"Multiple outputs are not possible in this mode, use -o option to select an output file\n  there are {EIGHT}",
    "compare --baseline zzz": f"`zzz` is none of the outputs compared\n  there are {EIGHT}",
    "compare out-n=1.tsv zzz": "No file with the test results: `./dev-0/zzz`\n"
    f"  `./dev-0` holds expected.tsv, in.tsv, {SIX} and 36 more",
    "calibration": f"there are several outputs ({EIGHT}): choose one with -o",
}


@pytest.mark.parametrize("command", ERRORS_ABOUT_MANY)
def test_errors_name_a_few_of_many_outputs(command, challenge, geval):
    (challenge / "dev-0/out.tsv").rename(challenge / "dev-0/out-n=1.tsv")
    for number in range(2, 43):
        (challenge / f"dev-0/out-n={number}.tsv").write_text(":1\n:1\n:1\n")
    words = ["-t", "dev-0", *command.split()] if command[0] == "-" else [*command.split(), "-t", "dev-0"]
    assert geval(*words)[2] == f"geval: {ERRORS_ABOUT_MANY[command]}\n"


@pytest.fixture
def standard_input(monkeypatch):
    return lambda data: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


TOKENIZED = {
    "blank lines": (b"\n \n\n", "\n\n\n"), "fields": (b"a,\t\tb!\n", "a , b !\n"),
    "other white space": ("a\u3000b \u0085 \u2028c\u00a0\n".encode(), "a\u3000b \u0085 \u2028 c\n"),
    "compressed": (gzip.compress(b"a,\n"), "a ,\n"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "printed"), TOKENIZED.values(), ids=TOKENIZED)
def test_just_tokenize(data, printed, standard_input, tmp_path, monkeypatch, geval):
    """GEval 1.42.2, -j -T minimalistic."""
    monkeypatch.chdir(tmp_path)
    standard_input(data)
    assert geval("--just-tokenize", "--tokenizer", "minimalistic") == (0, printed, "")


def test_the_tokenizer_of_the_challenge(challenge, standard_input, geval):
    standard_input(b"a\n")
    assert geval("-j") == (2, "", "geval: a tokenizer must be specified with --tokenizer option\n")
    assert geval("-t", "dev-0", "-T", "character-by-character")[1] == "12.70\n"
    (challenge / "config.txt").write_text("--tokenizer character-by-character")
    standard_input(b"ab c\n")
    assert geval("-j") == (0, "a b _ c\n", "")
    standard_input(b"a\tb\x1b\n")
    assert geval("-j", terminal=True) == (0, "a \t b \\x1b\n", "")


ERRORS = [
    (["-e", "dev-0/expectd.tsv"], 1, "No file with the expected results: `dev-0/expectd.tsv`\n  did you mean expected.tsv? `dev-0` holds expected.tsv, in.tsv, out.tsv"),
    (["-t", "dev-0", "--select-metric", "x"], 2, "Cannot find metric named 'x'\n  there are PerplexityHashed"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "status", "message"), ERRORS, ids=[" ".join(words) for words, *_ in ERRORS])
def test_errors(words, status, message, challenge, geval):
    assert geval(*words) == (status, "", f"geval: {message}\n")


def test_options_of_config_txt_that_no_score_depends_on_are_noted(challenge, geval):
    _, out, notes = geval("-t", "dev-0", "-l")
    config = challenge / "config.txt"
    config.write_text(config.read_text() + "--token x --gonito-host example.org\n")
    note = "geval: note: `./config.txt`: --gonito-host, --token ignored; no score depends on it\n"
    assert geval("-t", "dev-0", "-l") == (0, out, note + notes)
    assert geval("check", "dev-0")[::2] == (0, "")


def test_version(geval):
    assert geval("--version")[1].startswith(f"geval-py {__version__} (")


def command(*words):
    return [sys.executable, "-I", "-c", "import sys; from geval_py.__main__ import main; sys.exit(main())", *words]


def test_a_closed_pipe_ends_quietly(challenge):
    (challenge / "dev-0/out.tsv").write_text(":1\n" * 30000)
    for name in ("expected.tsv", "in.tsv"):
        (challenge / "dev-0" / name).write_text("x\n" * 30000)
    words = command("-t", "dev-0", "-l")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith(b"1024.")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


@pytest.mark.parametrize("mode", ["", "-w"], ids=["scoring", "with numpy"])
@pytest.mark.parametrize("ms", [0, 60, *(pytest.param(ms, marks=pytest.mark.long) for ms in range(20, 200, 20))])
def test_an_early_interrupt_ends_quietly(ms, mode, challenge):
    """Until the commands are imported, Python's handler would show a traceback: here it is the default."""
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); print(flush=True); "
    code += "from geval_py.__main__ import main; sys.exit(main())"
    words = [sys.executable, "-I", "-c", code, "-t", "dev-0", "-o", "-", *mode.split()]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        if mode:
            process.stdin.write(b":1\n" * 3)
            process.stdin.close()
        time.sleep(ms / 1000)
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b""
        assert process.wait() in ({-signal.SIGINT, 0} if mode else {-signal.SIGINT})


def test_an_interrupt_that_a_library_logs_ends_quietly():
    code = (
        "import logging, signal, sys\n"
        "import geval_py.__main__ as program\n"
        "def run():\n"
        "    try:\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    except KeyboardInterrupt:\n"
        "        logging.getLogger('pool').error('closing a connection', exc_info=True)\n"
        "program.run = run\n"
        "sys.exit(program.main())"
    )
    ended = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True)
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, b"")


@pytest.mark.slow
@pytest.mark.parametrize(("is_terminal", "patience"), [(True, -1), (True, 1e9), (False, -1)])
@pytest.mark.parametrize(("unit", "amount"), [("bytes", "| 50.0/100 ["), ("items", "| 50/100 [")])
def test_progress_is_shown_on_a_terminal_in_its_unit_after_a_while(is_terminal, patience, unit, amount, monkeypatch):
    monkeypatch.setattr(terminal, "PATIENCE_SECONDS", patience)
    shown = io.StringIO()
    shown.isatty = lambda: is_terminal
    monkeypatch.setattr(sys, "stderr", shown)
    with terminal.ProgressBar("out\x1b.tsv", unit=unit) as bar:
        bar(30, 100)
        bar(50, 100)
        time.sleep(0.5)  # it is drawn five times a second
    text = re.sub("\x1b\\[[0-9;]*m", "", shown.getvalue())
    is_shown = is_terminal and patience < 0
    assert ("out\\x1b.tsv" in text, amount in text) == (is_shown, is_shown)
    assert ("B/s" in text) == (is_shown and unit == "bytes")
    assert "out\x1b" not in shown.getvalue()


@pytest.mark.slow
def test_the_bar_is_not_drawn_amid_a_message(monkeypatch):
    """Also if the message takes longer than the time from one drawing to the next."""
    monkeypatch.setattr(terminal, "PATIENCE_SECONDS", -1)
    monkeypatch.setattr(terminal, "DRAWING_SECONDS", 0.01)
    shown = io.StringIO()
    shown.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", shown)

    def lines():
        for line in ("geval: note: one\n", "  two\n", "  three\n"):
            yield line
            time.sleep(0.2)

    with terminal.ProgressBar("out"):
        time.sleep(0.2)
        sys.stderr.writelines(lines())
        time.sleep(0.2)
    text = shown.getvalue()
    assert text.index("out: 00:0") < text.index("geval: note: one\n  two\n  three\n") < text.rindex("out: 00:0")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal is Unix's")
def test_progress_is_shown_on_a_terminal_that_reports_no_width(monkeypatch):
    monkeypatch.setattr(terminal, "PATIENCE_SECONDS", -1)
    controller, device = os.openpty()
    assert os.get_terminal_size(device).columns == 0
    with open(device, "w") as shown, monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", shown)
        with terminal.ProgressBar("out") as bar:
            bar(50, 100)
            time.sleep(0.5)
        assert b"50.0/100" in os.read(controller, 4096)
    os.close(controller)


def test_a_full_disk(challenge):
    with open("/dev/full", "w") as full:
        run = subprocess.run(command("-t", "dev-0"), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (run.returncode, run.stderr) == (1, "geval: cannot write the output: No space left on device\n")


@pytest.mark.parametrize(("closed", "words", "result"), [
    ("2>&-", ["-t", "dev-0", "-i", "no.tsv"], (0, "12.70\n", "")), ("2>&-", ["-t", "no"], (1, "", "")),
    ("<&-", ["-t", "dev-0", "-o", "-"], (1, "", "geval: Cannot read standard input: it is closed\n")),
    (">&-", ["-t", "dev-0"], (1, "", "geval: cannot write the output: standard output is closed\n")),
    (">&-", ["check"], (1, "", "geval: cannot write the output: standard output is closed\n")),
    ("<&- >&- 2>&-", ["-t", "dev-0"], (1, "", "")),
], ids=lambda value: value if isinstance(value, str) else " ".join(map(str, value)))  # fmt: skip
def test_closed_standard_streams(closed, words, result, challenge):
    """Notes go nowhere with a closed standard error, not among the scores."""
    run = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *command(*words)], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == result


def test_too_little_memory(challenge, geval, monkeypatch):
    from geval_py.cli import score

    def fail(task, settings):
        raise MemoryError

    monkeypatch.setattr(score, "run", fail)
    assert geval() == (1, "", "geval: not enough memory for what there is to read\n")


def test_a_missing_file_is_named_as_it_was_given(tmp_path, geval, monkeypatch):
    """Where there is no challenge, no folder of a test set is meant."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.tsv").write_text("a\n")
    for output, answers, what in (("a.tsv", "b.parquet", "expected"), ("b.parquet", "a.tsv", "test")):
        found = geval("-o", output, "-e", answers, "-m", "PerplexityHashed")
        assert found == (1, "", f"geval: No file with the {what} results: `b.parquet`\n")
    (tmp_path / "config.txt").write_text("-m PerplexityHashed --expected-file b.tsv\n")
    message = "geval: No test subdirectory with the expected results: `./dev-9`\n"
    assert geval("-t", "dev-9")[2].startswith(message)


def test_an_output_beside_other_answers_is_noted(challenge, geval):
    (challenge / "test-A").mkdir()
    for name in ("expected.tsv", "out.tsv"):
        (challenge / "test-A" / name).write_bytes((challenge / "dev-0" / name).read_bytes())
    note = "geval: note: `dev-0/out.tsv` lies beside other answers than `./test-A/expected.tsv`, "
    note += "with which it was scored; was -t dev-0 meant?\n"
    assert geval("-o", "dev-0/out.tsv") == (0, "12.70\n", note)
    assert geval("-t", "dev-0", "-o", "dev-0/out.tsv") == (0, "12.70\n", "")
    assert geval("-o", "dev-0/out.tsv", "-e", "dev-0/expected.tsv") == (0, "12.70\n", "")
    (challenge / "dev-0/expected.tsv").unlink()
    (challenge / "dev-0/expected.jsonl").write_text('{"answer": "x"}\n')
    assert geval("-o", "dev-0/out.tsv")[2].endswith("was -t dev-0 meant?\n")
    (challenge / "dev-0/expected.jsonl").unlink()
    assert geval("-o", "dev-0/out.tsv") == (0, "12.70\n", "")
    (challenge / "test-A/part").mkdir()
    (challenge / "test-A/expected.tsv").rename(challenge / "test-A/part/expected.tsv")
    (challenge / "dev-0/expected.tsv").write_bytes((challenge / "test-A/part/expected.tsv").read_bytes())
    answers = "test-A/part/expected.tsv"  # not of one challenge
    assert geval("-o", "dev-0/out.tsv", "-e", answers) == (0, "12.70\n", "")
