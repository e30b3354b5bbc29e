"""Every rule: the smallest output that shows it, one that nearly does, and what is said, to the letter."""

import bz2
import gzip
import json
import lzma
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from backports import zstd

from geval_py.checking.check import check_output
from geval_py.checking.fixes import DIFF_LINES, fix_file
from geval_py.checking.rules import RULES, RULES_BY_CODE, Problem
from geval_py.checking.targets import Target, find_targets, with_options
from geval_py.reading.files import File

ROOT = Path(__file__).parent.parent.parent
ALL = [rule.code for rule in RULES]


@pytest.fixture
def check(tmp_path):
    """Check an output (bytes) and give its problems by code."""

    def run(output, expected=None, rules=ALL, header=None, header_is_skipped=False, **options):
        path = tmp_path / "out.tsv"
        path.write_bytes(output)
        known = {}
        if expected is not None:
            (tmp_path / "expected.tsv").write_bytes(expected)
            known["expected"] = File(str(tmp_path / "expected.tsv"))
        if header is not None:
            (tmp_path / "out-header.tsv").write_text(f"{header}\n")
        (tmp_path / "config.txt").write_text("--out-header out-header.tsv" if header_is_skipped else "")
        target = Target(File(str(path)), str(tmp_path), **known)
        with_options(target)
        problems = check_output(target, {*rules} - {"W108"}, **options)
        return {problem.rule.code: problem for problem in problems}

    return run


def first(problem):
    place = problem.places[0]
    return (place.line, place.column, place.token, place.message)


GOOD = b"the:0.5 of:0.25 :0.25\n"

AS_LOGARITHMS = "is not in [0,1], so all numbers of the line are read as logarithms"
FAR_ABOVE_ONE = "the exponentials of these logarithms total more than 1"
NUMBERS = {  # that are neither probabilities nor their logarithms
    b"the:120 of:60 a:30 :100\n": (1, 5, "the:120", f"`120` {AS_LOGARITHMS}; they look like counts: divide each by their sum; if they are ranks, write probabilities instead"),
    b"the:5.3 of:3.2 and:-1.2 :-2\n": (1, 5, "the:5.3", f"`5.3` {AS_LOGARITHMS}; they look like logits: apply softmax"),
    b"the:45.2 of:14.8 :40\n": (1, 5, "the:45.2", f"`45.2` {AS_LOGARITHMS}; they look like percentages: divide each by 100"),
    b"the:12.5 of:14.8\n": (1, 5, "the:12.5", f"`12.5` {AS_LOGARITHMS}; divide percentages by 100, counts by their sum; apply softmax to logits, 2^-x to surprisals (bits)"),
    b"the:1.2 :0.1\n": (1, 5, "the:1.2", f"`1.2` {AS_LOGARITHMS}; a probability is at most 1: divide each by their sum"),
    b"the:0.69 of:2.3 :0.92\n": (1, 13, "of:2.3", f"`2.3` {AS_LOGARITHMS}; they look like negative logarithms: write a minus before each"),
    b"the:0.7 a:-0.1 :0.4\n": (1, 11, "a:-0.1", f"`-0.1` {AS_LOGARITHMS}; a probability is not negative: replace negative numbers by 0, and divide each by their sum"),
    b"the:-0.7 of:-1.2 :0.3\n": (1, 5, "the:-0.7", f"`-0.7` {AS_LOGARITHMS}; the words have logarithms, but the rest has not: write the logarithm of its probability"),
    b"the:-0.301 of:-1 :-0.398\n": (1, 1, "", f"{FAR_ABOVE_ONE}; they look like logarithms to base 10: multiply each by 2.302585 (ln 10)"),
    b"the:-0.1 of:-0.1 :-0.1\n": (1, 1, "", f"{FAR_ABOVE_ONE}; normalise them: subtract their logsumexp, as log_softmax does"),
    b" ".join([b"0.5"] * 1024) + b"\n": (1, 1, "", f"{FAR_ABOVE_ONE}; they look like probabilities: write the natural logarithm of each"),
    b" ".join([b"2.5"] * 1024) + b"\n": (1, 1, "", f"{FAR_ABOVE_ONE}; they look like logits: write their log_softmax"),
}  # fmt: skip

