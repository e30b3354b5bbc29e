"""The plain command line starts fast: it imports nothing heavy."""

import subprocess
import sys

import pytest

UNUSED = (
    "geval_py.reading.preparation",
    "geval_py.reading.preparation",
    "geval_py.scoring.metrics.texts",
    "rapidfuzz",
    "sacrebleu",
    "regex",
)  # but for what the words ask for
HEAVY = ("numpy", "pandas", "rich", "yaml", "importlib.metadata", "urllib.request", "scipy", "email")
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
