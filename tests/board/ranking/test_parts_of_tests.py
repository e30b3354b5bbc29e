"""The public and the private part of a hidden test: its lines, its scores, and what is shown when."""

import math
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from rows import START, Rows, others_of, perplexity
from samples import NOW, rows_of, with_settings, write
from sqlalchemy import select

from geval_py.board.database.schema import comparisons, disclosures, evaluations
from geval_py.board.operations.submissions import add
from geval_py.board.ranking.parts import public_lines
from geval_py.board.references import references_of
from geval_py.board.submission import unpack_documents
from geval_py.cli.board import boards as shown_by
from geval_py.errors import ConfigError

LINES = 100
TESTS = "{test-A: {split: 30 %, disclosed: 6}}"
DEADLINE = START.replace(day=3)
PHASES = "[{name: dev, until: 2027-01-02T12:00:00Z}, {name: final, until: 2027-01-03T12:00:00Z}]"
OPEN, OVER = DEADLINE, DEADLINE + timedelta(seconds=1)
IN_FINAL = 30  # hours from the start
SEED = "728190312"


@pytest.fixture
def rows(tmp_path, database):
    (tmp_path / "challenge").mkdir()
    return Rows(tmp_path, tests=TESTS, phases=PHASES, seed=SEED, database=database)


@pytest.fixture(scope="module")
def public():
    return public_lines([str(line) for line in range(LINES)], 0.3, f"{SEED} test-A")


def losses(public, *, on_public, on_private):
    of = [on_public if line in public else on_private for line in range(LINES)]
    return [loss + 0.01 * (line % 7) for line, loss in enumerate(of)]


def score_of(places, of):
    return float(f"{perplexity([of[place] for place in sorted(places)]):.5e}")


def private_of(public):
    return set(range(LINES)) - public


@pytest.mark.parametrize(("lines", "share", "wanted"), [(123, 0.3, 37), (100, 0.5, 50), (10, 0.01, 1), (10, 0.99, 9)])
def test_the_public_part_has_its_share_of_the_lines(lines, share, wanted):
    assert len(public_lines([str(line) for line in range(lines)], share, "secret")) == wanted


def test_the_lines_of_a_document_are_in_one_part_however_large_it_is():
    documents = [f"document {line // 4}" for line in range(LINES)]
    public = public_lines(documents, 0.3, "secret")
    assert len(public) in (28, 32)
    assert {documents[line] for line in public}.isdisjoint(documents[line] for line in private_of(public))
    assert len(public_lines(["a"] * 9 + ["b"], 0.3, "secret")) == 1
    assert len(public_lines(["a"] * 6 + ["b"] * 5, 0.3, "secret")) in (5, 6)
    assert 0 < len(public_lines(["a"] * 6 + ["b"] * 5, 0.9, "secret")) < 11


def test_the_public_lines_depend_on_nothing_but_the_documents_and_the_key():
    documents = [f"document {line // 2}" for line in range(LINES)]
    public = public_lines(documents, 0.3, "secret")
    backwards = public_lines(documents[::-1], 0.3, "secret")
    assert {documents[line] for line in public} == {documents[::-1][line] for line in backwards}
    assert public != public_lines(documents, 0.3, "other")


def test_the_public_lines_are_as_likely_everywhere():
    counts = [0] * 20
    for seed in range(2000):
        for line in public_lines([str(line) for line in range(20)], 0.3, str(seed)):
            counts[line] += 1
    assert sum(counts) == 2000 * 6
    assert all(abs(count - 600) < 5 * math.sqrt(2000 * 0.3 * 0.7) for count in counts)


def scored_by(board, documents, submission, cells):
    """Score an output by the documents of a column; return the receipt and the documents of its lines."""
    write(Path(board.settings.challenge) / "test-A/in.tsv", "".join(f"{cells(n)}\ttext {n}\n" for n in range(60)))
    tests = [replace(test, documents=documents) for test in board.settings.tests]
    receipt = add(with_settings(board, tests=tests), str(submission("ann")), now=NOW)
    query = select(evaluations.c.documents, evaluations.c.lines).where(evaluations.c.documents.is_not(None))
    return receipt, [unpack_documents(*row).of_line.tolist() for row in rows_of(board, query)]


