"""The examples in docstrings are run."""

import doctest
import importlib
import os
import pkgutil

import pytest
from fork_server import MIGRATIONS, NOT_IMPORTED

import geval_py

FOLDER = os.path.dirname(geval_py.__file__)  # an editable install has the folder above in its path, too
NAMES = [m.name for m in pkgutil.walk_packages([FOLDER], "geval_py.")]
MODULES = [name for name in NAMES if name not in NOT_IMPORTED and not name.startswith(MIGRATIONS)]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
