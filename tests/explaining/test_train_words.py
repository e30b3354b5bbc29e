"""The frequent words of a challenge's train."""

import pytest

from geval_py import check
from geval_py.explaining.mixing import frequent_words


def test_frequent_words():
    answers = ["b", "the", "a", "the", "x y", "", "a\t", "b", "a"]
    found = frequent_words(answers, 2)
    assert list(found.items()) == [("a", 2 / 9), ("b", 2 / 9)]
    assert list(frequent_words(answers, 9)) == ["a", "b", "the"]


ODD = ["no\u00a0break", "a\tb", "zero\u200bwidth", "a\ufeffmark", "x:0.1,y", "5;a:b", "\x07bell", "isolate\u2066"]


@pytest.mark.parametrize("odd", ODD, ids=ascii)
def test_words_that_a_rule_speaks_of_are_not_listed(odd, tmp_path):
    others = ["fine", "ka:lo", "soft\u00adhyphen"]
    assert list(frequent_words([odd, *others], 9)) == others
    (tmp_path / "out.tsv").write_text(f"{odd}:0.5 :0.5\n", encoding="utf-8")
    problems = check(tmp_path / "out.tsv").problems
    assert {problem.rule.code for problem in problems} & {"W208", "W209", "E113", "E114"}