@pytest.mark.parametrize(("column", "size"), [("1", 30), ("2", 3), ("2,1", 30)])
def test_documents_are_those_of_the_named_column(column, size, sqlite_board, submission):
    receipt, stored = scored_by(sqlite_board, column, submission, lambda line: f"{line // 30}\t{line // 3}")
    assert receipt.state == "scored"
    assert stored == [[line // size for line in range(60)]]


@pytest.mark.parametrize("header", ["Chapter", "FileId"])
def test_without_a_named_column_documents_have_a_usual_name(header, sqlite_board, submission):
    challenge = Path(sqlite_board.settings.challenge)
    write(challenge / "in-header.tsv", f"{header}\tText\n")
    write(challenge / "config.txt", (challenge / "config.txt").read_text() + "--in-header in-header.tsv\n")
    _, stored = scored_by(sqlite_board, "", submission, lambda line: line // 3)
    assert stored == ([[line // 3 for line in range(60)]] if header == "FileId" else [])


@pytest.mark.parametrize(("column", "reason"), [
    ("7", "Unknown column `7'"), ("FileId", "Unknown column `FileId'"),
    ("1", "all 60 lines are of one document, since the column 1 is the same on all of them"),
])  # fmt: skip
def test_a_submission_fails_if_the_named_column_has_no_documents(column, reason, sqlite_board, submission):
    receipt, _ = scored_by(sqlite_board, column, submission, lambda _: "same")
    assert (receipt.state, receipt.reason) == ("failed", f"test-A cannot be scored: {reason}")


def test_scores_are_outdated_when_the_documents_change(rows, tmp_path):
    write(tmp_path / "challenge/config.txt", "--metric PerplexityHashed\n")
    write(tmp_path / "answers/test-A/expected.tsv", "word\n" * 12)
    in_sixes, in_fours = ([f"{line // size}\ttext {line}\n" for line in range(12)] for size in (6, 4))
    write(tmp_path / "challenge/test-A/in.tsv", "".join(in_sixes))
    by_line = references_of(rows.board.settings)
    write(tmp_path / "challenge/test-A/in.tsv", "".join(in_fours))
    assert references_of(rows.board.settings) == by_line
    rows.edit(tests="{test-A: {split: 30 %, documents: 1}}")
    by_document = references_of(rows.board.settings)
    assert by_document != by_line
    write(tmp_path / "challenge/test-A/in.tsv", "".join(in_sixes))
    assert references_of(rows.board.settings) != by_document


@pytest.mark.parametrize(("keys", "message"), [
    *(({"tests": f"{{test-A: {{split: {of}}}}}"}, "`split` must be a percentage between 0 % and 100 %, such as 30 %")
      for of in ("30", "100 %")),
    ({"tests": "{test-A: {split: 30 %, visible: true}}"},
     "`split` is for hidden answers: leave out `split` or `visible`"),
    ({"seed": "12345"}, "`split` needs a secret `seed`: with 12345, anyone can compute the public lines"),
    ({"names": "pseudonyms", "seed": "12345", "tests": "{test-A: {}}", "finals": "0"},
     "`names: pseudonyms` needs a secret `seed`: with 12345, submissions' codes tell the team"),
    *(({"metric": f'"{metric}"'}, f"`split` needs a metric of line losses, such as PerplexityHashed, not `{metric}`")
      for metric in ("BLEU", "Accuracy", "LogLossHashed:f<exp:the>")),
    ({"tests": "{test-A: {}}", "finals": "2"},
     "`finals` needs a test with `split`, on whose private part final submissions are ranked"),
    ({"tests": "{test-A: {disclosed_after: 2}}", "phases": "[]"},
     "`disclosed_after` of test-A needs `phases`: it holds after the last deadline"),
    ({"zone": "Europe/Nowhere"}, "`zone` must be a time zone, such as Europe/Warsaw or UTC"),
    ({"phases": "[{name: a, until: 2027-01-31 23:59 Europe/Nowhere}]"},
     "Europe/Nowhere` is not a time with one time zone; write it as"),
    ({"phases": "[{name: a}]"}, "`until` is missing"), ({"phases": "[1]"}, "`phases` must have keys with values"),
    ({"metric": '" "'}, "`metric` must not be empty"), ({"title": '" "'}, "`title` must not be empty"),
    *(({"phases": f"[{{name: dev, until: 2027-01-02T12:00:00Z, {own}}}]"}, message) for own, message in [
        ("tests: [test-B]", "the phase `dev` names `test-B`, which is not in `tests`"),
        ("test: [a]", "unknown key `test`; did you mean `tests`?"), ("variants: 0", "`variants` must be at least 1"),
        ("disclosed: 16", "`disclosed` must be at most 15"), ("ladder: maybe", "`ladder` must be true or false"),
    ]),
    ({"entries": "some"}, "`entries` must be 'best' or 'all'"),
    ({"transports": "[https, ftp]"}, "`transports` must be 'https', 'ssh', 'git', 'http' or 'file'"),
    ({"limits": "{files: 0}"}, "`files` must be at least 1"),
    ({"tests": "{test-A: {step: -1}}"}, "`step` must be at least 0"),
    ({"server": "{mail: {host: a, sender: a@b, port: 65536}}"}, "`port` must be at most 65535"),
])  # fmt: skip
def test_errors_in_board_yaml(rows, keys, message):
    with pytest.raises(ConfigError) as caught:
        rows.edit(**keys)
    assert message in str(caught.value)


def test_the_public_part_is_shown_until_the_deadline_then_the_private_one(rows, public):
    one, two = losses(public, on_public=2, on_private=5), losses(public, on_public=3, on_private=4)
    rows.submit("one", one, at=IN_FINAL)
    rows.submit("two", two, at=IN_FINAL)
    before = rows.standings(now=OPEN)
    note = "the scores are of the public part, 30 lines; after the deadline the private part decides"
    assert (before.part, before.notes) == ("public", (note,))
    assert list(shown_by.legend(before))[-1] == f"Note: {note}."
    assert rows.table(now=OPEN) == [(1, "one", score_of(public, one)), (2, "two", score_of(public, two))]
    after, private = rows.standings(now=OVER), private_of(public)
    assert rows.table(now=OVER) == [(1, "two", score_of(private, two)), (2, "one", score_of(private, one))]
    assert (after.phase, after.part) == ("final", "private")
    assert after.notes[1:] == ("the scores are of the private part, 70 lines",)


def test_intervals_ranges_and_letters_are_of_the_part(rows, public):
    """They are those of a board that has no other lines."""
    names = ("one", "two", "six")
    of = [losses(public, on_public=2 + number, on_private=6 - number) for number in range(3)]
    for name, all_lines in zip(names, of, strict=True):
        rows.submit(name, all_lines, at=IN_FINAL)
    for part, now in ((public, OPEN), (private_of(public), OVER)):
        alone = Rows(rows.folder, tests="{test-A: {disclosed: 6}}", seed=SEED, database=f"part{len(part)}.sqlite")
        for name, all_lines in zip(names, of, strict=True):
            alone.submit(name, [all_lines[place] for place in sorted(part)], at=IN_FINAL)
        found, expected = rows.standings(phase="final", now=now), alone.standings(now=now)
        for entry, other in zip(found.entries, expected.entries, strict=True):
            names_of = ("place", "submitter", "score", "first", "last", "groups")
            assert [getattr(entry, name) for name in names_of] == [getattr(other, name) for name in names_of]
            assert entry.output.shown.low < entry.score < entry.output.shown.high


BY_TEST = PHASES.replace("}, {", ", tests: [test-A]}, {").replace("}]", ", tests: [test-B]}]")
TWO_TESTS = {"tests": "{test-A: {split: 30 %, disclosed: 6}, test-B: {}}", "phases": BY_TEST}
LATER = OVER + timedelta(days=5)


@pytest.mark.parametrize(("keys", "at", "phase", "now", "part"), [
    (TWO_TESTS, 0, "dev", OPEN, "private"), ({}, 0, "dev", OVER, "public"),
    ({}, 72, "post-deadline", LATER, "private"), ({"phases": "[]"}, 0, None, LATER, "public"),
], ids=["after its last phase", "in an earlier phase", "late", "without phases"])  # fmt: skip
def test_the_part_that_decides(rows, public, keys, at, phase, now, part):
    rows.edit(**keys)
    of, lines = losses(public, on_public=2, on_private=5), public if part == "public" else private_of(public)
    rows.submit("one", of, at=at)
    found = rows.standings("test-A", phase=phase, now=now)
    assert [entry.score for entry in found.entries] == [score_of(lines, of)]
    assert part == "private" or found.notes == ("the scores are of the public part, 30 lines",)


def test_an_earlier_phase_keeps_its_table(rows, public):
    rows.submit("one", losses(public, on_public=2, on_private=5))
    assert rows.standings(phase="dev", now=OPEN) == rows.standings(phase="dev", now=OVER)


def test_the_best_variant_is_that_of_the_part(rows, public):
    good, bad = losses(public, on_public=2, on_private=5), losses(public, on_public=3, on_private=4)
    rows.submit("one", bad, good, at=IN_FINAL)
    for now, best in ((OPEN, ("k=1", score_of(public, good))), (OVER, ("", score_of(private_of(public), bad)))):
        assert [(entry.output.variant, entry.score) for entry in rows.standings(now=now).entries] == [best]


def test_a_score_that_was_made_again_has_new_parts(rows, public):
    code = rows.submit("one", losses(public, on_public=2, on_private=5), at=IN_FINAL)
    rows.standings(now=OPEN)
    again = losses(public, on_public=3, on_private=4)
    rows.score_again(code, again, reference="other answers")
    assert rows.table(now=OPEN) == [(1, "one", score_of(public, again))]
    assert rows.table(now=OVER) == [(1, "one", score_of(private_of(public), again))]


def test_a_ladder_is_climbed_by_the_public_part_and_the_private_part_has_none(rows, public):
    rows.edit(tests="{test-A: {split: 30 %, disclosed: 6, ladder: true, step: 0}}")
    first, second = losses(public, on_public=3, on_private=5), losses(public, on_public=3.5, on_private=2)
    rows.submit("one", first, at=IN_FINAL)
    rows.submit("one", second, at=IN_FINAL + 1)
    (entry,) = rows.standings(now=OPEN).entries
    assert (entry.score, entry.held) == (score_of(public, first), True)
    (entry,) = rows.standings(now=OVER).entries
    assert (entry.score, entry.held) == (score_of(private_of(public), second), False)


def test_metrics_of_the_same_losses_are_shown_and_others_are_not(rows, public):
    rows.edit(also="[LogLossHashed, LogLossHashed8, Accuracy]")
    of = losses(public, on_public=2, on_private=5)
    whole = {"PerplexityHashed": of, "LogLossHashed": 3.0, "LogLossHashed8": 2.0, "Accuracy": 0.5}
    rows.submit("one", whole, at=IN_FINAL)
    found = rows.standings(now=OPEN)
    assert found.others == ("LogLossHashed",)
    loss = round(math.log(perplexity([of[place] for place in sorted(public)])), 5)
    assert others_of(found.entries[0], "LogLossHashed") == {"LogLossHashed": loss}
    assert {row.metric for row in rows.rows(disclosures)} == {"PerplexityHashed", "LogLossHashed"}


def test_nothing_of_the_private_part_is_computed_before_the_deadline(rows, public):
    for number, name in enumerate(("one", "two")):
        rows.submit(name, losses(public, on_public=2 + number, on_private=5), at=IN_FINAL)
    rows.standings(now=OPEN)
    stored = {row.id: row.lines for row in rows.rows(evaluations)}
    assert sorted(stored.values()) == [30, 30, LINES, LINES]
    compared = [row.one_id for row in rows.rows(comparisons)]
    assert {stored[one] for one in compared} == {30}
    assert {stored[row.evaluation_id] for row in rows.rows(disclosures)} == {30}


def test_an_infinite_loss_counts_in_its_part_alone(rows, public):
    private, of = private_of(public), losses(public, on_public=2, on_private=5)
    of[min(private)] = math.inf
    rows.submit("one", of, at=IN_FINAL)
    assert rows.table(now=OPEN) == [(1, "one", score_of(public, of))]
    assert rows.table(now=OVER) == [(1, "one", math.inf)]
