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
from dask_clusters import cut
from random_outputs import result as result_of
from random_outputs import split_of, write

import geval_py
from geval_py.errors import ClusterError, UsageError
from geval_py.reading.config import Task
from geval_py.reading.outputs import output_at
from geval_py.scoring import cluster as clusters
from geval_py.scoring.blocks import Threads
from geval_py.scoring.cluster import Cluster, opened_cluster
from geval_py.scoring.evaluate import evaluate_output, select_schemes
from geval_py.scoring.writing import convert

GAZETTE = Path(__file__).parents[2] / "challenges" / "gazette"
METRICS = ("LogLossHashed8", "LikelihoodHashed:l")

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.long]  # Dask's warnings are its own


@pytest.fixture(scope="module", params=[1, 2, 3, 4])
def cluster(request):
    """A cluster of so many workers on this machine."""
    with opened_cluster("local", request.param) as client:
        yield Cluster(client)


def result(split, **keywords):
    return result_of(split, METRICS, **keywords)


def test_a_challenge(cluster):
    """In Python, by a client; texts are read again where they are asked for."""
    here = geval_py.evaluate(GAZETTE, "dev-0", out="bigram")
    there = geval_py.evaluate(GAZETTE, "dev-0", out="bigram", cluster=cluster.client)
    assert here == there
    assert here.line_losses == there.line_losses
    assert here.to_frame().equals(there.to_frame())
    assert geval_py.evaluate_all(GAZETTE, "dev-0", cluster=cluster.client) == geval_py.evaluate_all(GAZETTE, "dev-0")


def test_the_metrics_that_failed_are_named(cluster):
    with pytest.raises(geval_py.MalformedLineError) as caught:
        geval_py.evaluate(GAZETTE, "dev-0", out="bigram", metrics=["LogLossHashed", "RMSE"], cluster=cluster.client)
    assert (caught.value.metrics, caught.value.line) == (("RMSE",), 1)


@pytest.mark.parametrize("ending", [".jsonl", ".csv.gz"])
def test_one_worker_reads_another_format(ending, cluster, tmp_path):
    split = write(tmp_path, b"the:0.5 a:0.25 :0.25\nb:0.5\n" * 300, 0)
    convert(split.outputs[0].path, f"{tmp_path}/new{ending}")
    split = split._replace(outputs=(output_at(f"{tmp_path}/new{ending}"),))
    assert result(split, workers=cluster) == result(split, workers=Threads(1))


def test_metrics_that_select_lines_need_their_texts(cluster):
    with pytest.raises(UsageError) as caught:
        geval_py.evaluate(GAZETTE, "dev-0", out="bigram", metrics="LogLossHashed:f<exp:the>", cluster=cluster.client)
    assert str(caught.value) == (
        "a cluster scores all lines, and sees no input: leave out metrics whose flags (f, p) select some, or that look "
        "at the input (CharMatch)"
    )


def test_what_workers_cannot_read(cluster, tmp_path, geval, monkeypatch):
    os.mkfifo(tmp_path / "out.tsv")
    (tmp_path / "expected.tsv").write_bytes(b"a\n")
    writer = subprocess.Popen(["sh", "-c", f"echo :1 >{tmp_path}/out.tsv"])
    kind, message, _ = result(split_of(tmp_path), workers=cluster)
    writer.wait()
    assert (kind, message) == (UsageError, f"the workers of a cluster cannot read `{tmp_path}/out.tsv`: give a file")


def write_much(folder, lines=40_000):
    (folder / "out.tsv").write_bytes(b"".join(b"a:0.%d the:0.25 :0.25\n" % (n % 50 + 1) for n in range(lines)))
    (folder / "expected.tsv").write_bytes(b"a\nthe\nx\nof\n" * (lines // 4))


def evaluate_and(kill, client, folder, monkeypatch):
    """Score in small pieces; after some of them, do something to the cluster."""
    cut(monkeypatch, 10_000, 2)
    todo = [kill]
    split = split_of(folder)

    def progress(done, of):
        if todo and done > of // 4:
            todo.pop()()

    schemes = select_schemes(Task(metrics=METRICS))
    found = evaluate_output(split, split.outputs[0], schemes, frozenset(), workers=Cluster(client), progress=progress)
    assert not todo
    return array("d", found.line_losses).tobytes(), [score.value for score in found.scores]


def kill_a_worker(client, number):
    client.amm.run_once()  # as Dask does every two seconds: of data on several workers one copy is left
    pids = sorted(client.run(os.getpid).values())
    os.kill(pids[number % len(pids)], signal.SIGKILL)


@pytest.mark.parametrize("runs", [2, 20])
@pytest.mark.parametrize("of_share", [2, 1000], ids=["some shares", "few shares"])
def test_a_worker_is_killed_while_it_counts(of_share, runs, tmp_path, monkeypatch):
    """The same digits each time: another one counts its pieces again, and some pieces have been counted before."""
    write_much(tmp_path)
    split, schemes = split_of(tmp_path), select_schemes(Task(metrics=METRICS))
    want = evaluate_output(split, split.outputs[0], schemes, frozenset(), workers=Threads(1)).line_losses
    for run in range(runs):
        with opened_cluster("local", 2) as client, monkeypatch.context() as patch:
            cut(patch, 10_000, of_share)
            todo = [partial(kill_a_worker, client, run)]

            def killing(*arguments, todo=todo, send=client.map, **keywords):
                futures = send(*arguments, **keywords)
                if todo:
                    client.gather(futures)
                    todo.pop()()
                return futures

            patch.setattr(client, "map", killing)
            found = evaluate_output(split, split.outputs[0], schemes, frozenset(), workers=Cluster(client))
            assert not todo
        assert found.line_losses == want


@pytest.mark.parametrize("runs", [2, 20])
def test_a_worker_is_killed_in_the_middle(runs, tmp_path, monkeypatch):
    """The same digits each time: its pieces are read again by another."""
    write_much(tmp_path)
    split = split_of(tmp_path)
    want = evaluate_output(
        split, split.outputs[0], select_schemes(Task(metrics=METRICS)), frozenset(), workers=Threads(1)
    )
    for run in range(runs):
        with opened_cluster("local", 2) as client:
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
        Cluster(client)
    assert str(caught.value) == f"The cluster at `{empty.scheduler_address}`: it has no worker for 1 seconds"


def test_workers_of_another_version(cluster, monkeypatch):
    monkeypatch.setattr(clusters, "__version__", "9.9")
    address = min(cluster.client.nthreads())
    more = len(cluster.client.nthreads()) - 1
    with pytest.raises(ClusterError) as caught:
        Cluster(cluster.client)
    assert str(caught.value) == (
        f"The cluster at `{cluster.address}`: the worker {address} has geval-py {geval_py.__version__}, this is 9.9"
        + (f", and {more} more differ" if more else "")
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
        Cluster(Client())
    assert str(caught.value) == (
        "The cluster at `tcp://10.0.0.1:8786`: the worker tcp://10.0.0.2:1 has no geval-py "
        f"(No module named 'geval_py'), this is {geval_py.__version__}"
    )


def test_without_dask(geval, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    status, out, err = geval("--out-directory", str(GAZETTE), "-t", "dev-0", "--cluster", "local")
    assert (status, out, err) == (
        2,
        "",
        "geval: a cluster needs distributed, of the extra cluster: pip install 'dask[distributed]>=2024.8' 'fsspec>=2024.6'\n",
    )
