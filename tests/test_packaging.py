"""What goes around the code: workflows that parse, a kernel whose flags agree, a wheel without sources of the kernel."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from geval_py.cli import sample
from geval_py.scoring.kernel import flags

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("path", sorted(ROOT.glob(".github/workflows/*.yml")), ids=lambda p: p.name)
def test_workflows_parse(path):
    workflow = yaml.safe_load(path.read_text())
    assert {"name", "jobs"} <= workflow.keys()
    for job in workflow["jobs"].values():
        assert "runs-on" in job
        assert all("uses" in step or "run" in step for step in job["steps"])


def test_the_wheel_holds_the_sample_challenge():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["wheel"]
    assert build["packages"] == {"geval_py": "geval_py", "geval_py/sample/gazette": "challenges/gazette"}
    assert {f"**/{name}" for name in sample.NOT_COPIED} <= set(build["exclude"])
    assert all((ROOT / source).is_dir() for source in build["packages"].values())
    assert sample.source().parts[-1] == "gazette"


def test_the_flags_are_those_of_the_native_kernel():
    text = (ROOT / "geval_py/scoring/kernel/native.cpp").read_text()
    native = {name: 1 << int(bit) for name, bit in re.findall(r"^    ([A-Z_]+) = 1 << (\d+),$", text, re.MULTILINE)}
    assert native == {name: value for name, value in vars(flags).items() if name.isupper()}
