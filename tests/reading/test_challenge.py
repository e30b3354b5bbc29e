"""A challenge's directory: which files are found, in which order, and what is said when one is not."""

import gzip
import lzma
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import refused

from geval_py.errors import AmbiguousFileError, ConfigError, EmptyFileError, MissingFileError, UnreadableFileError
from geval_py.evaluation import evaluate_all
from geval_py.reading.challenge import Challenge
from geval_py.reading.config import Task
from geval_py.reading.files import find_file
from geval_py.reading.outputs import find_outputs
from geval_py.reading.splits import locate, read_header, read_vocabulary
from geval_py.text import natural_order

PROPERTY = settings(deadline=None, derandomize=True)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current directory: a challenge with an output in dev-0 and none in test-A."""
    tree = {
        "config.txt": "--metric PerplexityHashed --metric LogLossHashed --in-header in-header.tsv\n",
        "in-header.tsv": "FileId\tLeftContext\r\n", "train/expected.tsv": "the\nof\nthe\n",
        "dev-0/in.tsv": "Psa-5\tdirect my\n", "dev-0/expected.tsv": "prayer\n", "dev-0/out.tsv": ":1\n",
        "test-A/expected.tsv": "the\n",
    }  # fmt: skip
    for name, text in tree.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def dev0(**values):
    return Task(test_name="dev-0", **values)


def write(folder, *names):
    for name in names:
        (folder / name).write_text(":1\n")


def paths_of(split):
    files = (split.expected, split.input, *(output.file for output in split.outputs))
    return [None if file is None else file.name for file in files]


ORDERED = [
    "out-2.tsv out-10.tsv out-x.tsv out.tsv", "dev-0 dev-1 dev-2 dev-10 test-A test-B train", "lr=0.05 lr=0.1", "x= x=1.5",
    "out-lr=0.01.tsv out-lr=0.1.tsv out-lr=1.tsv out-lr=10.tsv", "1 02 2 3a 3b a", "out-2-2 out-2-10 out-10-1",
    "0 00 000 01 1 9 10", "1e-05 1e-4 0.001", " 0 00 a0 a00", f"{'9' * 5000} {'9' * 5001} x",
]  # fmt: skip


@pytest.mark.parametrize("names", ORDERED, ids=lambda names: names[:20])
def test_natural_order(names):
    """GEval 1.42.2 sorts by glibc's strverscmp: out-2 comes before out-10, 0.05 before 0.1."""
    assert sorted(names.split(" "), key=natural_order) == names.split(" ")


@PROPERTY
@given(st.lists(st.text("0019a-.=e"), unique=True), st.randoms())
def test_natural_order_is_of_names_alone(names, random):
    want = sorted(names, key=natural_order)
    random.shuffle(names)
    assert sorted(names, key=natural_order) == want


FOUND = {
    "itself": (["in.tsv"], "in.tsv"),
    "itself, whatever stands beside it": (["in.tsv", "in.tsv.xz", "in.tsv.gz"], "in.tsv"),
    "xz": (["in.tsv.xz"], "in.tsv.xz"), "nothing": ([], None),
    "another ending": (["in.tsv.zip", "in.tsv.xz.part", "xin.tsv.xz"], None),
}  # fmt: skip


@pytest.mark.parametrize(("names", "found"), FOUND.values(), ids=FOUND)
def test_find_file(names, found, tmp_path, monkeypatch):
    write(tmp_path, *names)
    monkeypatch.chdir(tmp_path)
    assert find_file("in.tsv") == found


AMBIGUOUS = {
    "in": lambda: locate(dev0(needs_items=True)), "expected": lambda: locate(dev0()),
    "out": lambda: evaluate_all(".", "dev-0", metric="LikelihoodHashed"),
    "out-a=1": lambda: evaluate_all(".", "dev-0", metric="LikelihoodHashed"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "use"), AMBIGUOUS.items(), ids=AMBIGUOUS)
def test_ambiguous_files_of_a_test_set(name, use, here):
    (here / f"dev-0/{name}.tsv").unlink(missing_ok=True)
    write(here / "dev-0", f"{name}.tsv.zst", f"{name}.tsv.bz2")
    os.utime(here / f"dev-0/{name}.tsv.bz2", (1, 1))
    path = f"./dev-0/{name}.tsv"
    both = f"More than one file could be `{path}`: `{path}.bz2` and `{path}.zst`\n"
    with refused(f"{both}  remove all but one; `{path}.zst` is the newest", AmbiguousFileError):
        use()


