"""Which column names the documents, and simulations of lines that are alike by document."""

import math

import numpy as np
import pytest
from raising import refused

from geval_py import compare, evaluate, score
from geval_py.errors import MissingFileError
from geval_py.explaining.documents import documents_in

TRIALS = 1000


def at_most(share):
    """A share that chance exceeds once in a thousand runs, if the true one is as given."""
    return share + 3.1 * math.sqrt(share * (1 - share) / TRIALS)


@pytest.fixture
def challenge(tmp_path):
    (tmp_path / "config.txt").write_text("--metric LogLossHashed --in-header in-header.tsv\n")
    (tmp_path / "dev-0").mkdir()

    def write(columns, **losses):
        """Write the columns of the input and outputs with these losses, at least 0; return the evaluations."""
        (tmp_path / "in-header.tsv").write_text("\t".join(columns) + "\n")
        rows = zip(*columns.values(), strict=True)
        (tmp_path / "dev-0/in.tsv").write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
        (tmp_path / "dev-0/expected.tsv").write_text("a\n" * len(next(iter(losses.values()))))
        for name, values in losses.items():
            shares = np.exp(-values).tolist()
            lines = (f"a:{share!r} b:{1 - share!r}\n" for share in shares)
            (tmp_path / f"dev-0/out-{name}.tsv").write_text("".join(lines))
        return [evaluate(tmp_path, "dev-0", output=f"out-{name}.tsv") for name in losses]

    return write


def skewed(rng, lines):
    """Losses of lines, in nats, with a standard deviation of about 1.2."""
    return rng.gamma(2, 0.85, lines) + 1


