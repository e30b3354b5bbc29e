"""Scores in other tools, with these tools themselves where they are installed: scripts/test --long installs them."""

import pickle
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from raising import refused

import geval_py

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
HASHED = "PerplexityHashed"
WORDS = [f"word{number}" for number in range(50)]
OFFLINE = {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline", "WANDB_SILENT": "true"}
TOOLS = ("torch", "mlflow", "wandb", "geval_py")


def blocks(language):
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", PAGE)


def run(tmp_path, *command):
    """Run a command where the root of a clone would be, with nobody to ask on the network."""
    if not (tmp_path / "challenges").exists():
        (tmp_path / "challenges").symlink_to(ROOT / "challenges")
    environment = {"PATH": str(Path(sys.executable).parent), "HOME": str(tmp_path), **OFFLINE}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def rows():
    draw = np.random.default_rng(5)
    return draw.normal(size=(60, 50)).astype(np.float32), draw.integers(0, 50, 60)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # of what MLflow uses
@pytest.mark.parametrize("code", blocks("python")[:-1], ids=TOOLS)
def test_the_page_runs(code, tmp_path):
    module = re.search(r"(?m)^(?:import|from) (\w+)", code)[1]
    (tmp_path / "example.py").write_text(code)
    printed = run(tmp_path, sys.executable, "example.py")
    if module == "torch":
        (_, first), (_, last) = (line.split() for line in printed.splitlines())
        assert float(last) < float(first) < 1024
    if module == "geval_py":
        assert float(printed) > 1
    if module == "mlflow":
        import mlflow

        mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
        (stored,) = mlflow.search_runs(search_all_experiments=True, output_format="list")
        result = geval_py.evaluate(ROOT / "challenges" / "gazette", "dev-0", output="out-model=bigram.tsv")
        assert stored.data.metrics == {f"dev-0/{name}": value for name, value in result.scores_dict().items()}


@pytest.mark.long
def test_a_task_of_lm_evaluation_harness(tmp_path):
    """Its model "dummy" answers at random."""
    (tmp_path / "gap_task.py").write_text(blocks("python")[-1])
    (tmp_path / "gap.yaml").write_text(blocks("yaml")[0])
    command = "-m lm_eval --model dummy --tasks gazette --include_path . --limit 20"
    printed = run(tmp_path, sys.executable, *command.split())
    score = float(re.search(r"\|word_gap\s*\|↓\s*\|\s*([\d.]+)", printed)[1])
    assert 100 < score < 10_000


@pytest.fixture
def torch():
    import torch

    return torch


@pytest.fixture
def word_gap(torch):
    from geval_py.integrations.torchmetrics import WordGap

    return partial(WordGap, WORDS, logits=True)


@pytest.mark.long
@pytest.mark.parametrize("metric", ["PerplexityHashed", "LikelihoodHashed", "LogLossHashed8"])
def test_torchmetrics_gives_the_score_of_the_output(metric, rows, torch, word_gap):
    logits, expected = rows
    found = word_gap(metric)
    for first in range(0, 60, 7):
        part = slice(first, first + 7)
        found.update(torch.tensor(logits[part]), torch.tensor(expected[part]))
    predictions = geval_py.Metric(HASHED, vocabulary=WORDS).predictions(logits, logits=True)
    score = geval_py.score(predictions, expected, metric=metric).score
    assert found.compute().item() == score
    assert found.half().compute().item() == score  # a cast leaves losses as they are
    assert pickle.loads(pickle.dumps(found)).compute().item() == score
    assert found.higher_is_better is (metric == "LikelihoodHashed")


@pytest.mark.long
def test_torchmetrics_takes_half_precision_and_lines_in_any_order(rows, torch, word_gap):
    logits, expected = rows
    half = torch.tensor(logits).bfloat16()
    whole, shuffled = word_gap(), word_gap()
    whole.update(half, expected)
    for places in np.array_split(np.random.default_rng(1).permutation(60), 5):
        shuffled.update(half[places], expected[places], lines=torch.tensor(places + 1))
    shuffled.update(half[:4], expected[:4], lines=1)  # a sampler repeats lines
    assert shuffled.compute() == whole.compute()
    assert whole(half, expected, lines=1) == whole.compute()


@pytest.mark.long
def test_torchmetrics_refuses_what_would_be_a_wrong_score(rows, torch, word_gap):
    logits, expected = rows
    found = word_gap()
    with pytest.warns(UserWarning, match="before the ``update``"), pytest.raises(geval_py.UsageError) as none:
        found.compute()
    assert str(none.value) == "PerplexityHashed has no lines yet: update it with predictions"
    found.update(torch.tensor(logits), expected)
    found.update(torch.tensor(logits[:3]) * 2, expected[:3], lines=1)
    with refused("line 1 has two losses: reset() the metric before lines are scored again", geval_py.UsageError):
        found.compute()
    with pytest.raises(geval_py.UsageError, match=r"^BLEU has no use for vocabulary=…$"):
        word_gap("BLEU")


PROCESS = """
import sys
import numpy as np, torch
from geval_py import UsageError
from geval_py.integrations.torchmetrics import WordGap

rank, file = int(sys.argv[1]), sys.argv[2]
torch.distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
draw = np.random.default_rng(5)
logits, expected = draw.normal(size=(60, 50)).astype(np.float32), draw.integers(0, 50, 60)
metric = WordGap([f"word{number}" for number in range(50)], logits=True)
mine = np.arange(rank, 60, 2)
try:
    metric.update(torch.tensor(logits[mine]), expected[mine])
except UsageError as error:
    print(error)
metric.update(torch.tensor(logits[mine]), expected[mine], lines=mine + 1)
print(metric.compute().item())
torch.distributed.destroy_process_group()
"""


@pytest.mark.long
def test_torchmetrics_on_two_processes(rows, tmp_path, torch):
    command = [sys.executable, "-c", PROCESS]
    start = [subprocess.Popen([*command, str(rank), tmp_path / "meet"], stdout=subprocess.PIPE) for rank in (0, 1)]
    logits, expected = rows
    score = geval_py.score(
        geval_py.Metric(HASHED, vocabulary=WORDS).predictions(logits, logits=True),
        expected,
        metric="PerplexityHashed",
    ).score
    told = "each process has some of the lines: update(…, lines=…) needs their numbers, from 1\n"
    for process in start:
        printed, _ = process.communicate(timeout=120)
        assert printed.decode() == f"{told}{score}\n"