def test_locate(here):
    split = locate(dev0(in_header="in-header.tsv"))
    assert paths_of(split) == ["./dev-0/expected.tsv", "./dev-0/in.tsv", "./dev-0/out.tsv"]
    assert (split.name, split.outputs[0][1:]) == ("dev-0", ("out.tsv", {}, None))
    assert (split.in_header, split.out_header) == (("FileId", "LeftContext"), ())
    for name in ("in", "expected", "out"):
        path = here / f"dev-0/{name}.tsv"
        path.rename(here / f"dev-0/{name}.tsv.xz")
    split = locate(dev0(needs_items=True))
    assert paths_of(split) == ["./dev-0/expected.tsv.xz", "./dev-0/in.tsv.xz", "./dev-0/out.tsv.xz"]
    assert split.outputs[0][1:] == ("out.tsv", {}, None)


def test_locate_in_two_directories(here):
    (here / "answers/dev-0").mkdir(parents=True)
    write(here / "answers/dev-0", "expected.tsv", "in.tsv")
    split = locate(dev0(expected_directory="answers"))
    assert paths_of(split) == ["answers/dev-0/expected.tsv", "answers/dev-0/in.tsv", "./dev-0/out.tsv"]


NAMED = {
    "in the test set": ("my.tsv", "./dev-0/my.tsv"), "in the test set, compressed": ("his.tsv", "./dev-0/his.tsv.gz"),
    "both: the test set's": ("both.tsv", "./dev-0/both.tsv"), "as a path": ("their.tsv", "their.tsv"),
    "as a path, compressed": ("her.tsv", "her.tsv.bz2"),
    "in a folder": ("test-A/expected.tsv", "test-A/expected.tsv"),
    "up and down": ("../dev-0/out.tsv", "./dev-0/../dev-0/out.tsv"), "standard input": ("-", "-"),
    "an address": ("https://example.org/out-a=1.tsv", "https://example.org/out-a=1.tsv"),
}  # fmt: skip


@pytest.mark.parametrize(("given_name", "path"), NAMED.values(), ids=NAMED)
@pytest.mark.parametrize("what", ["out_files", "expected_file", "input_file"])
def test_a_named_file_is_looked_for_in_the_test_set_first_then_as_a_path(what, given_name, path, here):
    write(here / "dev-0", "my.tsv", "his.tsv.gz", "both.tsv")
    write(here, "both.tsv", "their.tsv", "her.tsv.bz2")
    split = locate(dev0(**{what: (given_name,) if what == "out_files" else given_name}))
    assert dict(zip(("expected_file", "input_file", "out_files"), paths_of(split), strict=True))[what] == path


def test_the_name_of_a_test_set_is_not_that_of_answers_elsewhere(here):
    write(here, "mine.tsv")
    write(here / "dev-0", "other.tsv")
    there = (None, "other.tsv", "dev-0/other.tsv", "./dev-0/other.tsv", str(here / "dev-0/other.tsv"))
    names = [locate(dev0(expected_file=name)).name for name in (*there, "mine.tsv")]
    assert names == ["dev-0"] * len(there) + ["mine.tsv"]


MISSING = {
    # GEval 1.42.2: the first line of each
    "no test set": ({"test_name": "dev-9"}, "No test subdirectory with the expected results: `./dev-9`\n"
     "  there are dev-0, test-A, train; choose one with test=…"),
    "no output": ({"test_name": "test-A"},
     "No file with the test results: `./test-A/out.tsv`\n  `./test-A` holds expected.tsv"),
    "no such output": ({"test_name": "dev-0", "out_files": ("nowhere.tsv",)},
     "No file with the test results: `./dev-0/nowhere.tsv`\n  `./dev-0` holds expected.tsv, in.tsv, out.tsv"),

    # the other combinations
    "no expected file": ({"test_name": "dev-0", "expected_file": "nowhere.tsv"},
     "No file with the expected results: `./dev-0/nowhere.tsv`\n  `./dev-0` holds expected.tsv, in.tsv, out.tsv"),
    "no default expected file": ({"test_name": "empty"},
     "No file with the expected results: `./empty/expected.tsv`\n  `./empty` holds no file; there are answers in "
     "dev-0, test-A"),
    "no out-directory": ({"test_name": "dev-0", "out_directory": "nowhere", "expected_directory": "."},
     "No directory with the test results: `nowhere`"),
    "no test set in the out-directory": ({"test_name": "dev-0", "out_directory": "mine", "expected_directory": "."},
     "No test subdirectory with the test results: `mine/dev-0`\n  there are test-B; choose one with test=…"),
    "a folder that is not there": ({"test_name": "dev-0", "out_files": ("no/out.tsv",)},
     "No file with the test results: `./dev-0/no/out.tsv`\n  did you mean out.tsv?"),
    "no header": ({"test_name": "dev-0", "in_header": "nowhere.tsv"},
     "No file with header specification: `./nowhere.tsv`"),
}  # fmt: skip


