"""``--selector``: parts of JSON lines as answers and outputs.

Expected figures are from GEval.Selector and GEval.Core.getDataFormatFromFilePath of GEval 1.42.2, and from
aeson-pretty's encodePretty' with an indent of 0, sorted keys and generic numbers.
"""

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from geval_py import Challenge, evaluate
from geval_py.errors import TooLargeError, UnreadableFileError
from geval_py.reading.lines import LineReader, read_lines
from geval_py.reading.selector import SPACE
from geval_py.reading.splits import answers_at

PROPERTY = settings(deadline=None, derandomize=True, max_examples=examples(60))
SIMPLE = {  # GEval's own test "handling jsonl format", test/jsonl-simple
    "config.txt": "--metric MultiLabel-F1 --selector root/items",
    "test-A/expected.jsonl": '{"id": 0, "root":{"foo":"bar", "items":[{"aaa":12, "bbb":"xyz"}, {"aaa":14, "bbb":"a"}]}}\n'
    '{"id": 1, "root":{"foo":"baz", "items":[]}}\n'
    '{"id": 2, "root":{"foo":"baz", "items":[{"aaa":3, "bbb":"abc"}]}}\n',
    "test-A/out.jsonl": '{"id": 0, "root":{"foo":"bar", "items":[{"aaa":12, "bbb":"x"}, {"aaa":14, "bbb":"a"}]}}\n'
    '{"id": 1, "root":{"foo":"baz", "items":[{"aaa": 13, "bbb":"y"}]}}\n'
    '{"id": 2, "root":{"foo":"baz", "items":[{"aaa":3, "bbb":"abc"}]}}\n',
    "test-A/in.tsv": "first\nsecond\nthird\n",
}


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test-A").mkdir()
    for name, text in SIMPLE.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def selected(tmp_path, text, selector="a"):
    path = tmp_path / "x.jsonl"
    path.write_bytes(text.encode() + b"\n")
    (line,) = read_lines(answers_at(str(path), selector))
    return line


@pytest.mark.parametrize("words", [(), ("-e", "expected.jsonl"), ("-o", "out.jsonl")], ids=str)
def test_gevals_own_example(words, challenge, geval):
    """0.571428571428, in GEval 1.42.2's test/Spec.hs."""
    status, out, err = geval(*words)
    assert (status, float(out), err) == (0, pytest.approx(4 / 7), "")


WRITTEN = {
    "a text keeps its quotes": ('{"a": "b c"}', '"b c"'), "a number": ('{"a": 5}', "5"),
    "a map, its keys sorted": ('{"a": {"b": [1, {}], "B": {"ł": false}}}', '{"B":{"ł":false},"b":[1,{}]}'),
    "escapes": (r'{"a": "<\u0001\n\"\\\u00e9\/>&"}', r'"<\u0001\n\"\\é/>&"'),
    "a lone surrogate": (r'{"a": "\ud800"}', '"\ufffd"'), "items": ('{"a": ["b", 1, [2, 3]]}', '"b" 1 [2,3]'),
    "white space inside of items": ('{"a": ["b c", "b\u00a0c", "b\\tc"]}', f'"b{SPACE}c" "b{SPACE}c" "b\\tc"'),
    "the sign for it": (f'{{"a": ["b{SPACE}c"]}}', r'"b\u2423c"'),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line"), WRITTEN.values(), ids=WRITTEN)
def test_what_is_selected_is_written_as_json(text, line, tmp_path):
    assert selected(tmp_path, text) == line


NUMBERS = {
    "12": "12", "-0": "0", "1e3": "1000", "12.50": "12.5", "5.0": "5.0", "0.1": "0.1", "-1234567.25": "-1234567.25",
    "12345678.5": "1.23456785e7", "1e19": "1" + 19 * "0", "10000000000000000001": "1.0000000000000000001e19",
    "1E+300": "1.0e300", "0e99": "0", "9" * 5000: f"9.{'9' * 4999}e4999",
}  # fmt: skip


@pytest.mark.parametrize(("written", "shown"), NUMBERS.items(), ids=lambda text: text[:20])
def test_numbers_are_written_as_aeson_does(written, shown, tmp_path):
    """Above 1e19 with an exponent."""
    assert selected(tmp_path, f'{{"a": {written}}}') == shown


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda of: st.lists(of, max_size=3) | st.dictionaries(st.text(), of, max_size=3),
    max_leaves=6,
)  # fmt: skip


@PROPERTY
@given(VALUES, VALUES)
def test_equal_values_are_written_alike_and_others_not(tmp_path_factory, one, other):
    folder = tmp_path_factory.mktemp("values")
    lines = [selected(folder, json.dumps({"a": {"b": [value]}}), "a/b") for value in (one, other)]
    texts = [json.dumps(value, sort_keys=True) for value in (one, other)]
    assert (lines[0] == lines[1]) == (texts[0] == texts[1])
    read = json.loads(lines[0].replace(SPACE, " "))
    if not any(space in texts[0] for space in ("\\u", SPACE)):
        assert read == one


