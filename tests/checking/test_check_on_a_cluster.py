"""``geval check --cluster``: the same problems, counts, places and words as on one machine."""

import bz2
import gzip
import io
import sys
from pathlib import Path

import pytest
from dask_clusters import QUIET, cut
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profiles import examples

from geval_py import UsageError, check_submission
from geval_py.checking.check import check_output
from geval_py.checking.rules import RULES
from geval_py.checking.targets import Target
from geval_py.reading.preparation import preparation_of
from geval_py.reading.schemes import parse_schemes
from geval_py.scoring.metrics import find_metric

pytestmark = QUIET

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"
ALL = [rule.code for rule in RULES]
GOOD = b"the:0.5 of:0.25 :0.25\n"
ODD = [
    b"a:0.5  b:1",
    b"",
    b"a",
    b"a:x",
    "żółw:0.5 :0.5".encode(),
    b"a\xc2\xad:1",
    b"a\xff:1",
    b"a:1\r",
    b"a:0.9 b:0.9",
]
LINES = [GOOD[:-1], b":1", b"a:-1 b:-2", b"The:1", b"a:0 :0", b"a:1 a:1", *ODD]
MIXED = b"\n".join(LINES * 5) + b"\n"
LOWER = preparation_of(parse_schemes("Macro-F1:l")[0])
WORDS = b"the\nThe\nOf\na\n"


def problems_of(folder, output, expected=None, *, max_places=3, **of_target):
    """Return the function that checks an output, here or on a cluster."""
    (folder / "out.tsv").write_bytes(output)
    if expected is not None:
        (folder / "expected.tsv").write_bytes(expected)
        of_target["expected"] = str(folder / "expected.tsv")
    target = Target(output=str(folder / "out.tsv"), **of_target)

    def check(workers=None):
        return check_output(target, ALL, max_places=max_places, max_bytes=5000, workers=workers)

    return check


@pytest.mark.parametrize(("output", "expected", "more"), [
    (MIXED, WORDS * 19, {}),
    (MIXED, WORDS * 19, {"max_places": 0}),
    (MIXED, None, {}),
    (GOOD.lower() * 40, b"The\n" * 40, {"max_places": 7}),
    (GOOD[1:] * 30, b"Word\n" + b"the\nhe\n" * 15, {"header": "Word"}),
    (b"\xef\xbb\xbfWord\n" + GOOD * 20, b"Word\n" + b"of\n" * 20, {"header": "Word", "header_is_skipped": True}),
    (GOOD.decode().encode("utf-16") * 20, None, {}),
    (b"", b"a\n", {}),
    (bz2.compress(MIXED)[:-7], WORDS * 19, {}),
    (gzip.compress(MIXED * 10), WORDS * 19, {}),
    (b"the:0.5\tof:0.25\t:0.25\n" * 30, None, {}),
    ("Ġthe:0.5 the:0.1 <unk>:0.1 :0.3\n".encode() * 30, b"The\n" * 30, {"max_places": 0}),
    (b"the:0.5 The:0.1 of:0.1 the:0.02 :0.28\n" * 30, None, {"max_places": 4}),
    (b"0.15\n0.85\n" * 20, b"yes\nno\n" * 20, {"metric": find_metric("Accuracy")}),
    (b"1\n0.85\n" * 20, b"1\n0\n" * 20, {"metric": find_metric("MacroAvg/Likelihood")}),
    (b"Yes\nno\nYA\n" * 9, None,
     {"metric": find_metric("Macro-F1"), "preparation": LOWER, "training": "train.tsv"}),
])  # fmt: skip
def test_the_same_problems(output, expected, more, here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.tsv").write_text("yes\nno\n")
    cut(monkeypatch, 150)
    check = problems_of(tmp_path, output, expected, **more)
    assert check(here) == check()


files = st.tuples(
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.sampled_from([b"", b"Word\tmore\n"]),
    st.lists(st.sampled_from(LINES)),
    st.sampled_from([b"", b"\n", b"\r", b"\n\n"]),
)


@pytest.mark.long
@settings(deadline=None, derandomize=True, max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(
    file=files,
    difference=st.sampled_from([0, 0, -1, 3]),
    size=st.integers(1, 120),
    places=st.sampled_from([0, 1, 4]),
    skipped=st.booleans(),
)
def test_any_output(file, difference, size, places, skipped, processes, tmp_path_factory):
    """Pieces of a byte to the whole file."""
    mark, header, rows, end = file
    folder = tmp_path_factory.mktemp("check")
    words = (WORDS.split()[n % 4] + b"\n" for n in range(max(len(rows) + difference, 0)))
    more = {"header": "Word", "header_is_skipped": skipped, "max_places": places}
    check = problems_of(folder, mark + header + b"\n".join(rows) + end, b"".join(words), **more)
    with pytest.MonkeyPatch.context() as patch:
        cut(patch, size)
        assert check(processes) == check()


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_command(form, here, geval, tmp_path, monkeypatch):
    cut(monkeypatch, 50)
    for name in ("dev-0", "test-A"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "in.tsv").write_text("x\n" * 75)
        (tmp_path / name / "out.tsv").write_bytes(MIXED)
    (tmp_path / "test-A" / "out.tsv").write_bytes(GOOD * 75)
    words = ["check", str(tmp_path), "--format", form, "--strict"]
    there = geval(*words, "--cluster", here.address)
    assert there == geval(*words)
    assert (there[0], len(there[1]) > 1000) == (1, True)


def test_from_python(here, tmp_path):
    (tmp_path / "out.tsv").write_bytes(MIXED)
    of = {"challenge": GAZETTE, "tests": ["dev-0"]}
    there = check_submission(tmp_path / "out.tsv", **of, cluster=here.client)
    assert there == check_submission(tmp_path / "out.tsv", **of)
    assert there.problems


def test_what_workers_cannot_read(here, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD)))
    with pytest.raises(UsageError) as caught:
        check_submission("-", cluster=here.client)
    assert str(caught.value) == "the workers of a cluster cannot read standard input: give a file"


@pytest.mark.parametrize("mode", ["--fix", "--diff"])
def test_files_are_fixed_here(mode, geval, tmp_path):
    (tmp_path / "out.tsv").write_bytes(MIXED)
    assert geval("check", str(tmp_path / "out.tsv"), mode, "--cluster", "local") == (
        2,
        "",
        "geval: --fix and --diff work on this machine: leave --cluster out\n",
    )
    assert (tmp_path / "out.tsv").read_bytes() == MIXED
