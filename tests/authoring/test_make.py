"""Challenges that are cut from texts: what is cut, what goes where, and what nobody may see."""

import hashlib
import json
import lzma
import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from raising import refused

from geval_py import UsageError
from geval_py.authoring import make
from geval_py.authoring.corpora import Cut, Document, Parts, cut_gaps, read_documents, read_pattern
from geval_py.authoring.leaks import find_leaks
from geval_py.authoring.make import Recipe, cut_challenge, make_challenge
from geval_py.authoring.validate import validate_challenge
from geval_py.errors import ExistingFileError

PROPERTY = settings(deadline=None, derandomize=True, max_examples=examples(60))
GAZETTE = Path(__file__).parents[2] / "challenges/gazette"


def document(id, text, **columns):
    return Document(id=id, text=text, columns={"FileId": id} | columns)


def numbered(id, words):
    return document(id, " ".join(f"{id}w{n}" for n in range(words)))


def gazette():
    blocks = (GAZETTE / "gazette.txt").read_text(encoding="utf-8").strip("\n").split("\n\n")
    headings = (block.partition("\n") for block in blocks)
    parts = ((*re.fullmatch(r"# (\S+) (\d+)", heading).groups(), text) for heading, _, text in headings)
    return [document(id, text, Year=year) for id, year, text in parts]


SMALL = Recipe(cut=Cut(context=8), parts=Parts(shares=(60, 25, 15)))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    out, answers = str(folder / "g"), str(folder / "g-answers")
    return make_challenge(gazette(), SMALL, out, answers)[0], Path(out), Path(answers)


def lines(path):
    data = path.read_bytes()
    return (lzma.decompress(data) if path.suffix == ".xz" else data).decode().splitlines()


def test_a_challenge_made_from_the_gazette_is_valid_and_leaks_nothing(made):
    _, out, answers = made
    assert validate_challenge(str(answers)) == ([], ())
    assert find_leaks(out, answers=answers).problems == ()


def test_the_files(made):
    _, out, answers = made
    head = {".gitignore", "README.md", "SHA256SUMS", "config.txt", "in-header.tsv", "out-header.tsv"}
    files = {
        out: {"train/in.tsv.xz", "train/expected.tsv", "dev-0/in.tsv.xz", "dev-0/expected.tsv", "test-A/in.tsv.xz"},
        answers: {"test-A/in.tsv.xz", "test-A/expected.tsv"},
    }
    for folder, data in files.items():
        assert {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} == head | data
    options = "--metric PerplexityHashed --precision 2 --in-header in-header.tsv --out-header out-header.tsv"
    texts = {
        "config.txt": f"{options} --documents FileId", "in-header.tsv": "FileId\tYear\tLeftContext\tRightContext",
        "out-header.tsv": "Word",
    }  # fmt: skip
    assert {name: (out / name).read_text() for name in texts} == {name: f"{text}\n" for name, text in texts.items()}


def test_the_digests_are_right(made):
    for folder in made[1:]:
        for line in lines(folder / "SHA256SUMS"):
            digest, _, name = line.partition("  ")
            assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
        names = {line.partition("  ")[2] for line in lines(folder / "SHA256SUMS")}
        assert names == {
            p.relative_to(folder).as_posix()
            for p in folder.rglob("*")
            if p.is_file() and p.name not in {"README.md", "SHA256SUMS"}
        }


def test_the_readme_counts(made):
    making, out, answers = made
    text = (out / "README.md").read_text()
    for name, gaps in making.items():
        items = lines(out / name / "in.tsv.xz")
        assert len(items) == len(gaps)
        assert f"| {name} | {len(gaps)} | {len({item.split(chr(9))[0] for item in items})} |" in text
    assert "* `Year`\n" in text
    assert "hyphenated at a line end are as they were" in text
    assert f"The {len(making['test-A'])} answers of `test-A`." in (answers / "README.md").read_text()


def test_each_item_is_a_word_of_its_document_with_its_context(made):
    making, *_ = made
    for gaps in making.values():
        for gap in gaps:
            assert gap.document.text.split()[gap.place] == gap.word
            before = "" if gap.left.endswith("\n") else " "
            after = "" if gap.right.startswith("\n") else " "
            assert f"{gap.left}{before}{gap.word}{after}{gap.right}" in gap.document.text
            assert len(gap.left.split()) == len(gap.right.split()) == 8


def test_items_are_shuffled_unless_their_order_is_kept(made):
    making, *_ = made
    in_order = cut_challenge(gazette(), Recipe(cut=SMALL.cut, parts=SMALL.parts, keep_order=True))
    assert [*making] == [*in_order]
    for name, ordered in in_order.items():
        assert making[name] != ordered
        assert {(g.document.id, g.place) for g in making[name]} == {(g.document.id, g.place) for g in ordered}
        assert [g.document.id for g in ordered] == sorted(g.document.id for g in ordered)


