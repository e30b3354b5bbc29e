"""Features of items: their tokens, shapes and fields, how they are named, and how items are filtered by them."""

import pytest
from raising import refused

from geval_py.reading import features as feature_reading
from geval_py.reading.features import EXPECTED, OUTPUT, FeatureKinds, Field, Fields, parse_feature, parse_filter
from geval_py.reading.items import ScoredItem

HEADER = ("FileId", "Year", "LeftContext")


def column(index, name=""):
    return Field(2, name, index) if name else Field(3 + index, str(index + 1), index)


SHAPES = {
    "": "", "A": "A", "AB": "A+", "ABC": "A+", "a": "a", "abc": "a+", "Aa": "Aa", "Kowalski-1970,": "Aa+.9999.",
    "McDonald": "AaAa+", "iPhone": "aAa+", "1": "9", "1901": "9999", "3.14": "9.99", "...": ".+", "?!,": ".+",
    "(a)": "(a(", "([{": "(+", "))": "(+", "„cudzysłów”": "(a+.", "«a»": ".a.", "—-_": ".+", "$£": "#+", "++": "#+",
    "a+b": "a#a", "a\u00a0b": "a a", "\x0b\x0c": " +", "\x00\x1b": "#+", "żółw": "a+", "ŻÓŁW": "A+", "ǅ": "A",
    "水火": "#+", "٣٤": "#+", "²½": "#+", "ʰ": "#", "ª": "#", "e\u0301": "a#", "\u2028": "#", "🙂🙂": "#+",
    "11aa11": "99a+99",
}  # fmt: skip


@pytest.mark.parametrize(("token", "shape"), SHAPES.items(), ids=map(repr, SHAPES))
def test_word_shapes(token, shape):
    assert feature_reading.word_shape(token) == "SHAPE:" + shape


WORDS = {
    "exp:c++": "`c++` in the answer", "in<2>:x:y": "`x:y` in column 2", "in<Left>:a++b": "`a b` in Left",
    "out:C++++lang": "`C++ lang` in the output",
    "exp:SHAPE:a+.": "lower-case words in the answer that end in punctuation",
    "in<Left>:SHAPE:a+++SHAPE:9999": "lower-case words in Left before numbers of 4 digits in Left",
    "exp:SHAPE:A.A.": "words in the answer of the form `A.A.`", "exp:=#+": "greatest length of the answer",
    "exp:a~~b": "`a~~b` in the answer", "in<Left>:the~~in<Year>:=-": "`the` in Left and least number of Year",
}  # fmt: skip


@pytest.mark.parametrize("name", WORDS)
def test_features_are_described_to_people(name):
    assert feature_reading.feature_words(name) == WORDS[name]


KINDS = {
    "tokens": ({}, "b a b", (["b", "a"], [])),
    "shapes": ({"word_shapes": True}, "Ab b Cd 12", (["Ab", "b", "Cd", "12"], ["SHAPE:Aa", "SHAPE:a", "SHAPE:99"])),
    "bigrams": ({"bigrams": True}, "a b a c", (["a", "b", "c"], [], ["a++b", "b++c"], [])),
    "bigrams of shapes": ({"bigrams": True, "word_shapes": True}, "A b C 1", (["A", "b", "C", "1"], ["SHAPE:A",
     "SHAPE:a", "SHAPE:9"], ["A++b", "b++C", "C++1"], ["SHAPE:A++SHAPE:a", "SHAPE:a++SHAPE:9"])),
    "bigrams that are written alike": ({"bigrams": True}, "a b++c d a++b c", (["a", "b++c", "d", "a++b", "c"], [],
     ["a++b++c", "b++c++d", "d++a++b"], [])),
    "numbers and pairs": ({"numerical": True, "cartesian": True}, "a", (["a"], [])),
}  # fmt: skip


@pytest.mark.parametrize(("options", "text", "features"), KINDS.values(), ids=KINDS)
def test_features_of_a_text(options, text, features):
    assert FeatureKinds(**options).of_text(text) == features


