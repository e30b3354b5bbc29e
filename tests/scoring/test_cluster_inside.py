"""A cluster scores as one thread, and says what is wrong; most tests take one whose workers are threads."""

import gzip
import os
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
from dask_clusters import cut, started
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from profiles import examples
from raising import refused
from random_outputs import differences, files, long_files, result, split_of, write

from geval_py import MalformedLineError, UsageError, __version__, evaluate, score_file
from geval_py.errors import ClusterError, UnreadableFileError
from geval_py.reading.config import Task
from geval_py.scoring import cluster as clusters
from geval_py.scoring.evaluate import evaluate_output, select_schemes
from geval_py.version import installs

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"
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
        yield client


@settings(deadline=None, derandomize=True, max_examples=examples(20, most=10), suppress_health_check=[*HealthCheck])
@given(output=st.one_of(files, long_files), difference=differences, ranges=st.integers(1, 20))
@example(output=b"", difference=0, ranges=1)
@example(output=b"\n", difference=0, ranges=1)
@example(output=b":1\n" * 9 + b"broken\n", difference=0, ranges=7)
def test_scores_as_one_thread(output, difference, ranges, cluster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")  # after an error workers may still be reading the one before
    split = write(folder, output, difference)
    want = result(split, METRICS, threads=1)
    with pytest.MonkeyPatch.context() as patch:
        cut(patch, max(len(output) // ranges, 1))
        assert result(split, METRICS, cluster=cluster) == want


LINES = [b"a:0.5 :0.5\n", b":1\n", b"the:0.25 a:0.5 :0.25\n"] * 70


def written(folder, text, lines=210):
    (folder / "out.tsv").write_bytes(text)
    (folder / "expected.tsv").write_bytes(b"a\n" * lines)
    return split_of(folder)


def test_gives_no_warning_of_many_expected_words(cluster, tmp_path):
    """Dask would warn of more than 10 MB."""
    import dask

    split = written(tmp_path, b"".join(LINES))
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 B"}), warnings.catch_warnings():
        warnings.simplefilter("error")
        schemes = select_schemes(Task(metrics=METRICS))
        found = evaluate_output(split, split.outputs[0], schemes, frozenset(), cluster=cluster)
    assert len(found.line_losses) == len(LINES)


@pytest.mark.parametrize("place", [0, 3])
@pytest.mark.parametrize("size", [0, 700])
def test_names_a_file_that_is_truncated_after_it_was_counted(size, place, cluster, tmp_path, monkeypatch):
    split = written(tmp_path, b"".join(LINES))
    cut(monkeypatch, 300)
    numbered = clusters.numbered

    def truncating(*arguments, **keywords):
        for number, block in enumerate(numbered(*arguments, **keywords)):
            if number == place:
                os.truncate(tmp_path / "out.tsv", size)
            yield block

    monkeypatch.setattr(clusters, "numbered", truncating)
    kind, message, *_ = result(split, METRICS, cluster=cluster)
    assert (kind, message) == (
        UnreadableFileError, f"Cannot read `{tmp_path}/out.tsv`: it was changed while it was read",
    )  # fmt: skip


def test_scores_a_file_that_is_named_from_another_folder(cluster, tmp_path, monkeypatch):
    """A worker gets the absolute path, and reports the path as it was named."""
    written(tmp_path, b"".join(LINES))
    monkeypatch.chdir(tmp_path)
    split = split_of(tmp_path.relative_to(tmp_path))
    want = result(split, METRICS, threads=1)
    monkeypatch.setattr(clusters, "MIN_RANGE_BYTES", 100)
    assert result(split, METRICS, cluster=cluster) == want


UNREADABLE = {
    "out.tsv.gz": (gzip.compress(b"a:1\n"), "unpack it"),
    "out.jsonl": (b'{"words": ["a", ""], "probabilities": [0.5, 0.5]}\n',
        "write it to a file of lines (geval convert)"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNREADABLE)
def test_rejects_what_is_no_plain_file_of_lines(name, cluster, tmp_path):
    data, advice = UNREADABLE[name]
    (tmp_path / name).write_bytes(data)
    (tmp_path / "expected.tsv").write_bytes(b"a\n")
    message = f"the workers of a cluster cannot read `{tmp_path}/{name}`: {advice}"
    assert result(split_of(tmp_path, name), METRICS, cluster=cluster) == (UsageError, message, None)


def test_rejects_metrics_that_select_lines(cluster):
    message = "a cluster scores all lines, and sees no input: leave out metrics whose flags (f, p) select some, "
    with refused(message + "or that look at the input (CharMatch)"):
        evaluate(GAZETTE, "dev-0", output="bigram", metric="LogLossHashed:f<exp:the>", cluster=cluster)


def test_names_the_metric_that_failed(cluster):
    with pytest.raises(MalformedLineError) as caught:
        evaluate(GAZETTE, "dev-0", output="bigram", metric=["LogLossHashed", "RMSE"], cluster=cluster)
    assert (caught.value.metrics, caught.value.line) == (("RMSE",), 1)


def test_rejects_workers_of_another_version(cluster, monkeypatch):
    monkeypatch.setattr(clusters, "__version__", "9.9")
    address = min(cluster.nthreads())
    scheduler = cluster.scheduler.address
    message = f"The cluster at `{scheduler}`: the worker {address} has geval-py {__version__}, this is 9.9"
    with refused(message, ClusterError):
        clusters.worker_threads(cluster)


def test_rejects_a_worker_without_geval_py():
    """It is asked by a function of Python's own."""

    class Client:
        scheduler = SimpleNamespace(address="tcp://me:secret@10.0.0.1:8786")

        def wait_for_workers(self, *_, **__):
            pass

        def run(self, *_, **__):
            return {"tcp://10.0.0.2:1": ModuleNotFoundError("No module named 'geval_py'")}

    message = "The cluster at `tcp://10.0.0.1:8786`: the worker tcp://10.0.0.2:1 has no geval-py "
    message += f"(No module named 'geval_py'), this is {__version__}"
    with refused(message, ClusterError):
        clusters.worker_threads(Client())


@pytest.mark.slow
def test_says_that_nobody_answers_that_an_address_is_wrong_or_dask_missing(geval, monkeypatch):
    monkeypatch.setattr(clusters, "SECONDS_TO_ANSWER", 1)
    words = ["--out-directory", str(GAZETTE), "-t", "dev-0", "-o", "bigram", "--cluster"]
    message = "geval: The cluster at `tcp://127.0.0.1:9`: nobody answers for 1 seconds\n"
    assert geval(*words, "tcp://127.0.0.1:9") == (1, "", message)
    status, out, err = geval(*words, "nonsense://127.0.0.1:9")
    assert (status, out) == (2, "")
    assert err.startswith("geval: `nonsense://127.0.0.1:9` is no address of a cluster: unknown address scheme")
    monkeypatch.setitem(sys.modules, "distributed", None)
    message = f"geval: a cluster needs distributed, of the extra cluster: {installs('cluster')}\n"
    assert geval(*words, "tcp://host:8786") == (2, "", message)


@pytest.fixture(scope="module")
def elsewhere(without_last_words):
    """A cluster of one process, whose current folder is another."""
    with started(1) as client:
        client.run(os.chdir, os.sep)
        yield client


@pytest.mark.long
@pytest.mark.parametrize(
    ("challenge", "answers"), [(".", "expected.jsonl"), ("../{}", "expected.tsv"), ("absolute", "expected.tsv")]
)
def test_workers_in_another_folder(challenge, answers, elsewhere, tmp_path, monkeypatch):
    """With relative paths, answers with ids, and an error that names the file as the user did."""
    monkeypatch.chdir(tmp_path)
    challenge = str(tmp_path) if challenge == "absolute" else challenge.format(tmp_path.name)
    (tmp_path / "config.txt").write_text("--metric LogLossHashed2\n")
    (tmp_path / "dev-0").mkdir()
    rows = {"expected.tsv": "a\nthe\n", "expected.jsonl": '{"id": 2, "answer": "a"}\n{"id": 1, "answer": "the"}\n'}
    (tmp_path / "dev-0" / answers).write_text(rows[answers])
    (tmp_path / "dev-0/out.tsv").write_text("a:0.5 :0.5\nthe:0.25 :0.75\n")
    here, there = (evaluate(challenge, "dev-0", cluster=cluster) for cluster in (None, elsewhere))
    assert (there.signature, there.line_losses, there.notes) == (here.signature, here.line_losses, here.notes)
    pair = score_file("dev-0/out.tsv", f"dev-0/{answers}", metric="LogLossHashed2", cluster=elsewhere)
    assert pair.signature == here.signature
    (tmp_path / "dev-0/out.tsv").write_text("a:0.5 :0.5\nbroken\n")
    with pytest.raises(MalformedLineError) as caught:
        evaluate(challenge, "dev-0", cluster=elsewhere)
    assert (caught.value.path, caught.value.line) == (f"{challenge}/dev-0/out.tsv", 2)