def test_the_committed_gazette_is_made_so():
    """Its making is a recipe: the same gaps, in the same order."""
    cut = Cut(context=8, words=read_pattern("."))
    recipe = Recipe(cut=cut, parts=SMALL.parts, train_every=4, keep_order=True)
    for name, gaps in cut_challenge(gazette(), recipe).items():
        assert [gap.input_line() for gap in gaps] == lines(GAZETTE / name / "in.tsv.xz")
        assert [gap.word for gap in gaps] == lines(GAZETTE / name / "expected.tsv")


NAMES = st.text(min_size=1, max_size=9)


@settings(PROPERTY, max_examples=examples(60, most=12))
@given(st.sets(NAMES, max_size=30), st.sets(NAMES, max_size=30), st.text(max_size=5))
def test_adding_documents_moves_none(first, more, salt):
    """The corpus may grow, and none moves; nor is another gap cut."""
    parts = Parts(salt=salt)
    recipe = Recipe(cut=Cut(context=2), parts=parts)

    def gaps_of(ids):
        documents = [numbered(id, 25) for id in sorted(ids)]
        try:
            making = cut_challenge(documents, recipe)
        except UsageError:  # a part is empty
            return {}
        return {(gap.document.id, gap.place): name for name, gaps in making.items() for gap in gaps}

    before, after = gaps_of(first), gaps_of(first | more)
    assert before.items() <= after.items()
    assert {parts.part_of(id) for id in first} <= {*parts.names}


def test_groups_stay_together():
    papers = ["Sun", "Star", "Herald", "Eagle", "Times", "Post", "Argus", "Echo"]
    documents = [document(str(n), numbered(str(n), 20).text, paper=papers[n % 8]) for n in range(80)]
    recipe = Recipe(cut=Cut(context=3), parts=Parts(shares=(1, 1, 1)), group="paper")
    making = cut_challenge(documents, recipe)
    found = [{gap.document.columns["paper"] for gap in gaps} for gaps in making.values()]
    assert sum(map(len, found)) == len(set.union(*found)) == 8


def places(text, **settings):
    return [gap.place for gap in cut_gaps(document("a", text), Cut(**settings))]


@PROPERTY
@given(st.integers(1, 200), st.integers(1, 9), st.integers(0, 20), st.booleans(), st.text(max_size=3))
def test_gaps_are_as_far_from_each_other_as_is_asked(words, context, more, random, seed):
    every = 2 * context + 1 + more
    found = places(numbered("a", words).text, context=context, every=every, random=random, seed=seed)
    assert all(context <= place < words - context for place in found)
    distances = [b - a for a, b in pairwise(found)]
    assert all(every <= distance < 2 * every if random else distance == every for distance in distances)
    if words >= 2 * context + 1:
        assert found
        if not random:
            assert len(found) == (words - 2 * context - 1) // every + 1


@pytest.mark.parametrize(("text", "words"), [
    ("a b c d e", ["c"]), ("a b 5 d e", ["5"]), ("a b -- d e", []), ("a b -- c d e", ["c"]),
    ("a b rail-\nroad e", []), ("a rail-\nroad d e", []), ("a b rail- d e", ["rail-"]),
    ("a b\u00a0c\u2028d e", ["c"]),
])  # fmt: skip
def test_what_may_be_a_gap(text, words):
    """The first place is drawn: where there are two, either it or the next is taken."""
    found = [gap.word for gap in cut_gaps(document("a", text), Cut(context=2))]
    assert found == words


def test_only_words_of_a_pattern_and_a_frequency():
    text = " ".join(["the", "Ship", "sank"] * 9 + ["Once", "upon", "a", "time"])
    documents = [document(str(n), text) for n in range(60)]
    recipe = Recipe(cut=Cut(context=2, words=read_pattern("^[A-Z]")), least_frequency=61)
    making = cut_challenge(documents, recipe)
    assert {gap.word for gaps in making.values() for gap in gaps} == {"Ship"}


def test_line_ends_and_tabs_in_a_context():
    (gap,) = cut_gaps(document("a", "one\ntwo\nthree\tfour\nfive"), Cut(context=2))
    assert gap.input_line() == "a\tone\\ntwo\\n\tfour\\nfive"


TEXTS = [numbered(str(n), 30) for n in range(60)]
REFUSED = {
    "no text": ([], {}, "there is no text: the folders hold no file"),
    "too short": (TEXTS, {"cut": Cut(context=40)},
     "no gap can be cut: no text has a word that may be one, with 40 words on each side\n"
     "  try a smaller --context, other --words or a lower --least-frequency"),
    "one document": (TEXTS[:1], {},
     "no gap for dev-0 and test-A: parts are made of whole groups (document), and there is only one document\n"
     "  cut the text into files, for example of 10 lines, and give their folder:\n"
     "  mkdir texts; split -l 10 -a 4 FILE texts/"),
    "overlapping windows": (TEXTS, {"cut": Cut(context=2, every=4)},
     "windows of 5 words would overlap: answers could be read in other inputs\n"
     "  --every takes 5 or more, with --context 2; --train-every may be less"),
    "no such column": (TEXTS, {"group": "Fileid"},
     "no column Fileid to group by\n  did you mean FileId? there are FileId"),
    "a column of that name": ([document("a", "text", LeftContext="x")], {},
     "a document's column cannot have the name LeftContext, which the gaps' texts have"),
}  # fmt: skip