# rule, output, first place (line, column, token, message), an output that nearly breaks it
LINES = [
    ("E111", GOOD + b"\n", (2, 1, "", "the line is empty; write `:1` where there is no guess"), GOOD + b":1\n"),
    ("E111", GOOD + b"\r\n", (2, 1, "", "the line is empty; write `:1` where there is no guess"), GOOD + b":1\r\n"),
    ("E112", b"a:0.5  :0.5\n", (1, 6, "", "a double space; entries are separated by exactly one space"), b"a:0.5 :0.5\n"),
    ("E112", b" a:1\n", (1, 1, "", "a leading space; entries are separated by exactly one space"), b"\xc2\xa0a:0.5 :0.5\n"),
    ("E112", b"a:1 \n", (1, 4, "", "a trailing space; entries are separated by exactly one space"), b"a:0.5 :0.5\n"),
    ("E113", b"a:0.5 b :0.5\n", (1, 7, "b", "`b` has no probability; an entry is `word:probability`, and a word cannot contain a space"), b"a:0.5 b:0 :0.5\n"),
    ("E113", b"guess\n", (1, 1, "guess", "`guess` is not an entry; an entry is `word:probability`, with a colon"), b"guess:0.5 :0.5\n"),
    ("E114", b"a:0,5\n", (1, 3, "0,5", "`0,5` is not a number; write a decimal point, not a comma"), b"0,5:0.5 :0.5\n"),
    ("E114", b"0.5:a\n", (1, 5, "a", "`a` is not a number; the word stands first: `a:0.5`"), b"0.5:1\n"),
    ("E114", b'"a:0.5 :0.5"\n', (1, 9, '0.5"', "quotes are around the line, as pandas' to_csv writes them: give it sep=\"\\t\" and quoting=csv.QUOTE_NONE"), b'"a:0.5 ":0.5\n'),
    ("E114", b"a:\n", (1, 3, "", "a number should follow the colon"), b"a:1\n"),
    ("E114", b" ".join([b"-7"] * 1023) + b" nan\n", (1, 3070, "nan", "`nan` is not a number; your model produced NaN (not a number): look for 0/0 or log of a negative number"), b"nan:0.5 :0.5\n"),
    ("E115", b"-1 -2\n", (1, 1, "-1 -2", "a line without a colon holds a log probability for each of 1024 buckets, this one holds 2; were `word:probability` entries meant?"), b" ".join([b"-7"] * 1024) + b"\n"),
    ("E116", b"a:1e400\n", (1, 3, "1e400", "`1e400` is too large for a double (the largest is about 1.8e308)"), b"a:1e308\n"),
    *(("E119", line, place, GOOD) for line, place in NUMBERS.items()),
    ("W201", GOOD + b"the:50 of:20 :30\n", (2, 5, "the:50", "`50` is not in [0,1], so all numbers of the line are read as logarithms; they look like percentages: divide each by 100"), GOOD + b"the:-1 of:-2 :-0.7\n"),
    ("W201", b"a:0.5 b:0.25 c:-1e-9\n", (1, 16, "c:-1e-9", "`-1e-9` is not in [0,1], so all values of the line are read as logarithms"), b"a:-0.5 b:-2 c:0.1\n"),
    ("W202", b"a:0.9 b:0.2 :0.1\n", (1, 1, "", "the probabilities sum to 1.2; geval divides them by this sum"), b"a:0.9 b:0.1 :0.000000009\n"),
    ("W202", b"a:0.333334 b:0.333334 :0.333334\n", (1, 1, "", "the probabilities sum to 1.000002; geval divides them by this sum"), b"a:0.333334 b:0.333333 :0.333334\n"),
    ("W202", b"a:1 b:1\n", (1, 1, "", "the probabilities sum to 2; geval divides them by this sum"), b"a:0.6 b:0.5\n"),
    ("W203", b"a:0.5 :0.25\n", (1, 1, "", "the probabilities sum to 0.75 with the rest entry; geval divides them by this sum"), b"a:0.5 b:0.25\n"),
    ("W203", b"a:0.333333 b:0.333332 :0.333333\n", (1, 1, "", "the probabilities sum to 0.999998 with the rest entry; geval divides them by this sum"), b"a:0.333333 b:0.333333 :0.333333\n"),
    ("W204", b"a:0.5 b:0.5\n", (1, 12, "", "no probability is left for words that are not listed: if the answer is one of them, the loss is infinite"), b"a:0.5 b:0.44\n"),
    ("W204", b"a:0.5 b:0.46\n", (1, 13, "", "only 0.04 is left for words that are not listed, no more than rounding explains"), b"a:0.5 b:0.44\n"),
    ("W204", b"a:0.5 b:0.5 :0\n", (1, 13, ":0", "the rest is 0: if the answer is not listed, the loss is infinite"), b"a:0.5 b:0.4 :0.1\n"),
    ("W205", b":0\n", (1, 2, ":0", "all values are 0: they are read as logarithms, each of probability 1"), b":1\n"),
    ("W206", b"a:0.25 b:0.25 a:0.25 :0.25\n", (1, 15, "a:0.25", "`a` stands at column 1 already; its entries add up"), b"a:0.25 b:0.25 A:0.25 :0.25\n"),
    ("W207", b"a:0.5 b:0.0 :0.5\n", (1, 7, "b:0.0", "`b` has probability 0; leave it out"), b"a:0.5 b:1e-9 :0.5\n"),
    ("W207", b":0 a:0.5 b:0 c:0.5\n", (1, 10, "b:0", "`b` has probability 0; leave it out"), b":0 a:0.5 c:0.5\n"),
    ("W208", "a\xa0b:0.5 :0.5\n".encode(), (1, 2, "\xa0", "a no-break space (U+00A0), which is a part of the word"), "aéb:0.5 :0.5\n".encode()),
    ("W208", b"a\0b:0.5 :0.5\n", (1, 2, "\0", "a NUL (U+0000), which is a part of the word"), b"ab:0.5 :0.5\n"),
    ("W208", "x:0.5 \ufeffa:0.5\n".encode(), (1, 7, "\ufeff", "a byte order mark (U+FEFF), which is a part of the word"), "x:0.5 „a”:0.5\n".encode()),
    ("W208", b"0\ta:0.5 :0.5\n", (1, 2, "\t", "a TAB (U+0009), which is a part of the word"), b"0,a:0.5 :0.5\n"),
    ("W208", b"a\x1b[31m:0.5 :0.5\n", (1, 2, "\x1b", "a control or invisible character (U+001B), which is a part of the word"), b"a[31m:0.5 :0.5\n"),
    ("W209", b"a:0.5,b:0.25 :0.25\n", (1, 6, ",", "two entries look split by `,`; only a space separates entries"), b"5:00,:0.5 :0.5\n" + b"a,b:0.5 :0.5\n" * 2),
    ("W209", b"a:0.5\tb:0.25 :0.25\n", (1, 6, "\t", "two entries look split by TAB; only a space separates entries"), b"a:b\tc:0.5 :0.5\n"),
    ("W210", b"a:0.5 :0.5\r\n", (1, 11, "\r", "a carriage return, which is dropped"), b"a:0.5 :0.5\n"),
    ("W212", b"k\xffa:0.5 :0.5\n", (1, 2, "\ufffd", "bytes that are not UTF-8, read as U+FFFD"), "k\ufffda:0.5 :0.5\n".encode()),
    ("W206", b"a:0.5 :0.25 :0.25\n", (1, 13, ":0.25", "the rest stands at column 7 already; its entries add up"), b"a:0.5 :0.5\n"),
    ("W208", "the:0.5\tof:0.2 a\xa0b:0.3 :0.2\n".encode(), (1, 17, "\xa0", "a no-break space (U+00A0), which is a part of the word"), b"the:0.5\tof:0.2 :0.2\n"),
    ("E114", b"caf\xe9:0,5 :0.5\n", (1, 6, "0,5", "`0,5` is not a number; write a decimal point, not a comma"), b"caf\xe9:0.5 :0.5\n"),
    ("W214", b":1\n", (1, 1, ":1", "only a rest: all words are equally likely"), b"a:0.1 :0.9\n"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "output", "place", "nearly"), LINES, ids=lambda v: v if isinstance(v, str) else "")
