"""What tests on the clusters of conftest.py have in common."""

import pytest

from geval_py.scoring import cluster as clusters

QUIET = pytest.mark.filterwarnings("default")  # Dask's warnings are its own


def cut(patch, size):
    """Let pieces be of so many bytes, and in this process a third of that be worked on at once."""
    patch.setattr(clusters, "RANGE_BYTES", size // 3 + 1)
    patch.setattr(clusters, "LEAST_RANGE_BYTES", size)
    patch.setattr(clusters, "MOST_RANGE_BYTES", size)
