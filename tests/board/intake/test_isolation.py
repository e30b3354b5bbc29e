"""Children: what they give, and what happens to those that blow up."""

import json
import math
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from output_formats import write_as
from processes import is_alive
from samples import write_answers
from story import run_here

from geval_py import evaluate
from geval_py.board.intake import child as child_process
from geval_py.board.intake import sandbox as isolation
from geval_py.board.intake import sources
from geval_py.board.intake.sandbox import process_source, run_in_sandbox
from geval_py.board.settings import BoardSettings, Limits, Test
from geval_py.board.submission import unpack
from geval_py.reading.compression import zstd_module
from geval_py.reading.config import DEFAULT_SEED

GAZETTE = Path(__file__).parents[3] / "challenges" / "gazette"
BIGRAM = (GAZETTE / "dev-0" / "out-model=bigram.tsv").read_bytes()
ANSWERS = (GAZETTE / "dev-0" / "expected.tsv").read_bytes()
OUT = "dev-0/out-model=bigram.tsv"
NL = b"\n"
METRICS = ("PerplexityHashed", "LogLossHashed")


@pytest.fixture
def settings():
    return BoardSettings(
        title="Gazette", challenge=str(GAZETTE), answers="/nowhere", metric="PerplexityHashed", also=("LogLossHashed",),
        tests=(Test(name="dev-0"),), limits=Limits(bytes=10_000_000, files=20, seconds=60, memory=2_000_000_000),
    )  # fmt: skip


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "place"
    path.mkdir()
    return str(path)


@pytest.fixture
def look(place, folder, settings, monkeypatch):
    """Receive files and look into them in this process; everything is wanted."""
    monkeypatch.setattr(isolation, "run_in_sandbox", run_here)
    return lambda files, settings=settings: process_source(str(folder(files)), place, settings, settings.metrics)


def test_what_is_received_and_scored(look):
    findings = look({OUT: BIGRAM, "dev-0/out-model=unigram.tsv.zst": zstd_module().compress(b":1\n" * 212)})
    expected = [evaluate(GAZETTE, "dev-0", output="out-model=bigram.tsv", metric=metric) for metric in METRICS]
    main, other = findings.scored[:2]
    assert [one.score for one in findings.scored[:2]] == [evaluation.score for evaluation in expected]
    assert [one.signature for one in findings.scored[:2]] == [str(evaluation.signature) for evaluation in expected]
    interval = expected[0].interval(samples=1000, seed=DEFAULT_SEED)
    assert (main.low, main.high) == pytest.approx((interval.low, interval.high), rel=1e-12)
    assert unpack(main.losses, 212) == (expected[0].line_losses,)
    assert main.lines == 212
    assert (other.low, other.high, other.losses) == (None, None, None)
    assert [one.file for one in findings.scored[:2]] == [OUT, OUT]
    assert [one.metric for one in findings.scored] == [*METRICS, *METRICS]
    assert round(findings.scored[2].score, 6) == 1024
    (problem,) = findings.problems
    assert (problem["rule"], problem["path"]) == ("W214", "dev-0/out-model=unigram.tsv.zst")


@pytest.mark.slow
def test_other_formats_are_received_and_scored(place, folder, settings, tmp_path):
    files = {OUT: BIGRAM}
    for ending in (".jsonl.xz", ".parquet", ".csv"):
        write_as(tmp_path / f"new{ending}", BIGRAM.decode().splitlines())
        files[f"dev-0/out-of={ending[1:]}{ending}"] = (tmp_path / f"new{ending}").read_bytes()
    findings = process_source(str(folder(files)), place, settings, settings.metrics)
    assert [problem["severity"] for problem in findings.problems if problem["severity"] == "error"] == []
    assert len({one.score for one in findings.scored if one.metric == METRICS[0]}) == 1
    assert len(findings.scored) == 8


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_bad_files_in_other_formats_are_rejected(look, ending):
    csv = b"id,label,p\n1,a,x\n", "row 2, column `p`: `x` is not a number"
    data, reason = csv if ending == "csv" else (b"PAR1" * 9, "it is not well-formed Parquet: ")
    findings = look({f"dev-0/out.{ending}": data})
    assert findings.reason.startswith(f"`dev-0/out.{ending}`: the output cannot be read: {reason}")