def test_rules_of_lines(code, output, place, nearly, check):
    problem = check(output)[code]
    assert first(problem) == place
    if code == "E119":
        advice = place[3].partition("; ")[2]
        assert problem.fix == f"{advice[0].upper()}{advice[1:]}."
        assert problem.summary == "1 of 1 lines has numbers that are neither probabilities nor their logarithms"
    else:
        assert problem.summary == RULES_BY_CODE[code].summary
    assert code not in check(nearly)


@pytest.mark.parametrize("digits", [1, 2, 6, 17])
def test_an_output_that_was_rounded_has_no_problem(digits, check):
    """Many of its lines have a sum that is off by more than 1e-8."""
    rows = [[1 + (7 * line + 3 * word) % 11 for word in range(20)] for line in range(100)]
    lines = [
        " ".join(f"w{word}:{weight / (sum(row) + 5):.{digits}f}" for word, weight in enumerate(row))
        + f" :{5 / (sum(row) + 5):.{digits}f}\n"
        for row in rows
    ]
    assert set(check("".join(lines).encode())) <= {"W207", "W204"}  # what rounds to zero


FILES = [
    ("W216", b"a:0.5 b:0.1 :0.4\na:0.5", None, "its last line has no line end, and fewer entries (1) than all others: the file may be cut off", b"a:0.5\na:0.5"),
    ("W216", b"a:0.5 b:0.1 :0.4\na:0.5 b:0.3 ", None, "its last line has no line end, and fewer entries (2) than all others: the file may be cut off", b"a:0.5\na:0.5 b:0.5"),
    ("E102", b"", None, "the output has no line", GOOD),
    ("E102", gzip.compress(b"", mtime=0), None, "the output has no line", gzip.compress(GOOD)),
    ("E103", GOOD, b"a\nb\n", "the output has 1 line for 2 items", GOOD * 2),
    ("E103", b'":0.1 the:0.4 :0.5\n', b"a\nb\n", "the output has 1 line for 2 items", GOOD * 2),
    ("E104", GOOD * 3, b"a\nb\n", "the output has 3 lines for 2 items", GOOD * 2),
    ("E104", b'[\n {\n  "a": 0.5\n }\n]\n', b"a\nb\n", "the output has 5 lines for 2 items", GOOD * 2),
    ("E104", GOOD * 2 + b"\n", b"a\nb\n", "the output has 3 lines for 2 items; there are empty lines", GOOD * 2),
    ("E104", GOOD.replace(b"\n", b"\n\n") * 2, b"a\nb\n", "the output has 4 lines for 2 items; every second line is empty: print adds a line end to the one that the text has", GOOD * 2),
    ("E103", GOOD.replace(b"\n", b"\r") * 2, b"a\nb\n", "the output has 1 line for 2 items; its lines end with CR alone: --fix makes LF of each CR", GOOD * 2),
    ("E103", GOOD.replace(b"\n", b"\\n") * 2, b"a\nb\n", r"the output has 1 line for 2 items; it has `\n` in place of line ends: write line ends, not their repr()", GOOD * 2),
    ("E103", b'"the:0.5 :0.5"\n', b"a\nb\n", "the output has 1 line for 2 items; there are quotes, as of a CSV writer: read and write with QUOTE_NONE", GOOD * 2),
    ("E105", gzip.compress(GOOD, mtime=0)[:-4], None, "the output cannot be read: it ends before its end mark", gzip.compress(GOOD)),
    ("E105", lzma.compress(GOOD)[:-8], None, "the output cannot be read: it ends before its end mark", lzma.compress(GOOD)),
    ("E105", bz2.compress(GOOD) + b"x", None, "the output cannot be read: something else follows its end mark", bz2.compress(GOOD)),
    ("E105", zstd.compress(GOOD)[:-2], None, "the output cannot be read: it ends before its end mark", zstd.compress(GOOD)),
    ("E106", GOOD.decode().encode("utf-16"), None, "the output cannot be read: it is UTF-16 or UTF-32 text; write it as UTF-8 (in PowerShell, with `Out-File -Encoding utf8`)", GOOD),
    ("E106", GOOD.decode().encode("utf-16-be"), None, "the output cannot be read: it is UTF-16 or UTF-32 text; write it as UTF-8 (in PowerShell, with `Out-File -Encoding utf8`)", GOOD),
    ("E106", GOOD.decode().encode("utf-32-le"), None, "the output cannot be read: it is UTF-16 or UTF-32 text; write it as UTF-8 (in PowerShell, with `Out-File -Encoding utf8`)", b"k\0a:0.5 :0.5\n"),
    ("E106", gzip.compress(b"PK\x03\x04\x14" + b"\0" * 9 + GOOD), None, "the output cannot be read: it is a zip archive: unpack it", b"PK\x03:0.5 :0.5\n"),
    ("E106", gzip.compress(gzip.compress(GOOD)), None, "the output cannot be read: it is compressed twice: decompress it once", gzip.compress(GOOD)),
    ("E106", bytes(range(256)), None, "the output cannot be read: no line can be read: this is not UTF-8 text (UTF-16, or a binary file?)", b"k\0:1\n"),
    ("W211", b"\xef\xbb\xbf" + GOOD, None, "the file begins with a byte order mark", GOOD + b"\xef\xbb\xbf" + GOOD),
    ("W223", b"a:-1 b:-2 :-2\n" * 3 + GOOD, None, "the numbers look like logarithms to base 2: multiply each by 0.693147 (ln 2)", b"a:-0.69 b:-1.39 :-1.39\n" * 4),
    ("E118", b"a:0.5\tb:0.25\t:0.25\n:1\n", None, "the entries of all lines are separated by TAB", b"a:0.5\tb:0.25\t:0.25\na:0.5 :0.5\n"),
    ("W304", GOOD * 5, b"x\n" * 5, "the score is worse than with `:1` (no guess) on each line; the lines may have another order than in.tsv, or words unlike the answers", GOOD * 4 + b"x:1\n"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "output", "expected", "message", "nearly"), FILES, ids=lambda v: v[:30] if isinstance(v, str) else ""
)
def test_rules_of_files(code, output, expected, message, nearly, check):
    problem = check(output, expected)[code]
    assert (problem.summary, 0 < problem.share <= 1) == (message, True)
    assert code not in check(nearly, expected)


