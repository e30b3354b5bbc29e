"""Every sentence of GEval 1.42.2's ``--validate``, in its words and its order."""

import gzip
import lzma
import shutil
import sys

import pytest
from answer_formats import WRITE, in_another_format

from geval_py import UsageError
from geval_py.authoring.init import init_challenge
from geval_py.authoring.validate import OLD_TRAIN_WARNINGS, validate_challenge
from geval_py.reading.config import Task
from geval_py.version import installs


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    init_challenge(Task(expected_directory="C", metrics=("LogLossHashed",)))
    return tmp_path / "C"


def faults(**fields):
    return [str(fault) for fault in validate_challenge("C", Task(**fields))[0]]


def remove(*names):
    return lambda folder: [(folder / name).unlink() for name in names]


def write(name, content):
    data = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(data)


def append(name, text):
    return lambda folder: (folder / name).write_text((folder / name).read_text() + text, newline="")


def both(*changes):
    return lambda folder: [change(folder) for change in changes]


def remove_sets(folder):
    for name in ("dev-0", "test-A"):
        shutil.rmtree(folder / name)


def link_set(folder):
    remove_sets(folder)
    (folder / "dev-0").symlink_to(folder / "train")


BEST = "The best possible value was not obtained with the expected data, expected: {} , obtained: {}\n"
BEST += "  in `C/{}/expected.tsv`\n  with {}"
CONFIG = "--in-header in-header.tsv --out-header out-header.tsv "
# The words of text 1.2.5.0 (GHC 9.0.2 and LTS 19.25, with which GEval 1.42.2 is built), read in its source.
NO_UTF8 = "Cannot decode byte '\\x{}': Data.Text.Internal.Encoding.streamDecodeUtf8With: Invalid UTF-8 stream\n"
NO_UTF8 += "  in `C/README.md`\n  line 2"
HINT = "\n  hidden answers that lie in a folder of their own are validated there"
BROKEN = {
    "no config.txt": (remove("config.txt"), ["No config.txt file: `C/config.txt`"]),
    "no .gitignore": (remove(".gitignore"), ["No .gitignore file: `C/.gitignore`"]),
    "no README": (remove("README.md"), ["No README.md file: `C/README.md`"]),
    "no metric": (write("config.txt", CONFIG.strip()), ["No metric has priority 1"]),
    "no metric of priority 1": (write("config.txt", f"{CONFIG}--metric LogLossHashed:P<2>"),
     ["No metric has priority 1"]),
    "an unknown metric": (write("config.txt", f"{CONFIG}--metric Foo"),
     ["Unknown or broken metric definition: Foo\n  geval --list-metrics shows those that are known\n"
     "  in `C/config.txt`"]),
    "a broken config.txt": (write("config.txt", "--metrics LogLossHashed"),
     ["Invalid option `--metrics'\n  did you mean --metric?\n  in `C/config.txt`"]),
    "an empty .gitignore": (write(".gitignore", ""), ["Empty file: `C/.gitignore`"]),
    "an empty config.txt": (write("config.txt", ""), ["No metric has priority 1", "Empty file: `C/config.txt`"]),
    "a carriage return": (write("README.md", "a\r\nb\nc\r\n"),
     ["Found CR (Carriage Return, 0x0D) character: `C/README.md`\n  line 1, and 1 more"]),
    "a carriage return inside a line": (write("README.md", "x\na\rb\n"),
     ["Found CR (Carriage Return, 0x0D) character: `C/README.md`\n  line 2"]),
    "a space at a line end": (append("config.txt", " "), ["Found space at the end of line: `C/config.txt`\n  line 1"]),
    "a no-break space at a line end is none": (write("README.md", "a\u00a0\n"), []),
    "a header of two lines": (append("in-header.tsv", "a\tb\n"),
     ["A header is one line, with a name for each column: `C/in-header.tsv`\n  it has 2"]),
    "a header with a carriage return": (write("in-header.tsv", "LeftContext\tRightContext\r\n"),
     ["Found CR (Carriage Return, 0x0D) character: `C/in-header.tsv`\n  line 1"]),
    "a header with too few columns": (write("in-header.tsv", "LeftContext\n"),
     [f"A header and a file differ in their columns: `C/in-header.tsv`, `C/{name}/in.tsv`\n"
     "  the header has 1, line 1 has 2" for name in ("dev-0", "test-A", "train")]),
    "no headers": (remove("in-header.tsv", "out-header.tsv"),
     ["No file with header specification: `C/in-header.tsv`", "No file with header specification: `C/out-header.tsv`"]),
    "no UTF-8": (write("README.md", b"a\n\xff\n"), [NO_UTF8.format("ff")]),
    "no train": (lambda folder: shutil.rmtree(folder / "train"), []),
    "no challenge": (shutil.rmtree, ["No challenge directory: `C`"]),
    "no test set": (remove_sets,
     ["No directories with test data, expected `dev-0` and/or `test-A` directory\n  in `C`"]),
    "a test set that is a link": (link_set,
     ["No directories with test data, expected `dev-0` and/or `test-A` directory\n  in `C`"]),
    "no input": (remove("dev-0/in.tsv"), ["No file with the input: `C/dev-0/in.tsv`"]),
    "two inputs": (write("dev-0/in.tsv.gz", gzip.compress(b"a\tb\n")),
     ["Too many input files: `C/dev-0/in.tsv`, `C/dev-0/in.tsv.gz`"]),
    "no answers": (remove("dev-0/expected.tsv"), ["No file with the expected results: `C/dev-0/expected.tsv`"]),
    "hidden answers": (remove("test-A/expected.tsv"),
     [f"No file with the expected results: `C/test-A/expected.tsv`{HINT}"]),
    "two files of answers": (write("dev-0/expected.tsv.xz", lzma.compress(b"a\nb\n")),
     ["Too many expected files: `C/dev-0/expected.tsv`, `C/dev-0/expected.tsv.xz`"]),
    "an empty input": (write("dev-0/in.tsv", ""), ["Empty file: `C/dev-0/in.tsv`",
     "The number of lines in input and expected file is not the same\n"
     "  `C/dev-0/in.tsv` has 0; `C/dev-0/expected.tsv` has 2"]),
    "an input with carriage returns": (write("dev-0/in.tsv", "a\tb\r\nc\td\r\n"),
     ["Found CR (Carriage Return, 0x0D) character: `C/dev-0/in.tsv`\n  line 1, and 1 more"]),
    "columns": (write("dev-0/in.tsv", "a\tb\nc\n"),
     ["The file contains varying number of columns: `C/dev-0/in.tsv`\n  line 1 has 2, line 2 has 1"]),
    "lines": (append("dev-0/in.tsv", "a\tb\n"), ["The number of lines in input and expected file is not the same\n"
     "  `C/dev-0/in.tsv` has 3; `C/dev-0/expected.tsv` has 2"]),
    "outputs": (both(write("dev-0/out.tsv", ":1\n:1\n"), write("dev-0/out-x=1.tsv.gz", gzip.compress(b":1\n"))),
     ["Output file/s detected: `C/dev-0/out-x=1.tsv.gz`, `C/dev-0/out.tsv`"]),
    "a value that is not the best": (write("config.txt",
     f"{CONFIG}--metric LogLossHashed:N<half>s<:1[.]0><:0.5\\ :0.5>"), [BEST.format("0.0", "0.6921710945868899", name,
     "half") for name in ("dev-0", "test-A", "train")]),
    "a class that is none": (both(write("config.txt", f"{CONFIG}--metric Likelihood"), *(write(f"{name}/expected.tsv",
     "1\n0.7\n") for name in ("dev-0", "test-A")), write("train/expected.tsv", "1\n0\n1\n0\n")), [BEST.format("1.0",
     "0.8366600265340756", name, "Likelihood") for name in ("dev-0", "test-A")]),
    "words with a space": (write("dev-0/expected.tsv", "the end\nriver\n"),
     ["Line 1: Unexpected data [colon expected]\n"
     "  `C/dev-0/expected.tsv`, line 1, column 1: `the` has no probability; an entry is `word:probability`, and a word cannot contain a space\n"
     "    the end:1.0\n    ^"]),
    "a train.tsv alone": (both(remove("train/expected.tsv"), write("train/train.tsv", "x\n")), []),
    "no answers of train": (remove("train/expected.tsv"),
     ["No file with the expected results: `C/train/expected.tsv`"]),
    "train's input": (write("train/in.tsv", "a\r\n"),
     ["Found CR (Carriage Return, 0x0D) character: `C/train/in.tsv`\n  line 1",
     "The number of lines in input and expected file is not the same\n"
     "  `C/train/in.tsv` has 1; `C/train/expected.tsv` has 4"]),
    "in GEval's order": (write("README.md", "a \nb\r\nc\xa0\n".encode("latin-1")),
     [NO_UTF8.format("a0").replace("line 2", "line 3"),
     "Found CR (Carriage Return, 0x0D) character: `C/README.md`\n  line 2",
     "Found space at the end of line: `C/README.md`\n  line 1"]),
    "train's answers": (write("train/expected.tsv", "a b\nc\nd\ne\n"), ["Line 1: Unexpected data [colon expected]\n"
     "  `C/train/expected.tsv`, line 1, column 1: `a` has no probability; an entry is `word:probability`, and a word cannot contain a space\n"
     "    a b:1.0\n    ^"]),
}  # fmt: skip


