"""What tests on the clusters of conftest.py have in common."""

from contextlib import contextmanager

from geval_py.scoring import cluster as clusters


def cut(patch, size):
    """Let a task's range be of so many bytes."""
    patch.setattr(clusters, "MIN_RANGE_BYTES", size)
    patch.setattr(clusters, "MAX_RANGE_BYTES", size)


@contextmanager
def started(workers):
    """Start a cluster of so many processes on this machine, and yield its client."""
    import distributed

    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client