COLUMNS = {
    "no header": ((), ["in<1>", "in<2>", "in<3>", "in<4>"]),
    "a header": (HEADER, ["in<FileId>", "in<Year>", "in<LeftContext>", "in<4>"]),
    "a name of two columns": (("Text", "Text", "Year"), ["in<Text>", "in<2>", "in<Year>", "in<4>"]),
    "columns without a name": (("", "", "Year"), ["in<>", "in<2>", "in<Year>", "in<4>"]),
}


@pytest.mark.parametrize(("header", "names"), COLUMNS.values(), ids=COLUMNS)
def test_names_of_columns(header, names):
    assert [str(Fields(header).column(index)) for index in range(4)] == names


def test_an_item_is_split_into_fields():
    fields = Fields(("Year",)).split(ScoredItem("1901\tleft\t", "the", "a:1"))
    assert [(str(field), text) for field, text in fields] == [
        ("exp", "the"), ("out", "a:1"), ("in<Year>", "1901"), ("in<2>", "left"), ("in<3>", ""),
    ]  # fmt: skip
    assert Fields().split(ScoredItem("", "the", "a:1"))[2:] == [(column(0), "")]


ORDERS = {
    "without a header": ((), ["exp", "out", "in<1>", "in<2>", "in<10>"]),
    "with a header": (HEADER, ["exp", "out", "in<FileId>", "in<LeftContext>", "in<Year>", "in<4>", "in<10>"]),
    "a name in digits of another script": (("٣", "b", "a"), ["exp", "out", "in<a>", "in<b>", "in<1>", "in<10>"]),
    "a name that is its own number": (("1", "b"), ["exp", "out", "in<b>", "in<1>", "in<3>", "in<10>"]),
}


@pytest.mark.parametrize(("header", "names"), ORDERS.values(), ids=ORDERS)
def test_the_order_of_fields(header, names):
    found = [Fields(header).find(name[3:-1]) for name in names[2:]]
    assert [str(field) for field in sorted([*reversed(found), OUTPUT, EXPECTED])] == names


NAMED = {
    "exp:the": (EXPECTED, "the"), "out:the": (OUTPUT, "the"), "exp:": (EXPECTED, ""),
    "exp:ka:lo": (EXPECTED, "ka:lo"), "in<Year>:1601": (column(1, "Year"), "1601"),
    "in[Year]:1601": (column(1, "Year"), "1601"), "in[2]:1601": (column(1, "Year"), "1601"),
    "in<FileId>:a": (column(0, "FileId"), "a"), "in<1>:a": (column(0, "FileId"), "a"),
    "in<Year>:a>:b": (column(1, "Year"), "a>:b"), "in<LeftContext>:a\nb": (column(2, "LeftContext"), "a\nb"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "found"), NAMED.items(), ids=map(repr, NAMED))
def test_parse_feature(name, found):
    assert parse_feature(name, Fields(HEADER)) == feature_reading.Feature(name, *found)


def test_a_name_that_is_a_number():
    """The number always works; a column that is called by another's number goes by its own."""
    fields = Fields(("x", "1", "3"))
    assert [str(fields.column(index)) for index in range(4)] == ["in<x>", "in<2>", "in<3>", "in<4>"]
    assert [parse_feature(f"in<{n}>:a", fields).field.column for n in (1, 2, 3, 4)] == [0, 1, 2, 3]


def test_a_name_with_a_bracket():
    assert parse_feature("in<a>b>:c", Fields(("a", "a>b"))) == feature_reading.Feature(
        "in<a>b>:c", column(1, "a>b"), "c"
    )


