"""Small: a function fits on a screen, a file has one subject."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "geval_py"
MOST_LINES_OF_A_FILE, MOST_LINES_OF_A_FUNCTION = 500, 60
FILES = sorted(PACKAGE.rglob("*.py"))
NATIVE_FILES = sorted([*PACKAGE.rglob("*.hpp"), *PACKAGE.rglob("*.cpp")])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_sizes(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES_OF_A_FILE
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    assert {f.name for f in functions if f.end_lineno - f.lineno + 1 > MOST_LINES_OF_A_FUNCTION} == set()


@pytest.mark.parametrize("path", NATIVE_FILES, ids=lambda path: path.name)
def test_sizes_of_native_files(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES_OF_A_FILE
