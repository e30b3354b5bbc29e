"""Which lines mixing holds out together: those of a document, unasked."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from raising import refused

from geval_py import compare, evaluate, improve
from geval_py.explaining.calibration import calibration
from geval_py.explaining.mixing import fold_of_lines, groups_of

DOCUMENTS = 12
LINES = 50  # of a document
REST = 0.2  # of a line's mass, which all words share that it does not list


def write(folder, rng, concentration=0.5, rests=(REST, REST / 2), column="FileId"):
    """An output that is right of documents as they come, each with its own share of words that are not listed.

    And another that gives those less; or two outputs with other ``rests``. The greater the ``concentration``, the less
    do the documents differ.
    """
    (folder / "dev-0").mkdir(exist_ok=True)
    (folder / "config.txt").write_text("--metric PerplexityHashed --in-header in-header.tsv\n")
    (folder / "in-header.tsv").write_text(f"{column}\tText\n")
    files = np.repeat(np.arange(DOCUMENTS), LINES)
    unlisted = rng.random(len(files)) < rng.beta(concentration * REST, concentration * (1 - REST), DOCUMENTS)[files]
    others = rng.integers(10**9, size=len(files))
    answers = (f"other{other}" if out else "a" for other, out in zip(others, unlisted, strict=True))
    (folder / "dev-0/in.tsv").write_text("".join(f"f{file}\tt{n}\n" for n, file in enumerate(files)))
    (folder / "dev-0/expected.tsv").write_text("".join(f"{answer}\n" for answer in answers))
    for name, rest in zip(("one", "two"), rests, strict=True):
        (folder / f"dev-0/out-{name}.tsv").write_text(f"a:{1 - rest} :{rest}\n" * len(files))


def read(folder):
    return [evaluate(folder, "dev-0", output=name) for name in ("one", "two")]


@pytest.fixture
def pair(tmp_path):
    write(tmp_path, np.random.default_rng(1))
    return read(tmp_path)


def parts(folds):
    """The parts of documents that folds hold: as many as documents, if none is dealt out to several."""
    return len(set(zip(np.repeat(np.arange(DOCUMENTS), LINES).tolist(), folds.tolist(), strict=True)))


def test_no_document_is_in_two_folds(pair):
    groups, notes = groups_of(pair[0], None)
    folds = fold_of_lines(groups, seed=1)
    assert (parts(folds), folds.max() + 1, groups.max() + 1, notes) == (DOCUMENTS, 10, DOCUMENTS, [])
    groups, notes = groups_of(pair[0], False)
    assert parts(fold_of_lines(groups, seed=1)) > 5 * DOCUMENTS
    assert (groups.max() + 1, notes) == (DOCUMENTS * LINES, [])


def test_a_document_for_each_line_is_as_a_column(pair):
    one = pair[0]
    files = one.to_frame()["FileId"]
    by_column, by_array = compare(pair, documents="FileId"), compare(pair, documents=files)
    assert by_array == replace(by_column, documents="document", notes=by_array.notes)
    assert one.interval(documents=files) == one.interval(documents="FileId")
    assert one.scores_dict(documents=list(files)) == one.scores_dict(documents="FileId")
    assert improve(one, documents=np.repeat(np.arange(DOCUMENTS), LINES)) == improve(one, documents="FileId")
    assert calibration(one, documents=files).claim == calibration(one, documents="FileId").claim
    pd.testing.assert_frame_equal(one.worst_features(documents=files), one.worst_features(documents="FileId"))


def test_documents_of_other_lines_are_refused(pair):
    with refused("2 documents, but 600 lines: give one number for each line"):
        improve(pair, documents=(0, 1))


def taken(folder, trials, seed):
    """How many of some outputs that are right as they are would be mixed: unasked, and by line."""
    unasked = by_line = 0
    rng = np.random.default_rng(seed)
    for _ in range(trials):
        write(folder, rng)
        evaluation = evaluate(folder, "dev-0", output="one")
        unasked += bool(improve(evaluation).taken)
        by_line += bool(improve(evaluation, documents=False).taken)
    return unasked, by_line


def test_what_helps_documents_that_were_seen_is_no_help(tmp_path):
    """By line, the words that other lines of a document miss say what it misses; by document, they do not."""
    assert taken(tmp_path, 5, 3) == (0, 1)


@pytest.mark.long
def test_of_outputs_that_are_right_few_are_mixed(tmp_path):
    trials = 200
    unasked, by_line = taken(tmp_path, trials, 4)
    print(f"\n{trials} outputs right as they are: {unasked} mixed unasked, {by_line} by line")
    assert unasked <= 0.05 * trials < by_line