@pytest.mark.parametrize("line", [b"\xff:0.5 \xed\xb2\x80:1,\n", b"a:0,5 \xff:0.1\n"])
def test_texts_that_are_no_utf_8_are_told(look, line):
    result = look({OUT: line * 212, "gonito.yaml": b"tags: [mine]\nlinks: [{href: http://x}]\n"})
    assert (result.state, result.parcel.details.tags) == ("rejected", ["mine"])
    assert [(one["severity"], one["summary"]) for one in result.problems[-2:]] == [
        ("note", "gonito.yaml, line 2: `url` is missing"),
        ("note", "gonito.yaml, line 2: unknown key `href`"),
    ]


@pytest.mark.parametrize(("data", "reason"), [
    (BIGRAM[:-1].rpartition(b"\n")[0], f"`{OUT}`: the output has 211 lines for 212 items [E103]"),
    (b"", f"`{OUT}`: the output has no line [E102]"), (b"x\n" * 212, f"`{OUT}`: an entry has no colon [E113]"),
    (b"\xff\xfea\0:\0" * 9, f"`{OUT}`: the output cannot be read: it is UTF-16 or UTF-32 text; write it as UTF-8 (in "
     "PowerShell, with `Out-File -Encoding utf8`) [E106]"),
], ids=["too-few", "empty", "no-colon", "utf-16"])  # fmt: skip
def test_an_error_of_the_checker_rejects_and_nothing_is_scored(look, data, reason):
    findings = look({OUT: data})
    assert (findings.scored, findings.state, findings.reason) == ((), "rejected", reason)
    assert {problem["path"] for problem in findings.problems} == {OUT}
    text = findings.problems[0]["text"]  # as geval check tells it
    assert (text[0][:7], text[-1][:12]) == (f"  {reason[-5:-1]} ", "    To fix: ")


def test_a_vector_has_as_many_numbers_as_the_metric_has_buckets(look, settings):
    """Those of board.yaml, whatever the metric of the challenge."""
    vectors = b"".join(b" ".join([b"-5.545"] * 256) + NL for _ in range(212))
    findings = look({OUT: vectors}, replace(settings, metric="PerplexityHashed8", also=()))
    assert (findings.reason, round(findings.scored[0].score)) == ("", 256)


def test_the_rules_that_need_the_answers_are_left_out(look):
    """W301 and W302 would say which words are in the answers."""
    findings = look({OUT: b"the:1\n" * 212})
    assert {problem["rule"] for problem in findings.problems} == {"W204"}
    said, main = json.dumps(findings.problems), findings.scored[0]
    words = {word for word in ANSWERS.decode().split() if len(word) > 5}
    assert not [word for word in words if word in said]
    assert (main.score, main.low, main.high) == (math.inf, 1.0, math.inf)


@pytest.mark.parametrize("kept", [slice(1, None), slice(-1), slice(None, None, -1), slice(0, 100)])
def test_no_finding_depends_on_the_hidden_answers(look, place, settings, tmp_path, kept):
    """Else trials, which cost no quota, would tell the answers one by one."""
    answers, found = ANSWERS.decode().split(), []
    for number, hidden in enumerate((answers, sorted(answers), ["zebra"] * len(answers))):
        write_answers(tmp_path / str(number), hidden, "dev-0")
        output = "".join(f"{word}:0.9 :0.1\n" for word in answers[kept])
        result = look({OUT: output.encode()}, replace(settings, answers=str(tmp_path / str(number))))
        found.append((result.state, result.reason, result.problems))
        shutil.rmtree(place)
        os.mkdir(place)
    assert found[0] == found[1] == found[2]


def test_an_output_that_unpacks_to_too_much(look, settings):
    small = replace(settings, limits=replace(settings.limits, bytes=10_000))
    reason = "the output cannot be read: it unpacks to more than 10000 bytes [E105]"
    findings = look({"dev-0/out.tsv.zst": zstd_module().compress(b":1\n" * 10_000)}, small)
    assert findings.reason == f"`dev-0/out.tsv.zst`: {reason}"


