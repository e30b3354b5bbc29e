"""Data flows one way: a module imports only from those above it in the list."""

import ast
from pathlib import Path

import pytest

ORDER = (
    "version",
    "errors",
    "sampling",
    "compression",
    "sources",
    "schemes",
    "preparation",
    "tokenizers",
    "arguments",
    "options",
    "challenge",
    "wordprobs",
    "kernel",
    "metrics",
    "parallel",
    "scoring",
    "analysis",
    "selection",
    "inputs",
    "score",
    "evaluation",
    "evaluate",
    "render",
    "comparison",
    "check",
    "cli",
)
PACKAGE = Path(__file__).parent.parent / "geval_py"
FILES = sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def imported_layers(path: Path) -> set[str]:
    """The top-level modules of geval_py that a file imports when it runs, inside functions too."""
    found = set()
    typing_only = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            typing_only.update(ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node not in typing_only:
            parts = (node.module or "").split(".")
            if parts[0] == "geval_py":
                found.update([parts[1]] if len(parts) > 1 else (alias.name for alias in node.names))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_imports_only_from_above(path):
    layer = path.relative_to(PACKAGE).with_suffix("").parts[0]
    above = set(ORDER[: ORDER.index(layer) + 1])
    assert imported_layers(path) <= above
