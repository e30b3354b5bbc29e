"""The fuzz targets: what they have found, their inputs, and their build for OSS-Fuzz."""

import math
import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml

from geval_py.scoring.kernel import native, reference

ROOT = Path(__file__).parent.parent.parent
TARGETS = sorted(path.stem for path in (ROOT / "tests/fuzz").glob("*.cpp"))
# What OSS-Fuzz links: here, a driver that runs files, and a few mutations of each.
ENGINE = """
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t*, std::size_t);
extern "C" __attribute__((weak)) std::size_t LLVMFuzzerCustomMutator(std::uint8_t*, std::size_t, std::size_t, unsigned);
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t*, std::size_t size, std::size_t) { return size; }
int main(int count, char** paths) {
    for (int i = 1; i < count; ++i) {
        std::ifstream file(paths[i], std::ios::binary);
        std::vector<std::uint8_t> data(std::istreambuf_iterator<char>(file), {});
        LLVMFuzzerTestOneInput(data.data(), data.size());
        for (unsigned seed = 0; LLVMFuzzerCustomMutator && seed < 20; ++seed) {
            std::size_t size = data.size();
            data.resize(size + 40);
            data.resize(LLVMFuzzerCustomMutator(data.data(), size, data.size(), seed));
            std::vector<std::uint8_t> exact(data);
            LLVMFuzzerTestOneInput(exact.data(), exact.size());
        }
    }
    std::printf("%d files\\n", count - 1);
}
"""


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


def test_the_files_of_oss_fuzz_name_the_targets():
    folder = ROOT / "packaging/oss-fuzz"
    project = yaml.safe_load((folder / "project.yaml").read_text(encoding="utf-8"))
    assert {"homepage", "main_repo", "primary_contact"} < project.keys()
    assert (project["language"], project["fuzzing_engines"]) == ("c++", ["libfuzzer"])
    dockerfile = (folder / "Dockerfile").read_text(encoding="utf-8")
    assert project["main_repo"] in dockerfile
    assert "COPY build.sh $SRC/" in dockerfile
    (native_targets,) = re.findall(
        r"^NATIVE=\((.*)\)$", (ROOT / "scripts/fuzz").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(native_targets.split()) == TARGETS
    assert {path.stem for path in (ROOT / "tests/fuzz/corpora").glob("*.zip")} == set(TARGETS)
    build = folder / "build.sh"
    assert os.access(build, os.X_OK)
    for name in set(re.findall(r"tests/fuzz/(\w+)\.(?:cpp|zip)", build.read_text(encoding="utf-8"))):
        assert name in TARGETS


def test_the_corpora_are_small():
    assert sum(path.stat().st_size for path in (ROOT / "tests/fuzz/corpora").iterdir()) < 200_000


def test_fuzz_shows_its_options():
    shown = subprocess.run([ROOT / "scripts/fuzz", "--wrong"], capture_output=True, text=True, check=False)
    assert shown.returncode == 2
    assert "--hours N" in shown.stderr


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
def test_oss_fuzz_builds_a_target(target, tmp_path):
    """By the variables that it sets, with the sanitizers; the target runs its seeds, and mutations of them."""
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "engine.cpp").write_text(ENGINE)
    sanitized = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
    engine = str(tmp_path / "engine.o")
    subprocess.run(["g++", *sanitized.split(), "-c", tmp_path / "engine.cpp", "-o", engine], check=True)
    variables = {
        "CXX": "g++",
        "CXXFLAGS": sanitized,
        "LIB_FUZZING_ENGINE": engine,
        "OUT": str(out),
        "SRC": str(ROOT.parent),
    }
    build = ROOT / "packaging/oss-fuzz/build.sh"
    subprocess.run([build, target], env=os.environ | variables, cwd=ROOT, check=True)
    assert sorted(path.name for path in out.iterdir()) == [target, f"{target}_seed_corpus.zip"]
    zipfile.ZipFile(out / f"{target}_seed_corpus.zip").extractall(tmp_path / "seeds")
    seeds = sorted((tmp_path / "seeds").iterdir())
    ran = subprocess.run([out / target, *seeds], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"{len(seeds)} files\n", "")
