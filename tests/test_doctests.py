"""The examples in docstrings are run."""

import doctest
import importlib
import pkgutil

import pytest

import geval_py

MODULES = [m.name for m in pkgutil.walk_packages(geval_py.__path__, "geval_py.")]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
