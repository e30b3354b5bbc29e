"""Checks from Python: what a submission's report holds, and what it does not depend on."""

import gzip
import io
import lzma
from contextlib import contextmanager

import pytest
from raising import refused

from geval_py import check, score_file
from geval_py.checking.check import check_targets
from geval_py.checking.rules import RULES, UNREADABLE, select_rules
from geval_py.checking.targets import Target
from geval_py.errors import CorruptFileError
from geval_py.reading.files import File
from geval_py.scoring.kernel.backends import choose_backend
from geval_py.version import __version__

GOOD = "the:0.5 of:0.25 :0.25\n"


@pytest.fixture
def submission(tmp_path):
    for name in ("dev-0", "test-A"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "in.tsv").write_text("x\ny\n")
        (tmp_path / name / "out.tsv").write_text(":1\n" + GOOD)
    (tmp_path / "dev-0/expected.tsv").write_text("the\nof\n")
    return tmp_path


def codes(report):
    return [problem.rule.code for problem in report.problems]


def test_report(submission):
    report = check(submission)
    assert report.version == __version__
    assert report.files == (f"{submission}/dev-0/out.tsv", f"{submission}/test-A/out.tsv")
    assert [(problem.path, problem.rule.code) for problem in report.problems] == [(f, "W214") for f in report.files]
    assert (report.unreadable, report.strict, report.status) == ((), False, 0)


def test_one_output_and_its_challenge_elsewhere(submission, tmp_path):
    (tmp_path / "mine/dev-0").mkdir(parents=True)
    (tmp_path / "mine/dev-0/out.tsv").write_text(GOOD)
    report = check(tmp_path / "mine/dev-0/out.tsv", challenge=submission)
    assert codes(report) == ["E103"]
    assert codes(check(tmp_path / "mine/dev-0/out.tsv")) == ["W108"]


@pytest.mark.parametrize(("output", "found"), [(GOOD * 2, []), (GOOD, ["E103"])])
def test_a_damaged_input_beside_good_answers(output, found, submission):
    (submission / "dev-0/in.tsv").unlink()
    (submission / "dev-0/in.tsv.xz").write_bytes(lzma.compress(b"x\ny\n")[:-9])
    (submission / "dev-0/out.tsv").write_text(output)
    assert codes(check(submission / "dev-0/out.tsv")) == found


HUGE = {
    "-800 5": "E119", "1e308 1e308": "E119", "1e308 -1e308": "E119", "a:1e308 b:-1e308": "E119",
    "a:-1e308 b:-1e308 c:1": "E119", "-1e308 -1": "W306",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@pytest.mark.parametrize("line", HUGE)
def test_numbers_whose_sum_is_no_double(line, submission):
    (submission / "dev-0/expected.tsv").write_text("x\n" * 9)
    (submission / "dev-0/out.tsv").write_text(f"{line}\n" * 9)
    for metric in ("PerplexityHashed1", "LogLossHashed1"):
        assert HUGE[line] in codes(check(submission / "dev-0/out.tsv", metrics=[metric]))
        evaluation = score_file(submission / "dev-0/out.tsv", submission / "dev-0/expected.tsv", metric=metric)
        assert evaluation.score > 0


@pytest.mark.parametrize("name", ["W999", "W2021", "", " ", "no-", "X"])
def test_a_rule_that_there_is_not(name, submission):
    with refused(f"there is no rule `{name}`\n  geval check --rules lists them"):
        check(submission, rules=[name])


def test_standard_input_is_looked_at_again(submission, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode() * 2)))
    (submission / "dev-0/expected.tsv").unlink()
    (submission / "dev-0/expected.tsv.gz").write_bytes(gzip.compress(b"the\nof\n", mtime=0)[:-3])
    report = check("-", challenge=submission, tests=["dev-0"])
    assert [type(error) for error in report.unreadable] == [CorruptFileError]
    assert codes(report) == []


def test_progress_of_each_output(submission):
    said = []

    @contextmanager
    def progress_of(path):
        said.append(f"begin {path}")
        yield lambda done, size: said.append(f"{done} of {size}")
        said.append(f"end {path}")

    path = str(submission / "dev-0/out.tsv")
    check_targets([Target(File(path))], select_rules(), progress_of=progress_of)
    assert said == [f"begin {path}", "25 of 25", f"end {path}"]


@pytest.mark.parametrize(("select", "ignore", "chosen"), [
    ([], [], UNREADABLE), (["w214"], [], UNREADABLE | {"W214"}), (["no-guess"], ["E106", "W214"], UNREADABLE),
    (["W3"], [], UNREADABLE | {"W301", "W302", "W303", "W304", "W305", "W306"}),
    (["w30"], ["w302"], UNREADABLE | {"W301", "W303", "W304", "W305", "W306"}),
    (None, ["W"], {rule.code for rule in RULES if rule.severity == "error"}),
    (["E1", "W2"], ["E10", "W20", "w21"],
     UNREADABLE | {rule.code for rule in RULES if rule.code.startswith(("W22", "E11"))}),
    (None, ["E"], UNREADABLE | {rule.code for rule in RULES if rule.severity == "warning"}),
])  # fmt: skip
def test_select_rules(select, ignore, chosen):
    assert select_rules(select, ignore) == chosen


@pytest.mark.parametrize("backend", ["native", "python"])
@pytest.mark.parametrize("size", [1, 30, 500, 1 << 21])
def test_blocks_are_cut_anywhere_without_a_difference(size, backend, submission, monkeypatch):
    lines = [":1", "a:0.5 b:0 :0.5", "the:x", "", "żółw:1 :1", "of:0.5 :0.5", "a:-1 :-1"] * 40
    (submission / "dev-0/out.tsv").write_text("\n".join(lines))
    (submission / "dev-0/expected.tsv").write_text("Of\nthe\nŻółw\n" * 90)
    want = check(submission / "dev-0", max_places=0)
    assert want.problems
    monkeypatch.setattr("geval_py.reading.lines.BLOCK_BYTES", size)
    monkeypatch.setenv("GEVAL_PY_BACKEND", backend)
    choose_backend.cache_clear()
    try:
        assert check(submission / "dev-0", max_places=0) == want
    finally:
        monkeypatch.undo()
        choose_backend.cache_clear()


def test_a_test_set_or_a_rule_may_be_a_string(submission):
    one = check(submission, tests="dev-0", rules="W3")
    assert one == check(submission, tests=["dev-0"], rules=["W3"])
