"""What goes around the code: workflows and hooks that parse and agree, a kernel whose flags agree, no name that is not ours."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from geval_py.cli import sample
from geval_py.scoring import kernel as flags
from geval_py.version import DOCUMENTATION, REPOSITORY, __version__, installs

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("path", sorted(ROOT.glob(".github/workflows/*.yml")), ids=lambda p: p.name)
def test_workflows_parse(path):
    workflow = yaml.safe_load(path.read_text())
    assert {"name", "jobs"} <= workflow.keys()
    for job in workflow["jobs"].values():
        assert "runs-on" in job
        assert all("uses" in step or "run" in step for step in job["steps"])


def texts(*patterns):
    return [path.read_text(encoding="utf-8") for pattern in patterns for path in sorted(ROOT.glob(pattern))]


COPIED = ("*.md", "docs/*.md", "docs/workflows/*.yml", "action.yml", "CITATION.cff", "packaging/**/*.*")


def test_the_project_has_one_address():
    """Everywhere: where it is cloned and installed from, in recipes for other repositories, and on PyPI."""
    urls = PYPROJECT["project"]["urls"]
    assert urls.keys() == {"Documentation", "Repository", "Issues", "Changelog"}
    assert (urls["Repository"], urls["Documentation"]) == (REPOSITORY, DOCUMENTATION)
    named = {
        name for text in [*texts(*COPIED), *urls.values()] for name in re.findall(r"\S*\b[\w.-]+/geval-py\b", text)
    }
    is_ours = re.compile(
        rf"\S*{re.escape(REPOSITORY)}|\(?geval-py/geval-py|\S*(RUNNER_TEMP|/\.cache|projects|\.\.)/geval-py"
    )
    assert [name for name in sorted(named) if not is_ours.fullmatch(name)] == []


def test_who_cites_names_the_version_and_the_address():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], citation["repository-code"]) == (__version__, REPOSITORY)
    assert citation["abstract"] == PYPROJECT["project"]["description"]
    assert citation["license"] == PYPROJECT["project"]["license"].split()[0]


def test_an_action_has_one_version_everywhere():
    """What runs is pinned to a commit, with its version beside it; what is to be copied names the major version."""
    pinned, copied = defaultdict(set), defaultdict(set)
    for text in texts(".github/workflows/*.yml", "action.yml", "docs/workflows/*.yml"):
        for action, commit, version in re.findall(r"uses: ([\w./-]+)@(\S+)(?: # (v[\d.]+))?$", text, re.MULTILINE):
            assert re.fullmatch("[0-9a-f]{40}", commit), action
            pinned[action].add((commit, version))
    for text in texts("docs/*.md", "README.md"):
        for action, version in re.findall(r"uses: ([\w./-]+)@(v\S+)", text):
            copied[action].add(version)
    del copied["geval-py/geval-py"]
    assert "actions/checkout" in pinned.keys() & copied.keys()
    assert {action: found for action, found in pinned.items() if len(found) > 1} == {}
    major = {action: {version.partition(".")[0] for _, version in pinned[action]} for action in copied}
    assert copied == major


def hooks_to_copy(place="local"):
    """The hooks of the .pre-commit-config.yaml in the documentation that run what is installed, or come from us."""
    blocks = re.findall(r"(?ms)^```yaml\n(repos:.*?)^```$", (ROOT / "docs/check.md").read_text(encoding="utf-8"))
    repositories = [repo for block in blocks for repo in yaml.safe_load(block)["repos"]]
    return [
        hook for repo in repositories if (repo["repo"] == "local") == (place == "local") for hook in repo["hooks"]
    ]


def test_the_hook_to_copy_is_that_of_the_repository():
    (own,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (copied,) = hooks_to_copy()
    assert copied["language"] == "system"  # it runs what is installed; from the repository, pre-commit installs it
    assert {key: own[key] for key in copied} | {"language": "system"} == copied
    assert hooks_to_copy("here") == [{"id": own["id"]}]


def test_the_hook_checks_outputs():
    (hook,) = hooks_to_copy()
    outputs = ["out.tsv", "dev-0/out.tsv", "test-A/out-model=a,lr=0.1.tsv.xz"]
    others = ["out-header.tsv", "dev-0/expected.tsv", "about.tsv", "out.tsv.orig"]
    assert [path for path in (*outputs, *others) if re.search(hook["files"], path)] == outputs


def test_nothing_is_installed_by_a_name_that_is_not_ours_yet():
    """Until there is a release, the name on PyPI may be anyone's: geval-py is installed from a folder or its address."""
    sources = texts(
        "*.md", "docs/*.md", "docs/workflows/*.yml", "action.yml", ".github/workflows/*.yml", "geval_py/**/*.py"
    )
    address = f"git+{REPOSITORY}"
    sources = [
        text.replace("$REPOSITORY", address) if f"REPOSITORY={address}\n" in text else text for text in sources
    ]
    installed = [name for text in sources for name in re.findall(r"pip install (?:--?\w+ )*['\"]?([^\n`]+)", text)]
    assert [name for name in installed if "geval-py" in name and address not in name] == []


