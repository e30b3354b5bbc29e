"""Differences pooled over test sets."""

import json
import os

import numpy as np
import pytest

from geval_py import UsageError, evaluate_all
from geval_py.explaining.pooled import compare_sets, pool

pytestmark = pytest.mark.filterwarnings("ignore:.*not in a vocabulary")  # but each output lists all words

# Colditz et al. (1994) on the BCG vaccine: log risk ratios and their variances, and the results of
# rma(yi, vi, method="DL") of the package metafor in R, as published.
BCG = [
    -0.8893,
    -1.5854,
    -1.3481,
    -1.4416,
    -0.2175,
    -0.7861,
    -1.6209,
    0.0120,
    -0.4694,
    -1.3713,
    -0.3394,
    0.4459,
    -0.0173,
]
VARIANCES = [0.3256, 0.1946, 0.4154, 0.0200, 0.0512, 0.0069, 0.2230, 0.0040, 0.0564, 0.0730, 0.0124, 0.5325, 0.0714]


def test_the_pooled_difference_is_that_of_metafor():
    assert pool(BCG, np.sqrt(VARIANCES)) == pytest.approx((-0.7141, 0.1787, 0.9212), abs=5e-4)


def write(folder, losses):
    (folder / "dev-0").mkdir(parents=True)
    (folder / "config.txt").write_text("--metric LogLoss\n")
    lines = len(next(iter(losses.values())))
    (folder / "dev-0/expected.tsv").write_text("a\n" * lines)
    for name, own in losses.items():
        (folder / f"dev-0/out-{name}.tsv").write_text(
            "".join(f"a:{p!r} b:{1 - p!r}\n" for p in np.exp(-own).tolist())
        )


@pytest.fixture
def folders(tmp_path):
    rng = np.random.default_rng(3)
    for folder, gain in (("one", 0.2), ("two", 0.5)):
        base = rng.exponential(2, 200)
        better = np.maximum(0.01, base - gain + rng.normal(0, 0.1, 200))
        write(tmp_path / folder, {"better": better, "same": base, "only-here" if gain < 0.3 else "there": base})
    return [str(tmp_path / folder) for folder in ("one", "two")]


def pooled(*sets, baseline="same"):
    return compare_sets([evaluate_all(*one) for one in sets], baseline=baseline)


def test_differences_of_outputs_of_one_name_are_pooled(folders, geval):
    compared = pooled(*((folder, "dev-0") for folder in folders))
    (system,) = compared.systems
    assert compared.to_frame().to_dict("records") == [system._asdict()]
    assert (system.name, system.sets, compared.baseline) == ("out-better.tsv", 2, "out-same.tsv")
    assert system.low < system.difference < system.high
    assert system.difference == pytest.approx(-0.35, abs=0.06)
    assert system.heterogeneity > 0.9
    words = [word for folder in folders for word in ("--challenge", folder)]
    status, out, _ = geval("compare", *words, "-t", "dev-0", "--baseline", "same")
    assert (status, out.splitlines()[0].split()) == (0, ["system", "sets", "diff.", "[95", "%]", "p", "I²"])
    assert out.splitlines()[1].startswith("out-better.tsv  2     -")
    document = json.loads(geval("compare", *words, "-t", "dev-0", "--baseline", "same", "--format", "json")[1])
    assert document["systems"][0]["difference"] == system.difference


def test_test_sets_of_one_challenge_are_pooled(folders, geval):
    os.rename(os.path.join(folders[1], "dev-0"), os.path.join(folders[0], "dev-1"))
    tests = ["-t", "dev-0", "-t", "dev-1"]
    status, out, _ = geval("compare", "--challenge", folders[0], *tests, "--baseline", "same", "--format", "json")
    document = json.loads(out)
    assert (status, document["sets"]) == (0, [f"{folders[0]}/dev-0/expected.tsv", f"{folders[0]}/dev-1/expected.tsv"])
    compared = pooled(*((folders[0], test) for test in ("dev-0", "dev-1")))
    assert {"version": document["version"], **json.loads(json.dumps(compared.to_dict()))} == document


def test_what_cannot_be_pooled(folders, tmp_path):
    with pytest.raises(UsageError, match="pooling takes two test sets or more; there is 1"):
        pooled((folders[0], "dev-0"))
    write(tmp_path / "three", {"same": np.ones(9), "other": np.full(9, 2.0)})
    with pytest.raises(UsageError) as caught:
        pooled((folders[0], "dev-0"), (tmp_path / "three", "dev-0"))
    assert str(caught.value) == "no output but out-same.tsv is in two test sets: give outputs the same names"
