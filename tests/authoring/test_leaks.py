"""What a challenge gives away: each rule finds what is planted for it, and nothing in what is clean."""

import lzma
import shutil
import subprocess
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from answer_formats import WRITE, in_another_format
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import ITEMS, SMALL, WORDS, Planted, found, write_head, write_part
from profiles import examples
from raising import refused

from geval_py.authoring import leaks
from geval_py.authoring.leaks import LEAK_RULES, find_leaks
from geval_py.errors import LineCountError, MissingFileError

PROPERTY = settings(deadline=None, derandomize=True, max_examples=examples(25))


@pytest.fixture
def planted(tmp_path):
    return Planted(tmp_path, 3)


@pytest.fixture
def folder(planted):
    return planted.public


@pytest.fixture
def windows(planted):
    return planted.windows


def messages(folder, code, **settings):
    report = find_leaks(folder, **settings)
    return [place.message for p in report.problems if p.rule.code == code for place in p.places]


def test_what_is_clean(folder):
    report = find_leaks(folder)
    assert (report.problems, report.status) == ((), 0)
    assert report.files == tuple(f"{folder}/{name}/in.tsv" for name in ITEMS)
    assert report.command == "geval challenge leaks"


@pytest.mark.slow
@settings(PROPERTY, max_examples=examples(25, most=4))
@given(st.integers(0, 2**32), st.integers(4, 45), st.integers(1, 40), st.integers(0, 9))
def test_made_up_texts_leak_nothing(tmp_path_factory, seed, context, items, noise):
    """Words drawn evenly, so that no run of seven is drawn twice but with a chance of about 1e-20."""
    folder = tmp_path_factory.mktemp("clean")
    chance = np.random.default_rng(seed)
    write_head(folder)
    for name in ITEMS:
        rows = chance.integers(noise, len(WORDS), (10 * items, 2 * context + 1))
        names = [f"{name}-{n % max(10, items)}" for n in range(len(rows))]
        write_part(folder, name, rows, context=context, answers=name != "test-A", documents=names)
    assert found(folder) == {}


def test_answers_in_public_under_another_name(folder, planted):
    assert found(folder, answers=planted.private) == {}
    text = (planted.private / "test-A/expected.tsv").read_bytes()
    (folder / "notes").mkdir()
    (folder / "notes/old.txt").write_bytes(text)
    (folder / ".git").mkdir()
    (folder / ".git/old.txt").write_bytes(text)  # git publishes its own folder as commits alone
    (folder / "old.tsv.xz").write_bytes(lzma.compress(text))
    (folder / "broken.gz").write_bytes(b"\x1f\x8b\x08broken")
    leaks = {("notes/old.txt", "E401"): 1, ("old.tsv.xz", "E401"): 1, ("broken.gz", "W412"): 1}
    assert found(folder, answers=planted.private) == leaks
    (folder / "test-A/expected.tsv").write_text("x\n" * ITEMS["test-A"])  # others than those in the folder of answers
    (folder / "test-A/expected.tsv.xz").write_bytes(lzma.compress(b"x\n"))
    leaks |= {(f"test-A/expected.tsv{ending}", "E401"): 1 for ending in ("", ".xz")}
    assert found(folder, answers=planted.private) == leaks


@pytest.mark.parametrize("name", WRITE)
def test_hidden_answers_in_another_format(name, folder, planted):
    """They are searched for as those in expected.tsv are: as a list, and in a copy of their own file."""
    place = planted.private / "test-A"
    words = (place / "expected.tsv").read_text().splitlines()
    in_another_format(place, name)
    in_another_format(folder / "dev-0", name)
    assert found(folder, answers=planted.private) == {}
    (folder / "a.txt").write_text("\n".join(words))
    (folder / "b.txt").write_text(" ".join(words))
    (folder / "c").write_bytes((place / name).read_bytes())
    expected = {(name, "E401"): 1 for name in ("a.txt", "b.txt", "c")}
    assert found(folder, answers=planted.private) == expected
    rows = (folder / "test-A/in.tsv").read_text().splitlines(keepends=True)
    (folder / "test-A/in.tsv").write_text("".join(rows[1:]))
    with pytest.raises(LineCountError) as caught:
        find_leaks(folder, answers=planted.private)
    assert (caught.value.expected_path, caught.value.expected_lines) == (str(place / name), ITEMS["test-A"])


@pytest.mark.parametrize("name", WRITE)
def test_answers_in_public_in_another_format(name, folder, windows):
    WRITE[name](folder / "test-A", [WORDS[n] for n in windows["test-A"][:, SMALL]])
    assert found(folder) == {(f"test-A/{name}", "E401"): 1}
    assert messages(folder, "E401") == ["the answers of a hidden set are in the public folder"]
    commit(folder)
    (folder / "test-A" / name).unlink()
    commit(folder)
    assert found(folder) == {(f"test-A/{name}", "E401"): 1}
    assert messages(folder, "E401") == [f"the git history has answers of a hidden set: test-A/{name}"]


