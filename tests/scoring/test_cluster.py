"""A cluster of processes: the same losses as one thread, also if a worker is killed, and one error if it fails."""

import os
import signal
import subprocess
import sys
import time
from array import array
from functools import partial
from pathlib import Path

import pytest
from dask_clusters import cut, started
from random_outputs import split_of

import geval_py
from geval_py.errors import ClusterError
from geval_py.reading.config import Task
from geval_py.scoring import cluster as clusters
from geval_py.scoring.cluster import opened_cluster
from geval_py.scoring.evaluate import evaluate_output, select_schemes

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"
METRICS = ("LogLossHashed8", "LikelihoodHashed:l")

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.long]  # Dask's warnings are its own


def test_a_challenge_is_scored_as_by_one_process():
    """Texts are read again where they are asked for."""
    here = geval_py.evaluate(GAZETTE, "dev-0", output="bigram")
    with started(3) as cluster:
        there = geval_py.evaluate(GAZETTE, "dev-0", output="bigram", cluster=cluster)
        assert here.signature == there.signature
        assert here.line_losses == there.line_losses
        assert here.to_frame().equals(there.to_frame())
        every = geval_py.evaluate_all(GAZETTE, "dev-0", cluster=cluster)
    assert [one.signature for one in every] == [one.signature for one in geval_py.evaluate_all(GAZETTE, "dev-0")]


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


def test_a_worker_is_killed_in_the_middle(tmp_path, monkeypatch):
    """The same digits each time: its pieces are read again by another."""
    write_much(tmp_path)
    split = split_of(tmp_path)
    want = evaluate_output(split, split.outputs[0], select_schemes(Task(metrics=METRICS)), frozenset(), threads=1)
    for run in range(10):
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
    address, process = scheduler
    write_much(tmp_path)
    with opened_cluster(address) as client, pytest.raises(ClusterError) as caught:
        evaluate_and(process.kill, client, tmp_path, monkeypatch)
    assert str(caught.value) == f"The cluster at `{address}`: it went away while it was at work"


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