def test_a_bad_score_is_explained_by_problems_of_most_lines_alone(check):
    answers = b"x\n" * 10
    assert check(GOOD * 9 + b":1\n", answers).keys() == {"W214", "W304"}
    assert check(b"a:0.9 :0.3\n" * 9 + b":1\n", answers).keys() == {"W202", "W214"}


@pytest.mark.parametrize(
    "output", [gzip.compress(b"\n" + GOOD, mtime=0)[:-4], b"\xff\xfe" + (GOOD * 3).decode().encode("utf-16-le")]
)
def test_a_file_that_cannot_be_read_has_that_problem_alone(output, check):
    assert len(check(output, b"a\n")) == 1


def test_the_samples_are_clean():
    """As --strict in CI asks."""
    targets = list(find_targets([str(ROOT / "challenges/gazette")], None, ["dev-0"]))
    assert [check_output(target, ALL) for target in targets] == [[], []]


def test_header_as_data(check):
    problems = check(b"word\n" + GOOD, b"a\n", header="Word")
    assert first(problems["W215"]) == (1, 1, "word", "the first line is a header")
    assert problems["E104"].summary == "the output has 2 lines for 1 item; the first line is a header"
    assert first(problems["E113"])[0] == 1
    assert check(b"Word\n" + GOOD, b"a\n", header="Word", header_is_skipped=True) == {}


def test_counts_shares_and_places(check):
    problem = check(b"a:0,5\n" * 30 + GOOD * 10, max_places=3)["E114"]
    assert (problem.count, problem.share, len(problem.places)) == (30, 0.75, 3)
    assert len(check(b"a:0,5\n" * 30, max_places=0)["E114"].places) == 30


def test_a_decompression_bomb(check):
    problem = check(gzip.compress(GOOD * 1000, mtime=0), max_bytes=5000)["E105"]
    assert problem.summary == "the output cannot be read: it unpacks to more than 5000 bytes"


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstd.compress], ids=["plain", "gzip", "zstd"])
@pytest.mark.parametrize("before", [b"", GOOD * 200_000], ids=["the first", "a later one"])
def test_a_line_without_end(before, compress, check, monkeypatch):
    monkeypatch.setattr("geval_py.reading.lines.MAX_LINE_BYTES", 1 << 20)
    (problem,) = check(compress(before + b"a" * (8 << 20))).values()
    assert (problem.rule.code, problem.summary) == (
        "E105",
        "the output cannot be read: it has a line of more than 1048576 bytes",
    )


