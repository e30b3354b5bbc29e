"""The modes of the command line that explain a score: lines, differences, the oracle, features, marks."""

import csv
import io
import json
import re
import sys

import pandas as pd
import pytest

from geval_py import evaluate
from geval_py.explaining.line_by_line import Marker, ScoredLine
from geval_py.reading.features import Fields, split_tokens, tokens_of
from geval_py.tables.formats import FORMATS
from geval_py.text import visible

YEARS = ["1901", "1901", "1902", "1902", "1903"]
TEXTS = ["New York", "a\x1b[31mb", "new\ttown", "", "York"]
WORDS = ["a", "b", "a", "c", "a"]
OUT = ["a:0.5 :0.5", "b:0.25 d:0.75", "a:1", "a:1", "a:0.25 d:0.75"]  # perplexities 2, 4, 1, inf, 4
OTHER = ["a:0.25 d:0.75", "b:0.25 c:0.75", "a:0.5 d:0.5", "b:1", "a:0.25 d:0.75"]  # 4, 4, 2, inf, 4


def write(folder, name, lines):
    (folder / name).write_text("".join(line + "\n" for line in lines))


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    """A challenge of five items and two outputs, out.tsv and other; the current directory."""
    write(tmp_path, "config.txt", ["--metric Perplexity --in-header in-header.tsv"])
    write(tmp_path, "in-header.tsv", ["Year\tText"])
    for name in ("train", "test-A"):
        (tmp_path / name).mkdir()
    write(tmp_path / "train", "expected.tsv", ["a", "b", "c", "d"])
    rows = [f"{year}\t{text}" for year, text in zip(YEARS, TEXTS, strict=True)]
    for name, lines in {"in.tsv": rows, "expected.tsv": WORDS, "out.tsv": OUT, "other": OTHER}.items():
        write(tmp_path / "test-A", name, lines)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def infinite(*names):
    return "".join(f"geval: note: `./test-A/{name}`: the loss of 1 of 5 lines is infinite\n" for name in names)


def without_infinite(err):
    return re.sub("geval: note: `.*`: the loss of .* of .* lines is infinite\n", "", err)


@pytest.fixture
def rows(geval):
    """Run the command, which must succeed without other notes; gives the rows that it printed, split by TAB."""

    def run(*words):
        status, out, err = geval(*words)
        assert (status, without_infinite(err)) == (0, "")
        assert out == "" or out.endswith("\n")
        return [line.split("\t") for line in out.split("\n")[:-1]]

    return run


@pytest.mark.parametrize("words", ["-l", "-wa Likelihood", "-d other", "--most-worsening-features out.tsv"])
def test_an_input_of_another_length(words, challenge, geval):
    write(challenge / "test-A", "in.tsv", ["x"] * 6)
    message = "geval: Too many lines in the input file: `./test-A/in.tsv` has 6, `./test-A/expected.tsv` has 5\n"
    status, out, err = geval(*words.split())
    assert (status, out, err.endswith(message)) == (1, "", True)


@pytest.mark.parametrize("words", [["-l"], ["-w"], ["-d", "other"], ["--most-worsening-features", "other"]], ids=str)
def test_without_an_input(words, challenge, geval):
    """GEval stops. A file that is named must exist."""
    whole = geval(*words)[1]
    (challenge / "test-A/in.tsv").unlink()
    shown = "lines are shown without it" if words[0] in ("-l", "-d") else "features are of answers and outputs alone"
    status, out, err = geval(*words)
    note = f"geval: note: there is no input `./test-A/in.tsv`: {shown}"
    assert (status, without_infinite(err).splitlines()[0]) == (0, note)
    if words[0] in ("-l", "-d"):
        blank = ["\t".join([cells[0], "", *cells[2:]]) for cells in (line.split("\t") for line in whole.splitlines())]
        assert out.splitlines() == blank
    else:
        assert out.splitlines() == [line for line in whole.splitlines() if not line.startswith("in")]
    there = "did you mean out.tsv? `./test-A` holds expected.tsv, other, out.tsv"
    message = f"geval: No file with the input: `./test-A/other.tsv`\n  {there}\n"
    assert geval(*words, "-i", "other.tsv") == (1, "", message)
    message = "geval: No file with the input: `./test-A/in.tsv`\n  a feature of the input was asked for\n"
    assert geval("-l", "--filter", "in<1>:the")[2].endswith(message)


OF_ONE_OUTPUT = (
    "-l", "-w", "-d other", "--most-worsening-features other", "--oracle-item-based --alt-out-file other",
)  # fmt: skip