KINDS_OF_FEATURE = "\n  a feature is exp:WORD, out:WORD or in<COLUMN>:WORD, for example exp:the"
KINDS_OF_FEATURE += "\n  geval … -w | head shows the names of features"
THE_COLUMNS = "the columns are FileId, Year, LeftContext"
BROKEN = {
    "": f"Unknown feature `'{KINDS_OF_FEATURE}", "expected:the": f"Unknown feature `expected:the'{KINDS_OF_FEATURE}",
    "EXP:the": f"Unknown feature `EXP:the'{KINDS_OF_FEATURE}",
    "in:the": f"Unknown feature `in:the'{KINDS_OF_FEATURE}",
    "x\x1b[31m": f"Unknown feature `x\\x1b[31m'{KINDS_OF_FEATURE}",
    "in<Yaer>:1": f"Unknown column `Yaer' in the feature `in<Yaer>:1'\n  did you mean in<Year>? {THE_COLUMNS}",
    "in<year>:1": f"Unknown column `year' in the feature `in<year>:1'\n  did you mean in<Year>? {THE_COLUMNS}",
    "in<Place>:1": f"Unknown column `Place' in the feature `in<Place>:1'\n  {THE_COLUMNS}",
    "in<>:1": f"Unknown column `' in the feature `in<>:1'\n  {THE_COLUMNS}",
    "in<01>:1": f"Unknown column `01' in the feature `in<01>:1'\n  {THE_COLUMNS}",
    "in<٢>:1": f"Unknown column `٢' in the feature `in<٢>:1'\n  {THE_COLUMNS}",
    "in<9999999999>:1": f"Unknown column `9999999999' in the feature `in<9999999999>:1'\n  {THE_COLUMNS}",
}  # fmt: skip

OTHER_HEADERS = [
    ("in<Year>:1", "Unknown column `Year' in the feature `in<Year>:1'\n  the columns have numbers, from 1", ()),
    ("in<Yaer>:1", "Unknown column `Yaer' in the feature `in<Yaer>:1'\n"
     r"  did you mean in<Year\x1b>? the columns are Year\x1b, \u202eId", ("Year\x1b", "\u202eId")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "message", "header"), [*((*one, HEADER) for one in BROKEN.items()), *OTHER_HEADERS], ids=repr)  # fmt: skip
def test_what_is_no_feature(name, message, header):
    with refused(message):
        parse_feature(name, Fields(header))


NUMERICAL_MESSAGE = "`exp:=#+' is no feature of a line by itself: it is the quarter of all lines at one end"


def test_a_numerical_feature_is_of_no_line():
    assert parse_filter(["exp:=#+"], Fields()).nothing_found([ScoredItem("", "a", "b")]) == NUMERICAL_MESSAGE
    assert parse_filter(["exp:=#+"], Fields()).selects(ScoredItem("", "=#+", ""))


ITEM = ScoredItem("f-1\t1601\tNew York a++b", "the", "a:0.5 The:0.25 :0.25")
BY_SHAPE = FeatureKinds(word_shapes=True)
BY_BIGRAM = FeatureKinds(bigrams=True)
BY_NUMBER = FeatureKinds(numerical=True)
SELECTED = {
    "the expected word": (["exp:the"], FeatureKinds(), True), "not the output": (["exp:a"], FeatureKinds(), False),
    "a word of the output": (["out:a"], FeatureKinds(), True),
    "not a part of a word": (["out:Th"], FeatureKinds(), False),
    "a column by its name": (["in<Year>:1601"], FeatureKinds(), True),
    "a column by its number": (["in<2>:1601"], FeatureKinds(), True),
    "not another column": (["in<1>:1601"], FeatureKinds(), False),
    "no such column": (["in<4>:1601"], FeatureKinds(), False),
    "both": (["exp:the", "in<Year>:1601"], FeatureKinds(), True),
    "the first only": (["exp:the", "in<Year>:1602"], FeatureKinds(), False),
    "a shape": (["exp:SHAPE:a+"], BY_SHAPE, True), "a bigram": (["in<3>:New++York"], BY_BIGRAM, True),
    "a bigram, the other way round": (["in<3>:York++New"], BY_BIGRAM, False),
    "a word like a bigram": (["in<3>:a++b"], FeatureKinds(), True),
    "a length": (["in<3>:=#13"], BY_NUMBER, True), "a number": (["in<Year>:=1601.0"], BY_NUMBER, True),
    "a number in brackets": (["in<Year>:=(1601)"], BY_NUMBER, False),
    "the value of a word": (["exp:=3"], BY_NUMBER, False),
    "a length, not asked for": (["in<3>:=#13"], FeatureKinds(), False),
    "a number, not asked for": (["in<Year>:=1601.0"], FeatureKinds(), False),
    "a pair": (["exp:the~~out:a"], FeatureKinds(cartesian=True), True),
    "half a pair": (["exp:the~~out:b"], FeatureKinds(cartesian=True), False),
    "a pair, not asked for": (["exp:the~~out:a"], FeatureKinds(), False),
}  # fmt: skip


