"""A cluster inside of this process scores as one thread: the quick sibling of the trials in test_cluster.py."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profiles import examples
from random_outputs import differences, files, long_files, result, write

from geval_py.scoring import cluster as clusters
from geval_py.scoring.blocks import Threads
from geval_py.scoring.cluster import Cluster

METRICS = ("LogLossHashed8", "LikelihoodHashed:l")

pytestmark = pytest.mark.filterwarnings("default")  # Dask's warnings are its own


@pytest.fixture(scope="module")
def cluster():
    """Two workers, which are threads."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as workers,
        distributed.Client(workers, set_as_default=False) as client,
    ):
        yield Cluster.of(client)


@settings(deadline=None, derandomize=True, max_examples=examples(20), suppress_health_check=[HealthCheck.too_slow])
@given(output=st.one_of(files, long_files), difference=differences, pieces=st.integers(1, 8))
def test_a_cluster_scores_as_one_thread(output, difference, pieces, cluster, tmp_path_factory):
    """The same signature, losses and texts, to the last bit, or the same error."""
    folder = tmp_path_factory.mktemp("cluster")  # after an error workers may still be reading the one before
    split = write(folder, output, difference)
    want = result(split, METRICS, workers=Threads(1))
    size = max(len(output) // pieces, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusters, "LEAST_RANGE_BYTES", size)
        patch.setattr(clusters, "MOST_RANGE_BYTES", size)
        assert result(split, METRICS, workers=cluster) == want
