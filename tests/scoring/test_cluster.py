"""A cluster of Dask workers: the same losses, errors and messages as one thread, and one error when it fails."""

import os
import signal
import subprocess
import sys
import time
from array import array
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from dask_clusters import cut, started
from random_outputs import split_of

import geval_py
from geval_py.errors import ClusterError, UsageError
from geval_py.reading.config import Task
from geval_py.scoring import cluster as clusters
from geval_py.scoring.cluster import opened_cluster
from geval_py.scoring.evaluate import evaluate_output, select_schemes

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"
METRICS = ("LogLossHashed8", "LikelihoodHashed:l")

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.long]  # Dask's warnings are its own


@pytest.fixture(scope="module", params=[1, 2, 3, 4])
def cluster(request):
    """A cluster of so many workers on this machine."""
    with started(request.param) as client:
        yield client


def test_a_challenge(cluster):
    """In Python, by a client; texts are read again where they are asked for."""
    here = geval_py.evaluate(GAZETTE, "dev-0", output="bigram")
    there = geval_py.evaluate(GAZETTE, "dev-0", output="bigram", cluster=cluster)
    assert here.signature == there.signature
    assert here.line_losses == there.line_losses
    assert here.to_frame().equals(there.to_frame())
    both = geval_py.evaluate_all(GAZETTE, "dev-0", cluster=cluster), geval_py.evaluate_all(GAZETTE, "dev-0")
    assert [one.signature for one in both[0]] == [one.signature for one in both[1]]


def test_the_metrics_that_failed_are_named(cluster):
    with pytest.raises(geval_py.MalformedLineError) as caught:
        geval_py.evaluate(GAZETTE, "dev-0", output="bigram", metric=["LogLossHashed", "RMSE"], cluster=cluster)
    assert (caught.value.metrics, caught.value.line) == (("RMSE",), 1)


def test_metrics_that_select_lines_need_their_texts(cluster):
    with pytest.raises(UsageError) as caught:
        geval_py.evaluate(GAZETTE, "dev-0", output="bigram", metric="LogLossHashed:f<exp:the>", cluster=cluster)
    assert str(caught.value) == (
        "a cluster scores all lines, and sees no input: leave out metrics whose flags (f, p) select some, or that look "
        "at the input (CharMatch)"
    )


def write_much(folder, lines=40_000):
    (folder / "out.tsv").write_bytes(b"".join(b"a:0.%d the:0.25 :0.25\n" % (n % 50 + 1) for n in range(lines)))
    (folder / "expected.tsv").write_bytes(b"a\nthe\nx\nof\n" * (lines // 4))


def evaluate_and(kill, client, folder, monkeypatch):
    """Score in small pieces; after some of them, do something to the cluster."""
    cut(monkeypatch, 10_000)
    todo = [kill]
    split = split_of(folder)

    def progress(done, of):
        if todo and done > of // 4:
            todo.pop()()

    schemes = select_schemes(Task(metrics=METRICS))
    found = evaluate_output(split, split.outputs[0], schemes, frozenset(), cluster=client, progress=progress)
    assert not todo
    return array("d", found.line_losses).tobytes(), [score.value for score in found.scores]


def kill_a_worker(client, number):
    client.amm.run_once()  # as Dask does every two seconds: of data on several workers one copy is left
    pids = sorted(client.run(os.getpid).values())
    os.kill(pids[number % len(pids)], signal.SIGKILL)


@pytest.mark.parametrize("runs", [2, 20])
def test_a_worker_is_killed_while_it_counts(runs, tmp_path, monkeypatch):
    """The same digits each time: another one counts its ranges again, and some ranges have been counted before."""
    write_much(tmp_path)
    split, schemes = split_of(tmp_path), select_schemes(Task(metrics=METRICS))
    want = evaluate_output(split, split.outputs[0], schemes, frozenset(), threads=1).line_losses
    for run in range(runs):
        with started(2) as client, monkeypatch.context() as patch:
            cut(patch, 10_000)
            sent = []

            def killing(function, *arguments, client=client, run=run, sent=sent, send=client.submit, **keywords):
                sent.append(send(function, *arguments, **keywords))
                if len(sent) == 20:
                    client.gather(sent)
                    kill_a_worker(client, run)
                return sent[-1]

            patch.setattr(client, "submit", killing)
            found = evaluate_output(split, split.outputs[0], schemes, frozenset(), cluster=client)
            assert len(sent) > 20
        assert found.line_losses == want


@pytest.mark.parametrize("runs", [2, 20])
def test_a_worker_is_killed_in_the_middle(runs, tmp_path, monkeypatch):
    """The same digits each time: its pieces are read again by another."""
    write_much(tmp_path)
    split = split_of(tmp_path)
    want = evaluate_output(split, split.outputs[0], select_schemes(Task(metrics=METRICS)), frozenset(), threads=1)
    for run in range(runs):
        with started(2) as client:
            found = evaluate_and(partial(kill_a_worker, client, run), client, tmp_path, monkeypatch)
        assert found == (array("d", want.line_losses).tobytes(), [score.value for score in want.scores])


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler and a worker, each a process of its own; gives the address and the scheduler's process."""
    file = tmp_path / "scheduler.json"
    run = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([*run, "--scheduler-file", str(file), "--host", "127.0.0.1"], **quiet) as process:
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file)]
        more = ["--no-dashboard", "--nthreads", "1", "--no-nanny"]
        with subprocess.Popen([*worker, *more], cwd=tmp_path, **quiet) as other:
            end = time.monotonic() + 30
            while not file.exists() and time.monotonic() < end:
                time.sleep(0.1)
            import json

            time.sleep(0.2)
            yield json.loads(file.read_text())["address"], process
            other.kill()
            process.kill()