def test_an_output_beyond_what_its_test_set_needs_is_not_checked(look, monkeypatch):
    monkeypatch.setattr(child_process, "LINE_BYTES", 1)
    monkeypatch.setattr(sources, "FREE_BYTES", 1)
    assert look({OUT: BIGRAM}).reason == f"`{OUT}` is larger than 212 bytes"


@pytest.mark.parametrize(("name", "error"), [("expected.tsv.xz", "CorruptFileError"), ("x", "MissingFileError")])
def test_bad_answers_are_not_the_submitters_fault_and_not_shown(look, settings, tmp_path, name, error):
    (tmp_path / "answers" / "test-A").mkdir(parents=True)
    (tmp_path / "answers" / "test-A" / name).write_bytes(b"\xfd7zXZ\0canary")
    hidden = replace(settings, answers=str(tmp_path / "answers"), tests=(Test(name="test-A"),), challenge="/nowhere")
    result = look({"test-A/out.tsv": BIGRAM}, hidden)
    reason = f"the challenge's files for test-A cannot be used ({error})"
    assert (result.state, result.reason, result.parcel.digest != "") == ("failed", reason, True)


def test_a_metric_that_averages_over_classes_has_an_interval_and_no_losses(look, settings):
    (one,) = look({OUT: BIGRAM}, replace(settings, metric="MacroAvg/Accuracy", also=())).scored
    assert (one.low < one.score < one.high, one.losses) == (True, None)


@pytest.mark.parametrize(("ranking", "also", "state", "reason"), [
    ("LogLossHashed:f<out:qx>", (), "rejected", f"`{OUT}`: No item has the feature `out:qx'"),
    ("LogLossHashed:f<exp:qx>", (), "failed", "dev-0 cannot be scored: No item has the feature `exp:qx'"),
    ("LogLossHashed", ("LikelihoodHashed:f<out:qx>", "PerplexityHashed"), "scored", ""),
], ids=["of outputs", "of answers", "only shown"])  # fmt: skip
def test_a_filter_that_selects_no_line(look, settings, ranking, also, state, reason):
    result = look({OUT: b":1\n" * 212}, replace(settings, metric=ranking, also=also))
    assert (result.state, result.reason) == (state, reason)
    if also:
        found = [one.score for one in result.scored]
        assert found == [pytest.approx(math.log(1024)), None, pytest.approx(1024)]


@pytest.fixture
def program(monkeypatch):
    return lambda code: monkeypatch.setattr(isolation, "PROGRAM", HARNESS + code)


@pytest.fixture
def child(monkeypatch, program, settings):
    def run(code, place, limits=LIMITS):
        monkeypatch.setattr(isolation, "GRACE_SECONDS", 0)
        program(code)
        result = run_in_sandbox({}, replace(settings, limits=limits), place)
        return json.loads(result.reason) if result.state == "scored" else result

    return run


HARNESS = """
import json, os, resource, subprocess, sys, time
from geval_py.board.intake import child as process
main, place, parent = process.main, sys.argv[1], int(sys.argv[2])
def do(job):
    process.process = lambda arguments, place: process.Result(reason=json.dumps(job()))
    os._exit(main(place, parent))
"""
SLEEPER = """\
sleeper = subprocess.Popen(['sleep', '60'], stderr=subprocess.DEVNULL)
open(place + '/pid', 'w').write(str(sleeper.pid))
"""
LIMITS = Limits(bytes=1_000_000, files=10, seconds=20, memory=300_000_000)


def pid_in(place):
    pid = Path(place, "pid")
    while not (pid.exists() and pid.read_text()):
        time.sleep(0.02)
    return int(pid.read_text())


@pytest.mark.slow
@pytest.mark.parametrize(("code", "reason"), [
    ("do(lambda: {'x': len(bytearray(10**9))})", "it needs more than 300000000 bytes of memory"),
    ("os._exit(3)", "the sandbox process ended with status 3"), ("1 / 0", "the sandbox process ended with status 1"),
    ("resource.setrlimit(resource.RLIMIT_CPU, (1, 2))\nwhile True: pass", "it exceeded the limit of processor time"),
    ("open(place + '/answer.json', 'w').write('[1]')", "the sandbox process ended with status 0"),
], ids=["memory", "status", "error", "processor", "no-answer"])  # fmt: skip
def test_a_child_that_blows_up(child, place, code, reason):
    result = child(code, place)
    assert (result.state, result.reason) == ("failed", reason)


