"""The command starts fast: it imports heavy libraries only where they are used."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "numpy", "pandas", "pyarrow", "rapidfuzz", "sacrebleu", "scipy", "sqlalchemy", "tqdm", "urllib.request", "yaml",
)  # fmt: skip
GAZETTE = Path(__file__).parents[1] / "challenges" / "gazette"
FILES = "-o out.tsv -e expected.tsv -m PerplexityHashed -p 2"


def imported_by(words, folder):
    """The modules that a command imports, by a process of its own."""
    code = (
        "import sys; from geval_py.cli import main; status = main(sys.argv[1:]); "
        "print(*sys.modules, file=sys.stderr); sys.exit(status)"
    )
    words = [sys.executable, "-I", "-c", code, *words]
    run = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    return set(run.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("words", [
    *(pytest.param(words, marks=pytest.mark.long) for words in ("--help", "--version", FILES)),
    "-t dev-0", "check",
])  # fmt: skip
def test_imports_nothing_heavy(words, tmp_path):
    (tmp_path / "config.txt").write_text("--metric LogLossHashed --metric PerplexityHashed --precision 4\n")
    (tmp_path / "dev-0").mkdir()
    for folder in (tmp_path, tmp_path / "dev-0"):
        (folder / "in.tsv").write_text("x\n")
        (folder / "out.tsv").write_text("a:0.5 :0.5\n")
        (folder / "expected.tsv").write_text("a\n")
    imported = imported_by(words.split(), tmp_path)
    assert not imported & set(HEAVY)
    assert words == "check" or "dataclasses" not in imported  # with inspect it takes longer than Python itself


def test_comparing_imports_numpy_alone():
    assert imported_by(["compare", "-t", "dev-0", "--samples", "10"], GAZETTE) & {*HEAVY, "rich"} == {"numpy"}


@pytest.mark.slow
def test_showing_a_leaderboard_imports_nothing_that_only_changes_need(tmp_path):
    """Neither migrations nor pages, nor what scores."""
    shutil.copytree(GAZETTE, tmp_path / "gazette")
    lines = (tmp_path / "gazette" / "test-A" / "expected.tsv").read_text().count("\n")
    (tmp_path / "uploads" / "ann" / "test-A").mkdir(parents=True)
    (tmp_path / "uploads" / "ann" / "test-A" / "out.tsv").write_text("the:0.06 of:0.03 :0.91\n" * lines)
    imported_by(["board", "init", "board", "--challenge", "gazette", "--answers", "gazette"], tmp_path)
    imported_by(["board", "scan", "board", "uploads"], tmp_path)
    imported = imported_by(["board", "show", "board"], tmp_path)
    assert not imported & {"alembic", "jinja2", "markdown_it", "numpy", "pandas", "psycopg", "starlette"}


LIBRARIES = {"numpy", "pandas", "rapidfuzz", "sacrebleu", "scipy"}
NEEDED = {
    **dict.fromkeys(["BLEU", "GLEU", "RMSE", "MAP", "BIO-F1", "MultiLabel-F1", "F1"], frozenset()),
    "WER": {"rapidfuzz"}, "Macro-F1": {"numpy"}, "Spearman": {"numpy"},
}  # fmt: skip


@pytest.mark.parametrize(
    "metric",
    [pytest.param(name, marks=() if name in ("BLEU", "WER", "Macro-F1") else pytest.mark.long) for name in NEEDED],
)
def test_a_metric_imports_its_libraries_alone(metric, tmp_path):
    for name in ("out.tsv", "expected.tsv"):
        (tmp_path / name).write_text("O\nO\n" if metric == "BIO-F1" else "1\n0\n")
    imported = imported_by(["-o", "out.tsv", "-e", "expected.tsv", "-m", metric], tmp_path)
    assert imported & LIBRARIES == NEEDED[metric]


def test_the_package_imports_nothing_heavy():
    code = f"import sys, geval_py; print([m for m in {HEAVY!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_the_installed_package_is_tested():
    import geval_py

    assert "site-packages" in geval_py.__file__
