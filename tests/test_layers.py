"""Data flows one way: a layer imports only from those before it, and no modules import each other in a circle.

Every import counts: plain ones, those inside functions, those for types only. Exceptions are listed.
"""

import ast
import doctest
import importlib
import pkgutil
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from fork_server import MIGRATIONS, NOT_IMPORTED

LAYERS = (  # layers in one tuple do not import each other
    ("version", "text", "values"), ("errors",), ("tables",), ("reading",), ("scoring",), ("explaining", "checking"),
    ("evaluation",), ("reports", "modelling", "integrations"), ("authoring", "board"), ("cli",), ("__main__",),
)  # fmt: skip
# Results have methods that explain and draw them, which import that inside of them and for types. The notes on scores
# ask the checker whether lines are in their places. What a board takes, the checker takes by the board's own code.
UPWARDS = {
    ("checking.targets", "board"), ("scoring.evaluate", "checking"), ("scoring.scores", "explaining"),
    ("scoring.scores", "reports"), ("explaining.comparison", "reports"), ("explaining.calibration", "reports"),
}  # fmt: skip
PACKAGE = Path(__file__).parent.parent / "geval_py"
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path != PACKAGE / "__init__.py"
}
LEVELS = {layer: level for level, layers in enumerate(LAYERS) for layer in layers}


def layer(name):
    return name.partition(".")[0]


def imports_of(name, text):
    """The modules of geval_py that a module imports, by its text."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        imported = []
        if isinstance(node, ast.ImportFrom):
            imported = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        for other in imported:
            package, _, other = other.partition(".")
            while other and other not in MODULES:
                other = other.rpartition(".")[0]
            if package == "geval_py" and other and other != name:
                found.add(other)
    return found


@pytest.fixture(scope="module")
def imports():
    """The imports of each module, but for the exceptions."""
    found = {name: imports_of(name, path.read_text(encoding="utf-8")) for name, path in MODULES.items()}
    return {name: {one for one in others if (name, layer(one)) not in UPWARDS} for name, others in found.items()}


def test_imports_only_from_earlier_layers(imports):
    upwards = {
        (name, other)
        for name, others in imports.items()
        for other in others
        if layer(other) != layer(name) and LEVELS[layer(other)] >= LEVELS[layer(name)]
    }
    assert upwards == set()


def test_there_is_no_circle(imports):
    """So each module can be imported alone, if all can be imported: the test of docstrings imports them."""
    TopologicalSorter(imports).prepare()


@pytest.mark.parametrize(("name", "layer"), sorted(UPWARDS))
def test_the_exceptions_import_nothing_when_they_are_imported(name, layer):
    code = f"import sys, geval_py.{name}; print([one for one in sys.modules if one.startswith('geval_py.{layer}')])"
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


MODULE_NAMES = [m.name for m in pkgutil.walk_packages([str(PACKAGE)], "geval_py.")]


@pytest.mark.parametrize(
    "name", [name for name in MODULE_NAMES if name not in NOT_IMPORTED and not name.startswith(MIGRATIONS)]
)
def test_examples_in_docstrings_are_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
