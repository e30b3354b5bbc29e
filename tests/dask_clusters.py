"""What tests on the clusters of conftest.py have in common."""

import pytest

from geval_py.scoring import cluster as clusters

QUIET = pytest.mark.filterwarnings("default")  # Dask's warnings are its own


def cut(patch, size, of_share=1, lines=1 << 20):
    """Let pieces be of so many bytes, shares of so many pieces, and tasks that score of hardly more lines.

    A third of a piece is read at once.
    """
    patch.setattr(clusters, "READ_BYTES", size // 3 + 1)
    patch.setattr(clusters, "MAX_PIECE_BYTES", size)
    patch.setattr(clusters, "MIN_SHARE_BYTES", size * of_share)
    patch.setattr(clusters, "MAX_SHARE_BYTES", size * of_share)
    patch.setattr(clusters, "MAX_LINES", lines)