@pytest.mark.slow
def test_a_bomb_of_one_line_does_not_fill_the_memory(tmp_path):
    """4 GB of one line: at most 1 GB of memory, and no minute."""
    compressed = zstd.compress(b"a" * (1 << 20)) * 4096
    (tmp_path / "out.tsv.zst").write_bytes(compressed)
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); "
        "from geval_py.__main__ import main; sys.exit(main())"
    )
    words = [sys.executable, "-I", "-c", code, "check", "--format", "json", str(tmp_path)]
    run = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert run.stderr == ""
    (problem,) = json.loads(run.stdout)["problems"]
    assert (problem["rule"], problem["summary"]) == (
        "E105",
        "the output cannot be read: it has a line of more than 256000000 bytes",
    )


@pytest.mark.parametrize(
    ("output", "line"), [(GOOD, 1), (GOOD * 2, 2), (GOOD * 4, 4)], ids=["too few", "one too few", "too many"]
)
def test_the_line_where_the_number_is_wrong(output, line, check):
    """Too few lines: the last that is there, since the next is not in the file. Too many: the first of those."""
    (problem,) = check(output, b"the\nof\nother\n").values()
    assert problem.places[0].line == line


@pytest.fixture
def submission(tmp_path, monkeypatch):
    for name in ("dev-0", "test-A"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "in.tsv").write_text("x\ny\n")
        (tmp_path / name / "out.tsv").write_bytes(GOOD * 2)
    (tmp_path / "dev-0/expected.tsv").write_text("the\nof\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_missing(submission):
    for name in ("out.tsv.gz", "out.tsv.xz"):
        (submission / "test-A" / name).write_bytes(b"")
    (submission / "test-A/out.tsv").unlink()
    (ambiguous,) = find_targets(["."])
    assert (
        ambiguous.summary == "`test-A/out.tsv.gz` and `test-A/out.tsv.xz` are the same variant; only one is allowed"
    )
    (submission / "empty").mkdir()
    (nothing,) = find_targets(["empty"])
    wanted = "test-A/out.tsv or dev-0/out.tsv"
    assert nothing.summary == f"it has no output: {wanted}, or variants such as out-NAME.tsv"


@pytest.mark.parametrize(("name", "beside"), [("out.tsv", "out-a.tsv"), ("out-1-of-2.tsv", "out-0-of-2.tsv")])
def test_a_link_is_not_followed(name, beside, submission):
    (submission / "dev-0/out.tsv").rename(submission / "dev-0" / beside)
    (submission / "dev-0" / name).symlink_to(beside)
    (problem,) = find_targets(["."])
    assert (problem.rule.code, problem.summary) == ("E101", f"`dev-0/{name}` is a link; links are not followed")


QUOTES = "the input has quotes, at which a CSV reader merges lines: read it with QUOTE_NONE"
SPLIT = 'the input has U+2028, at which str.splitlines splits: read lines by open(path, newline="\\n")'
TWICE = 'twice as many, as if the file was opened to append ("a"): open it with "w"'


@pytest.mark.parametrize(("inputs", "lines", "cause"), [
    ('"x\ty\nz"\n', 1, QUOTES), ('a\t"b ""c\nd\ne', 1, QUOTES), ('a\nb\n"c\nd"\n', 2, QUOTES), ('a"\nb"\n', 1, ""),
    ('"x"\ty\nz\n', 1, ""), ('"x\ny\nz"\n', 2, ""), ("a\u2028b\nc\r\n", 3, SPLIT), ("a\u2028b\nc\nd\n", 5, ""),
    ("a\nb\n", 4, TWICE), ("a\nb\n", 3, ""), ("a\n", 2, ""),
])  # fmt: skip
def test_causes_of_a_wrong_number_of_lines_in_the_input(inputs, lines, cause, submission, geval):
    """They are named if they explain the number exactly."""
    (submission / "test-A/in.tsv").write_text(inputs, encoding="utf-8", newline="")
    (submission / "test-A/out.tsv").write_bytes(GOOD * lines)
    shutil.rmtree(submission / "dev-0")
    _, out, _ = geval("check", "--format", "json", "-t", "test-A")
    _, _, causes = json.loads(out)["problems"][0]["summary"].partition(" item")
    assert causes.removeprefix("s") == (f"; {cause}" if cause else "")


def test_a_report_in_a_file_is_summed_up(submission, geval):
    """Else the log of a job would not say why it fails."""
    (submission / "dev-0/out.tsv").write_bytes(b":1\n")
    for path in ("gl.json", "report.csv"):
        words = ["--format", "gitlab"] if path == "gl.json" else []
        status, out, err = geval("check", *words, "--output", path)
        assert (status, out, err.splitlines()[1:]) == (1, "", [f"geval: 1 error, 1 warning in 2 files: `{path}`"])
        assert "E103" in Path(path).read_text(encoding="utf-8")
    assert geval("check", "--output", "report.csv", "--quiet") == (1, "", "")


def test_status_and_strict(submission, geval):
    assert geval("check")[0] == 0
    (submission / "dev-0/out.tsv").write_bytes(b":1\n" + GOOD)
    assert geval("check")[0] == 0
    assert geval("check", "--strict")[0] == 1
    assert geval("check", "--strict", "--ignore", "no-guess")[0] == 0
    assert geval("check", "--strict", "--select", "E101,w214")[0] == 1
    (submission / "dev-0/out.tsv").write_bytes(b"a\n" + GOOD)
    assert geval("check")[0] == 1


def test_headers_of_the_challenge(submission, geval):
    (submission / "out-header.tsv").write_text("Word\n")
    (submission / "in-header.tsv").write_text("Text\n")
    for name in ("dev-0", "test-A"):
        (submission / name / "in.tsv").write_text("Text\nx\ny\n")
        (submission / name / "out.tsv").write_bytes(b"Word\n" + GOOD * 2)
    (submission / "dev-0/expected.tsv").write_text("Word\nthe\nof\n")
    (submission / "config.txt").write_text("--in-header in-header.tsv --out-header out-header.tsv")
    assert geval("check")[0] == 0
    (submission / "config.txt").write_text("--in-header in-header.tsv")
    _, out, _ = geval("check", "--format", "json", "-t", "test-A")
    assert [p["rule"] for p in json.loads(out)["problems"]] == ["E104", "E113", "W215"]


def test_explain(geval):
    assert geval("check", "--explain", "no-rest-mass")[1].startswith("W204 no-rest-mass (warning)\n")
    sentence = "\ngeval check --fix corrects it where there is only one possible correction.\n"
    assert geval("check", "--explain", "W210")[1].endswith(sentence)
    assert "This rule needs the answers of the test set." in geval("check", "--explain", "w301")[1]
    message = "geval: there is no rule `X\\x1b`\n  geval check --rules lists them\n"
    assert geval("check", "--explain", "X\x1b") == (2, "", message)


@pytest.mark.parametrize("mass", ["0", "1", "x", "nan", "-0.1"])
def test_rest_mass_is_a_mass(mass, geval):
    status, _, err = geval("check", "--fix", "--rest-mass", mass)
    assert status == 2
    assert f"'{mass}' is not a number between 0 and 1" in err or "expected one argument" in err


def test_fix_and_diff(submission, geval):
    broken = b"a:1.0000001 b:1.0\r\nc:0.5 :0.5\n"
    (submission / "dev-0/out.tsv").write_bytes(broken)
    status, out, err = geval("check", "--diff", "-t", "dev-0")
    assert (status, (submission / "dev-0/out.tsv").read_bytes()) == (1, broken)
    assert geval("check", "--diff", "-t", "dev-0", "--exit-zero") == (0, out, err)
    assert geval("check", "--diff", "-t", "dev-0", "--select", "W204") == (
        0, "", "geval: `./dev-0/out.tsv`: nothing to fix\n"
    )  # fmt: skip
    assert out == "./dev-0/out.tsv:1\n- a:1.0000001 b:1.0\\r\n+ a:1 b:1.0\n"
    assert err == "geval: `./dev-0/out.tsv`: would fix W201 on 1 line, W210 on 1 line\n"
    status, _, err = geval("check", "--fix", "-t", "dev-0", "--rest-mass", "0.1")
    assert (submission / "dev-0/out.tsv").read_text() == "a:0.45 b:0.45 :0.1\nc:0.5 :0.5\n"
    assert (submission / "dev-0/out.tsv.orig").read_bytes() == broken
    assert "; the previous version is `./dev-0/out.tsv.orig`" in err
    assert "nothing to fix" in geval("check", "--fix", "-t", "dev-0", "--rest-mass", "0.1")[2]


@pytest.mark.parametrize("mass", ["1e-05", "1E-3", ".5", "0.999"])
def test_a_rest_mass_is_any_number_between_0_and_1(mass, submission, geval):
    (submission / "dev-0/out.tsv").write_text("the:1\nthe:1\n")
    geval("check", "--fix", "-t", "dev-0", "--rest-mass", mass)
    assert float((submission / "dev-0/out.tsv").read_text().split(":")[-1]) == float(mass)


def test_every_rule_has_a_test():
    here = {row[0] for row in LINES} | {row[0] for row in FILES} | {"E101", "E108", "W215", "W301"}
    elsewhere = (
        "E117 W217 W222 W303 W219 W220 W224 W225 W302 W306 W107 W108 W305"  # in the other files of this folder
    )
    assert here | set(elsewhere.split()) == set(ALL)


def test_a_line_too_long_to_be_taken_apart(check, monkeypatch):
    monkeypatch.setattr("geval_py.checking.places.MAX_LINE", 10)
    message = "a word occurs more than once on the line (the line has 16 characters, too many to say where)"
    assert first(check(b"a:0.5 a:0.5 :0.5\n")["W206"]) == (1, 1, "", message)


ODD = "\t\xa0\x01\x85\u2007\u200b\u202e\u2066\u2069\ufeff"


@pytest.mark.parametrize(("code", "output", "column"), [
    ("W209", "3,a:b:0.5 :0.5\n", 2),  # the separator is the one behind a number
    ("W209", "x:0.1 3,a:0.1 a:0.5,b:0.2 :0.1\n", 20),
    ("W209", "3,4:5,6:0.5 :0.5\n", 6),
    ("W208", "a\tb:0.5 :0.5\n", 2),  # a TAB is an odd character, but behind an entry
    ("W208", "a:1\tb\xa0:1 :0\n", 6),
    *(("W208", f"a{character}b:0.5 :0.5\n", 2) for character in ODD),
])  # fmt: skip
def test_the_column_of_odd_characters_and_separators(code, output, column, check):
    assert (check(output.encode())[code].count, first(check(output.encode())[code])[1]) == (1, column)


def test_the_place_of_an_expected_word(check):
    problem = check(b"a:1\nb:1\n:1\n", b"a\na\na\n")["W301"]
    assert problem.count == 1
    assert first(problem) == (2, 1, "a", "the expected word `a` has probability 0: the loss is infinite")


@pytest.mark.slow
def test_entries_that_tabs_separate(check):
    output = b"the:0.5\tof:0.25\t:0.25\n" * 30
    problem = check(output, max_places=3)["E118"]
    assert (problem.count, problem.share, problem.rule.severity) == (30, 1.0, "error")
    message = "two entries look split by TAB; only a space separates entries"
    assert [(place.line, place.column, place.message) for place in problem.places] == [
        (line, 8, message) for line in (1, 2, 3)
    ]
    assert "W209" not in check(output)
    assert "W209" in check(output, rules=["W209"])
    late = check(output * 7_000 + b"the:0.5 :0.5\n")  # it stands behind the first block
    assert (set(late), late["W209"].count) == ({"W209"}, 210_000)


def test_entries_that_bars_separate_beside_spaces(check):
    message = "two entries look split by `|`; only a space separates entries"
    problem = check(b"the:0.5 | of:0.25 | :0.25\n" * 3)["W209"]
    assert (problem.count, problem.summary, problem.places[0].token) == (3, message, "|")
    assert "W209" not in check(b"the:0.5 |:0.25 :0.25\n" * 3)


@pytest.mark.parametrize(
    ("separator", "name"), [("|", "`|`"), (";", "`;`"), (",", "`,`"), ("\xa0", "no-break space")]
)
def test_entries_that_something_else_separates(separator, name, check, tmp_path):
    lines = b"the:0.5 3:0.25 :0.25\nof:0.5 :0.5\n:1\n" * 3
    wrong = lines.replace(b" ", separator.encode())
    problems = check(wrong)
    assert set(problems) <= {"E118", "W214"}
    problem = problems["E118"]
    assert (problem.count, problem.summary) == (6, f"the entries of all lines are separated by {name}")
    path = tmp_path / "fixed.tsv"
    path.write_bytes(wrong)
    assert fix_file(str(path)).changes == {"E118": 6}
    assert path.read_bytes() == lines


@pytest.mark.parametrize(("flags", "found"), [("", {"W301", "W302"}), (":l", set()), (":N<a>", {"W301", "W302"})])
def test_words_are_not_compared_where_the_metric_changes_them(tmp_path, flags, found):
    """Spec 5: the text flags change both lines before scoring."""
    (tmp_path / "config.txt").write_text(f"--metric LogLossHashed{flags}")
    (tmp_path / "dev-0").mkdir()
    (tmp_path / "dev-0" / "out.tsv").write_text("the:1\n" * 3)
    (tmp_path / "dev-0" / "expected.tsv").write_text("The\n" * 3)
    (target,) = find_targets([str(tmp_path)], None, [])
    assert {problem.rule.code for problem in check_output(target, ALL)} & {"W301", "W302"} == found


def test_a_damaged_test_set_is_left_out(submission, geval):
    (submission / "dev-0/out.tsv").write_bytes(b"a:0,5\n:1\n")
    (submission / "dev-0/expected.tsv").unlink()
    (submission / "dev-0/expected.tsv.gz").write_bytes(gzip.compress(b"the\nof\n", mtime=0)[:-3])
    (submission / "dev-0/in.tsv").unlink()
    (submission / "dev-0/in.tsv.gz").write_bytes(gzip.compress(b"x\ny\n", mtime=0)[:-3])
    status, out, err = geval("check", "--format", "json")
    assert status == 1
    assert [p["rule"] for p in json.loads(out)["problems"]] == ["E114", "W108", "W214"]
    assert err.count("geval: note: checked without a file of the test set: Corrupt gzip file") == 2


def test_entries_of_a_folder_that_are_no_files(submission, geval):
    (submission / "dev-2").symlink_to("dev-2")
    (submission / "test-A/out.tsv").unlink()
    os.mkfifo(submission / "test-A/out.tsv")
    (submission / "dev-0/in.tsv").unlink()
    os.mkfifo(submission / "dev-0/in.tsv")
    (problem,) = [t for t in find_targets(["."]) if isinstance(t, Problem)]
    assert (problem.path, problem.summary) == (".", "`test-A/out.tsv` is not a regular file")
    (submission / "test-A/out.tsv").unlink()
    (submission / "test-A/out.tsv").mkdir()
    (problem,) = [t for t in find_targets(["."]) if isinstance(t, Problem)]
    assert (problem.path, problem.summary) == ("./test-A/out.tsv", "there is no output for this test set")
    assert geval("check", "-t", "dev-0")[2] == (
        "geval: note: checked without a file of the test set: Cannot read `./dev-0/in.tsv`: it is not a regular file\n"
        "geval: note: the rules of word gaps apply, since `./config.txt` is not there; for another task, add "
        "--metric NAME or --challenge DIR\n"
    )


def test_fix_leaves_what_cannot_be_read(submission, geval):
    picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\n"
    (submission / "dev-0/out.tsv").write_bytes(picture)
    (submission / "dev-0/out-z.tsv.gz").write_bytes(gzip.compress(GOOD, mtime=0)[:-3])
    (submission / "test-A/out.tsv").write_bytes(b"a:0.5 b:-1e-9 :0.5\n:1\n")
    _, out, _ = geval("check", "--fix", "--format", "json")
    assert (submission / "dev-0/out.tsv").read_bytes() == picture
    assert (submission / "test-A/out.tsv").read_bytes() == b"a:0.5 b:0 :0.5\n:1\n"
    assert {p["rule"] for p in json.loads(out)["problems"]} >= {"E105", "E106"}


DIFF_ALONE = "--diff shows lines, not a report: leave --format out"
WITHOUT_FIX = "--rest-mass and --no-backup go with --fix or --diff"


@pytest.mark.parametrize(("words", "message"), [
    ("--rest-mass 0.1", WITHOUT_FIX), ("--no-backup", WITHOUT_FIX),
    *((f"--diff {words}", DIFF_ALONE) for words in ("--format json", "--format github")),
    ("--fix -", "--fix and --diff need a file, not standard input"),
])  # fmt: skip
def test_options_that_do_not_go_together(words, message, submission, geval):
    assert geval("check", *words.split()) == (2, "", f"geval: {message}\n")


@pytest.mark.parametrize(("words", "fixed"), [
    (["--select", "W2"], b"a:1 b:0 :0.5\nb:0.5  :0.5\n"),
    (["--select", " W201 , e1 "], b"a:1 b:0 :0.5\nb:0.5 :0.5\n"),
    (["--select", "read-as-logs,E1"], b"a:1 b:0 :0.5\nb:0.5 :0.5\n"),
    (["--ignore", "W20"], b"a:1 b:-1e-9 :0.5\nb:0.5 :0.5\n"),
    (["--select", "E114"], b"a:1 b:-1e-9 :0.5\r\nb:0.5  :0.5\n"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")  # fmt: skip
def test_fix_fixes_what_is_selected(words, fixed, submission, geval):
    (submission / "dev-0/out.tsv").write_bytes(b"a:1 b:-1e-9 :0.5\r\nb:0.5  :0.5\n")
    geval("check", "--diff", "-t", "dev-0", *words)
    geval("check", "--fix", "-t", "dev-0", *words)
    assert (submission / "dev-0/out.tsv").read_bytes() == fixed


@pytest.mark.parametrize("mode", ["--fix", "--diff"])
def test_what_could_not_be_fixed_fails(mode, submission, geval):
    """A link, beside an output that can be fixed: the other is fixed all the same."""
    (submission / "dev-0/target.tsv").write_bytes(b"a:1 :-1e-9\n" * 2)
    (submission / "dev-0/out-a.tsv").symlink_to("target.tsv")
    (submission / "dev-0/out-b.tsv").write_bytes(b"a:1 :-1e-9\n" * 2)
    status, _, err = geval("check", mode, "dev-0")
    assert status == 1
    assert err.splitlines()[0] == (
        "geval: Cannot fix `dev-0/out-a.tsv`: it is a symbolic link; name the file that it leads to"
    )
    would = "would fix" if mode == "--diff" else "fixed"
    assert f"geval: `dev-0/out-b.tsv`: {would} W201 on 2 lines" in err


def test_a_diff_of_what_cannot_be_read(submission, geval):
    (submission / "dev-0/out.tsv").write_bytes(b"\0\n")
    (submission / "test-A/out.tsv").unlink()
    assert geval("check", "--diff") == (
        1,
        "",
        "geval: `./dev-0/out.tsv`: the output cannot be read: it is UTF-16 or UTF-32 text; write it as UTF-8 "
        "(in PowerShell, with `Out-File -Encoding utf8`)\n"
        "geval: `./test-A/out.tsv`: there is no output for this test set\n",
    )


def test_the_diff_is_cut_and_inert(submission, geval):
    (submission / "dev-0/out.tsv").write_bytes(b"##[error]x:0.5 y:-1e-9 :0.5\n" * 2)
    _, out, _ = geval("check", "--diff", "-t", "dev-0", "--max-problems", "1")
    assert out == "./dev-0/out.tsv:1\n- ##\\[error]x:0.5 y:-1e-9 :0.5\n+ ##\\[error]x:0.5 y:0 :0.5\n…\n"


def test_a_diff_on_a_terminal_shows_what_is_around_a_change(submission, geval):
    before, after = ("".join(f"{letter}{n}:0.001 " for n in range(40)) for letter in "ab")
    (submission / "dev-0/out.tsv").write_text(f"{before}x:-1e-9 {after}:0.92\n" * 2)
    out = geval("check", "--diff", "-t", "dev-0", terminal=True, columns=40)[1]
    change = "- ….001 a39:0.001 x:-1e-9 b0:0.001 b1:0…\n+ ….001 a39:0.001 x:0 b0:0.001 b1:0.001…"
    assert out == "".join(f"./dev-0/out.tsv:{n}\n{change}\n" for n in (1, 2))


@pytest.mark.parametrize("more", [-1, 1])
def test_a_diff_with_more_lines_than_are_kept_says_so(more, submission, geval):
    (submission / "dev-0/out.tsv").write_bytes(b"a:1 :-1e-9\n" * (DIFF_LINES + more))
    _, out, _ = geval("check", "--diff", "-t", "dev-0")
    assert out.count("\n+ ") == DIFF_LINES + min(more, 0)
    assert out.endswith("\n…\n") == (more > 0)


def test_a_sum_is_not_wrong_where_two_entries_are_read_as_one(check):
    output = b"a:0.5\tb:0.3 :0.4\na:0.9,b:0.9 c:0.5\na:0.5 :0.5\n"
    assert set(check(output)) - {"W204"} == {"W209"}
