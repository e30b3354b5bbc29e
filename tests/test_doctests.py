"""The examples in docstrings are run."""

import doctest
import importlib
import pkgutil

import pytest

import geval_py

RUN_BY_ALEMBIC = "geval_py.board.database.migrations.env"  # which cannot be imported without it
NAMES = [m.name for m in pkgutil.walk_packages(geval_py.__path__, "geval_py.")]
MODULES = [name for name in NAMES if name != RUN_BY_ALEMBIC]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