@pytest.mark.parametrize(
    ("code", "name"), [("os.abort()", "SIGABRT"), ("import ctypes; ctypes.string_at(0)", "SIGSEGV")]
)
def test_a_submission_that_crashes_its_child_is_rejected(program, place, folder, settings, code, name):
    """pyarrow may crash on a file. What was received is there, to be stored."""
    program(f"def crash(*_): {code}\nprocess.check = crash\nmain(place, parent)")
    result = process_source(str(folder({OUT: BIGRAM})), place, settings, METRICS)
    assert (result.state, result.reason) == ("rejected", f"the sandbox process was killed ({name})")
    assert [file.name for file in result.parcel.files] == [OUT]


@pytest.mark.slow
def test_a_child_that_takes_too_long_is_killed_with_its_own_children(child, place):
    before, limits = time.monotonic(), replace(LIMITS, seconds=2)
    code = f"{SLEEPER}time.sleep(60)".replace(", stderr=subprocess.DEVNULL", "")  # it holds the child's stream open
    assert child(code, place, limits).reason == "it took more than 2 seconds"
    assert time.monotonic() - before < 15
    assert not is_alive(pid_in(place))


def test_what_a_child_leaves_behind_is_killed(child, place):
    assert child(f"{SLEEPER}do(lambda: {{'x': 1}})", place) == {"x": 1}
    assert not is_alive(pid_in(place))


def test_a_file_that_grows_too_large(child, place):
    code = "do(lambda: {'x': open(place + '/large', 'wb').write(bytes(2_000_000))})"
    result = child(code, place)
    assert (result.state, result.reason) == ("failed", "a file could not be read or written: File too large")
    assert os.path.getsize(os.path.join(place, "large")) <= 1_000_000


@pytest.mark.parametrize(("code", "aside"), [
    ("for _ in range(3000): sys.stderr.write('x' * 1000)\nsys.exit(1)", "x" * 2000),
    ("raise ValueError('the answer is \\x1b[1m canary')", "ValueError: the answer is \\x1b[1m canary"),
], ids=["much", "answers"])  # fmt: skip
def test_only_the_organiser_sees_what_a_child_says_shortened(child, place, code, aside):
    """It may quote the answers."""
    result = child(code, place)
    assert (result.reason, result.aside) == ("the sandbox process ended with status 1", aside)


def test_what_a_child_sees_of_its_parent(child, place, monkeypatch):
    """No environment but what it needs, no input, a session of its own, a low priority, no core.

    No file is open but three streams, and the folder that is listed.
    """
    monkeypatch.setenv("GEVAL_BOARD_DATABASE", "postgresql://user:secret@host/db")
    monkeypatch.setenv("PYTHONPATH", "/evil")
    code = (
        "do(lambda: {'environment': dict(os.environ), 'input': sys.stdin.read(), 'session': os.getsid(0) == os.getpid(),"
        " 'nice': os.nice(0), 'core': resource.getrlimit(resource.RLIMIT_CORE)[1], 'isolated': sys.flags.isolated,"
        " 'open': sorted(map(int, os.listdir('/proc/self/fd')))})"
    )
    seen = child(code, place)
    assert not {"GEVAL_BOARD_DATABASE", "PYTHONPATH", "USER", "PWD"} & set(seen["environment"])
    assert seen["environment"]["HOME"] == place
    *streams, listed = seen.pop("open")
    assert (streams, listed > 2) == ([0, 1, 2], True)
    del seen["environment"]
    nice = min(os.nice(0) + child_process.NICENESS, 19)
    assert seen == {"input": "", "session": True, "nice": nice, "core": 0, "isolated": 1}


def test_an_old_answer_is_not_taken_for_a_new_one(child, place):
    assert child("do(lambda: {'x': 1})", place) == {"x": 1}
    result = child("os.kill(os.getpid(), 9)", place)
    assert (result.state, result.reason) == ("failed", "the sandbox process was killed (SIGKILL)")
