"""The fuzz targets: what they have found, and their inputs."""

import math
import re
import subprocess
import zipfile
from pathlib import Path

from geval_py.scoring.kernel import native, reference

ROOT = Path(__file__).parent.parent.parent
TARGETS = sorted(path.stem for path in (ROOT / "tests/fuzz").glob("*.cpp"))


def inputs(target):
    with zipfile.ZipFile(ROOT / f"tests/fuzz/corpora/{target}.zip") as archive:
        return [archive.read(name) for name in archive.namelist()]


def test_the_twin_agrees_on_the_fuzzers_lines():
    scored = 0
    for data in inputs("lines"):
        if b"\1" not in data[3:]:
            continue
        outputs, _, word = data[3:].rpartition(b"\1")
        lines = reference.count_lines(outputs)
        expected = (word.replace(b"\n", b"") + b"\n") * lines
        bits, first_line = 1 + data[0] % 24, int.from_bytes(data[1:3], "little")
        losses, flags = native.score_lines(outputs, expected, bits, first_line)
        true_losses, true_flags = reference.score_lines(outputs, expected, bits, first_line)
        assert flags == true_flags, data
        for one, true in zip(losses, true_losses, strict=True):
            assert (
                one == true
                or (math.isnan(one) and math.isnan(true))
                or math.isclose(one, true, rel_tol=1e-12, abs_tol=1e-12)
            ), data
        scored += lines
    assert scored > 100


def test_each_target_has_a_corpus_and_is_run():
    script = (ROOT / "scripts/fuzz").read_text(encoding="utf-8")
    (native_targets,) = re.findall(r"^NATIVE=\((.*)\)$", script, re.MULTILINE)
    assert sorted(native_targets.split()) == TARGETS
    assert {path.stem for path in (ROOT / "tests/fuzz/corpora").glob("*.zip")} == set(TARGETS)


def test_the_corpora_are_small():
    assert sum(path.stat().st_size for path in (ROOT / "tests/fuzz/corpora").iterdir()) < 200_000


def test_fuzz_shows_its_options():
    shown = subprocess.run([ROOT / "scripts/fuzz", "--wrong"], capture_output=True, text=True, check=False)
    assert shown.returncode == 2
    assert "--hours N" in shown.stderr