def git(folder, *words):
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, "-C", folder, *words], check=True, capture_output=True)


def commit(folder):
    for words in ("init -q .", "add -A", "commit -qm message"):
        git(folder, *words.split())


@pytest.mark.parametrize("inner", ["", "inside/of/it"])
def test_answers_in_the_git_history(inner, folder, tmp_path):
    top = tmp_path / "repository"
    place = top / inner
    place.parent.mkdir(parents=True, exist_ok=True)
    folder.rename(place)
    (place / "test-A/expected.tsv").write_text("x\n" * ITEMS["test-A"])
    commit(top)
    (place / "test-A/expected.tsv").unlink()
    commit(top)
    assert found(place) == {("test-A/expected.tsv", "E401"): 1}
    assert messages(place, "E401") == ["the git history has answers of a hidden set: test-A/expected.tsv"]


def test_answers_of_dev_are_no_secret(folder):
    commit(folder)
    assert found(folder) == {}


def test_a_document_in_two_parts(folder, planted):
    names = [f"dev-0-{n // 10}" for n in range(ITEMS["dev-0"])]
    names[5:8] = ["train-3"] * 3
    planted.write("dev-0", documents=names)
    assert found(folder) == {("dev-0/in.tsv", "E402"): 1}
    assert messages(folder, "E402") == [f"its document is also in {folder}/train/in.tsv"]


def test_an_item_twice_whatever_its_answer(folder, windows, planted):
    windows["dev-0"][[9, 11]] = windows["dev-0"][2]
    windows["dev-0"][9, SMALL] = 5
    planted.write("dev-0")
    assert found(folder, rules={"E403", "W403"}) == {("dev-0/in.tsv", "W403"): 2}
    assert messages(folder, "W403") == ["the same item as line 3"] * 2


ALL = 2 * SMALL + 1
AROUND = SMALL - 3  # where the three words left of a gap begin
RUNS = {  # runs of words that are written into items: part, item, place, part, item and place of the original, words
    "an item in two parts": ([("test-A", 4, 0, "dev-0", 7, 0, ALL)], "test-A E403",
     "the same item as line 8 of {}/dev-0/in.tsv"),
    "one readable answer in a hundred is what texts repeat": ([("test-A", 0, 1, "test-A", 1, AROUND, 7)], "", ""),
    "a gap that can be read in train": ([("train", 12, 5, "test-A", 3, AROUND, 7)], "test-A W405",
     "its gap is in train, with a word there, on line 13"),
    "the answer of a training gap is text too": ([("train", 12, AROUND, "test-A", 3, AROUND, 7)], "test-A W405", ""),
    # Of 41 words there are 26 runs of eight without the gap: two are too few, three more than a tenth.
    "two runs of eight words": ([("train", 20, 0, "dev-0", 3, 0, 9)], "", ""),
    "three runs of eight words": ([("train", 20, 0, "dev-0", 3, 0, 10)], "dev-0 W406",
     "12 % of its runs of 8 words are in train, first on line 21"),
    "a near duplicate with two other words": ([("train", 20, place, "dev-0", 3, place, words) for place, words in ((0,
     10), (11, 19), (31, 10))], "dev-0 W405 W406", ""),
}  # fmt: skip


@pytest.mark.parametrize(("copies", "leaks", "message"), RUNS.values(), ids=RUNS)
def test_shared_words(copies, leaks, message, folder, windows, planted):
    for part, item, place, other, original, begin, words in copies:
        windows[part][item, place : place + words] = windows[other][original, begin : begin + words]
    planted.write()
    part, *codes = leaks.split() or [""]
    assert found(folder) == {(f"{part}/in.tsv", code): 1 for code in codes}
    assert not message or message.format(folder) in messages(folder, codes[-1])


def overlap(rows, count):
    """Let windows begin three words behind the one before: the gap of each can be read in the other."""
    for item in range(1, 2 * count, 2):
        rows[item, :-6] = rows[item - 1, 6:]


def test_every_rule_has_a_test():
    texts = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_leaks*.py")]
    assert [rule.code for rule in LEAK_RULES if not any(rule.code in text for text in texts)] == []


@pytest.mark.parametrize(("pairs", "codes"), [(0, ""), (1, "W404"), (3, "W404"), (4, "E404"), (60, "E404")])
def test_answers_in_other_inputs(pairs, codes, folder, windows, planted):
    """Of 150 items, 2 are more than one per cent, and 8 more than five."""
    overlap(windows["test-A"], pairs)
    planted.write("test-A")
    assert found(folder) == {("test-A/in.tsv", code): 2 * pairs for code in codes.split()}
    places = [place for problem in find_leaks(folder).problems for place in problem.places]
    assert all(place.text.rindex("\t") == place.column - 2 for place in places)  # where the right text begins
    (folder / "config.txt").write_text("--metric PerplexityHashed\n")  # without a header the last columns are texts
    assert found(folder) == {("test-A/in.tsv", code): 2 * pairs for code in codes.split()}


