"""Data flows one way: a room imports only from those before it, and no room has a circle inside.

Every import counts: plain ones, those inside functions, those for types only.
"""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOMS = (  # those in one tuple do not import each other, but for authoring, which trains models
    ("version", "text", "values"),
    ("errors",),
    ("reading",),
    ("scoring",),
    ("explaining", "checking"),
    ("showing",),
    ("modelling", "authoring", "board", "plots"),
    ("cli",),
    ("__main__",),
)
BACKWARDS = {  # the two doors: methods of an evaluation that explain, and values that show themselves
    ("scoring.evaluation", "explaining"),
    ("scoring.evaluation", "showing"),
    ("scoring.score", "explaining"),
    ("explaining.comparison", "showing"),
    ("explaining.tuning.tune", "showing"),
    ("explaining.tuning.mixing", "showing"),
    ("explaining.calibration.calibration", "showing"),
    ("explaining.calibration.luck", "showing"),
}
AMONG = {("authoring", "modelling")}  # rooms of one tuple
RUN_BY_ALEMBIC = "board.storing.migrations.env"  # which cannot be imported without it
PACKAGE = Path(__file__).parent.parent / "geval_py"
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path != PACKAGE / "__init__.py"
}
LEVELS = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}


def imports_of(path: Path) -> dict[str, bool]:
    """The modules of geval_py that a file imports, and whether it does so when it is imported itself."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_once = {id(node) for statement in tree.body for node in [statement]}
    found: dict[str, bool] = {}
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.split(".")[0] == "geval_py" and name != "geval_py":
                module = name.removeprefix("geval_py.")
                while module and module not in MODULES and module != "scoring.kernel._native":
                    module = module.rpartition(".")[0]
                if module and module in MODULES:
                    found[module] = found.get(module, False) or id(node) in at_once
    return found


IMPORTS = {name: imports_of(path) for name, path in MODULES.items()}


def room(name: str) -> str:
    return name.partition(".")[0]


@pytest.mark.parametrize("name", MODULES)
def test_imports_only_from_earlier_rooms(name):
    for other, at_once in IMPORTS[name].items():
        if (name, room(other)) in BACKWARDS:
            assert not at_once, f"{other} is a door, to be opened when it is asked for"
        elif room(other) != room(name) and (room(name), room(other)) not in AMONG:
            assert LEVELS[room(other)] < LEVELS[room(name)], other


@pytest.mark.parametrize("of", sorted({room(name) for name in MODULES}))
def test_no_circle_inside_a_room(of):
    inside = {
        name: [other for other in others if room(other) == of and other != name]
        for name, others in IMPORTS.items()
        if room(name) == of
    }
    TopologicalSorter(inside).prepare()  # raises CycleError


def test_every_door_is_used():
    used = {(name, room(other)) for name, others in IMPORTS.items() for other in others}
    assert used >= BACKWARDS


def test_each_module_can_be_imported_alone():
    code = (
        "import importlib, os, sys\n"
        "for name in sys.argv[1:]:\n"
        "    if os.fork() == 0:\n"
        "        try:\n"
        "            importlib.import_module('geval_py.' + name)\n"
        "        except BaseException as error:\n"
        "            print(name, repr(error), flush=True)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
    )
    names = [name for name in MODULES if name != RUN_BY_ALEMBIC]
    run = subprocess.run([sys.executable, "-I", "-c", code, *names], capture_output=True, text=True, check=True)
    assert run.stdout == ""
