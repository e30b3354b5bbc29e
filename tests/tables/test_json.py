"""JSON that strict parsers read."""

import json
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from geval_py.tables.escapes import json_list_text, json_text

PROPERTY = settings(deadline=None, derandomize=True)


def strictly(text):
    """Read JSON as a strict parser does: NaN and Infinity are not JSON."""
    return json.loads(text, parse_constant=lambda constant: pytest.fail(constant))


def test_json_text():
    document = {"z": 1, "a": [0.5, None, True, "żółw"], "nested": {"deeper": ({"x": -0.25},)}}
    text = json_text(document)
    assert strictly(text) == {"z": 1, "a": [0.5, None, True, "żółw"], "nested": {"deeper": [{"x": -0.25}]}}
    assert text.startswith('{\n  "z": 1,\n  "a": [\n    0.5,\n')
    assert text.endswith("}\n")
    assert text.isascii()


def test_what_strict_parsers_refuse_becomes_strings_and_escapes():
    r"""Infinity, NaN, and lone surrogates: Python would write ``"\udc80"``."""
    document = {"a": math.inf, "b": [-math.inf, (math.nan,)], "c": {"d": math.inf}}
    assert strictly(json_text(document)) == {"a": "Infinity", "b": ["-Infinity", ["NaN"]], "c": {"d": "Infinity"}}
    text = json_text({"a\udc80": ["b\udcff", {"c": "żółw 🐢"}]})
    assert strictly(text) == {"a\\udc80": ["b\\udcff", {"c": "żółw 🐢"}]}


@PROPERTY
@given(
    st.dictionaries(st.text(), st.recursive(st.floats() | st.text() | st.none(), st.lists, max_leaves=5), max_size=3)
)
def test_every_document_is_strict_json(document):
    """One JSON document that strict parsers read."""
    assert strictly(json_text(document)).keys() == document.keys()


ITEMS = st.lists(st.dictionaries(st.text(max_size=3), st.floats() | st.text() | st.lists(st.none())), max_size=4)


@PROPERTY
@given(st.dictionaries(st.text(max_size=3).filter(lambda name: name != "lines"), st.text()), ITEMS)
@example({}, [])
@example({"a": "[]\n}\n"}, [{}])
def test_a_long_list_is_written_one_by_one(head, items):
    """Piece by piece, the same document; an item a line."""
    pieces = list(json_list_text(head, "lines", iter(items)))
    whole = json_text(head | {"lines": items})
    assert strictly("".join(pieces)) == strictly(whole)
    assert "".join(pieces).startswith(whole.partition('"lines": [')[0])
    assert [piece.count("\n") for piece in pieces[1:-1]] == [1] * len(items)


def test_how_a_long_list_is_written():
    assert "".join(json_list_text({"a": 1}, "b", [{"c": [1]}, {}])) == (
        '{\n  "a": 1,\n  "b": [\n    {"c": [1]},\n    {}\n  ]\n}\n'
    )
    assert "".join(json_list_text({"a": 1}, "b", [])) == json_text({"a": 1, "b": []})


def test_a_job_that_prints_a_document_takes_no_command():
    """GitHub's runner reads `##[name]` anywhere (ActionCommand.cs)."""
    document = {"##[a]": "##[error]x"}
    assert json_text(document) == '{\n  "##\\u005ba]": "##\\u005berror]x"\n}\n'
    assert strictly(json_text(document)) == document
    assert "##[" not in "".join(json_list_text({}, "lines", [document]))