@pytest.mark.parametrize(("names", "kinds", "selected"), SELECTED.values(), ids=SELECTED)
def test_filters(names, kinds, selected):
    """As GEval 1.42.2 with the same options, but that it knows shapes and bigrams only where they are asked for, and
    a number only as it writes it: =1601.0."""
    assert parse_filter(names, Fields(HEADER), kinds).selects(ITEM) is selected


ITEMS = [
    ScoredItem("f-1\t1601\tx", "colour", "a:1"), ScoredItem("f-2\t1702\ty", "color", "The:1"),
    ScoredItem("f-3", "Colour", "the:1"), ScoredItem("f\x1b", "", ""),
]  # fmt: skip
NOTHING = {
    "another case": (["exp:COLOR"], FeatureKinds(), "feature `exp:COLOR'\n  did you mean exp:color?"),
    "another case comes before what is nearer": (["out:THe"], FeatureKinds(),
     "feature `out:THe'\n  did you mean out:The?"),
    "the first of another case": (["out:tHe"], FeatureKinds(), "feature `out:tHe'\n  did you mean out:The?"),
    "a column by its name": (["in<Year>:1701"], FeatureKinds(),
     "feature `in<Year>:1701'\n  did you mean in<Year>:1702?"),
    "not of another field": (["out:colour"], FeatureKinds(), "feature `out:colour'"),
    "no such column": (["in<9>:a"], FeatureKinds(), "feature `in<9>:a'"),
    "what is not safe to show": (["in<1>:F\x1b"], FeatureKinds(), r"feature `in<1>:F\x1b'""\n"r"  did you mean in<1>:f\x1b?"),
    "a shape": (["exp:SHAPE:A+"], BY_SHAPE, "feature `exp:SHAPE:A+'\n  did you mean exp:SHAPE:a+?"),
    "several": (["exp:colours", "out:b"], FeatureKinds(), "features `exp:colours' and `out:b' together"),
}  # fmt: skip


@pytest.mark.parametrize(("names", "kinds", "message"), NOTHING.values(), ids=NOTHING)
def test_nothing_found(names, kinds, message):
    assert parse_filter(names, Fields(HEADER), kinds).nothing_found(ITEMS) == f"No item has the {message}"


def test_a_guess_looks_at_so_many_words():
    def items():
        yield ScoredItem("", " ".join(map(str, range(feature_reading.MAX_CANDIDATES + 1))), "")
        pytest.fail("one item more was read")

    assert parse_filter(["exp:zebra"], Fields()).nothing_found(items()) == "No item has the feature `exp:zebra'"


@pytest.mark.parametrize(("name", "text", "is_size"), [
    ("=12.0", "12", True), ("=12.0", " 1.2e1 ", True), ("=12.0", "12a", False), ("=12.0", "a12", False),
    ("=12.0", "13", False), ("=12.0", "", False), ("=#3", "12a", True), ("=#3", "123", False),  # a number has no length
    ("=#3", "水水水", True), ("=#3", "ab", False), ("=#0", "", True), ("12.0", "12", False), ("=12a", "12", False),
])  # fmt: skip
def test_the_number_or_the_length_of_a_text(name, text, is_size):
    feature = parse_feature(f"exp:{name}", Fields())
    assert feature.is_in(ScoredItem("", text, ""), FeatureKinds(numerical=True)) == is_size