@pytest.mark.parametrize("words", OF_ONE_OUTPUT)
def test_modes_take_one_output(words, challenge, geval):
    write(challenge / "test-A", "out-x=1.tsv", OUT)
    assert geval(*words.split()) == (
        2, "", "geval: Multiple outputs are not possible in this mode, use -o option to select an output file\n"
        "  there are out-x=1.tsv, out.tsv\n",
    )  # fmt: skip
    assert geval(*words.split(), "-o", "out-x=1.tsv")[0] == 0


def test_differences(challenge, rows):
    """Of the five lines, one has the same score, one is infinite in both, and one is the same."""
    assert rows("--diff", "other") == [
        ["-2.0", "1901<tab>New York", "a", OTHER[0], OUT[0]],
        ["-1.0", "1902<tab>new<tab>town", "a", OTHER[2], OUT[2]],
    ]


DIFF_OUT = ["a:1", "b:1", "a:0.25 d:0.75", "c:0.5 d:0.5", "b:1"]  # perplexities 1, 1, 4, 2, inf
DIFF_OTHER = ["a:0.5 d:0.5", "b:0.25 d:0.75", "a:1", "c:1", "a:1"]  # 2, 4, 1, 1, 1: differences -1 -3 3 1 inf
SORTED = {
    "original order": ([], ["-1.0", "-3.0", "3.0", "1.0", "Infinity"]),
    "most worsened first": (["-s"], ["Infinity", "3.0", "1.0", "-1.0", "-3.0"]),
    "most improved first": (["-r"], ["-3.0", "-1.0", "1.0", "3.0", "Infinity"]),
    "likelihoods": (["-a", "Likelihood"], ["0.5", "0.75", "-0.75", "-0.5", "-1.0"]),
    "likelihoods, most worsened first": (["-sa", "Likelihood"], ["-1.0", "-0.75", "-0.5", "0.5", "0.75"]),
    "likelihoods, most improved first": (["-ra", "Likelihood"], ["0.75", "0.5", "-0.5", "-0.75", "-1.0"]),
    "a word": (["-s", "--filter", "exp:a"], ["Infinity", "3.0", "-1.0"]),
    "a word of this output": (["--filter", "out:c"], ["1.0"]),
    "two filters": (["--filter", "exp:a", "--filter", "in<Year>:1902"], ["3.0"]),
}


@pytest.mark.parametrize(("flags", "differences"), SORTED.values(), ids=SORTED)
def test_the_order_of_differences(flags, differences, challenge, rows):
    write(challenge / "test-A", "out.tsv", DIFF_OUT)
    write(challenge / "test-A", "other", DIFF_OTHER)
    assert [row[0] for row in rows("-d", "other", *flags)] == differences


def test_a_filter_by_no_column(challenge, geval):
    message = "  did you mean in<Year>? the columns are Year, Text\n"
    assert geval("-l", "--filter", "in<Yaer>:1902")[2].endswith(message)


def test_no_difference(challenge, geval):
    note = "geval: note: no line differs in both its output and its score\n"
    assert geval("-d", "out.tsv") == (0, "", infinite("out.tsv") + note)


@pytest.mark.parametrize(("lines", "few"), [(4, "few"), (6, "many")])
def test_another_output_of_another_length(lines, few, challenge, geval):
    write(challenge / "test-A", "other", ["a:1"] * lines)
    message = f"Too {few} lines in the output file: `./test-A/other` has {lines}, `./test-A/expected.tsv` has 5"
    message += "\n  the number of lines is that of train: is this its output?" if lines == 4 else ""
    for words in OF_ONE_OUTPUT[2:]:
        assert geval(*words.split()) == (1, "", f"geval: {message}\n")


def test_another_output_that_is_missing_or_malformed(challenge, geval):
    there = "  `./test-A` holds expected.tsv, in.tsv, other, out.tsv\n"
    for words in (["-d", "no"], oracle("other", "no")):
        assert geval(*words) == (1, "", f"geval: No file with the test results: `./test-A/no`\n{there}")
    write(challenge / "test-A", "other", [*OTHER[:4], "a:0,5"])
    status, out, err = geval("-d", "other")
    line = "geval: Line 5: Unexpected data [number text found after a number]\n  `./test-A/other`, line 5,"
    assert (status, out, err[: len(line)]) == (1, "", line)


def oracle(*files):
    return ["--oracle-item-based", *(word for file in files for word in ("--alt-out-file", file))]


