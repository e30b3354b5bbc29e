"""Names of submitters: those that differ only in letter case or invisible characters are one."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import refused

from geval_py.board.intake.identity import casefolded, check_name, skeleton, skeletons
from geval_py.errors import RejectedError
from geval_py.text import visible


@pytest.mark.parametrize("name", [
    "Anna Nowak", "ANNA NOWAK", "  anna   nowak\t", "Anna\u00a0Nowak", "Anna\u2003Nowak", "Anna\u3000Nowak",
    "Anna\u202fNowak", "Anna\u3164Nowak", "Anna\u2800Nowak", "Anna\nNowak", "Anna\u2028Nowak",
    "A\u200bnna No\u2060wak", "Anna\u200d Nowak\ufe0f", "\ufeffAnna Nowak", "\u202eAnna Nowak\u202c",
    "An\u00adna Nowak", "Anna\x00 Nowak", "Ａｎｎａ Ｎｏｗａｋ", "𝐀𝐧𝐧𝐚 𝐍𝐨𝐰𝐚𝐤", "An\udcffna Nowak", "Anna \U000e0041Nowak",
    "Anna\u034f Nowak",
])  # fmt: skip
def test_names_that_look_alike_are_one(name):
    assert casefolded(name) == "anna nowak"


SAME = [("Zoë", "Zoe\u0308"), ("STRASSE", "straße"), ("ﬁsh", "FISH"), ("Å", "\u212b"), ("ΣΑΣ", "σας")]
OTHER = [("Ł", "L\u0335"), ("ss", "s"), ("a b", "ab"), ("Anna", "Hanna"), ("1", "I"), ("a/b", "ab")]


@pytest.mark.parametrize(("one", "other"), SAME + OTHER)
def test_names_in_other_unicode_forms_or_case_are_one(one, other):
    assert (casefolded(one) == casefolded(other)) == ((one, other) in SAME)


@pytest.mark.parametrize("name", ["", " ", "\u200b", "\u3164", "\u2800", "\x00", "\u0301", "\u00ad\u034f", "\udcff"])
def test_names_without_a_letter(name):
    with refused(f"the name `{visible(name)}` has no visible letter", RejectedError):
        casefolded(name)


def test_a_name_that_is_too_long():
    with refused(f"the name `{'x' * 20}…{'x' * 19}` has more than 100 characters", RejectedError):
        casefolded("x" * 101)


def has_a_letter(name):
    try:
        return bool(casefolded(name))
    except RejectedError:
        return False


NAMES = st.text(st.characters(codec="utf-8"), max_size=30).filter(has_a_letter)


@given(NAMES, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_the_form_does_not_matter(name, form):
    assert casefolded(unicodedata.normalize(form, name)) == casefolded(name)


@pytest.mark.parametrize(("text", "expected"), [
    ("\u0430nn", "ann"), ("Tom I0", "Torn lO"), ("\u0420\u0430ur\u0430l", "Paural"), ("\u0392ob", "Bob"),
    ("\U0001d401ob", "Bob"), ("w\u0456t\u04bb", "with"), ("\u01c1 \ufb03", "ll ffi"),
    ("\u0625\u0654", "\u006c\u0655\u0654"), ("Zo\u00eb \u2010 \u2044", "Zoe\u0308 - /"), ("\u3007\u5de5", "O\u5de5"),
])  # fmt: skip
def test_skeletons_are_those_of_icu(text, expected):
    """Golden values of ICU 78.3, uspoof_getSkeleton."""
    assert skeleton(text) == expected


ALIKE = [
    ("ann", "\u0430nn"), ("ann", "ANN "), ("Bob", "\u0392ob"), ("\u039d\u0399\u039d\u0391", "NINA"),
    ("\u041d\u0438\u043d\u0430", "\u043d\u0438\u043d\u0430"), ("Ida", "lda"), ("Ida", "ida"), ("team 1", "team l"),
    ("team 10", "TEAM 10"), ("Kamal", "Karnal"), ("b-team", "b\u2010team"), ("\u017fam", "fam"),
]  # fmt: skip
APART = [
    ("Ian", "Lan"), ("team 10", "team 11"), ("Nina", "Viva"), ("\u0412\u043e\u0432\u0430", "Boba"),
    ("Łucja", "Lucja"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), ALIKE + APART)
def test_names_that_look_alike(one, other):
    assert skeletons(one).isdisjoint(skeletons(other)) == ((one, other) in APART)


@given(NAMES)
def test_a_name_looks_like_itself_in_other_letters(name):
    assert not skeletons(name).isdisjoint(skeletons(f" {name} "))
    assert not skeletons(name).isdisjoint(skeletons(name.casefold()))


@pytest.mark.parametrize(("name", "reason"), [
    *((f"An{mark}na", f"the name `An{visible(mark)}na` has the character {named}, which no name may have")
      for mark, named in [
        ("\t", "U+0009"), ("\x00", "U+0000"), ("\x85", "U+0085"), ("\u2028", "U+2028 LINE SEPARATOR"),
        ("\u202e", "U+202E RIGHT-TO-LEFT OVERRIDE"), ("\u2067", "U+2067 RIGHT-TO-LEFT ISOLATE"),
        ("\u200f", "U+200F RIGHT-TO-LEFT MARK"), ("\u061c", "U+061C ARABIC LETTER MARK"),
    ]),
    *((f"Z{marks}", "has more than 2 combining marks in a row") for marks in ("\u0301\u0302\u0303", "\u20dd" * 3)),
    ("Team \u0430nn", "the name `Team \u0430nn` mixes Cyrillic and Latin letters in one word"),
    ("\u0392\u200bOB", "mixes Greek and Latin letters in one word"),
])  # fmt: skip
def test_names_that_no_submitter_may_have(name, reason):
    with pytest.raises(RejectedError) as caught:
        check_name(name)
    assert str(caught.value).endswith(reason)


@pytest.mark.parametrize("name", [
    "Nguy\u1ec5n", unicodedata.normalize("NFD", "Nguy\u1ec7n"), "\u05e9\u05dc\u05d5\u05dd", "\u0639\u0644\u06cc",
    "\U0001f98a", "a\u200bb", "Team \u03b1", "\u3053\u3093\u5de5 Lab",
], ids=["composed", "two marks", "Hebrew", "Arabic", "fox", "invisible", "two words", "Japanese"])  # fmt: skip
def test_names_that_submitters_may_have(name):
    check_name(name)
