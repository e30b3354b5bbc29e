"""Leaks of every kind that somebody could plant, on purpose or by mistake: each is found, and clean data has none."""

import gzip
import hashlib
import io
import json
import lzma
import tarfile
import unicodedata
import zipfile

import numpy as np
import pytest
from planted import SMALL, WORDS, Planted

from geval_py import UsageError
from geval_py.authoring import hidden_answers
from geval_py.authoring.leaks import find_leaks


@pytest.fixture
def planted(tmp_path):
    return Planted(tmp_path, 5)


def zipped(files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return data.getvalue()


def tarred(files):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    return data.getvalue()


def joined(words, end="\n"):
    return "".join(f"{word}{end}" for word in words).encode()


FORMS = {
    "as they are": lambda p: joined(p.answers), "CR LF": lambda p: joined(p.answers, "\r\n"),
    "CR": lambda p: joined(p.answers, "\r"), "with a header": lambda p: b"Word\n" + joined(p.answers),
    "on one line": lambda p: joined(p.answers, " "), "with commas": lambda p: joined(p.answers, ","),
    "in capitals": lambda p: joined(p.answers).upper(), "half of them": lambda p: joined(p.answers[:60]),
    "numbered": lambda p: joined(f"{n}. {word}" for n, word in enumerate(p.answers)),
    "beside the inputs": (lambda p: joined(f"{n}\t{text.split()[0]}\t{word}\t{text[-40:]}" for n, (text,
     word) in enumerate(zip(p.texts, p.answers, strict=True)))),
    "lines of JSON": lambda p: joined(json.dumps({"id": n, "gold": word}) for n, word in enumerate(p.answers)),
    "a perfect output": lambda p: joined(f"{word}:0.9 the:0.05 :0.05" for word in p.answers),
    "the texts": lambda p: joined(p.texts), "a .gz": lambda p: gzip.compress(joined(p.answers)),
    "a .xz of CR LF": lambda p: lzma.compress(joined(p.answers, "\r\n")),
    "a text that begins as an archive": lambda p: b"PKO BP\n" + joined(p.answers),
    "UTF-16": lambda p: joined(p.answers).decode().encode("utf-16"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_answers_in_a_public_file(form, planted):
    (planted.public / "notes").mkdir()
    (planted.public / "notes/old").write_bytes(FORMS[form](planted))
    codes = planted.found()
    assert any(code == "E401" and path.startswith("notes/old") for path, code in codes)
    assert {code for _, code in codes} == {"E401"}


def test_an_honest_output_is_no_leak(planted):
    words = [word if n % 3 else "the" for n, word in enumerate(planted.answers)]
    (planted.public / "test-A/out.tsv").write_bytes(joined(f"{word}:0.5 a:0.1 :0.4" for word in words))
    assert planted.found() == set()


def test_answers_that_are_texts(planted):
    answers = [f"{word} and so on" for word in planted.answers]
    (planted.private / "test-A/expected.tsv").write_bytes(joined(answers))
    (planted.public / "notes").write_bytes(b"References\n" + joined(answers, "\r\n"))
    assert planted.found() == {("notes", "E401")}


def test_a_bomb_does_not_hang(planted, monkeypatch):
    monkeypatch.setattr(hidden_answers, "MAX_BYTES", 1 << 20)
    (planted.public / "bomb.gz").write_bytes(gzip.compress(b"\0" * (1 << 24)))
    assert planted.found() == {("bomb.gz", "W412")}


@pytest.mark.parametrize("pack", [zipped, tarred], ids=["zip", "tar.gz"])
def test_an_archive_is_named(pack, planted):
    (planted.public / "old").write_bytes(pack({"a/b.txt": joined(planted.answers)}))
    assert planted.found() == {("old", "W412")}


COLUMNS = {
    "alone": lambda p: p.answers,
    "in a title": lambda p: [f"About the {word}, and more" for word in p.answers],
    "in an id": lambda p: [f"doc-{n}_{word}.txt" for n, word in enumerate(p.answers)],
    "with the whole text": lambda p: p.texts, "backwards": lambda p: [word[::-1] for word in p.answers],
}  # fmt: skip


@pytest.mark.parametrize("what", COLUMNS)
def test_answers_in_a_column(what, planted):
    planted.add_column(COLUMNS[what](planted))
    report = find_leaks(planted.public, answers=planted.private, rules={"E411"})
    (problem,) = report.problems
    assert problem.places[0].message == "column Title reveals 98 % of the answers"  # all, but for what chance gives


def test_codes_in_a_column(planted):
    """Answers that are repeated are told by their codes, whatever these are."""
    rows = planted.windows["test-A"]
    rows[:, SMALL] = rows[:, SMALL] % 40
    planted.write()
    planted.add_column([hashlib.sha1(word.encode()).hexdigest()[:8] for word in planted.answers])
    assert ("test-A/in.tsv", "E411") in planted.found()


def test_answers_in_a_column_of_another_set(planted):
    planted.add_column(planted.answers[:120], part="dev-0")
    assert ("dev-0/in.tsv", "E401") in planted.found()


def test_one_answer_for_all_items(planted):
    planted.windows["test-A"][:, SMALL] = 5
    planted.write()
    assert planted.codes() == set()


def test_items_sorted_by_answer(planted):
    rows = planted.windows["test-A"]
    planted.windows["test-A"] = rows[np.argsort(WORDS[rows[:, SMALL]])]
    planted.write()
    assert planted.codes() == {"E412", "E411"}  # ids of neighbours tell the answers of neighbours


@pytest.mark.parametrize("shift", [1, 10])
def test_answers_readable_in_another_hidden_set(shift, planted):
    planted.windows["dev-0"][:60, shift:] = planted.windows["test-A"][:60, :-shift]
    planted.write()
    report = find_leaks(planted.public, answers=planted.private, rules={"E404"})
    assert {p.path.removeprefix(f"{planted.public}/"): p.count for p in report.problems}["test-A/in.tsv"] == 60


@pytest.mark.parametrize(("lines", "kind"), [(2, "W"), (3, "E")])
@pytest.mark.parametrize(("part", "rule"), [("train", "405"), ("dev-0", "404")])
def test_one_or_two_lines_of_a_small_set_are_not_many(part, rule, lines, kind, planted):
    """Real texts repeat themselves: a line of fifteen in a history of Debian."""
    planted.windows["test-A"] = planted.windows["test-A"][:10]
    planted.windows[part][:lines, 5:] = planted.windows["test-A"][:lines, :-5]
    planted.write()
    assert {code for path, code in planted.found() if path == "test-A/in.tsv" and rule in code} == {f"{kind}{rule}"}


COPIES = {
    "soft hyphens": lambda text: "\u00ad".join(text), "NFD": lambda text: unicodedata.normalize("NFD", text),
    "without diacritics": lambda text: text.replace("é", "e").replace("ł", "l"),
    "full width": lambda text: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
    "zero-width spaces": lambda text: text.replace("a", "a\u200b"),
}  # fmt: skip


@pytest.mark.parametrize("change", COPIES)
def test_changed_copies_in_train(change, planted):
    path = planted.private.parent / "c/test-A/in.tsv"
    path.write_text(path.read_text().replace("e", "é").replace("l", "ł"))
    lines = [line.split("\t", 1)[1] for line in path.read_text().splitlines()]
    train = planted.public / "train/in.tsv"
    rows = train.read_text().splitlines()
    rows[:60] = [f"train-{n // 10}\t{COPIES[change](line)}" for n, line in enumerate(lines[:60])]
    train.write_text("\n".join(rows) + "\n")
    assert {"E403", "E405"} <= planted.codes()


def test_phrases_are_no_overlapping_windows(planted):
    """Each document repeats a refrain; the windows are disjoint."""
    rows = planted.windows["train"]
    rows[:, 3:15] = rows[0, 3:15]
    rows[1::2, 20:32] = rows[0, 3:15]
    planted.write()
    assert "W410" not in planted.codes()


def test_contexts_with_other_names(planted):
    (planted.public / "in-header.tsv").write_text("FileId\tcopyright\tAfter\n")
    with pytest.raises(
        UsageError, match=r"^no column has a name of a context, such as LeftContext and RightContext\n"
    ):
        planted.found()
    assert planted.found(contexts=("copyright", "After")) == set()


@pytest.mark.parametrize(("config", "header", "cells"), [
    ("--metric Accuracy", "", ("{id}", "{text}")),  # the last columns of a word gap without a header would be contexts
    ("--metric Likelihood", "", ("{id}", "{text}")),
    ("--metric Accuracy --in-header in-header.tsv", "left\tright", ("{text}", "{text}")),
    ("--metric BLEU --in-header in-header.tsv", "Id\tText", ("{id}", "{text}")),
])  # fmt: skip
def test_rules_on_gaps_are_of_gaps_alone(config, header, cells, planted):
    """Texts with classes repeat words around the border of two columns, and a column may hold the class."""
    (planted.public / "config.txt").write_text(config)
    (planted.public / "in-header.tsv").write_text(f"{header}\n")
    for part in ("train", "dev-0", "test-A"):
        rows = [
            "\t".join(cells).format(id=f"{part} {n} of 10", text=f"{text} and all the usual words of a form")
            for n, text in enumerate(" ".join(WORDS[row]) for row in planted.windows[part])
        ]
        (planted.public / part / "in.tsv").write_text("".join(f"{row}\n" for row in rows))
        for place in (planted.public, planted.private):
            if (place / part).is_dir():
                (place / part / "expected.tsv").write_text("".join(f"{n % 2}\n" for n in range(len(rows))))
    (planted.public / "test-A/expected.tsv").unlink()
    assert planted.found() == set()
    rows = (planted.public / "test-A/in.tsv").read_text().splitlines()
    (planted.public / "train/in.tsv").write_text("".join(f"{row}\n" for row in rows * 2))
    assert planted.codes() == {"E403", "W403", "W406"}


def test_documents_of_texts_are_grouped_if_named(planted):
    (planted.public / "config.txt").write_text("--metric Accuracy --in-header in-header.tsv")
    (planted.public / "in-header.tsv").write_text("FileId\tFirst\tSecond\n")
    names = [f"train-{n % 10}" for n in range(120)]
    planted.write("dev-0", documents=names)
    assert planted.found() == set()
    assert planted.found(group="FileId") == {("dev-0/in.tsv", "E402")}
