"""A cluster inside of this process scores as one thread: the quick sibling of the trials in test_cluster.py."""

import gzip
import os
import warnings
from copy import copy

import pytest
from dask_clusters import cut
from geval_py.reading.sources import find_file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profiles import examples
from random_outputs import differences, files, long_files, result, split_of, write

from geval_py.errors import UnreadableFileError
from geval_py.reading.config import Task
from geval_py.scoring.blocks import Threads
from geval_py.scoring.cluster import Cluster
from geval_py.scoring.evaluate import evaluate_output, select_schemes

METRICS = ("LogLossHashed1", "LikelihoodHashed:l")  # of few buckets: the seeds count

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
        yield Cluster(client)


def with_threads(cluster, threads):
    cluster = copy(cluster)
    cluster.threads = threads
    return cluster


@settings(deadline=None, derandomize=True, max_examples=examples(20), suppress_health_check=[HealthCheck.too_slow])
@given(
    output=st.one_of(files, long_files),
    difference=differences,
    pieces=st.integers(1, 8),
    of_share=st.integers(1, 9),
    lines=st.integers(1, 40),
    workers=st.integers(1, 50),
)
def test_a_cluster_scores_as_one_thread(
    output, difference, pieces, of_share, lines, workers, cluster, tmp_path_factory
):
    """The same signature, losses and texts, to the last bit, or the same error."""
    folder = tmp_path_factory.mktemp("cluster")  # after an error workers may still be reading the one before
    split = write(folder, output, difference)
    want = result(split, METRICS, workers=Threads(1))
    size = max(len(output) // pieces, 1)
    with pytest.MonkeyPatch.context() as patch:
        cut(patch, size, of_share, lines)
        assert result(split, METRICS, workers=with_threads(cluster, workers)) == want


LINES = [b"a:0.5 :0.5\n", b":1\n", b"the:0.25 a:0.5 :0.25\n"] * 70


def written(folder, text, lines=210):
    (folder / "out.tsv").write_bytes(text)
    (folder / "expected.tsv").write_bytes(b"a\n" * lines)
    return split_of(folder)


@pytest.mark.parametrize("workers", [1, 7, 10_000])
@pytest.mark.parametrize(
    "text",
    [b"", b"\n", b"".join(LINES[:10]), b"".join(LINES[:10]).rstrip(b"\n"), b"".join(LINES[:9]) + b"broken\n"],
    ids=["empty", "a line end", "lines", "no last line end", "malformed at the end"],
)
def test_few_lines_and_many_workers(text, workers, cluster, tmp_path, monkeypatch):
    split = written(tmp_path, text, 10)
    want = result(split, METRICS, workers=Threads(1))
    assert result(split, METRICS, workers=with_threads(cluster, workers)) == want
    cut(monkeypatch, 7, 3)
    assert result(split, METRICS, workers=with_threads(cluster, workers)) == want


@pytest.mark.parametrize("workers", [1, 2, 50])
def test_a_share_is_two_tasks_that_are_sent_in_batches(workers, cluster, tmp_path, monkeypatch):
    """However many ranges and parts it has; a task that scores has hardly more than MAX_LINES."""
    sent, batches = [], []
    send = cluster.client.map

    def sending(call, tasks, *more, **how):
        sent.extend(task.func.__name__ for task in tasks)
        batches.append(len(tasks))
        return send(call, tasks, *more, **how)

    monkeypatch.setattr(cluster.client, "map", sending)
    split = written(tmp_path, b"".join(LINES))
    cut(monkeypatch, 40, 10_000)
    evaluate_output(split, split.outputs[0], select_schemes(Task(metrics=METRICS)), frozenset(), workers=cluster)
    assert sorted(sent) == ["count", "work_on"]
    sent.clear()
    batches.clear()
    shares = -(-(tmp_path / "out.tsv").stat().st_size // 400)
    cut(monkeypatch, 40, 10)
    several = with_threads(cluster, workers)
    evaluate_output(split, split.outputs[0], select_schemes(Task(metrics=METRICS)), frozenset(), workers=several)
    assert sorted(sent) == ["count"] * shares + ["work_on"] * shares
    assert set(batches[:-1]) == {1 if workers < 9 else 7}  # of 50 workers


def test_no_warning_of_many_expected_words(cluster, tmp_path):
    """Dask would warn of more than 10 MB."""
    import dask

    split = written(tmp_path, b"".join(LINES))
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 B"}), warnings.catch_warnings():
        warnings.simplefilter("error")
        schemes = select_schemes(Task(metrics=METRICS))
        found = evaluate_output(split, split.outputs[0], schemes, frozenset(), workers=cluster)
    assert len(found.line_losses) == len(LINES)


@pytest.mark.parametrize("place", [0, 5])
@pytest.mark.parametrize("of_share", [1, 4])
@pytest.mark.parametrize("size", [0, 700])
def test_a_file_is_truncated_between_the_rounds(size, of_share, place, cluster, tmp_path, monkeypatch):
    split = written(tmp_path, b"".join(LINES))
    cut(monkeypatch, 300, of_share)
    counted = Cluster._counted

    def truncating(self, outputs):
        for number, lines in enumerate(counted(self, outputs)):
            if number == place:
                os.truncate(tmp_path / "out.tsv", size)
            yield lines

    monkeypatch.setattr(Cluster, "_counted", truncating)
    kind, message, *_ = result(split, METRICS, workers=cluster)
    assert (kind, message) == (
        UnreadableFileError,
        f"Cannot read `{tmp_path}/out.tsv`: it was changed while it was read",
    )


@pytest.mark.parametrize("malformed", [False, True])
@pytest.mark.parametrize("damaged", [0, 2, 3, None])
def test_a_damaged_part_in_the_middle_of_a_share(damaged, malformed, cluster, tmp_path, monkeypatch):
    """What comes first in the order of lines is the error, though all parts are counted before one is scored.

    Some parts are compressed, each of which is one piece, and is unpacked again when it is scored, in blocks.
    """
    monkeypatch.setattr("geval_py.reading.lines.BLOCK_BYTES", 50)
    for part in range(4):
        some = LINES[part * 50 : (part + 1) * 50 if part < 3 else None]
        if malformed and part == 1:
            some = [*some[:7], b"broken\n", *some[8:]]
        packed = gzip.compress(b"".join(some))
        if part == 1:
            (tmp_path / "out-1-of-4.tsv").write_bytes(b"".join(some))
        else:
            (tmp_path / f"out-{part}-of-4.tsv.gz").write_bytes(packed[:-20] if part == damaged else packed)
    (tmp_path / "expected.tsv").write_bytes(b"a\n" * len(LINES))
    split = split_of(tmp_path, os.path.basename(find_file(str(tmp_path / "out.tsv"))))
    want = result(split, METRICS, workers=Threads(1))
    assert result(split, METRICS, workers=cluster) == want
    assert ("broken" in str(want)) == (malformed and damaged != 0)