def test_the_scheduler_is_killed(scheduler, tmp_path, monkeypatch):
    """One error."""
    address, process = scheduler
    write_much(tmp_path)
    with opened_cluster(address) as client, pytest.raises(ClusterError) as caught:
        evaluate_and(process.kill, client, tmp_path, monkeypatch)
    assert str(caught.value) == f"The cluster at `{address}`: it went away while it was at work"


def test_nobody_answers(geval, monkeypatch):
    monkeypatch.setattr(clusters, "SECONDS_TO_ANSWER", 1)
    words = ["-o", f"{GAZETTE}/dev-0/out-model=bigram.tsv", "-e", f"{GAZETTE}/dev-0/expected.tsv"]
    message = "geval: The cluster at `tcp://127.0.0.1:9`: nobody answers for 1 seconds\n"
    assert geval(*words, "-m", "LogLossHashed", "--cluster", "tcp://127.0.0.1:9") == (1, "", message)


def test_an_address_that_is_none(geval):
    status, out, err = geval("--out-directory", str(GAZETTE), "-t", "dev-0", "--cluster", "nonsense://127.0.0.1:9")
    assert (status, out) == (2, "")
    assert err.startswith("geval: `nonsense://127.0.0.1:9` is no address of a cluster: unknown address scheme")


def test_a_cluster_without_workers(monkeypatch):
    import distributed

    monkeypatch.setattr(clusters, "SECONDS_TO_ANSWER", 1)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty,
        distributed.Client(empty, set_as_default=False) as client,
        pytest.raises(ClusterError) as caught,
    ):
        clusters.worker_threads(client)
    assert str(caught.value) == f"The cluster at `{empty.scheduler_address}`: it has no worker for 1 seconds"


def test_workers_of_another_version(cluster, monkeypatch):
    monkeypatch.setattr(clusters, "__version__", "9.9")
    address = min(cluster.nthreads())
    with pytest.raises(ClusterError) as caught:
        clusters.worker_threads(cluster)
    assert str(caught.value) == (
        f"The cluster at `{cluster.scheduler.address}`: the worker {address} has geval-py {geval_py.__version__}, this is 9.9"
    )


def test_a_worker_without_geval_py(monkeypatch):
    """It is asked by a function of Python's own."""

    class Client:
        scheduler = SimpleNamespace(address="tcp://me:secret@10.0.0.1:8786")

        def wait_for_workers(self, *_, **__):
            pass

        def run(self, *_, **__):
            return {"tcp://10.0.0.2:1": ModuleNotFoundError("No module named 'geval_py'")}

    with pytest.raises(ClusterError) as caught:
        clusters.worker_threads(Client())
    assert str(caught.value) == (
        "The cluster at `tcp://10.0.0.1:8786`: the worker tcp://10.0.0.2:1 has no geval-py "
        f"(No module named 'geval_py'), this is {geval_py.__version__}"
    )


def test_without_dask(geval, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    status, out, err = geval("--out-directory", str(GAZETTE), "-t", "dev-0", "--cluster", "tcp://host:8786")
    assert (status, out, err) == (
        2,
        "",
        "geval: a cluster needs distributed, of the extra cluster: pip install 'dask[distributed]>=2024.8' 'fsspec>=2024.6'\n",
    )