def test_the_oracle(challenge, geval):
    """If scores tie, the last is chosen."""
    best = [OUT[0], OTHER[1], OUT[2], *OTHER[3:]]
    for words in (["-a", "Perplexity"], ["-a", "Likelihood"]):
        noted = infinite("out.tsv", "other")
        assert geval(*oracle("other"), *words) == (0, "".join(f"{line}\n" for line in best), noted)
    write(challenge / "test-A", "third", ["a:0.5 d:0.5", "b:1", "c:1", "c:1", "d:1"])
    best = ["a:0.5 d:0.5", "b:1", OUT[2], "c:1", OTHER[4]]
    assert geval(*oracle("other", "third"))[1].splitlines() == best


def test_the_oracle_prints_outputs_as_they_stand(challenge, geval):
    write(challenge / "test-A", "expected.tsv", ["a"] * 5)
    lines = ["a:1", "a:0.5 b\tc:0.5", "a:0.5 \x1b[31m:0.5", "a:1 b:0", "a:1.00"]
    write(challenge / "test-A", "out.tsv", lines)
    write(challenge / "test-A", "other", ["b:1"] * 5)
    assert geval(*oracle("other"))[1].split("\n") == [*lines, ""]
    shown = [line.replace("\t", r"\t").replace("\x1b", r"\x1b") for line in lines]
    assert geval(*oracle("other"), terminal=True)[1].split("\n") == [*shown, ""]


def feature_lines(out):
    return [line.split("\t") for line in out.splitlines()]


def test_worst_features(challenge, rows):
    write(challenge / "test-A", "out.tsv", [*OUT[:3], "c:1", OUT[4]])
    worst = rows("-w")
    assert worst[0] == ["out:0.25", "2", "4.00000000", "0.04163225833177522000"]
    assert [row[0] for row in worst[:4]] == ["out:0.25", "out:0.75", "out:d", "exp:b"]
    assert all(len(row) == 4 and len(row[3]) == 22 for row in worst)
    assert [float(row[3]) for row in worst] == sorted(float(row[3]) for row in worst)
    best = rows("-w", "-r")
    assert best[0][0] == "out:1"
    mirrored = {name: [count, mean, pytest.approx(1 - float(p))] for name, count, mean, p in worst}
    assert {name: [count, mean, float(p)] for name, count, mean, p in best} == mirrored


AS_MANY = ", and missing from as many"
NOTHING = {  # words expected, output, options, why
    "too rare": ("abcde", ":1", ["-w", "--min-frequency", "3"],
        "none is on at least 3 of 5 lines, and missing from as many"),
    "on all lines": ("aaaaa", ":1", ["-w"], f"none is on at least 1 of 5 lines{AS_MANY}"),
    "one line": ("a", ":1", ["-w"], f"none is on at least 1 of 1 line{AS_MANY}"),
    "worsening, no line": ("aaaaa", "b:1", ["--most-worsening-features", "out.tsv"],
        f"none is on at least 1 of 0 lines{AS_MANY}"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "output", "options", "reason"), NOTHING.values(), ids=NOTHING)
def test_why_no_feature_is_shown(words, output, options, reason, challenge, geval):
    """GEval 1.42.2 shows nothing, and says nothing."""
    write(challenge / "test-A", "expected.tsv", list(words))
    write(challenge / "test-A", "in.tsv", ["1900\ta"] * len(words))
    write(challenge / "test-A", "out.tsv", [output] * len(words))
    status, out, err = geval(*options)
    assert (status, out) == (0, "")
    assert err.splitlines()[-1] == f"geval: note: no feature is shown: {reason}"


def test_options_of_features(challenge, geval):
    def names(*words):
        return {row[0] for row in feature_lines(geval("-w", *words)[1])}

    plain = names()
    assert names("--bigrams") - plain >= {"in<Text>:New++York", "out:a++0.5"}
    assert names("--word-shapes") - plain >= {"in<Text>:SHAPE:Aa+", "out:SHAPE:9.99"}
    assert names("--numerical-features") - plain == {"out:=#+", "in<Year>:=+", "in<Text>:=#-"}
    assert names("--min-frequency", "2") == {
        "exp:a", "out:0.25", "out:0.75", "out:1", "out:d", "in<Year>:1901", "in<Year>:1902", "in<Text>:York"
    }  # fmt: skip
    assert names("--min-frequency", "3") == set()


