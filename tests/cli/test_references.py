"""``--references``: fields that refer to characters of texts in another file.

Expected figures are from parseReferencePointer and getFrag of GEval.FeatureExtractor, readReferences of
GEval.LineByLine and intSetParser of GEval.Annotation, of GEval 1.42.2.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from geval_py.errors import MalformedLineError, MissingFileError
from geval_py.reading.features import FeatureKinds, read_references

PROPERTY = settings(deadline=None, derandomize=True, max_examples=examples(100))
TEXT = "Rome, Żary and Oslo"
FILES = {
    "config.txt": "-m Accuracy", "texts.tsv": f"1\tnothing\n2\tParis 3\n01\t{TEXT}\n",
    "dev-0/in.tsv": "1 0-3\tfirst\n1 6-9\tsecond\n1 15-18,0-3,5\tthird\n3 0-3\tfourth\n2 0-8\tfifth\n",
    "dev-0/expected.tsv": "a\na\nb\nb\n2 0-4\n", "dev-0/out.tsv": "b\nb\nb\nb\nx\n",
    "dev-0/out-other.tsv": "a\na\na\na\nb\n",
}  # fmt: skip


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dev-0").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30) | st.none()), max_size=6)


@pytest.mark.slow
@PROPERTY
@given(st.text(max_size=25), SPANS)
def test_a_reference_is_a_set_of_positions(text, spans):
    written = ",".join(f"{start}" if end is None else f"{start}-{end}" for start, end in spans)
    positions = {n for start, end in spans for n in range(start, (start if end is None else end) + 1)}
    want = "".join(letter for n, letter in enumerate(text) if n in positions)
    assert FeatureKinds(references={"7": text}).referenced(f"007 {written}") == want


@pytest.mark.parametrize(
    "field", ["7", "7  1", "7 1 ", " 7 1", "7 1-", "7 -1", "7 1,", "7 a", "x 1", "7\t1", "٧ 1", ""]
)
def test_another_field_is_no_reference(field):
    assert FeatureKinds(references={"7": "text"}).referenced(field) == field


def test_far_positions_and_many_spans_take_no_time():
    kinds = FeatureKinds(references={"7": "x" * 1_000_000})
    assert kinds.referenced("7 0-" + "9" * 18) == "x" * 1_000_000
    assert kinds.referenced("7 " + ",".join(["0-999999"] * 100_000)) == "x" * 1_000_000
    assert kinds.referenced("7 " + "9" * 18) == ""
    for text in ("7 0-" + "9" * 5000, "7 " + "9" * 5000):  # no such position
        assert kinds.referenced(text) == text


def test_a_file_of_references(challenge):
    assert read_references("texts.tsv") == {"1": TEXT, "2": "Paris 3"}
    with pytest.raises(MissingFileError, match=r"^No file with the references: `nowhere.tsv`"):
        read_references("nowhere.tsv")


@pytest.mark.parametrize("line", ["", "1", "a\tb", "1\ta\tb", "-1\ta", " 1\ta"])
def test_a_broken_file_of_references(line, challenge):
    (challenge / "texts.tsv").write_text(f"1\ta\n{line}\n")
    with pytest.raises(MalformedLineError) as caught:
        read_references("texts.tsv")
    error = caught.value
    assert (error.path, error.line, error.text) == ("texts.tsv", 2, line)
    assert error.hint == "a line of references is a whole number, a TAB and a text without TABs"


FILTERED = {
    "a referenced word": (["in<1>:Rome"], ["first", "third"]),
    "characters in the order of the text": (["in<1>:Rome++Oslo", "--bigrams"], ["third"]),
    "a text that is not there": (["in<1>:0-3"], ["fourth"]), "an expected line": (["exp:Paris"], ["fifth"]),
    "a shape": (["in<1>:SHAPE:Aa+", "--word-shapes"], ["first", "second", "third", "fifth"]),
}  # fmt: skip


@pytest.mark.parametrize(("words", "names"), FILTERED.values(), ids=FILTERED)
def test_lines_are_filtered_by_referenced_texts(words, names, challenge, geval):
    """They are shown as they are. GEval's --diff knows no references."""
    command = ("-t", "dev-0", "-o", "out.tsv", "--references", "texts.tsv", "--filter", *words)
    rows = [line.split("\t") for line in geval(*command, "-l")[1].splitlines()]
    assert [row[1].partition("<tab>")[2] for row in rows] == names
    assert all(row[1].startswith(tuple("123")) for row in rows)
    differing = [name for name in names if name != "fifth"]
    shown = [line.split("\t")[1] for line in geval(*command, "--diff", "other")[1].splitlines()]
    assert [text.partition("<tab>")[2] for text in shown] == differing


@pytest.mark.parametrize("more", [(), ("-T", "minimalistic", "--cartesian")], ids=str)
@pytest.mark.parametrize("mode", [("-w",), ("--most-worsening-features", "other")], ids=str)
def test_features_are_of_referenced_texts(mode, more, challenge, geval):
    words = ("-t", "dev-0", "-o", "out.tsv", *mode, *more, "--numerical-features", "--word-shapes")
    status, out, _ = geval(*words, "--references", "texts.tsv")
    texts = {"1 0-3": "Rome", "1 6-9": "Żary", "1 15-18,0-3,5": "Rome Oslo", "3 0-3": "3 0-3", "2 0-8": "Paris 3"}
    rows = [line.split("\t") for line in FILES["dev-0/in.tsv"].splitlines()]
    direct = "".join(f"{texts[first]}\t{second}\n" for first, second in rows)
    (challenge / "dev-0/in.tsv").write_text(direct, encoding="utf-8")
    (challenge / "dev-0/expected.tsv").write_text(FILES["dev-0/expected.tsv"].replace("2 0-4", "Paris"))
    assert (status, out) == geval(*words)[:2]
    assert "in<1>:Rome\t" in out


def test_references_are_for_features(challenge, geval):
    assert geval("-t", "dev-0", "-o", "out.tsv", "--references", "texts.tsv") == (
        2, "",
        "geval: --references goes with --worst-features, --most-worsening-features, --line-by-line or --diff\n",
    )  # fmt: skip
    (challenge / "config.txt").write_text("-m Accuracy --references texts.tsv")
    assert geval("-t", "dev-0", "-o", "out.tsv") == (0, "0.4\n", "")
    assert "in<1>:Rome\t" in geval("-t", "dev-0", "-o", "out.tsv", "-w")[1]
