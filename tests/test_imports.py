"""The plain command line starts fast: it imports nothing heavy."""

import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

UNUSED = (
    "geval_py.reading.preparation",
    "geval_py.reading.wordprobs",
    "geval_py.tables.table",
    "geval_py.scoring.metrics.texts",
    "rapidfuzz",
    "sacrebleu",
    "regex",
)  # but for what the words ask for
HEAVY = ("numpy", "pandas", "tqdm", "yaml", "importlib.metadata", "urllib.request", "scipy", "email")
SLOW_TO_START = ("argparse", "dataclasses", "inspect", "typing")  # only help is worth their time


@pytest.mark.parametrize(
    "words",
    [["--help"], ["--version"], ["-o", "out.tsv", "-e", "expected.tsv", "-m", "PerplexityHashed", "-p", "2"]],
    ids=["help", "version", "scoring"],
)
def test_imports_nothing_heavy(words, tmp_path):
    (tmp_path / "out.tsv").write_text("a:0.5 :0.5\n")
    (tmp_path / "expected.tsv").write_text("a\n")
    unwanted = HEAVY + UNUSED + (() if words == ["--help"] else SLOW_TO_START)
    code = (
        "import sys; from geval_py.cli import main; status = main(sys.argv[1:]); "
        f"print([m for m in {unwanted!r} if m in sys.modules], file=sys.stderr); sys.exit(status)"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-c", code, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert run.stderr == "[]\n"


# All that a command may import beside geval_py. Measured on a tiny challenge, each of the other modules of the standard
# library costs a hundredth to a third of what `python -c pass` takes.
OF_SCORING = frozenset(
    [
        "array",
        "collections",
        "contextlib",
        "copyreg",
        "enum",
        "functools",
        "itertools",
        "keyword",
        "math",
        "operator",
        "re",
        "reprlib",
        "types",
        "unicodedata",
        "encodings",
    ]
)
OF_PARSERS = frozenset(
    ["argparse", "bz2", "errno", "fnmatch", "gettext", "importlib", "locale", "lzma", "shutil", "warnings", "zlib"]
)
ALLOWED = {
    "-t dev-0": OF_SCORING,
    "check": OF_SCORING | OF_PARSERS | {"mmh3"},
}
LATER = {  # modules of ours that a command has, but only some calls need
    "-t dev-0": UNUSED,
    "check": (
        "geval_py.checking.fixes",
        "geval_py.checking.metric_rules",
        "geval_py.tables.layout",
        "geval_py.reading.preparation",
        "geval_py.reading.rewriting",
        "geval_py.scoring.metrics.exact",
        "geval_py.scoring.metrics.columns",
    ),
}


def imported_by(words, folder):
    """The modules that a command imports, by a process of its own."""
    code = (
        "import sys; before = set(sys.modules); from geval_py.cli import main; status = main(sys.argv[1:]); "
        "print(*sorted(set(sys.modules) - before), file=sys.stderr); sys.exit(status)"
    )
    words = [sys.executable, "-I", "-c", code, *words]
    run = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    return set(run.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("command", ALLOWED)
def test_a_command_imports_nothing_else(command, tmp_path):
    (tmp_path / "config.txt").write_text("--metric LogLossHashed --metric PerplexityHashed --precision 4\n")
    (tmp_path / "dev-0").mkdir()
    (tmp_path / "dev-0" / "in.tsv").write_text("x\n")
    (tmp_path / "dev-0" / "expected.tsv").write_text("a\n")
    (tmp_path / "dev-0" / "out.tsv").write_text("a:0.5 :0.5\n")
    imported = imported_by(command.split(), tmp_path)
    assert {name.partition(".")[0] for name in imported if not name.startswith("_")} - {"geval_py"} <= ALLOWED[
        command
    ]
    assert not imported & set(LATER[command])


OF_BOARDS = frozenset(
    [
        *("ast", "dataclasses", "dis", "inspect", "linecache", "opcode", "token", "tokenize"),  # of dataclasses
        *("array", "base64", "binascii", "copy", "datetime", "json", "sqlite3", "string", "struct", "sysconfig"),
        *("typing", "weakref", "zoneinfo"),
        *("yaml", "cython_runtime"),
    ]
)
BOARDS = {
    "alembic",
    "concurrent.futures.process",
    "jinja2",
    "markdown_it",
    "numpy",
    "pandas",
    "psycopg",
    "sqlalchemy",
    "tqdm",
}


def test_showing_a_leaderboard_imports_nothing_that_only_changes_need(tmp_path):
    """Neither for writing to the database, nor for migrations, nor for pages."""
    shutil.copytree(Path(__file__).parents[1] / "challenges" / "gazette", tmp_path / "gazette")
    lines = (tmp_path / "gazette" / "test-A" / "expected.tsv").read_text().count("\n")
    for name, line in (("ann", "the:0.06 of:0.03 :0.91\n"), ("bob", ":1\n")):
        (tmp_path / "uploads" / name / "test-A").mkdir(parents=True)
        (tmp_path / "uploads" / name / "test-A" / "out.tsv").write_text(line * lines)
    imported_by(["board", "init", "board", "--challenge", "gazette", "--answers", "gazette"], tmp_path)
    imported_by(["board", "scan", "board", "uploads"], tmp_path)
    imported = imported_by(["board", "show", "board"], tmp_path)
    assert not imported & (BOARDS | {"geval_py.board.intake", "geval_py.board.operations", "geval_py.board.site"})
    assert not imported & {"geval_py.board.database.schema", "geval_py.board.ranking.disclosure"}
    assert not imported & {"geval_py.board.ranking.uncertainty", "geval_py.scoring.blocks"}
    names = {name.partition(".")[0] for name in imported if not name.startswith("_")} - {"geval_py"}
    assert names <= OF_SCORING | OF_PARSERS | OF_BOARDS


LIBRARIES = {"numpy", "pandas", "rapidfuzz", "sacrebleu", "scipy"}
NEEDED = {
    **dict.fromkeys(["BLEU", "GLEU", "RMSE", "MAP", "BIO-F1", "MultiLabel-F1", "F1"], frozenset()),
    "WER": {"rapidfuzz"},
    "Macro-F1": {"numpy"},
    "Spearman": {"numpy"},
}


@pytest.mark.parametrize("metric", NEEDED)
def test_a_metric_imports_its_libraries_alone(metric, tmp_path):
    for name in ("out.tsv", "expected.tsv"):
        (tmp_path / name).write_text("O\nO\n" if metric == "BIO-F1" else "1\n0\n")
    code = (
        f"import sys; from geval_py.cli import main; main(['-o', 'out.tsv', '-e', 'expected.tsv', '-m', {metric!r}]); "
        f"print([m for m in {sorted(LIBRARIES)!r} if m in sys.modules], file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stderr == f"{sorted(NEEDED[metric])}\n"


def test_the_package_imports_nothing_heavy():
    code = f"import sys, geval_py; print([m for m in {HEAVY!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_the_installed_package_is_tested():
    import geval_py

    assert "site-packages" in geval_py.__file__


SPLIT = {"use_dictionary": ["words"], "column_encoding": {"probabilities.list.element": "BYTE_STREAM_SPLIT"}}


@pytest.mark.parametrize(("options", "by_pyarrow"), [({}, False), (SPLIT, True)], ids=["default", "split"])
def test_parquet_is_scored_without_numpy(options, by_pyarrow, tmp_path):
    """pyarrow imports numpy if it can, which takes longer than to import pyarrow, and cloudpickle, of Dask.

    What most writers write is read without pyarrow.
    """
    (tmp_path / "expected.tsv").write_text("a\n")
    table = pa.table({"words": [["a", ""]], "probabilities": [[0.5, 0.5]]})
    pq.write_table(table, tmp_path / "out.parquet", **options)
    command = ["geval_py", "-o", "out.parquet", "-e", "expected.tsv", "-m", "PerplexityHashed", "-p", "2"]
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", *command], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    imported = {line.rpartition("|")[2].strip() for line in run.stderr.splitlines()}
    assert ("pyarrow.lib" in imported) == by_pyarrow
    assert not imported & {*HEAVY, "cloudpickle", "pyarrow.parquet", "numpy.linalg"}
    assert run.stdout == "2.00\n"
