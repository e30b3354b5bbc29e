"""The cluster that ``--cluster`` names."""

from __future__ import annotations

from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from geval_py.scoring.cluster import Cluster


@contextmanager
def cluster_at(address: str | None, threads: int | None = None) -> Iterator[Cluster | None]:
    """Connect to a cluster, or start one of so many workers on this machine; None where none is asked for.

    Raises UsageError and ClusterError.
    """
    if address is None:
        yield None
        return
    import logging

    from geval_py.scoring.cluster import Cluster, opened_cluster

    logging.disable()  # what Dask logs of a worker that died, a user cannot mend; what matters is an error
    try:
        with opened_cluster(address, threads) as client:
            yield Cluster.of(client)
    finally:
        logging.disable(logging.NOTSET)
