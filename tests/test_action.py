"""The composite action: its script, run as GitHub's runner does."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
(INSTALL,) = (step for step in ACTION["runs"]["steps"] if step.get("name") == "Install geval-py")
(CHECK,) = (step for step in ACTION["runs"]["steps"] if step.get("id") == "check")
VARIABLES = {expression: name for name, expression in CHECK["env"].items()}
WARNING = ":1\n"


@pytest.fixture
def action(tmp_path, fork_server):
    """Run the step that checks, with some inputs; gives its status and standard output."""
    (tmp_path / "runner/geval-py").mkdir(parents=True)
    (tmp_path / "runner/geval-py/bin").symlink_to(fork_server.bin)
    for name in ("dev-0", "test-A"):
        (tmp_path / "work" / name).mkdir(parents=True)
        (tmp_path / "work" / name / "in.tsv").write_text("x\n")
        (tmp_path / "work" / name / "out.tsv").write_text(WARNING)
    (tmp_path / "work/pred.tsv").write_text(WARNING * 2)

    def run(**inputs):
        values = {name: value["default"] for name, value in ACTION["inputs"].items()}
        values |= {name.replace("_", "-"): value for name, value in inputs.items()}
        environment = {VARIABLES[f"${{{{ inputs.{name} }}}}"]: value for name, value in values.items()}
        environment |= {"RUNNER_TEMP": str(tmp_path / "runner")}
        process = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", CHECK["run"]], cwd=tmp_path / "work",
            env={**os.environ, **environment}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return process.returncode, process.stdout

    return run


def test_every_input_is_a_variable():
    assert sorted(VARIABLES) == sorted(f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"])


@pytest.mark.parametrize(("strict", "status"), [
    *((word, 1) for word in ("true", "True", "TRUE", "yes", "on", "1")), ("false", 0), ("False", 0), ("", 0),
])  # fmt: skip
def test_strict(strict, status, action):
    assert action(strict=strict)[0] == status


def test_strict_that_is_neither(action):
    assert action(strict="ture") == (2, "::error::the input strict is neither true nor false\n")


@pytest.mark.parametrize(("inputs", "annotations"), [
    ({}, ["dev-0/out.tsv", "test-A/out.tsv"]), ({"test_name": "test-A"}, ["test-A/out.tsv"]),
    ({"test_name": "test-A, dev-0"}, ["dev-0/out.tsv", "test-A/out.tsv"]),
    ({"test_name": "test-A dev-0"}, ["dev-0/out.tsv", "test-A/out.tsv"]),
    ({"path": "pred.tsv", "test_name": "dev-0"}, ["pred.tsv", "pred.tsv"]),
    ({"path": "pred.tsv", "test_name": "dev-0", "challenge": "."}, ["pred.tsv", "pred.tsv"]),
], ids=["all test sets", "one", "two", "two with a space", "an output elsewhere", "for a challenge"])  # fmt: skip
def test_the_test_set(inputs, annotations, action):
    out = action(**inputs)[1]
    assert [line.split("file=")[1].split(",")[0] for line in out.splitlines()] == annotations


def test_a_challenge_that_is_none(action):
    assert action(challenge="nowhere")[0] == 2


@pytest.mark.long
@pytest.mark.parametrize("is_attached", [True, False])
def test_the_wheel_of_the_release_is_installed_or_one_is_built(is_attached, tmp_path):
    """By pip itself: from a page as that of a release's files, or from the checkout of the action."""
    project = tmp_path / "action"
    project.mkdir()
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "geval-py"\nversion = "0"\n'
    )
    (project / "backend.py").write_text(BACKEND)
    if is_attached:
        subprocess.run(
            [sys.executable, "-c", "import backend; backend.build_wheel('..', '1')"], cwd=project, check=True
        )
        (tmp_path / "release.html").write_text(
            '<a href="geval_py-1-py3-none-any.whl">geval_py-1-py3-none-any.whl</a>'
        )
    environment = {"PYTHON": sys.executable, "RELEASE": str(tmp_path / "release.html")}
    environment |= {"RUNNER_TEMP": str(tmp_path), "GITHUB_ACTION_PATH": str(project)}
    environment |= {"GITHUB_PATH": str(tmp_path / "path")}
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", INSTALL["run"]]
    subprocess.run(words, env={**os.environ, **environment}, check=True, capture_output=True)
    python = tmp_path / "geval-py/bin/python"
    ask = "import importlib.metadata as m; print(m.version('geval-py'))"
    assert subprocess.check_output([python, "-c", ask], text=True) == ("1\n" if is_attached else "0\n")
    (folder,) = (tmp_path / "path").read_text().splitlines()  # later steps find the command there, and no Python
    assert [path.name for path in Path(folder).iterdir()] == ["geval"]
    assert subprocess.check_output([f"{folder}/geval"], text=True) == "geval\n"


BACKEND = """
import zipfile
def build_wheel(folder, version="0", *_):
    version = version or "0"
    name = f"geval_py-{version}-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        info = f"geval_py-{version}.dist-info"
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\\nName: geval-py\\nVersion: {version}\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
        wheel.writestr(f"{info}/entry_points.txt", "[console_scripts]\\ngeval = geval_stub:main\\n")
        wheel.writestr("geval_stub.py", "def main(): print('geval')\\n")
    return name
"""

RECIPES = [
    yaml.safe_load(text)
    for text in re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/check.md").read_text(encoding="utf-8"), re.DOTALL)
]


def test_the_recipe_for_github_gives_the_action_the_challenge():
    """Else a wrong number of lines would pass."""
    _, checkout, check = RECIPES[0]["jobs"]["check"]["steps"]
    assert checkout["with"]["path"] == check["with"]["challenge"]
    assert {*check["with"]} <= {*ACTION["inputs"]}


def test_the_recipe_for_gitlab_shows_the_problems_and_reports_them(action, tmp_path, fork_server):
    """The first line of each problem is in the log, and the job fails."""
    job = RECIPES[1]["check-submission"]
    commands = [words for words in job["script"] if words.startswith("geval ")]
    (tmp_path / "challenge").mkdir()
    (tmp_path / "work").rename(tmp_path / "challenge/.challenge")
    (tmp_path / "challenge/dev-0").mkdir()
    (tmp_path / "challenge/dev-0/out.tsv").write_text("the:0,5 :0.5\n")
    environment = os.environ | {"PATH": f"{fork_server.bin}{os.pathsep}{os.environ['PATH']}"}
    processes = [
        subprocess.run(words, shell=True, cwd=tmp_path / "challenge", env=environment, capture_output=True, text=True)
        for words in commands
    ]
    assert [process.returncode for process in processes] == [0, 1]
    assert "./dev-0/out.tsv:1:5: `0,5` is not a number" in processes[1].stdout
    (path,) = job["artifacts"]["reports"].values()
    report = json.loads((tmp_path / "challenge" / path).read_text(encoding="utf-8"))
    assert "E114" in {problem["check_name"] for problem in report}