def test_where_a_run_is(folder, windows, planted):
    windows["train"][20, 2:17] = windows["test-A"][3, 1:16]
    planted.write("train")
    (problem,) = find_leaks(folder, rules={"W406"}).problems
    (place,) = problem.places
    line = (folder / "test-A/in.tsv").read_text().splitlines()[3]
    assert (place.line, place.text) == (4, line)
    assert line[place.column - 1 :].startswith(WORDS[windows["test-A"][3, 1]])


def test_few_documents(folder, planted):
    planted.write("dev-0", documents=[f"dev-{n % 9}" for n in range(ITEMS["dev-0"])])
    assert found(folder) == {("dev-0/in.tsv", "W409"): 1}
    assert messages(folder, "W409") == ["9 documents, fewer than 10"]
    planted.write("dev-0", documents=["dev"] * ITEMS["dev-0"])
    assert messages(folder, "W409") == ["1 document, fewer than 10"]


@pytest.mark.parametrize(("pairs", "most"), [(12, 0), (60, 120)])
def test_training_windows_that_overlap(pairs, most, folder, windows, planted):
    overlap(windows["train"], pairs)
    planted.write("train")
    counts = found(folder)
    assert [*counts] == [("train/in.tsv", "W410")] * (most > 0)
    assert most - 20 <= sum(counts.values()) <= most  # a sample of the runs is compared


def test_an_empty_part(folder):
    (folder / "dev-0/in.tsv").write_text("")
    (folder / "dev-0/expected.tsv").write_text("")
    assert found(folder) == {("dev-0/in.tsv", "W409"): 1}


def test_parts_that_are_not_there(folder):
    (folder / "train").rename(folder / "train-old")
    (folder / "dev-0/in.tsv").unlink()
    assert find_leaks(folder).files == (f"{folder}/test-A/in.tsv",)
    shutil.rmtree(folder / "test-A")
    message = f"No file with the input: `{folder}/train/in.tsv`\n  train, dev-0 or test-A should have one"
    with refused(message, MissingFileError):
        find_leaks(folder)


@pytest.mark.parametrize("name", ["train", "dev-0"])
@pytest.mark.parametrize("lines", [ITEMS["dev-0"] - 1, ITEMS["train"] + 1])
def test_answers_that_do_not_fit(name, lines, folder):
    (folder / name / "expected.tsv").write_text("x\n" * lines)
    with pytest.raises(LineCountError) as caught:
        find_leaks(folder)
    assert (caught.value.lines, caught.value.expected_lines) == (ITEMS[name], lines)


def test_another_column_to_group_by(folder):
    (folder / "in-header.tsv").write_text("Paper\tLeftContext\tRightContext\n")
    assert found(folder, group="Paper") == {}
    with refused("no column Papre to group by\n  did you mean Paper? there are Paper, LeftContext, RightContext"):
        find_leaks(folder, group="Papre")


def test_texts_without_a_gap(tmp_path):
    folder = tmp_path / "texts"
    write_head(folder)
    (folder / "in-header.tsv").write_text("Text\n")
    for name, text in (("train", "the same words"), ("test-A", "the same words")):
        (folder / name).mkdir()
        (folder / name / "in.tsv").write_text(f"{text}\nothers of {name}\n")
    assert found(folder) == {("test-A/in.tsv", "E403"): 1}


def test_large_parts_are_read_in_blocks(folder, windows, monkeypatch, planted):
    windows["train"][250, 2:17] = windows["test-A"][3, 1:16]
    overlap(windows["train"], 60)
    planted.write("train")
    (folder / "test-A/expected.tsv").unlink(missing_ok=True)
    at_once = find_leaks(folder)
    monkeypatch.setattr(leaks, "BLOCK_BYTES", 10_000)
    calls = []
    assert find_leaks(folder, progress_of=lambda path: nullcontext(lambda *done: calls.append(done))) == at_once
    assert len(calls) > 5
    assert calls[-1][0] == calls[-1][1] == (folder / "train/in.tsv").stat().st_size


def test_a_shared_text_on_a_line_without_the_left_context(tmp_path):
    shared = " ".join(WORDS[:15])
    for name, rows in (("train", [f"{shared}\tbefore it\n"]), ("dev-0", ["other\twords\n", f"{shared}\n"])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "in.tsv").write_text("".join(rows))
        (tmp_path / name / "expected.tsv").write_text("x\n" * len(rows))
    (tmp_path / "config.txt").write_text("--metric PerplexityHashed\n")
    report = find_leaks(str(tmp_path), contexts=("2", "1"))
    assert {(place.line, place.column) for problem in report.problems for place in problem.places} == {(2, 1)}