def test_pairs_are_of_features_that_are_both_frequent(challenge, geval):
    items = [("a", "1", 0.1), ("a", "2", 0.5), ("d", "1", 0.6), ("a", "1", 0.2), ("d", "2", 0.9), ("d", "2", 0.4)]
    write(challenge / "test-A", "expected.tsv", [word for word, _, _ in items])
    write(challenge / "test-A", "in.tsv", [year for _, year, _ in items])
    write(challenge / "test-A", "out.tsv", [f"{word}:{p} c:{1 - p:.1f}" for word, _, p in items])

    def names(*words):
        return [row[0] for row in feature_lines(geval("-w", "--cartesian", *words)[1])]

    pair = "exp:a~~in<Year>:1"
    assert names()[0] == pair
    assert pair in names("--min-cartesian-frequency", "3")
    assert "~~" not in "".join(names("--min-cartesian-frequency", "7"))
    assert pair in names("--min-frequency", "2")
    assert pair not in names("--min-frequency", "3")


@pytest.mark.parametrize("format", ["text", "json", "csv", "markdown"])
@pytest.mark.parametrize(
    "mode", ["-l", "-ls", "-d other", "-w", "-wr --documents Year", "--most-worsening-features other"]
)
def test_top_shows_the_first_rows(mode, format, challenge, geval):
    write(challenge / "test-A", "out-other.tsv", ["a:0.5 :0.5"] * 5)

    def rows(*more):
        status, out, _ = geval(*mode.split(), "-o", "out.tsv", "--format", format, *more)
        assert status == 0
        return (
            json.loads(out)["lines" if mode[:2] in ("-l", "-d") else "features"]
            if format == "json"
            else out.splitlines()
        )

    heads, every = {"csv": 1, "markdown": 2}.get(format, 0), rows()
    assert len(every) > heads + 1
    assert rows("--top", "1") == every[: heads + 1]
    assert rows("--top", "0") == every[:heads]
    assert rows("--top", "1000") == every


def test_texts_are_escaped_on_a_terminal_alone(challenge, geval):
    shown = {"-l": "1901<tab>a\\x1b[31mb    b  ", "-o other -d out.tsv": "", "-w": "\n`a\\x1b[31mb` in Text  "}
    for words, text in shown.items():
        out = geval(*words.split(), terminal=True)[1]
        assert ("\x1b" in out, text in out) == (False, True)
    assert "1901<tab>a\x1b[31mb\tb" in geval("-l")[1]
    assert "in<Text>:a\x1b[31mb\t" in geval("-w")[1]


def test_a_line_of_buckets_is_shown_whole_on_a_terminal(challenge, geval):
    write(challenge / "test-A", "out.tsv", ["-0.5 -1.5"] * 5)
    status, out, _ = geval("-l", "-a", "LogLossHashed1", terminal=True)
    assert (status, out.count("  -0.5 -1.5\n")) == (0, 5)


def test_lines_that_are_infinite_in_both_are_noted(challenge, geval):
    status, out, err = geval("--most-worsening-features", "other")
    assert status == 0
    note = "geval: note: the score of 1 of 5 lines is infinite in both outputs: left out\n"
    assert err == infinite("out.tsv", "other") + note
    assert "exp:c\t" not in out
    assert "NaN" not in out


def test_lines_that_are_infinite_in_one_of_the_two(challenge, geval):
    write(challenge / "test-A", "other", [*OTHER[:3], "c:1", "b:1"])
    status, out, err = geval("--most-worsening-features", "other")
    note = "geval: note: the score of 2 of 5 lines is infinite in one output: means are infinite or NaN\n"
    assert (status, err) == (0, infinite("out.tsv", "other") + note)
    means = {row[0]: row[2] for row in feature_lines(out)}
    assert (means["exp:c"], means["in<Year>:1903"], means["exp:a"]) == ("Infinity", "-Infinity", "-Infinity")


BOLD_RED, RED, YELLOW, PLAIN = "\x1b[1;31m", "\x1b[31m", "\x1b[33m", "\x1b[0m"
NOTE = "geval: note: words are marked on a terminal only; FORCE_COLOR=1 marks them everywhere\n"


@pytest.fixture
def long_challenge(challenge):
    """Twenty items, of which the five whose expected word is b are the worst."""
    words = ["a"] * 15 + ["b"] * 5
    write(challenge / "test-A", "expected.tsv", words)
    write(challenge / "test-A", "in.tsv", [f"{1900 + n}\tba b a\x1b[2J" for n in range(20)])
    write(challenge / "test-A", "out.tsv", ["a:0.5 c:0.5"] * 15 + ["b:0.25 c:0.75"] * 5)
    return challenge