FAILED = {
    "no such key": ('{"a": 1}', "b", "there is no `b`"), "no map": ('{"a": [1]}', "a/0", "there is no `a/0`"),
    "no JSON": ('{"a": 1', "a", "column 8: it is not JSON: Expecting ',' delimiter"),
    "an empty line": ("", "a", "the line is empty"), "NaN": ('{"a": NaN}', "a", "NaN is no number in JSON"),
    "equal keys": ('{"a": 1, "a": 2}', "a", "the key `a` occurs twice"),
    "deep lists": ('{"a": ' + "[" * 100_000, "a", "its lists and maps are nested too deeply"),
    "a far exponent": ('{"a": 1e99999999999}', "a", "the exponent of 1e99999999999 is too far from 0"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "selector", "reason"), FAILED.values(), ids=FAILED)
def test_a_selector_that_fails(text, selector, reason, tmp_path):
    with pytest.raises(UnreadableFileError) as caught:
        selected(tmp_path, text, selector)
    place = "row 1, " if reason.startswith("column") else "row 1: "
    assert str(caught.value) == f"selector failed: `{tmp_path}/x.jsonl`: {place}{reason}"


def test_files_of_text_have_no_parts(challenge, geval):
    (challenge / "test-A/out.tsv").write_text("x\n" * 3)
    message = "geval: selectors not handled for TSVs\n"
    hint = "--selector names parts of JSON lines, in files that end in .jsonl\n"
    assert geval("-o", "out.tsv") == (2, "", f"{message}  `./test-A/out.tsv`: {hint}")
    assert geval("-o", "-") == (2, "", f"{message}  standard input: {hint}")
    (challenge / "test-A/expected.tsv").write_text("x\n" * 3)
    assert geval("-e", "expected.tsv", "-o", "out.jsonl") == (2, "", f"{message}  `./test-A/expected.tsv`: {hint}")


def test_a_compressed_file_that_unpacks_to_too_much(tmp_path):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a": 1}\n' * 10_000))
    assert len(list(read_lines(answers_at(str(path), "a")))) == 10_000
    with pytest.raises(TooLargeError), LineReader(answers_at(str(path), "a"), max_bytes=50_000) as reader:
        list(iter(reader.block, b""))


def test_lines_and_features_are_of_what_is_selected(challenge, geval):
    status, out, err = geval("-l", "--selector", "root/foo", "-a", "Accuracy")
    assert (status, err) == (0, "")
    assert out == '1.0\tfirst\t"bar"\t"bar"\n1.0\tsecond\t"baz"\t"baz"\n1.0\tthird\t"baz"\t"baz"\n'
    assert geval("-l", "--filter", 'out:13,"bbb"')[1] == '0.0\tsecond\t\t{"aaa":13,"bbb":"y"}\n'
    assert 'out:13,"bbb"\t1\t0.00000000\t' in geval("-w")[1]
    assert geval("-l", "--show-preprocessed", "-a", "MultiLabel-F1:u")[1].count('"AAA"') == 7


def test_commands_use_the_selector_of_config_txt(challenge, geval):
    (challenge / "test-A/out-b.jsonl").write_text(SIMPLE["test-A/expected.jsonl"])
    assert [float(line.split("\t")[1]) for line in geval()[1].splitlines()] == pytest.approx([1, 4 / 7])
    assert "\nb       1.000 " in geval("compare", "-t", "test-A")[1]
    assert geval("report", "-t", "test-A", "--html", "page.html")[0] == 0
    assert geval("-o", "out-b.jsonl", "--diff", "out.jsonl")[1].startswith("0.5\tfirst\t")
    assert evaluate(Challenge.open("."), "test-A", output="out.jsonl").score == pytest.approx(4 / 7)
    shown = {geval("-o", "out.jsonl", "--format", "json", "--selector", of)[1] for of in ("root/items", "root/foo")}
    assert len(shown) == 2


def test_commands_that_do_not_know_it_refuse_it(challenge, geval):
    reason = "has --selector: parts of JSON lines are not"
    assert geval("check", "test-A") == (2, "", f"geval: `./config.txt` {reason} checked, only scored\n")
    assert geval("--validate", "--expected-directory", ".") == (
        2, "", f"geval: `./config.txt` {reason} validated, only scored\n",
    )  # fmt: skip
    refused = geval("--init", "--expected-directory", "new", "-m", "Accuracy", "--selector", "a")
    assert refused == (2, "", "geval: --selector has no effect with --init: leave it out\n")