@pytest.mark.parametrize(("change", "messages"), BROKEN.values(), ids=BROKEN)
def test_faults(change, messages, challenge):
    change(challenge)
    assert faults() == messages


def test_a_header_of_more_names_than_columns(challenge):
    """GEval's --init writes 19 names for the 18 columns of F1."""
    write("out-header.tsv", "Word\tProbability\n")(challenge)
    assert validate_challenge("C") == ([], ())


def test_an_old_train_file(challenge):
    """GEval 1.42.2 warns on standard output, and looks at nothing else in train."""
    (challenge / "train/train.tsv").write_text("a\n")
    (challenge / "train/expected.tsv").write_text("a b\n")
    assert validate_challenge("C") == ([], OLD_TRAIN_WARNINGS)
    assert len(OLD_TRAIN_WARNINGS) == 3
    assert all(line.startswith("WARNING: ") for line in OLD_TRAIN_WARNINGS)


@pytest.mark.parametrize("name", WRITE)
def test_answers_in_other_formats(name, challenge):
    for of in ("train", "dev-0", "test-A"):
        in_another_format(challenge / of, name)
    assert faults() == []
    path = challenge / "dev-0/in.tsv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[1:]))
    (fault,) = faults()
    message = "The number of lines in input and expected file is not the same\n"
    assert fault == message + f"  `C/dev-0/in.tsv` has {len(lines) - 1}; `C/dev-0/{name}` has {len(lines)}"