@pytest.mark.parametrize(("values", "message"), MISSING.values(), ids=MISSING)
def test_missing_files(values, message, here):
    (here / "empty").mkdir()
    (here / "mine/test-B").mkdir(parents=True)
    write(here / "mine/test-B", "out.tsv")
    with refused(message, MissingFileError):
        locate(Task(**values))


@pytest.mark.parametrize("name", [None, "expect.tsv"])
def test_only_a_name_that_somebody_wrote_is_misspelt(name, here):
    (here / "mine/test-B").mkdir(parents=True)
    write(here / "mine/test-B", "expected1.tsv")
    with pytest.raises(MissingFileError) as caught:
        locate(Task(out_directory="mine", test_name="test-B", expected_file=name))
    advice = "did you mean expected1.tsv? " if name else ""
    assert caught.value.hint == f"{advice}`mine/test-B` holds expected1.tsv"


@pytest.mark.parametrize("values", [{"out_files": ("x",)}, {"test_name": "dev-\x1b"}], ids=["file", "test set"])
def test_the_hint_is_safe_to_show(values, here):
    (here / "dev-\x1b[31m").mkdir()
    write(here / "dev-\x1b[31m", "out.tsv")
    write(here / "dev-0", "out-\x1b[31m.txt")
    with pytest.raises(MissingFileError) as caught:
        locate(Task(**{"test_name": "dev-0", **values}))
    assert r"-\x1b" in str(caught.value)
    assert "\x1b" not in str(caught.value)


ONCE = "standard input (-) can be read only once: give one file as -"
USELESS = [
    ({"out_files": ("-",), "expected_file": "-"}, ONCE), ({"out_files": ("-",), "input_file": "-"}, ONCE),
    ({"expected_file": "-", "input_file": "-"}, ONCE),
    ({"out_files": ("",)}, "an output has no name; is a variable of the shell unset?"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "message"), USELESS, ids=str)
def test_names_that_no_files_can_have(values, message, here):
    with refused(message):
        locate(dev0(**values))


HEADERS = {
    "several": (b"FileId\tYear\tLeftContext\n", ("FileId", "Year", "LeftContext")),
    "carriage return": (b"FileId\tYear\r\n", ("FileId", "Year")), "an empty name": (b"\tYear\n", ("", "Year")),
    "compressed": (lzma.compress(b"FileId\tYear\n"), ("FileId", "Year")),
}  # fmt: skip


@pytest.mark.parametrize(("data", "names"), HEADERS.values(), ids=HEADERS)
def test_read_header(data, names, tmp_path):
    (tmp_path / "header.tsv").write_bytes(data)
    assert read_header(str(tmp_path), "header.tsv") == names
    assert read_header("nowhere", None) == ()


HEADER, KOT = {"out-header.tsv": b"Word\n"}, b"kot\npies\nkot\n"
VOCABULARIES = {
    "the distinct words of train": ({}, {}, {"the", "of"}),
    "words like the header": (HEADER | {"train/expected.tsv": b"Word\nthe\nWord\n"}, {"out_header": "out-header.tsv"},
        {"the", "Word"}),
    "a compressed train set": ({"train/expected.tsv": None,
        "train/expected.tsv.gz": gzip.compress("żółw\r\nNew York\n".encode())}, {}, {"żółw", "New York"}),
    "no train set": ({"train/expected.tsv": None}, {}, set()),
    "the train set of the answers": ({"mine/x": b""}, {"out_directory": "mine", "expected_directory": "."},
        {"the", "of"}),
    "of its own": ({"words.txt": KOT}, {"vocabulary": "words.txt"}, {"kot", "pies"}),
}  # fmt: skip


