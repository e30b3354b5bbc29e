"""Names of submitters: those that cannot be told apart are one."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geval_py.board.intake.identity import folded
from geval_py.board.submission import RejectedError
from geval_py.text import visible


@pytest.mark.parametrize(
    "name",
    [
        "Anna Nowak",
        "ANNA NOWAK",
        "  anna   nowak\t",
        "Anna\u00a0Nowak",
        "Anna\u2003Nowak",
        "Anna\u3000Nowak",
        "Anna\u202fNowak",
        "Anna\u3164Nowak",
        "Anna\u2800Nowak",
        "Anna\nNowak",
        "Anna\u2028Nowak",
        "A\u200bnna No\u2060wak",
        "Anna\u200d Nowak\ufe0f",
        "\ufeffAnna Nowak",
        "\u202eAnna Nowak\u202c",
        "An\u00adna Nowak",
        "Anna\x00 Nowak",
        "Ａｎｎａ Ｎｏｗａｋ",
        "𝐀𝐧𝐧𝐚 𝐍𝐨𝐰𝐚𝐤",
        "An\udcffna Nowak",
        "Anna \U000e0041Nowak",
        "Anna\u034f Nowak",
    ],
)
def test_names_that_look_alike_are_one(name):
    assert folded(name) == "anna nowak"


@pytest.mark.parametrize(
    ("one", "other"),
    [("Ł", "L\u0335"), ("ss", "s"), ("a b", "ab"), ("Anna", "Hanna"), ("1", "I"), ("a/b", "ab")],
)
def test_other_names_are_two(one, other):
    assert folded(one) != folded(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("Zoë", "Zoe\u0308"), ("STRASSE", "straße"), ("ﬁsh", "FISH"), ("Å", "\u212b"), ("ΣΑΣ", "σας")],
    ids=["composed", "sharp-s", "ligature", "angstrom", "final-sigma"],
)
def test_unicode_forms_and_case_are_one(one, other):
    assert folded(one) == folded(other)


@pytest.mark.parametrize("name", ["", " ", "\u200b", "\u3164", "\u2800", "\x00", "\u0301", "\u00ad\u034f", "\udcff"])
def test_names_without_a_letter(name):
    with pytest.raises(RejectedError) as raised:
        folded(name)
    assert str(raised.value) == f"the name `{visible(name)}` has no letter that can be seen"


def test_a_name_that_is_too_long():
    with pytest.raises(RejectedError) as raised:
        folded("x" * 101)
    assert str(raised.value) == f"the name `{'x' * 20}…{'x' * 19}` has more than 100 characters"


@pytest.mark.parametrize("name", ["../../etc/passwd", "con", "a\\b", "🦊", "=1+1", "<b>", "'; drop table submitters"])
def test_no_name_is_dangerous(name):
    """It is a key of the database, and never a path: what stands in it does not matter."""
    assert folded(name) == name


@given(st.text(max_size=50))
def test_folding_twice_changes_nothing(name):
    try:
        key = folded(name)
    except RejectedError:
        return
    assert folded(key) == key


@given(st.text(max_size=30), st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_the_form_does_not_matter(name, form):
    """Names that differ in Unicode form are one submitter."""
    try:
        key = folded(name)
    except RejectedError:
        return
    assert folded(unicodedata.normalize(form, name)) == key