def alike_outputs(rng, outputs, effect):
    """The losses of outputs that find the same lines hard, 40 files of 15 lines, with an effect of the file."""
    hard = skewed(rng, 600) + rng.normal(0, effect, 40)[np.arange(600) // 15]
    return {f"o{n}": np.maximum(hard + rng.normal(0, 0.4, 600), 0.01) for n in range(outputs)}


DEPEND = "if lines with the same {0} depend on each other, use --documents {0}"
LINES = {"FileId": 15, "Source id": 60, "Newspaper": 60, "Year": 20, "Genre": 100, "Text": 1, "Page": 4, "doc_id": 15}


@pytest.mark.parametrize(("columns", "chosen", "notes"), [
    (["FileId", "Text"], "FileId", []), (["Page", "doc_id", "FileId"], "doc_id", []),
    (["FileId", "Source id"], "Source id", []), (["Source id", "FileId"], "Source id", []),
    (["FileId", "Newspaper", "Genre", "Page"], "FileId",
        [f"lines with the same FileId have the same Newspaper: {DEPEND.format('Newspaper')}"]),
    (["Genre", "Text"], None, []), (["Year"], None, [DEPEND.format("Year")]),
    (["Year", "Text", "Page of"], None,
     ["if lines with the same Year or Page of depend on each other, use --documents Year or --documents Page\\ of"]),
])  # fmt: skip
def test_a_column_is_chosen_by_its_name(columns, chosen, notes, challenge):
    """Without a test: the first one with a usual name, or a coarser one of at least ten values."""
    values = {name: np.arange(600) // LINES.get(name, 4) for name in columns}
    evaluations = challenge(values, **alike_outputs(np.random.default_rng(7), 2, 0.0))
    assert (compare(evaluations).documents, compare(evaluations).notes) == (chosen, tuple(notes))
    assert compare(evaluations, documents=False).notes == ()
    for column in columns[:1]:
        assert compare(evaluations, documents=column).documents == (None if column == "Text" else column)


NESTED = {"FileId": np.arange(600) // 15, "Newspaper": np.arange(600) // 60, "Genre": np.arange(600) % 3}


def test_columns_that_nest(challenge):
    """The coarsest counts, in which order ever they are named."""
    evaluations = challenge(NESTED, **alike_outputs(np.random.default_rng(7), 2, 0.0))
    for names in ("FileId,Newspaper", "Newspaper,FileId", "2,FileId"):
        assert compare(evaluations, documents=names) == compare(evaluations, documents="Newspaper")
    assert evaluations[0].interval(documents="FileId,Newspaper").documents == 10
    messages = {
        "FileId,Genre": "documents have to nest, but lines with the same FileId differ in Genre\n"
        "  name only one of these columns",
        "FileId,": "Unknown column `'\n  the columns are FileId, Newspaper, Genre",
        "FileId,newspaper": "Unknown column `newspaper'\n"
        "  did you mean Newspaper? the columns are FileId, Newspaper, Genre",
    }
    for names, message in messages.items():
        with refused(message):
            compare(evaluations, documents=names)


@pytest.mark.parametrize(("declared", "column"), [
    ("", "FileId"), ("--documents Chapter", "Chapter"), ("--documents 2", "Chapter"), ("--no-documents", None),
    ("--documents FileId,Chapter", "Chapter"),
])  # fmt: skip
def test_a_declared_column_goes_before_all_others(declared, column, challenge, tmp_path):
    rng = np.random.default_rng(7)
    columns = {"FileId": np.arange(600) // 15, "Chapter": np.arange(600) // 30}
    losses = alike_outputs(rng, 2, 0.0)
    challenge(columns, **losses)
    with (tmp_path / "config.txt").open("a") as file:
        file.write(f"{declared}\n")
    evaluations = challenge(columns, **losses)
    assert compare(evaluations).documents == column
    assert evaluations[0].interval().documents == {"FileId": 40, "Chapter": 20, None: None}[column]
    assert compare(evaluations, documents="FileId").documents == "FileId"
    assert compare(evaluations, documents=False).documents is None
    assert bool(compare(evaluations).notes) == (not declared)


# Documents nested in coarser ones, lines of each
NESTING = [(20, 3, 10, "equal"), (20, 3, 10, "lognormal"), (12, 4, 10, "equal")]


@pytest.mark.long
@pytest.mark.parametrize(("newspapers", "files", "lines", "sizes"), NESTING)
def test_the_level_where_files_are_nested_in_newspapers(newspapers, files, lines, sizes, challenge):
    """Two outputs without a difference, as good on all newspapers together, but not on each."""
    rng, rejected = np.random.default_rng(8), []
    for _ in range(TRIALS):
        number = np.full(newspapers, files)
        if sizes == "lognormal":
            number = np.maximum(1, np.round(files * rng.lognormal(0, 0.7, newspapers))).astype(int)
        newspaper_of_file = np.repeat(np.arange(newspapers), number)
        file_of_line = np.repeat(np.arange(len(newspaper_of_file)), lines)
        of_line = newspaper_of_file[file_of_line]
        change = rng.normal(0, 0.1, newspapers)[of_line] + rng.normal(0, 0.05, len(newspaper_of_file))[file_of_line]
        one = skewed(rng, len(of_line)) + 2
        two = np.maximum(one + change + rng.normal(0, 0.3, len(of_line)), 0.01)
        pair = challenge({"FileId": file_of_line, "Newspaper": of_line}, one=one, two=two)
        p_values = [_p(compare(pair, samples=20, documents=names)) for names in (None, "FileId,Newspaper")]
        rejected.append(np.array(p_values) < 0.05)
    by_file, by_newspaper = np.mean(rejected, axis=0)
    case = f"{newspapers} newspapers of {files} files ({sizes}) of {lines} lines"
    print(f"\n{case}: rejected by file {by_file:.1%}, by newspaper {by_newspaper:.1%}")
    assert by_newspaper <= at_most(0.07)
    assert by_file > 0.1


def _p(comparison):
    return next(system.p_value for system in comparison.systems if system.p_value is not None)


ROWS = [{"FileId": name, "Text": text} for name, text in (("one", "x"), ("two", "y"), ("one", "x"), ("three", ""))]


def documents_by(column, rows=ROWS):
    return documents_in(score([":1"] * 4, ["a"] * 4, metric="LogLossHashed", inputs=rows), column)


@pytest.mark.parametrize(("column", "name"), [("FileId", "FileId"), ("1", "FileId"), ("2", "Text")])
def test_a_column_tells_the_documents(column, name):
    found = documents_by(column)
    assert (found.column, found.of_line.tolist(), found.count) == (name, [0, 1, 0, 2], 3)


@pytest.mark.parametrize(("column", "message"), [
    ("fileid", "Unknown column `fileid'\n  did you mean FileId? the columns are FileId, Text"),
    ("3", "Unknown column `3'\n  the columns are FileId, Text"),
    ("0", "Unknown column `0'\n  the columns are FileId, Text"),
    ("\x1b[31m", "Unknown column `\\x1b[31m'\n  the columns are FileId, Text"),
])  # fmt: skip
def test_what_is_no_column(column, message):
    with refused(message):
        documents_by(column)


def test_there_has_to_be_an_input(challenge, tmp_path):
    challenge({"FileId": range(4)}, one=np.ones(4))
    (tmp_path / "dev-0/in.tsv").unlink()
    message = f"No file with the input: `{tmp_path}/dev-0/in.tsv`\n  documents are given by a column of the input: "
    with refused(message + "put the file there, or name no documents", MissingFileError):
        documents_in(evaluate(tmp_path, "dev-0"), "FileId")
    with refused("documents are given by a column of the input, and there is none: score(…, inputs=…)"):
        documents_by("FileId", rows=None)
