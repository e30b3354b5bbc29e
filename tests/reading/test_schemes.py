"""Evaluation schemes: products, flags, names, and what is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import refused

from geval_py.errors import SchemeError
from geval_py.reading.schemes import Flag, multiply_out, parse_scheme, parse_schemes


def flag(letter, arguments=()):
    return Flag(letter=letter, arguments=arguments)


PROPERTY = settings(deadline=None, derandomize=True)

PRODUCTS = {
    "none": ("LogLossHashed", ["LogLossHashed"]),
    "one": ("{LogLoss,Perplexity}Hashed", ["LogLossHashed", "PerplexityHashed"]),
    "two": ("{Likelihood,LogLoss}Hashed{8,12}", ["LikelihoodHashed8", "LikelihoodHashed12", "LogLossHashed8",
     "LogLossHashed12"]),
    "three": ("{a,b}{c,d}{e,f}", ["ace", "acf", "ade", "adf", "bce", "bcf", "bde", "bdf"]),
    "of nothing": ("LogLossHashed{}", ["LogLossHashed"]),
    "with nothing": ("LogLossHashed{,8}", ["LogLossHashed", "LogLossHashed8"]),
    "outside and inside an argument": ("{LogLoss,Perplexity}Hashed:m<a{1,2}>{l,u}", ["LogLossHashed:m<a{1,2}>l",
     "LogLossHashed:m<a{1,2}>u", "PerplexityHashed:m<a{1,2}>l", "PerplexityHashed:m<a{1,2}>u"]),
    "with arguments inside": ("{Accuracy:N<Acc>,MultiLabel-F1:N<F1>}N<case>", ["Accuracy:N<Acc>N<case>",
     "MultiLabel-F1:N<F1>N<case>"]),
    "of flags with arguments": ("MultiLabel-{F1:N<F1>,F9:N<R>P<3>}{m<date=\\S+\\s*>N<date>,m<term=\\S+>}u",
     ["MultiLabel-F1:N<F1>m<date=\\S+\\s*>N<date>u", "MultiLabel-F1:N<F1>m<term=\\S+>u",
     "MultiLabel-F9:N<R>P<3>m<date=\\S+\\s*>N<date>u", "MultiLabel-F9:N<R>P<3>m<term=\\S+>u"]),
    "a comma and braces inside an argument inside": ("Accuracy:{s<a,b><c>,m<x{1,2}>,f<in<a,b>:c,d>}u",
     ["Accuracy:s<a,b><c>u", "Accuracy:m<x{1,2}>u", "Accuracy:f<in<a,b>:c,d>u"]),
    "not closed, with an argument": ("Accuracy:{N<a>,l", ["Accuracy:{N<a>,l"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "products"), PRODUCTS.values(), ids=PRODUCTS)
def test_products(text, products):
    assert multiply_out(text) == products


ALTERNATIVES = st.lists(st.text("abAB12", max_size=3), min_size=1, max_size=4)


@PROPERTY
@given(st.lists(ALTERNATIVES, max_size=4))
def test_there_are_as_many_products_as_choices(factors):
    products = [""]
    for factor in factors:
        products = [done + new for done in products for new in factor]
    assert multiply_out("".join("{" + ",".join(factor) + "}" for factor in factors)) == products


def test_too_many_products():
    text = "LogLossHashed" + "{0,1,2,3,4,5,6,7,8,9}" * 5
    with pytest.raises(SchemeError) as caught:
        parse_schemes(text)
    assert str(caught.value) == "More than 10000 metrics in one definition: LogLossHashed{0,1,2,…,1,2,3,4,5,6,7,8,9}"
    assert caught.value.scheme == text


FLAGS = {
    "none": ("LogLossHashed", "LogLossHashed", ()), "a colon alone": ("LogLossHashed:", "LogLossHashed", ()),
    "name": ("PerplexityHashed:N<ppl>", "PerplexityHashed", (flag("N", ("ppl",)),)),
    "letters": ("Accuracy:lucS", "Accuracy", (flag("l"), flag("u"), flag("c"), flag("S"))),
    "substitute": ("Accuracy:s<a+><b>", "Accuracy", (flag("s", ("a+", "b")),)),
    "the most confident": ("LogLossHashed:p<50.0>", "LogLossHashed", (flag("p", ("50.0",)),)),
    "all together": ("PerplexityHashed12:N<ppl>P<3>ls<x><y>f<exp:a>", "PerplexityHashed12",
        (flag("N", ("ppl",)), flag("P", ("3",)), flag("l"), flag("s", ("x", "y")), flag("f", ("exp:a",)))),
}  # fmt: skip


@pytest.mark.parametrize(("text", "metric", "flags"), FLAGS.values(), ids=FLAGS)
def test_parse_scheme(text, metric, flags):
    scheme = parse_scheme(text)
    assert (scheme.text, scheme.metric, scheme.flags) == (text, metric, flags)
    assert "".join(map(str, flags)) == text.removeprefix(metric).removeprefix(":")


@pytest.mark.parametrize(("text", "name", "priority"), [
    ("Accuracy", "Accuracy", 1), ("LogLossHashed:", "LogLossHashed", 1), ("Accuracy:l", "Accuracy:l", 1),
    ("Accuracy:N<loss>", "loss", 1), ("Accuracy:lN<log loss>P<3>", "log loss", 3),
    ("Accuracy:N<log>P<3>lN<loss>P<0>", "log loss", 0),
])  # fmt: skip
def test_the_name_and_the_priority_of_what_is_shown(text, name, priority):
    scheme = parse_scheme(text)
    assert (scheme.name, scheme.priority) == (name, priority)


def test_text_flags_and_filters():
    scheme = parse_scheme("LogLossHashed:f<exp:a>lN<x>s<a><b>P<2>m<y>t<z>ucSf<in[1]:b>")
    assert [flag.letter for flag in scheme.text_flags] == ["l", "s", "m", "t", "u", "c", "S"]
    assert scheme.filters == ("exp:a", "in[1]:b")
    assert parse_scheme("LogLossHashed").text_flags == parse_scheme("LogLossHashed").filters == ()


THE_FLAGS = "the flags are l u c S m<REGEXP> t<REGEXP> s<REGEXP><REPLACEMENT> f<FEATURE> p<PERCENT> N<NAME> P<NUMBER>"
BROKEN = {
    "unknown": ("LogLossHashed:z", "z"), "unsafe to show": ("LogLossHashed:\x1b[31m", "\\x1b[31m"),
    "a space": ("LogLossHashed:l u", " u"), "a name not closed": ("LogLossHashed:N<loss", "<loss"),
    "a letter with an argument": ("LogLossHashed:l<a>", "<a>"),
    "substitution without a replacement": ("Accuracy:s<a>", "s<a>"),
    "substitution with something between": ("Accuracy:s<a>x<b>", "x<b>"),
    "a second colon": ("LogLossHashed:l:u", ":u"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "rest"), BROKEN.values(), ids=BROKEN)
def test_broken_flags(text, rest):
    """GEval 1.42.2, --metric LogLossHashed:z."""
    with pytest.raises(SchemeError) as caught:
        parse_schemes(text)
    assert str(caught.value) == f"Unknown or broken metric flags: {rest}\n  {THE_FLAGS}"
    assert (caught.value.scheme, caught.value.exit_status) == (text, 2)


@pytest.mark.parametrize(("text", "percentage", "flags"), [
    ("LogLossHashed:l", None, "l"), ("LogLossHashed:lp<50>u", 50.0, "lp<50.0>u"),
    ("LogLossHashed:p<012.50>", 12.5, "p<12.5>"), ("LogLossHashed:p<1e1>f<exp:a>", 10.0, "p<10.0>f<exp:a>"),
    ("LogLossHashed:p<100>", 100.0, "p<100.0>"), ("LogLossHashed:p<20>p<10>", 20.0, "p<20.0>p<10.0>"),
    ("LogLossHashed:P<02>", None, "P<2>"),
])  # fmt: skip
def test_percentage(text, percentage, flags):
    """GEval 1.42.2: p<N> keeps N percent of the lines; numbers in flags are shown as they are read."""
    scheme = parse_scheme(text)
    assert (scheme.percentage, "".join(map(str, scheme.flags)), scheme.text) == (percentage, flags, text)
    assert [f.letter for f in scheme.selecting_flags] == [f.letter for f in scheme.flags if f.letter in "fp"]


NUMBERS = {
    "P": (["", "x", "1.5", "-1", "+1", "١", "1" * 10], "P<n> takes a whole number"),
    "p": (["", "x", "0", "0.0", "-1", "+1", ".5", "5.", "101", "1e999", "nan", "50%", "1e-999"],
          "p<n> takes a percentage, above 0 and at most 100"),
}  # fmt: skip


@pytest.mark.parametrize(("flag", "number"), [(flag, number) for flag in NUMBERS for number in NUMBERS[flag][0]])
def test_broken_numbers(flag, number):
    """Of percentages, GEval 1.42.2 scores no line (NaN), all lines, or ends with Prelude.read: no parse."""
    with refused(f"Unknown or broken metric flags: {flag}<{number}>u\n  {NUMBERS[flag][1]}", SchemeError):
        parse_scheme(f"LogLossHashed:l{flag}<{number}>u")


@PROPERTY
@given(st.text("ABab0{},<>:NPlusmtfcS 1"))
def test_a_definition_is_parsed_or_refused(text):
    try:
        schemes = parse_schemes(text)
    except SchemeError as error:
        schemes, message = [], str(error)
    else:
        message = "Unknown or broken metric flags: "
        assert [scheme.text for scheme in schemes] == multiply_out(text)
    assert all(scheme.metric == scheme.text.partition(":")[0] for scheme in schemes)
    assert message.startswith("Unknown or broken metric flags: ")
