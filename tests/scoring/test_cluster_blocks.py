"""Pieces that workers read in blocks: the same losses, also where a line is longer than a block."""

from pathlib import Path

import pytest
from dask_clusters import QUIET, cut

import geval_py

pytestmark = QUIET

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"


@pytest.mark.parametrize("size", [pytest.param(600, marks=pytest.mark.long), 2_000])
def test_lines_longer_than_a_block(size, here, monkeypatch):
    alone = geval_py.evaluate(GAZETTE, "dev-0", out="bigram")
    cut(monkeypatch, size)
    there = geval_py.evaluate(GAZETTE, "dev-0", out="bigram", cluster=here.client)
    assert there == alone
    assert there.line_losses == alone.line_losses
