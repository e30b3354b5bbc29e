"""Dask clusters: one in this process, which starts at once, and ones of processes, for tests that may take long."""

import gc
import sys

import distributed
import pytest

from geval_py.scoring import cluster as clusters
from geval_py.scoring import tasks
from geval_py.scoring.cluster import Cluster, opened_cluster

QUIET = pytest.mark.filterwarnings("default")  # Dask's warnings are its own


@pytest.fixture(scope="module", autouse=True)
def without_last_words():
    """What Dask's own tasks raise when they are collected, with chains of causes too deep for pytest to show."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "unraisablehook", lambda _: None)
        yield
        gc.collect()  # else they are said in whatever test comes later


@pytest.fixture(scope="module")
def here():
    """A cluster of one worker in this process."""
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=2,
            processes=False,
            protocol="tcp",  # so that all is sent as between machines
            dashboard_address=":0",
            silence_logs=False,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield Cluster.of(client)


@pytest.fixture(scope="module", params=[1, 3])
def processes(request):
    """A cluster of so many processes."""
    with opened_cluster("local", request.param) as client:
        yield Cluster.of(client)


def cut(patch, size):
    """Let pieces be of so many bytes, and in this process a third of that be worked on at once."""
    patch.setattr(tasks, "RANGE_BYTES", size // 3 + 1)
    patch.setattr(clusters, "LEAST_RANGE_BYTES", size)
    patch.setattr(clusters, "MOST_RANGE_BYTES", size)