@pytest.mark.parametrize(("files", "values", "words"), VOCABULARIES.values(), ids=VOCABULARIES)
def test_vocabularies(files, values, words, here):
    for name, data in files.items():
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).unlink() if data is None else (here / name).write_bytes(data)
    assert read_vocabulary(Task(**values)) == words


MISSING_WORDS = {
    "header": (lambda: read_header(".", "empty"), EmptyFileError, "The header file is empty: `./empty`"),
    "empty": (lambda: read_vocabulary(Task(vocabulary="empty")), EmptyFileError, "The vocabulary file is empty: `empty`"),
    "none": (lambda: read_vocabulary(Task(vocabulary="no")), MissingFileError, "No file with the vocabulary: `no`"),
    "an address": (lambda: read_vocabulary(Task(vocabulary="http://")), UnreadableFileError, "Cannot read `http://`: no host given"),
}  # fmt: skip


@pytest.mark.parametrize(("read", "kind", "message"), MISSING_WORDS.values(), ids=MISSING_WORDS)
def test_headers_and_vocabularies_without_words(read, kind, message, here):
    (here / "empty").write_bytes(b"")
    with refused(message, kind):
        read()


def test_a_challenge(here):
    challenge = Challenge.open(here)
    assert challenge.path == str(here)
    assert [scheme.metric for scheme in challenge.schemes()] == ["PerplexityHashed", "LogLossHashed"]
    assert list(challenge) == ["dev-0", "test-A", "train"]
    assert challenge["dev-0"].in_header == ("FileId", "LeftContext")
    assert [(of.path, of.name) for of in challenge["dev-0"].outputs] == [(f"{here}/dev-0/out.tsv", "out.tsv")]
    write(here / "dev-0", "out-a=1.tsv")
    assert [output.name for output in challenge["dev-0"].outputs] == ["out-a=1.tsv", "out.tsv"]


def test_a_challenge_that_is_not_there_or_has_a_broken_config(here):
    with refused("No directory with the expected results: `nowhere`", MissingFileError):
        Challenge.open("nowhere")
    (here / "config.txt").write_text("--metrics x")
    with refused("Invalid option `--metrics'\n  did you mean --metric?\n  in `./config.txt`", ConfigError):
        Challenge.open(".")


def test_sets_are_folders_in_natural_order(here):
    for name in ("dev-10", "dev-2", "test-B", "scripts", "retest", "latest"):
        (here / name).mkdir()
    write(here, "test-C", "dev.txt")
    assert list(Challenge.open(here)) == ["dev-0", "dev-2", "dev-10", "test-A", "test-B", "train"]


READMES = {
    "heading and paragraph": ("# Gaps\n\nGuess the word.\n\nMore.\n", "Gaps"),
    "underlined, as by --init": ("Gaps\n====\n\nGuess.\n", "Gaps"), "second level": ("## Gaps\n\nGuess.\n", "Gaps"),
    "ends in a number sign": ("# Gaps in C#\n\nGuess.\n", "Gaps in C#"),
    "after a badge": ("[badge]\n\n# Gaps\n\nGuess.\n", "Gaps"),
    "a paragraph alone": ("Guess\nthe word.\n\nMore.\n", None),
    "carriage returns": ("\ufeff# Gaps\r\n\r\nGuess\r\nit.\r\n", "Gaps"), "other scripts": ("# Żółw\n\n水\n", "Żółw"),
    "empty": ("", None),
}  # fmt: skip


@pytest.mark.parametrize(("text", "title"), READMES.values(), ids=READMES)
def test_the_title_is_the_first_heading(text, title, here):
    assert Challenge.open(".").title == here.name
    (here / "README.md").write_bytes(text.encode())
    assert Challenge.open(f"{here}/").title == (title or here.name)


