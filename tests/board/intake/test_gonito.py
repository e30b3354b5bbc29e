"""What a submission says of itself, as Gonito reads it."""

from itertools import pairwise

import pytest
from hostile import LINE

from geval_py.board.intake.sources import MAX_GONITO_BYTES, Details
from geval_py.text import shorten

FULL = """\
description: This my brilliant solution
tags: [neutral-network, left-to-right]
params: {epochs: 10, learning-rate: 0.010, layers: [1, {a: b}], version: "10.4", "7": 'x'}
unwanted-params: [model-file]
param-files: ["*.yaml", config/*.json]
links:
  - title: "Some external link"
    url: "https://example.org/xyz"
  - url: "https://example.net/bare-link-without-text"
affiliation: " Wydział Informatyki "
mlrun-path: mlruns
dependencies: [6f1ed002ab5595859014ebf0951522d9e2c1b5d4]
"""


def test_all_that_gonito_reads(receiving, folder):
    """The example of Gonito's page "How to", and more; other keys mean nothing here."""
    parcel = receiving(folder({"test-A/out.tsv": LINE, "gonito.yaml": FULL, "train.yaml": "epochs: 12\n"}))
    details = parcel.details
    assert details.description == "This my brilliant solution"
    assert details.tags == ("left-to-right", "neutral-network")
    nested = {"layers": '["1", {"a": "b"}]', "version": "10.4", "7": "x"}
    assert details.params == {"epochs": "10", "learning-rate": "0.010"} | nested
    bare = "https://example.net/bare-link-without-text"
    assert details.links == (("Some external link", "https://example.org/xyz"), (bare, bare))
    assert details.affiliation == "Wydział Informatyki"  # ours alone
    assert [file.name for file in parcel.files] == ["gonito.yaml", "test-A/out.tsv"]


@pytest.mark.parametrize(("written", "notes"), [
    ("tags: [a, b\nx: 1\n", ["line 2: this is not YAML: expected ',' or ']', but got ':'"]),
    ("a b\n", ["it has no keys with values"]), ("\ntags: a, b\n", ["line 2: `tags` must be a list: [one, another]"]),
    ("params: [a]\n", ["line 1: `params` must have names with values: {epochs: 10}"]),
    ("links:\n- url: javascript:alert(1)\n", ["line 2: `url` must begin with http:// or https://"]),
    (f"description: {'a' * 5001}\n", ["line 1: `description` must have at most 5000 characters"]),
    ("[a, b]: c\n", []), ("links: [a]\n", ["line 1: `links` must have keys with values"]),
    ("links: [{href: http://x}]\n", ["line 1: `url` is missing", "line 1: unknown key `href`"]),
    ("tags: 1\ndescription: [a]\n", [
    "line 1: `tags` must be a list: [one, another]", "line 2: `description` must be a single value",
    ]),
    (b"tags:\n- \xff\n", ["it is not UTF-8 text"]), ("x" * (MAX_GONITO_BYTES + 1), ["it is larger than 65536 bytes"]),
    ("description: !!python/object/apply:os.system [id]\n", ["line 1: `description` must be a single value"]),
    *((written, ["aliases such as *name and deep nesting are not read"])
      for written in ("params: {a: &a [*a]}\n", f"{'[' * 60_000}{']' * 5_000}", "- " * 500)),
    (f"params: {{a: {'x' * 1001}}}", ["line 1: `a` must have at most 1000 characters"]),
    (f"params: {{{'p' * 101}: 1}}\n", [f"line 1: `{shorten('p' * 101)}` must have at most 100 characters"]),
    (f"params: {{{', '.join(f'p{n}: 1' for n in range(101))}}}", ["line 1: `params` must have at most 100 items, not more"]),
    (f"tags: [{', '.join(map(str, range(21)))}]", ["line 1: `tags` must have at most 20 items, not 21"]),
    (f"tags: [{'t' * 101}]\n", ["line 1: `tags` must have at most 100 characters"]),
    (f"links: [{', '.join(['{url: http://x}'] * 21)}]", ["line 1: `links` must have at most 20 items, not 21"]),
], ids=[
    "yaml", "scalar", "tags", "params", "script", "long", "key", "link", "keys-of-a-link", "both", "utf-8", "large",
    "object", "circle", "deep-lists", "deep-items", "long-parameter", "long-name", "many-params", "many-tags",
    "long-tag", "many-links",
])  # fmt: skip
def test_what_is_malformed_is_left_out_with_a_note(receiving, folder, written, notes):
    """The others keep their values. Gonito passes over a gonito.yaml that it cannot read without a word."""
    is_read = isinstance(written, str) and ": " in written and "*" not in written and "x: 1" not in written
    if is_read:
        written = f"{written.rstrip()}\naffiliation: here\n"
    parcel = receiving(folder({"test-A/out.tsv": LINE, "gonito.yaml": written}))
    assert parcel.notes == tuple(f"gonito.yaml, {note}" for note in notes)
    assert parcel.details == Details(affiliation="here" if is_read else "")


def test_aliases_do_not_multiply(receiving, folder):
    levels = "".join(f"  {b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in pairwise("abcdefghi"))
    bomb = f"params:\n  a: &a [{', '.join('lol' for _ in range(9))}]\n{levels}"
    parcel = receiving(folder({"test-A/out.tsv": LINE, "gonito.yaml": bomb}))
    assert parcel.notes == ("gonito.yaml, aliases such as *name and deep nesting are not read",)


def test_parameters_of_gonito_yaml_and_of_outputs_have_one_limit(refusal, folder):
    params = "".join(f" p{number}: 1\n" for number in range(60))
    variant = ",".join(f"q{number}=1" for number in range(41))
    files = {"gonito.yaml": f"params:\n{params}", f"test-A/out-{variant}.tsv": "", "test-A/out.tsv": LINE}
    assert refusal(folder(files)) == "it has 101 parameters; at most 100 are allowed"
