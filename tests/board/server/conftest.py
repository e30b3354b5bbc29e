"""A board that is served in this process."""

import pytest
from serving import Served


@pytest.fixture
def served(board, tmp_path):
    (tmp_path / "place").mkdir()
    return Served(board, tmp_path / "place")
