"""The published JSON Schemas: what the commands write is valid by them, and has no key that they do not know."""

import json
import re
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from examples import ROOT, examples_of
from jsonschema import Draft202012Validator
from servers import free_port, served

from geval_py.cli import main

SCHEMAS = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(ROOT.glob("docs/schemas/*.json"))
}
BOTH = "dev-0/out-model=bigram.tsv dev-0/out-model=unigram.tsv"
ONE = "-t dev-0 -o bigram"
COMMANDS = {
    "scores": ["-t dev-0", f"{ONE} -B 10 --documents FileId", f"{ONE} -B 10 --no-documents", "-t dev-0 -o three",
        "-t dev-0 -o infinite.tsv -a PerplexityHashed -a Perplexity",
        f"{ONE} -a PerplexityHashed:f<exp:the> -a PerplexityHashed:f<out:theodolite>",
        "-t one -a SacreBLEU -a BLEU -a Pearson"],
    "lines": [f"{ONE} -l", f"{ONE} -d unigram", "-t dev-0 -o infinite.tsv -l", "-t one -a BLEU -l",
        "-t one -a BLEU -d out.tsv"],
    "features": [f"{ONE} -w", f"{ONE} -w --numerical-features --no-documents",
        f"{ONE} --most-worsening-features unigram", "-t dev-0 -o infinite.tsv -w", "-t one -a BLEU -w"],
    "comparison": ["compare -t dev-0 --samples 100",
        f"compare -t dev-0 --samples 100 --no-documents {BOTH} infinite.tsv",
        "compare -t dev-0 --samples 100 infinite.tsv rest.tsv", f"compare -t dev-0 --samples 100 -a BLEU {BOTH}",
        "compare -t runs --runs seed --no-worse-than 0.5 --detect 0.01",
        "compare --challenge . --challenge . -t dev-0"],
    "calibration": [f"calibration {ONE}", "calibration -t dev-0 -o infinite.tsv",
        "calibration -t dev-0 -o rest.tsv --no-documents",
        "calibration -o vectors.tsv -e words.tsv -a PerplexityHashed4",
        "calibration -o mixed.tsv -e words.tsv -a PerplexityHashed4"],
    "luck": ["luck -t dev-0 --seeds 2", "luck -t dev-0 -o infinite.tsv --seeds 2", "luck -t dev-0 -o rest.tsv"],
    "mixture": [f"tune {ONE} --documents FileId --words 1000 --apply dev-0", "tune -t dev-0 -o infinite.tsv",
        f"mix -t dev-0 {BOTH} --words 0 --no-documents",
        f"mix -t dev-0 {BOTH} infinite.tsv --documents FileId --apply dev-0 --force"],
    "problems": ["check -t dev-0", "check dev-0 missing.tsv", "check guess.tsv", "challenge leaks .",
        "check one/out.tsv"],
    "standings": ["board show board -t dev-0", "board show board -t dev-0 --by submission"],
    "grades": ["board show board -t dev-0 --by person"],
    "receipts": ["board add board team bad", "board scan board uploads", "board note board CODE seen",
        "board withdraw board CODE --reason none"],
    "status": ["board status board"], "likeness": ["board status board --copies"],
    "rescoring": ["board rescore changed", "board rescore board"],
    "perplexity": ["lm perplexity text.arpa text.txt", "lm perplexity text.arpa text.txt --bootstrap 20"],
    "text_perplexity": ["lm perplexity SERVER text.txt", "lm perplexity SERVER text.txt --bootstrap 20"],
    "surprisal": ["lm surprisal text.arpa text.txt"],
}  # fmt: skip
OF_MODELS = ("perplexity", "surprisal")
OF_BOARDS = ("standings", "grades", "receipts", "status", "likeness", "rescoring")


def train_models(geval):
    Path("text.txt").write_text("the cat sat\na dog sat\nthe dog and a cat\n" * 3)
    assert geval("lm", "train", "-o", "2", "text.txt", "--arpa", "text.arpa", "--discount-fallback")[0] == 0