def marked(text, style):
    return f"{style}{text}{PLAIN}"


LEGEND = "geval: note: marked words go with bad lines: bold red p < 0.001, red p < 0.01, yellow p < 0.05, "
LEGEND += "not corrected for their number\n"


def test_marks_on_a_terminal(long_challenge, geval):
    """The words of bad lines, by their p: here 0.0005."""
    status, out, err = geval("-l", "--mark-worst-features", terminal=True)
    lines = out.splitlines()
    assert (status, err) == (0, LEGEND)
    assert lines[:2] == [
        "line    score  input                   expected  guess",
        "   1  2.00000  1900<tab>ba b a\\x1b[2J  a         c",  # of equal ones, the guess for Accuracy
    ]
    red = marked("b", BOLD_RED)
    assert lines[20] == f"  20  4.00000  1919<tab>ba b a\\x1b[2J  {red}         c"


def test_no_marks_in_a_pipe_or_where_colours_are_unwanted(long_challenge, geval, monkeypatch):
    assert geval("-l", "--mark-worst-features") == (0, geval("-l")[1], NOTE)
    monkeypatch.setenv("NO_COLOR", "1")
    note = "geval: note: words are marked by colours, and NO_COLOR is set\n"
    assert geval("-l", "--mark-worst-features", terminal=True) == (0, geval("-l", terminal=True)[1], note)


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "text"])
def test_words_are_marked_in_text_only(format, challenge, geval, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    words = ["-l", "--format", format]
    note = "geval: note: words are marked in text only\n"
    assert geval(*words, "--mark-worst-features") == (0, geval(*words)[1], infinite("out.tsv") + note)


STYLES = {
    0: BOLD_RED, 0.000999: BOLD_RED, 0.001: RED, 0.00999: RED, 0.01: YELLOW, 0.0499: YELLOW, 0.05: None, 1: None,
}  # fmt: skip


def line(*texts):
    return ScoredLine(1, 1.0, 0.5, *texts)


@pytest.mark.parametrize(("p", "style"), STYLES.items())
def test_the_style_of_a_mark_depends_on_p(p, style):
    marker = Marker({"exp:b": p}, Fields(), split_tokens)
    assert marker.line(line("b", "b", "b")) == line("b", marked("b", style) if style else "b", "b")


MARKED = {  # features, header, tokenizer, and an item; the words in brackets are marked
    "whole words": (["exp:b"], (), split_tokens, ("", "ab [b] bb [b]", "")),
    "a word after its like": (["exp:b"], (), split_tokens, ("", "[b]:0.5 ab:0.5", "")),
    "nothing": (["exp:b"], (), split_tokens, ("", "", "")),
    "spaces stay": (["exp:b"], (), split_tokens, ("", "  [b]  [b] ", "")),
    "tabs": (["exp:b"], (), split_tokens, ("", "[b]\t[b]", "")),
    "control characters": (["exp:b"], (), split_tokens, ("", "\x1bb b\u202e [b]", "")),
    "escaped": (["out:\x1bx"], (), split_tokens, ("", "", "[\x1bx]")),
    "the column of a feature": (["in<Text>:b", "in<3>:b"], ("Year", "Text"), split_tokens, ("b\t[b]\t[b]", "b", "b")),
    "a token that the text does not have": (["exp:b"], (), lambda _: ["&quot;", "b"], ("", '"[b]"', "")),
    "a token for a space": (["exp:b", "exp:_"], (), tokens_of("character-by-character"), ("", "a [b][_]a[b]", "")),
}  # fmt: skip


@pytest.mark.parametrize(("features", "header", "tokens", "item"), MARKED.values(), ids=MARKED)
def test_words_are_marked_where_their_feature_is(features, header, tokens, item):
    bare = [text.translate({ord("["): None, ord("]"): None}) for text in item]
    shown = [visible(text.replace("\t", "<tab>")) for text in item]
    shown = [text.replace("[", BOLD_RED).replace("]", PLAIN) for text in shown]
    assert Marker(dict.fromkeys(features, 0.0), Fields(header), tokens).line(line(*bare)) == line(*shown)


REFUSED = {
    "-d other --most-worsening-features other": "--diff and --most-worsening-features are different modes: take one",
    "--oracle-item-based --alt-out-file other --format json": "--oracle-item-based has no json format; "
    "leave --format out",
    "-d other --mark-worst-features": "--mark-worst-features goes with --line-by-line",
    "-w --min-frequency x": "argument --min-frequency: 'x' is not a whole number\n  geval --help shows the options",
    "-o - -d -": "standard input (-) can be read only once: give one file as -",
}  # fmt: skip


@pytest.mark.parametrize(("words", "message"), REFUSED.items(), ids=REFUSED)
def test_what_does_not_go_together(words, message, challenge, geval):
    assert geval(*words.split()) == (2, "", f"geval: {message}\n")


def test_a_mode_of_config_txt(challenge, geval):
    write(challenge, "config.txt", ["-m Perplexity -l -w"])
    message = "geval: --line-by-line and --worst-features are different modes: take one\n  in `./config.txt`\n"
    assert geval() == (1, "", message)
    write(challenge, "config.txt", ["-m Perplexity -l"])
    assert geval("-w") == geval("-w", "--expected-directory", ".")
    assert geval("-w")[1].startswith("exp:c\t1\t")


READ_SEVERAL_TIMES = [
    "-l", "-l --filter in<Year>:1999",  # which no line has
    "-l -a LogLoss:f<in[Year]:1901>", "-l --mark-worst-features", "--most-worsening-features other",
    "--oracle-item-based --alt-out-file other",
]  # fmt: skip


@pytest.mark.parametrize("line", READ_SEVERAL_TIMES)
def test_the_input_may_be_a_pipe(line, challenge, geval, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    words = line.split()
    expected = geval(*words)
    text = (challenge / "test-A" / "in.tsv").read_bytes()
    (challenge / "test-A" / "in.tsv").unlink()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert geval(*words, "-i", "-") == expected


warned = pytest.mark.filterwarnings("ignore:.*the loss of 1 of 5 lines is infinite")


@pytest.fixture
def document(geval):
    """Run the command, which must succeed; gives its document, read as strict parsers do."""

    def run(*words, noted=""):
        status, out, err = geval(*words, "--format", "json")
        assert (status, without_infinite(err)) == (0, noted)
        return json.loads(out, parse_constant=lambda constant: pytest.fail(constant))

    return run


def outputs(challenge, *names):
    return [{"file": name, "signature": str(evaluate(challenge, output=name).signature)} for name in names]


@warned
def test_lines_in_csv_are_those_of_python(challenge, geval):
    """A column that is called as a figure has another name; the same is written on a terminal."""
    write(challenge, "in-header.tsv", ["score\tText"])
    _, out, _ = geval("-l", "--format", "csv")
    head, *rows = csv.reader(io.StringIO(out), strict=True)
    assert head == ["line", "score", "loss", "in<score>", "Text", "3", "expected", "output"]
    assert rows[2:4] == [
        ["3", "1.0", "0.0", "1902", "new", "town", "a", "a:1"],
        ["4", "Infinity", "Infinity", "1902", "", "", "c", "a:1"],
    ]
    assert set(pd.read_csv(io.StringIO(out)).columns) == set(evaluate(challenge).to_frame().columns)
    write(challenge / "test-A", "in.tsv", [""] * 5)
    assert geval("-l", "--format", "csv")[1].startswith("line,score,loss,in<score>,expected,output\n")
    for words in (["-l"], ["-w"], ["-d", "other"]):
        assert geval(*words, "--format", "csv", terminal=True) == geval(*words, "--format", "csv")


@warned
def test_lines_keep_their_numbers_and_infinite_figures_are_words(challenge, document):
    assert [line["line"] for line in document("-l", "--filter", "in<Year>:1902", "-s")["lines"]] == [4, 3]
    write(challenge / "test-A", "other", [*OTHER[:3], "c:0.5 b:0.5", OTHER[4]])
    differences = document("--diff", "other")
    assert differences["outputs"] == outputs(challenge, "out.tsv", "other")
    rows = [(line["line"], line["difference"]) for line in differences["lines"]]
    assert rows == [(1, -2.0), (3, -1.0), (4, "Infinity")]
    note = "geval: note: the score of 1 of 5 lines is infinite: means are infinite or NaN\n"
    features = {feature["feature"]: feature for feature in document("-w", noted=note)["features"]}
    assert (features["exp:c"]["count"], features["exp:c"]["score"]) == (1, "Infinity")


def test_a_name_that_is_not_utf_8(challenge, document):
    name = b"out-\xff.tsv".decode("utf-8", "surrogateescape")
    write(challenge / "test-A", name, OTHER)
    assert document("-l", "-o", name)["outputs"][0]["file"] == "out-\\udcff.tsv"
