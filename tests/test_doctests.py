"""The examples in docstrings are run."""

import doctest
import importlib
import pkgutil

import pytest
from warm import NOT_IMPORTED

import geval_py

NAMES = [m.name for m in pkgutil.walk_packages(geval_py.__path__, "geval_py.")]
MODULES = [name for name in NAMES if name not in NOT_IMPORTED]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
