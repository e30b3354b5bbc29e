"""What a submission says of itself, as Gonito reads it."""

import pytest
from hostile import LINE

from geval_py.board.intake.gonito import MAX_BYTES, parse_message
from geval_py.text import shorten

FULL = """\
description: This my brilliant solution
tags:
  - neutral-network
  - left-to-right
params:
  epochs: 10
  learning-rate: 0.010
  layers: [1, {a: b}]
  version: "10.4"
  "7": 'x'
unwanted-params:
  - model-file
param-files:
  - "*.yaml"
  - config/*.json
links:
  - title: "Some external link"
    url: "https://example.org/xyz"
  - url: "https://example.net/bare-link-without-text"
affiliation: " Wydział Informatyki "
mlrun-path: mlruns
dependencies:
  - 6f1ed002ab5595859014ebf0951522d9e2c1b5d4
"""


def test_all_that_gonito_reads(receiving, folder):
    """The example of Gonito's page "How to", and more; other keys mean nothing here."""
    parcel = receiving(
        folder(
            {
                "test-A/out.tsv": LINE,
                "gonito.yaml": FULL,
                "train.yaml": "epochs: 12\n",
            }
        )
    )
    details = parcel.details
    assert details.description == "This my brilliant solution"
    assert details.tags == ("left-to-right", "neutral-network")
    assert details.params == {
        "epochs": "10",
        "learning-rate": "0.010",
        "layers": "[1, {a: b}]",
        "version": "'10.4'",  # as Data.Yaml.encode writes it, which keeps text apart from numbers
        "7": "x",
    }
    assert details.links == (
        ("Some external link", "https://example.org/xyz"),
        ("https://example.net/bare-link-without-text",) * 2,
    )
    assert details.affiliation == "Wydział Informatyki"  # ours alone
    assert [file.name for file in parcel.files] == ["gonito.yaml", "test-A/out.tsv"]


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("tags: [a, b\nx: 1\n", "gonito.yaml, line 2: this is not YAML: expected ',' or ']', but got ':'"),
        ("a b\n", "gonito.yaml, line 1: expected keys with values, such as `description: …`"),
        ("\ntags: a, b\n", "gonito.yaml, line 2: `tags` must be a list: [one, another]"),
        ("params: [a]\n", "gonito.yaml, line 1: `params` must have names with values: {epochs: 10}"),
        (
            "links:\n- url: javascript:alert(1)\n",
            "gonito.yaml, line 2: `links` need a url each, beginning with http:// or https://",
        ),
        (f"affiliation: {'a' * 101}\n", "gonito.yaml, line 1: `affiliation` has more than 100 characters"),
        ("links: [a]\n", "gonito.yaml, line 1: `links` must be a list of {title: …, url: …}"),
        (
            "tags: 1\ndescription: [a]\n",
            "gonito.yaml, line 1: `tags` must be a list: [one, another]; "
            "line 2: `description` must be a single value",
        ),
        (b"tags:\n- \xff\n", "gonito.yaml, line 2: this is not UTF-8 text"),
        ("description: !!python/object/apply:os.system [id]\n", "gonito.yaml, line 1: `description` must be a single value"),
        ("params: {a: &a [*a]}\n", "gonito.yaml, line 1: `params` has a value that contains itself, or is nested too deeply"),
        ("description: " + "x" * 5001, "gonito.yaml, line 1: `description` has more than 5000 characters"),
        ("x" * (MAX_BYTES + 1), "`gonito.yaml` is larger than 65536 bytes"),
    ],
    ids=[
        "yaml", "scalar", "tags", "params", "script", "affiliation", "link", "both", "utf-8", "object", "circle", "long", "large",
    ],
)  # fmt: skip
def test_what_is_malformed_is_named_with_its_line(refusal, folder, written, reason):
    """Gonito passes over a gonito.yaml that it cannot read without a word."""
    assert refusal(folder({"test-A/out.tsv": LINE, "gonito.yaml": written})) == reason


def test_aliases_do_not_multiply(refusal, folder):
    levels = "".join(
        f"  {b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    bomb = f"params:\n  a: &a [{', '.join('lol' for _ in range(9))}]\n{levels}"
    reason = refusal(folder({"test-A/out.tsv": LINE, "gonito.yaml": bomb}))
    assert reason == "gonito.yaml, line 2: `params` has a value of more than 1000 characters"


@pytest.mark.parametrize(("message", "expected"), [
    ("One\n", ("One", ())), ("\n \n  One \n\nTags: a,b , c\n", ("One", ("a", "b", "c"))),
    ("One\r\nlabels: a\r\ntags: b\r\n", ("One", ("a",))), ("tags: a\n", ("tags: a", ())), ("", ("", ())),
], ids=["line", "tags", "labels-first", "first-line-is-the-description", "empty"])  # fmt: skip
def test_messages_of_commits(message, expected):
    """Gonito's commitMessageParser: the first line that is not blank, then the first with tags below it."""
    assert parse_message(message) == expected


def several(name, count, line="- {}{}\n"):
    return "".join(line.format(name, number) for number in range(count))


LONG_NAME = f"{'a' * 250}/{'b' * 249}/c"


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({f"{'a/' * 40}b": ""}, f"`{'a/' * 33}a` is nested in more than 32 folders"),
        ({LONG_NAME: ""}, f"`{shorten(LONG_NAME, 200)}` has a name of more than 500 characters"),
        (f"params:\n{several('p', 5000, ' {}{}: 1' + chr(10))}", "gonito.yaml, line 2: `params` has 5000 parameters; at most 100 are allowed"),
        (
            {"gonito.yaml": f"params:\n{several('p', 60, ' {}{}: 1' + chr(10))}", f"test-A/out-{several('q', 41, ',{}{}=1')[1:]}.tsv": ""},
            "it has 101 parameters; at most 100 are allowed",
        ),
        (f"params: {{{'p' * 101}: 1}}\n", "gonito.yaml, line 1: `params` has a name of more than 100 characters"),
        (f"tags:\n{several('t', 5000)}", "gonito.yaml, line 2: `tags` has 5000 entries; at most 20 are allowed"),
        (f"tags: [{'t' * 101}]\n", "gonito.yaml, line 1: `tags` has more than 100 characters"),
        (f"links:\n{several('url: http://x', 2001)}", "gonito.yaml, line 2: `links` has 2001 entries; at most 20 are allowed"),
    ],
    ids=[
        "deep", "name", "params", "params of outputs", "long name", "tags", "long tag", "links",
    ],
)  # fmt: skip
def test_each_limit_rejects(refusal, folder, files, reason):
    files = files if isinstance(files, dict) else {"gonito.yaml": files}
    assert refusal(folder({"test-A/out.tsv": LINE} | files)) == reason