CALLED = {
    "a folder": (("other",), ["other/out-x=1.tsv", "other/out-x=2.tsv"]),
    "a pattern": (("out-model=*.tsv",), ["./dev-0/out-model=bigram.tsv", "./dev-0/out-model=unigram.tsv"]),
    "a value": (("bigram",), ["./dev-0/out-model=bigram.tsv"]),
    "a parameter": (("model=unigram",), ["./dev-0/out-model=unigram.tsv"]),
    "the name without its beginning": (("plain",), ["./dev-0/out-plain.tsv"]),
    "twice": (("out-model=*", "bigram"), ["./dev-0/out-model=bigram.tsv", "./dev-0/out-model=unigram.tsv"]),
    "itself before a pattern": (("out-[a].tsv",), ["./dev-0/out-[a].tsv"]),
}


@pytest.fixture
def outputs(here):
    names = ("model=unigram", "model=bigram", "plain", "[a]", "a")
    write(here / "dev-0", *(f"out-{name}.tsv" for name in names))
    (here / "other").mkdir()
    write(here / "other", "out-x=1.tsv", "out-x=2.tsv.gz")
    return here


@pytest.mark.parametrize(("names", "paths"), CALLED.values(), ids=CALLED)
def test_what_names_an_output(names, paths, outputs):
    found = [output.path for output in locate(dev0(out_files=names)).outputs]
    assert found == [path.replace("out-x=2.tsv", "out-x=2.tsv.gz") if names == ("other",) else path for path in paths]


NOT_CALLED = {
    "a misspelt file": ("outt.tsv", "No file with the test results: `./dev-0/outt.tsv`\n  did you mean out.tsv? "),
    "a misspelt value": ("bigrm", "No file with the test results: `./dev-0/bigrm`\n  did you mean bigram? "),
    "a pattern without a match": ("x*", "No file with the test results: `./dev-0/x*`\n  "),
}


@pytest.mark.parametrize(("name", "message"), NOT_CALLED.values(), ids=NOT_CALLED)
def test_a_name_that_no_output_has(name, message, outputs):
    """Where there is no such test set, that is said first, as by GEval 1.42.2."""
    holds = (
        "`./dev-0` holds expected.tsv, in.tsv, out-[a].tsv, out-a.tsv, out-model=bigram.tsv, out-model=unigram.tsv"
    )
    with refused(f"{message}{holds}, out-plain.tsv, out.tsv", MissingFileError):
        locate(dev0(out_files=(name,)))
    with pytest.raises(MissingFileError, match=r"^No test subdirectory with the expected results: `\./dev-9`\n"):
        locate(Task(test_name="dev-9", out_files=(name,)))


def test_a_name_that_several_outputs_have(outputs):
    write(outputs / "dev-0", "out-a=b,c=b.tsv", "out-z=b,y=1.tsv")
    with refused("`b` names 2 of the outputs of the test set\n  out-a=b,c=b.tsv, out-z=b,y=1.tsv"):
        locate(dev0(out_files=("b",)))
    write(outputs / "dev-0", "out-z=b.tsv")
    assert [output.name for output in locate(dev0(out_files=("b",))).outputs] == ["out-z=b.tsv"]


def test_a_link_that_leads_nowhere_is_named(here):
    """As git-annex leaves the answers that were not fetched."""
    (here / "dev-0/expected.tsv").unlink()
    (here / "dev-0/expected.tsv").symlink_to("../.git/annex/x")
    message = "Cannot read `./dev-0/expected.tsv`: it is a link to `../.git/annex/x`, which is not there"
    with refused(message, UnreadableFileError):
        locate(dev0())
    (here / "dev-0/out-x.tsv").symlink_to("out-x.tsv")
    assert [(output.name, output.fault and str(output.fault)) for output in find_outputs("dev-0")] == [
        ("out-x.tsv", "Cannot read `dev-0/out-x.tsv`: Too many levels of symbolic links"),
        ("out.tsv", None),
    ]


def test_a_pattern_finds_files_that_are_no_outputs_in_natural_order(here):
    (here / "a[b]").mkdir()
    (here / "dev-0").rename(here / "a[b]/dev-0")
    write(here / "a[b]/dev-0", "guess-10.tsv", "guess-9.tsv", "guess-2.tsv")
    outputs = locate(dev0(out_directory="a[b]", out_files=("guess-*.tsv",))).outputs
    assert [o.path for o in outputs] == [f"a[b]/dev-0/guess-{n}.tsv" for n in (2, 9, 10)]