@pytest.mark.parametrize(("documents", "changes", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(documents, changes, message, tmp_path):
    recipe = Recipe(**{"cut": Cut(context=2)} | changes)
    with refused(message):
        make_challenge(documents, recipe, str(tmp_path / "c"), str(tmp_path / "a"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(("size", "each"), [(300, 10), (1_500, 15)])
def test_one_text_is_cut_into_files_as_the_message_says(size, each, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [numbered(str(n), 15).text for n in range(size)]
    Path("a story.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    recipe = Recipe(cut=Cut(context=2))
    with pytest.raises(UsageError) as caught:
        make_challenge(read_documents(["a story.txt"]), recipe, "c", "a")
    command = str(caught.value).splitlines()[-1]
    assert command == f"  mkdir texts; split -l {each} -a 4 'a story.txt' texts/"
    subprocess.run(command, shell=True, check=True)
    documents = read_documents(["texts"])
    assert [document.text for document in documents] == ["\n".join(lines[n : n + each]) for n in range(0, size, each)]
    assert all(make_challenge(documents, recipe, "c", "a")[0].values())


@pytest.mark.parametrize("answers", ["c", "c/hidden", "c/./x/../hidden", "link/hidden"])
def test_answers_inside_the_public_folder_are_refused(answers, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c").mkdir()
    (tmp_path / "link").symlink_to("c")
    message = f"the hidden answers would lie inside the public folder: `{answers}` is in `c`\n"
    with refused(message + "  name another folder with --answers"):
        make_challenge(TEXTS, Recipe(cut=Cut(context=2)), "c", answers)


@pytest.mark.parametrize("taken", ["c", "a"])
def test_a_folder_that_holds_something_is_left_as_it_is(taken, tmp_path):
    (tmp_path / taken).mkdir()
    (tmp_path / taken / "mine").touch()
    with refused(f"File already there: `{tmp_path / taken}`", ExistingFileError):
        make_challenge(TEXTS, Recipe(cut=Cut(context=2)), str(tmp_path / "c"), str(tmp_path / "a"))
    assert [path.name for path in tmp_path.rglob("*")] == [taken, "mine"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device", "a")])
def test_what_fails_in_the_middle_leaves_nothing(error, tmp_path, monkeypatch):
    def fail(folder, files):
        if folder.endswith("a"):
            raise error
        write(folder, files)

    write = make.write_files
    monkeypatch.setattr(make, "write_files", fail)
    with pytest.raises((KeyboardInterrupt, UsageError)) as caught:
        make_challenge(TEXTS, Recipe(cut=Cut(context=2)), str(tmp_path / "c"), str(tmp_path / "a"))
    assert isinstance(error, KeyboardInterrupt) or "No space left on device" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_no_line_end_but_lf_comes_into_the_files(tmp_path):
    """Python's splitlines also ends lines at U+0085, U+2028 and others."""
    rows = [
        {"id": f"d{n}", "title": "one\u2028two", "text": " ".join(f"w{n}x{k}\u0085\u2028\vv\x1c" for k in range(40))}
        for n in range(60)
    ]
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    recipe = Recipe(cut=Cut(context=4))
    assert make_challenge(read_documents([str(path)]), recipe, str(tmp_path / "c"), str(tmp_path / "a"))
    for file in (tmp_path / "c").glob("*/*"):
        data = file.read_bytes()
        assert len(lines(file)) == (lzma.decompress(data) if file.suffix == ".xz" else data).count(b"\n")


def reprinted():
    """Documents of different words; from the hundredth on, each is a reprint: whole, of half a text, or in capitals."""
    texts = [numbered(f"d{n}", 60).text.split() for n in range(160)]
    for n in range(100, 130):
        texts[n][:30] = texts[n - 100][20:50]
    for n in range(130, 160):
        texts[n] = texts[n - 100] if n % 2 else [word.upper() for word in texts[n - 100]]
    return [document(f"d{n}", " ".join(words)) for n, words in enumerate(texts)]


@pytest.mark.parametrize("seed", range(4))
def test_copies_are_left_out(seed, tmp_path):
    out, answers = str(tmp_path / "c"), str(tmp_path / "a")
    recipe = Recipe(cut=Cut(context=8, seed=str(seed)), parts=Parts(shares=(60, 25, 15)))
    parts, copies = make_challenge(reprinted(), recipe, out + "0", answers + "0")
    assert copies == 0
    kept, copies = make_challenge(reprinted(), recipe._replace(drop_copies=True), out, answers)
    assert sum(map(len, kept.values())) + copies == sum(map(len, parts.values()))
    assert all(gap in parts[name] for name, gaps in kept.items() for gap in gaps)
    places = (("0", answers + "0"), ("", answers), ("", None))
    codes = [{one.rule.code for one in find_leaks(out + end, answers=place).problems} for end, place in places]
    assert codes[0] & make.COPY_RULES
    assert codes[1] == codes[2] == set()
    assert f"{copies} gaps are left out, as they copy others." in (tmp_path / "c/README.md").read_text()