def test_faults_of_answers_in_other_formats(challenge):
    in_another_format(challenge / "dev-0", "expected.jsonl")
    path = challenge / "dev-0/expected.jsonl"
    text = path.read_text()
    path.write_text(text.replace('"}', ' "}', 1))
    assert faults()[0] == "Found space at the end of line: `C/dev-0/expected.jsonl`\n  line 1"
    path.write_text("")
    assert "Empty file: `C/dev-0/expected.jsonl`" in faults()
    path.write_text("x\n")
    assert faults() == ["Cannot read `C/dev-0/expected.jsonl`: row 1, column 1: it is not JSON: Expecting value"]
    (challenge / "dev-0/expected.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    path.rename(challenge / "dev-0/expected.jsonl.xz")
    names = "`C/dev-0/expected.jsonl.xz` and `C/dev-0/expected.jsonl.gz`"
    assert faults() == [
        f"More than one file could be `C/dev-0/expected.jsonl`: {names}\n"
        "  remove all but one; `C/dev-0/expected.jsonl.gz` is the newest"
    ]


def test_metrics_of_the_command_line_count_too(challenge):
    assert faults(metrics=("Accuracy",)) == []
    assert faults(alt_metrics=("LogLossHashed:P<2>",)) == ["No metric has priority 1"]
    with pytest.raises(UsageError):
        faults(metrics=("Foo",))
    with pytest.raises(UsageError):
        faults(select_metrics=("Foo",))


def test_another_name_of_the_answers_changes_only_the_scoring(challenge):
    """GEval 1.42.2: with ``-e`` expected.tsv is still looked for and looked at."""
    for name in ("dev-0", "test-A", "train"):
        lines = len((challenge / name / "expected.tsv").read_text().splitlines())
        (challenge / name / "answers.tsv").write_text("other\n" * lines)
    found = faults(expected_file="answers.tsv")
    assert len(found) == 3
    assert all("expected: 0.0 , obtained: Infinity" in fault for fault in found)


@pytest.mark.parametrize(("metric", "is_free"), [
    ("Soft-F1", True), ("Probabilistic-Soft-F2", True), ("Soft2D-F1", True), ("FLC-F1", False), ("ClippEU", False),
])  # fmt: skip
def test_the_columns_of_some_inputs_may_vary(metric, is_free, challenge):
    """GEval 1.42.2: fixedNumberOfColumnsInInput of GEval.Metric."""
    init_challenge(Task(expected_directory="D", metrics=(metric,)))
    path = challenge.parent / "D/dev-0/in.tsv"
    path.write_text(path.read_text().removesuffix("\n") + "\tmore\n")
    found = [str(fault) for fault in validate_challenge("D")[0]]
    assert [of.partition(":")[0] for of in found] == ["The file contains varying number of columns"] * (not is_free)


def test_an_input_that_cannot_be_read_is_a_fault(challenge):
    (challenge / "dev-0/in.tsv").unlink()
    (challenge / "dev-0/in.tsv.gz").write_bytes(gzip.compress(b"a\tb\n" * 9)[:-9])
    assert faults()[0].startswith("Corrupt gzip file `C/dev-0/in.tsv.gz`: ")


NEAR = {
    "an answer that is no option": ("ChoiceAccuracy", "expected", "pencil",
     "Line 2: Unexpected data [the answer is not an option]\n  `C/dev-0/expected.tsv`, line 2, column 1: `pencil` is none "
     "of the input's options: desk station drawer soup\n    pencil\n    ^"),
    "no options": ("ChoiceLogLoss", "in", "left\tright\t",
     "Line 2: Unexpected data [no choice of options]\n  `C/dev-0/in.tsv`, line 2, column 12: the last column has the "
     "options, at least 2, with spaces between them\n    left\\tright\\t\n                 ^"),
    "counts": ("RankCorrelation", "expected", "tea:3 milk:2",
     "Line 2: Unexpected data [a share is from 0 to 1]\n  `C/dev-0/expected.tsv`, line 2, column 1: the shares of the "
     "answers are from 0 to 1, and not all 0; divide counts by their sum\n    tea:3 milk:2\n    ^"),
}  # fmt: skip


@pytest.mark.parametrize(("metric", "file", "text", "fault"), NEAR.values(), ids=NEAR)
def test_faults_of_answers_and_options(tmp_path, monkeypatch, metric, file, text, fault):
    monkeypatch.chdir(tmp_path)
    init_challenge(Task(expected_directory="C", metrics=(metric,)))
    path = tmp_path / "C/dev-0" / f"{file}.tsv"
    path.write_text(path.read_text().splitlines()[0] + f"\n{text}\n")
    assert faults() == [fault]


def test_a_missing_package_is_said_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    init_challenge(Task(expected_directory="C", metrics=("WER",)))
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance", None)
    message = f"this metric needs rapidfuzz.distance, of the extra text: {installs('text')}"
    assert faults() == [message]