@pytest.fixture(scope="module")
def with_boards(tmp_path_factory, forked_sandbox):
    """The sample challenge with a board, and one whose answers were changed after two submissions."""
    folder = tmp_path_factory.mktemp("boards") / "gazette"
    for name in ("gazette", "gazette/changing"):
        shutil.copytree(ROOT / "challenges" / "gazette", folder.parent / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for team in ("team", "uploads/other", "first", "second", "third"):
            (Path(team) / "dev-0").mkdir(parents=True)
            shutil.copyfile(BOTH.split()[team in ("team", "first", "third")], f"{team}/dev-0/out.tsv")
        Path("bad/dev-0").mkdir(parents=True)
        Path("bad/dev-0/out.tsv").write_text("the:0,5\n")
        for name, answers in (("board", "."), ("changed", "changing")):
            assert main(["board", "init", name, "--challenge", answers, "--answers", answers]) == 0
            for team in ("first", "second", "third"):
                assert main(["board", "add", name, team]) == 0
        Path("changing/dev-0/expected.tsv").write_text("the\n" * 211 + "a\n")
    return folder


def code_of_the_first(geval):
    return json.loads(geval("board", "show", "board", "-t", "dev-0", "--format", "json")[1])["entries"][0]["code"]


@pytest.fixture
def gazette(tmp_path):
    """The sample challenge, with some outputs that are at fault in their own way."""
    folder = tmp_path / "gazette"
    shutil.copytree(ROOT / "challenges" / "gazette", folder)
    (folder / "dev-0" / "infinite.tsv").write_text("the:0.5 a:0.5\n" * 212)
    (folder / "dev-0" / "rest.tsv").write_text(":1\n" * 212)
    (folder / "three").mkdir()
    for name in BOTH.split():
        shutil.copy(folder / name, folder / "three")
    (folder / "runs").mkdir()
    for name, new in (("expected.tsv", "expected.tsv"), ("rest.tsv", "out-model=rest.tsv"),
                      ("out-model=bigram.tsv", "out-seed=1.tsv"), ("out-model=unigram.tsv", "out-seed=2.tsv")):  # fmt: skip
        shutil.copy(folder / "dev-0" / name, folder / "runs" / new)
    (folder / "three" / "out-model=bad.tsv").write_text("the:0,5\n" * 212)
    (folder / "guess.tsv").write_text("the:0,5\nthe:1\n")
    (folder / "one").mkdir()
    for name in ("out.tsv", "expected.tsv"):
        (folder / "one" / name).write_text("1\n")
    (folder / "one" / "in.tsv").write_text("file\t1901\tleft\tright\n")
    (folder / "words.tsv").write_text("the\na\n" * 60)
    vector = " ".join(str(-place / 4) for place in range(16)) + "\n"
    (folder / "vectors.tsv").write_text(vector * 120)
    (folder / "mixed.tsv").write_text((vector + "the:0.5 a:0.2 :0.3\n") * 60)
    return folder


@pytest.fixture
def documents(gazette, with_boards, tmp_path, geval, monkeypatch):
    """Return a function that gives the documents of a kind."""

    def written(kind):
        is_of_board = kind in OF_BOARDS
        monkeypatch.chdir(shutil.copytree(with_boards, tmp_path / "boards") if is_of_board else gazette)
        if kind in OF_MODELS:
            train_models(geval)
        code = code_of_the_first(geval) if is_of_board else ""
        server = ""
        if kind == "text_perplexity":
            Path("text.txt").write_text("to eat\na tea\n")
            port, command = free_port(), [sys.executable, str(ROOT / "tests" / "modelling" / "letters_server.py")]
            stack.enter_context(served([*command, str(port)], port))
            server = f"openai:http://127.0.0.1:{port}/v1#letters"
        for line in COMMANDS[kind]:
            words = [{"CODE": code, "SERVER": server}.get(word, word) for word in line.split()]
            first = ("--top", "20") if kind in ("features", "lines") else ()  # which have all keys
            status, out, err = geval(*words, *first, "--format", "json")
            assert status in (0, 1), err
            assert out, f"{words}: {err}"
            yield words, json.loads(out)

    with ExitStack() as stack:
        yield written


def closed(schema):
    """A schema that knows no other keys."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    whole = isinstance(schema.get("properties"), dict) and "required" in schema
    more = {"additionalProperties": False} if whole else {}
    return {name: closed(value) for name, value in schema.items()} | more


def keys_of(value, keys=lambda mapping: mapping):
    """All keys in a document, or in what ``keys`` takes of each mapping: so a schema's keys are in its properties."""
    if isinstance(value, list):
        return {key for item in value for key in keys_of(item, keys)}
    if not isinstance(value, dict):
        return set()
    return {*keys(value), *(key for item in value.values() for key in keys_of(item, keys))}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SCHEMAS)
def test_what_is_written_is_valid(kind, documents):
    schema = SCHEMAS[kind]
    Draft202012Validator.check_schema(schema)
    strict = Draft202012Validator(closed(schema))
    found, written = set(), list(documents(kind))
    for words, document in written:
        assert [(words, error.json_path, error.message[:200]) for error in strict.iter_errors(document)] == []
        found |= keys_of(document)
    properties = keys_of(schema, lambda part: part.get("properties", {}))
    assert properties - found == set(), "a key that no command writes"
    document, validator = written[0][1], Draft202012Validator(schema)
    for key in document:
        assert not validator.is_valid({name: value for name, value in document.items() if name != key})


def test_the_page_links_to_each_schema_and_shows_what_is_valid():
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\(schemas/(\w+)\.json\)", text)) == SCHEMAS.keys()
    shown = [json.loads(example.shown) for example in examples_of(text) if "--format json" in example.code]
    valid = [
        {kind for kind, schema in SCHEMAS.items() if Draft202012Validator(schema).is_valid(one)} for one in shown
    ]
    assert [len(kinds) for kinds in valid] == [1] * 6