def test_the_wheel_holds_the_sample_challenge():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["wheel"]
    folders = {"geval_py/sample/gazette": "challenges/gazette", "geval_py/sample/docs": "docs"}
    assert build["packages"] == {"geval_py": "geval_py"} | folders
    assert {f"**/{name}" for name in sample.NOT_COPIED} <= set(build["exclude"])
    assert all((ROOT / source).is_dir() for source in build["packages"].values())
    assert sample.source().parts[-1] == "gazette"


def test_the_flags_are_those_of_the_native_kernel():
    text = (ROOT / "geval_py/scoring/kernel/flags.hpp").read_text()
    native = {name: 1 << int(bit) for name, bit in re.findall(r"^    ([A-Z_]+) = 1 << (\d+),$", text, re.MULTILINE)}
    single = {name: value for name, value in vars(flags).items() if name.isupper() and name != "ERROR_KINDS"}
    assert native == single


PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PYPROJECT["project"]["optional-dependencies"]


@pytest.mark.parametrize("extra", [name for name in EXTRAS if name not in {"all", "dev", "docs"}])
def test_the_command_for_a_missing_extra_names_its_packages(extra):
    """So it works from any folder, and in any shell."""
    pip, install, *packages = shlex.split(installs(extra))
    assert (pip, install) == ("pip", "install")
    assert sorted(map(Requirement, packages), key=str) == sorted(map(Requirement, EXTRAS[extra]), key=str)


def test_the_container_has_what_the_build_needs():
    """Each file that it copies is there, and what is copied is enough to build from."""
    text = (ROOT / "packaging/Containerfile").read_text(encoding="utf-8")
    copied = [words.split() for words in re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE)]
    sources = [source for *many, _ in copied for source in many]
    assert all((ROOT / source).exists() for source in sources)
    packages = PYPROJECT["tool"]["scikit-build"]["wheel"]["packages"].values()
    assert {"pyproject.toml", *packages, *PYPROJECT["project"]["license-files"]} <= set(sources)


@pytest.mark.long
def test_the_distributions_are_built_and_well_described(tmp_path):
    """As a release does: sdist, a wheel from it, what PyPI checks; then the wheel alone, in a new environment."""
    run = partial(subprocess.run, check=True, capture_output=True, text=True, cwd=tmp_path)
    run([sys.executable, "-m", "build", "--outdir", tmp_path / "dist", ROOT])
    wheel, sdist = sorted((tmp_path / "dist").iterdir(), key=lambda path: path.suffix == ".gz")
    assert "PASSED" in run([sys.executable, "-m", "twine", "check", "--strict", wheel, sdist]).stdout
    assert re.fullmatch(r"geval_py-[\d.]+-cp311-abi3-\w+\.whl", wheel.name)
    run([sys.executable, "-m", "venv", "fresh"])
    run(["fresh/bin/pip", "install", "--quiet", wheel])
    assert "(native backend)" in run(["fresh/bin/geval", "--version"]).stdout
    run(["fresh/bin/geval", "sample", "gazette"])
    assert "174.60" in run(["../fresh/bin/geval", "-t", "dev-0"], cwd=tmp_path / "gazette").stdout
    run(["../fresh/bin/geval", "report", "-t", "dev-0", "--html", "r.html"], cwd=tmp_path / "gazette")


# docs/asvs.md, the checklist of the server's security

CHECKLIST = (ROOT / "docs/asvs.md").read_text(encoding="utf-8")


def test_each_test_of_the_checklist_is_there():
    there = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        there |= set(re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"`(test_\w+)`", CHECKLIST))
    assert len(named) > 60
    assert named - there == set()


def test_each_requirement_is_shown_or_read():
    lines = re.findall(r"^\| [\d.,– ]+ \|.*$", CHECKLIST, re.MULTILINE)
    assert len(lines) > 60
    assert [line for line in lines if "`test_" not in line and "*read*" not in line] == []


def test_the_static_scan_finds_what_the_page_says():
    words = [sys.executable, "-m", "ruff", "check", "--select", "S", "--output-format", "json", "geval_py"]
    found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True).stdout
    counts = Counter(one["code"] for one in json.loads(found))
    told = {rules: int(count) for rules, count in re.findall(r"^\| (S[\dS, ]+) \| (\d+) \|", CHECKLIST, re.MULTILINE)}
    assert {rules: sum(counts.pop(rule, 0) for rule in rules.split(", ")) for rules in told} == told
    assert not counts
