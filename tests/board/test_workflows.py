"""The two workflows to copy: they parse, give no secret to what strangers propose, and their scripts do what they say."""

import base64
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from gazette import TEST, hide_answers, output, write

from geval_py.cli.commands import summaries
from geval_py.version import REPOSITORY, __version__

FOLDER = Path(__file__).parents[2] / "docs/workflows"
MALFORMED = "the:0,5 :0.5\n" * 123
GITHUB, GITLAB = (yaml.safe_load((FOLDER / f"board-{name}.yml").read_text()) for name in ("github", "gitlab"))
JOBS = GITHUB["jobs"]
TRIGGERS = GITHUB[True]  # YAML 1.1 reads the key `on` so
PROPOSED, MERGED = "merge_request_event", '$CI_PIPELINE_SOURCE == "push" && $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH'


def scripts(job):
    return {step.get("name", str(n)): step["run"] for n, step in enumerate(job["steps"]) if "run" in step}


def gitlab_script(job):
    return "\n".join(GITLAB[job]["script"])


SCRIPTS = [
    *(pytest.param(text, id=f"{name}: {step}") for name, job in JOBS.items() for step, text in scripts(job).items()),
    *(pytest.param(gitlab_script(job), id=f"GitLab {job}") for job in ("check", "pages")),
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_is_one_of_bash(script):
    assert subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True).stderr == ""
    assert "${{" not in script  # what others chose reaches a script in variables: written into it, it could run
    assert set(re.findall(r"geval board (\w+)", script)) <= summaries("board").keys()
    assert "geval board status" not in script  # logs are public, and it says why one was withdrawn


def test_what_strangers_propose_runs_without_secrets():
    assert TRIGGERS.keys() == {"pull_request", "push"}
    assert JOBS["check"]["if"] == "github.event_name == 'pull_request'"
    assert JOBS["add"]["if"] == "github.event_name == 'push'"
    assert JOBS["publish"]["needs"] == "add"
    assert "secrets." not in yaml.safe_dump([JOBS["check"], JOBS["publish"], GITHUB.get("env")])
    assert GITHUB["permissions"] == {"contents": "read"}
    assert "permissions" not in JOBS["check"]


PIP = """#!/bin/sh
echo "$@" >>"$LOG"
case "$*" in *--no-index*) [ "$ATTACHED" ] || exit 1 ;; esac
[ "$1" != wheel ] || touch "$5/geval_py-0.1.0-cp311-abi3-linux_x86_64.whl"
"""


def test_a_missing_wheel_is_no_error_in_the_log():
    recipes = [(FOLDER.parent / "check.md").read_text(), *(path.read_text() for path in FOLDER.glob("*.yml"))]
    tries = [re.sub(r"\s+", " ", part) for text in recipes for part in re.findall(r"--no-index([^|]*)\|\|", text)]
    assert len(tries) == 5
    assert {words.split()[-1] for words in tries} == {"2>/dev/null"}


def test_strangers_code_is_not_installed():
    ours = next(step for step in JOBS["check"]["steps"] if step.get("with", {}).get("path") == "ours")
    assert ours["with"]["ref"] == "${{ github.event.pull_request.base.sha }}"
    for script in (scripts(JOBS["check"])["Install geval-py"], gitlab_script("check")):
        assert "wheel=$(mktemp -d)\n" in script.replace(" # in no folder that a submission can fill", "")
        assert re.findall("pip install (.*)", script) == ['-q "$wheel"/*.whl']
    assert GITHUB["env"] == GITLAB["variables"] == {"REPO": REPOSITORY, "TAG": f"v{__version__}"}


@pytest.mark.parametrize("is_attached", [True, False])
@pytest.mark.parametrize(("script", "extras"), [
    (scripts(JOBS["check"])["Install geval-py"], ""),
    (scripts(JOBS["add"])["Install geval-py"], "[board,postgresql]"),
])  # fmt: skip
def test_the_wheel_of_a_release_is_installed_or_one_is_built(script, extras, is_attached, tmp_path):
    write(tmp_path / "bin/pip", PIP).chmod(0o755)
    path = os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]])
    variables = {"PATH": path, "TMPDIR": str(tmp_path), "LOG": str(tmp_path / "log")}
    variables |= {"ATTACHED": "yes"} if is_attached else {}
    subprocess.run(["bash", "-eo", "pipefail", "-c", script], env=GITHUB["env"] | variables, check=True)
    (wheel,) = tmp_path.glob("tmp.*/*.whl")
    tag, wheels = f"v{__version__}", f"wheel -q --no-deps -w {wheel.parent}"
    calls = [f"{wheels} --no-index -f {REPOSITORY}/releases/expanded_assets/{tag} geval-py"]
    calls += [] if is_attached else [f"{wheels} git+{REPOSITORY}@{tag}"]
    calls.append(f"install -q {wheel}{extras}")
    assert (tmp_path / "log").read_text().splitlines() == calls


def test_jobs_that_add_wait_for_each_other_and_keep_the_database_whatever_comes_after_it_was_there():
    assert JOBS["add"]["concurrency"] == {"group": "board", "cancel-in-progress": False}
    assert GITLAB["pages"]["resource_group"] == "board"
    steps = {step.get("name"): step for step in JOBS["add"]["steps"]}
    assert steps["Get the database"]["id"] == "database"
    assert steps["Keep the database"]["if"] == "always() && steps.database.outcome == 'success'"
    assert JOBS["add"]["steps"][0]["with"] == {"fetch-depth": 0}


def test_gitlab_checks_what_is_proposed_and_adds_what_is_merged_by_the_servers_clock():
    (proposed,), (merged,) = GITLAB["check"]["rules"], GITLAB["pages"]["rules"]
    assert PROPOSED in proposed["if"]
    assert merged["if"] == MERGED
    assert "BOARD_ANSWERS" not in gitlab_script("check")
    assert GITLAB["pages"]["artifacts"] == {"paths": ["public"]}
    assert re.findall(r'--at "(.*?)"', gitlab_script("pages")) == ["$CI_PIPELINE_CREATED_AT"]


class Runner:
    """A repository as the workflows want it, with scripts that are run in it; ``commands`` has geval."""

    def __init__(self, folder, commands):
        self.commands = commands
        self.origin, self.folder, self.installed = folder / "origin.git", folder / "work", folder / "installed"
        self.answers = folder / "answers"
        write(folder / "bin/pip", f'#!/bin/sh\necho "$@" >>{self.installed}\n').chmod(0o755)  # geval is there already

    def make(self):
        challenge, _ = hide_answers(self.folder.parent)
        subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", self.origin], check=True)
        subprocess.run(["git", "clone", "--quiet", self.origin, self.folder], check=True, capture_output=True)
        challenge.rename(self.folder / "challenge")
        self.run('geval board init board --challenge challenge --answers "$ANSWERS"', ANSWERS=self.answers)
        path = self.folder / "board/board.yaml"
        path.write_text(re.sub("(?m)^answers: .*", "answers: ../answers", path.read_text()))
        write(self.folder / ".gitignore", "*.sqlite*\n/answers/\n/site/\n/kept/\n")
        self.commit("A board")

    def run(self, script, **variables):
        """Run a script as the runners do; gives its exit status and all that it prints."""
        own = [self.folder.parent / "bin", self.commands, Path(sys.executable).parent]
        path = os.pathsep.join([*map(str, own), os.environ["PATH"]])
        user = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        words = ["bash", "-eo", "pipefail", "-c", script]
        environment = {
            "PATH": path,
            "HOME": str(self.folder.parent),
            **user,
            **{k: str(v) for k, v in variables.items()},
        }
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        done = subprocess.run(words, cwd=self.folder, env=environment, **streams)
        return done.returncode, done.stdout

    def commit(self, message):
        assert self.run(f'git add -A && git commit -qm "{message}" && git push -q origin HEAD')[0] == 0

    def propose(self, path, text, merged="2025-01-20T12:00:00+01:00"):
        """Merge a change, as the check of a pull request sees it: its first parent is what it is merged into."""
        assert self.run("git checkout -q -b proposed")[0] == 0
        write(self.folder / path, text)
        self.commit("A proposal")
        merge = "git checkout -q main && git merge -q --no-ff proposed && git branch -qD proposed"
        assert self.run(merge, GIT_COMMITTER_DATE=merged)[0] == 0


@pytest.fixture(scope="module")
def repository(tmp_path_factory, fork_server):
    """A folder with a runner's repository, of which each test has a copy."""
    folder = tmp_path_factory.mktemp("runner")
    Runner(folder, fork_server.bin).make()
    return folder


@pytest.fixture
def runner(repository, tmp_path, fork_server):
    shutil.copytree(repository, tmp_path, symlinks=True, dirs_exist_ok=True)
    runner = Runner(tmp_path, fork_server.bin)
    assert runner.run(f"git remote set-url origin {runner.origin}")[0] == 0
    return runner


@pytest.mark.parametrize(("path", "status"), [
    (f"submissions/ann/{TEST}/out.tsv", 0), (f"submissions/bob/{TEST}/out.tsv", 1),
    (f"submissions/annie/{TEST}/out.tsv", 1), ("other/submissions/ann/out.tsv", 1),
    (".github/workflows/board.yml", 1), (f"submissions/Ann ÿ\n/{TEST}/out.tsv", 1),
], ids=["own", "another's", "a longer name", "elsewhere", "workflow", "line end"])  # fmt: skip
def test_only_the_submitters_own_folder_may_change(runner, path, status):
    runner.propose(path, output(0.5))
    script = scripts(JOBS["check"])["Only the submitter's own folder may change"]
    assert runner.run(script, SUBMITTER="ann")[0] == status


def test_github_checks_what_is_proposed(runner):
    (runner.folder / "ours").symlink_to(".")
    for text, status in ((output(0.5), 0), (MALFORMED, 1)):
        write(runner.folder / f"submissions/ann/{TEST}/out.tsv", text)
        assert runner.run(scripts(JOBS["check"])["Check the outputs"], SUBMITTER="ann")[0] == status


ADD = "Add what is new, score again what is out of date, build the site"
MERGED_AT = ["2025-01-20T11:00:00Z, as --at says", "2025-01-21T11:00:00Z, as --at says"]


def packed_answers(runner):
    packed = subprocess.run(["tar", "-C", runner.answers, "-cJ", "."], capture_output=True, check=True).stdout
    return base64.b64encode(packed).decode()


def arrived(said, name):
    """When it arrived, as the receipts of a run say."""
    return re.search(rf"submitter   {name}\n.*\n  arrived     (.*)", said)[1]


@pytest.mark.slow
def test_all_is_added_by_its_own_merge_though_a_run_was_cancelled(runner):
    """Two merges, and one run, after the second; a link is no folder of a submitter's."""
    runner.run('cp -r "$ANSWERS" answers', ANSWERS=runner.answers)
    for day, name in enumerate(("bob", "ann"), 20):
        path = f"submissions/{name}/{TEST}/out.tsv"
        runner.propose(path, output(0.5, seed=day), merged=f"2025-01-{day}T12:00:00+01:00")
    (runner.folder / "submissions/eve").symlink_to("../challenge")
    status, said = runner.run(scripts(JOBS["add"])[ADD])
    assert (status, said.count("submitter")) == (0, 2), said
    assert [arrived(said, name) for name in ("bob", "ann")] == MERGED_AT


@pytest.mark.slow
def test_what_is_merged_is_added_kept_and_published(runner, tmp_path):
    """Two merges, each on a new machine: the second finds what the first has kept, encrypted."""
    steps = scripts(JOBS["add"])
    key = {"BOARD_KEY": "a long passphrase", "GITHUB_REPOSITORY": "x/y", "TOKEN": "t"}
    answers = packed_answers(runner)
    push = "https://x-access-token:$TOKEN@github.com/$GITHUB_REPOSITORY.git"
    for day, name in enumerate(("ann", "bob"), 20):
        path = f"submissions/{name}/{TEST}/out.tsv"
        runner.propose(path, output(0.5, seed=len(name) + ord(name[0])), merged=f"2025-01-{day}T12:00:00+01:00")
        said = [runner.run("rm -rf answers site kept board.sqlite.gpg board/board.sqlite*; git clean -qfdx")]
        said.append(runner.run(steps["Get the answers"], BOARD_ANSWERS=answers))
        said.append(runner.run(steps["Get the database"], **key))
        said.append(runner.run(steps[ADD]))
        assert push in steps["Keep the database"]
        said.append(runner.run(steps["Keep the database"].replace(push, str(runner.origin)), **key))
        assert [status for status, _ in said] == [0] * 5, said
    assert said[3][1].count("note        this is the submission ") == 1  # bob alone is new
    assert [arrived(said[3][1], name) for name in ("ann", "bob")] == MERGED_AT
    page = (runner.folder / "site/index.html").read_text()
    assert [f">{name}</a>" in page for name in ("ann", "bob")] == [True, True]
    kept = runner.run("git fetch -q origin board && git ls-tree --name-only FETCH_HEAD")
    assert kept == (0, "board.sqlite.gpg\n")


@pytest.mark.slow
@pytest.mark.parametrize(("path", "text", "status", "said"), [
    (f"submissions/ann/{TEST}/out.tsv", output(0.5), 0, ""),
    (f"submissions/ann/{TEST}/out.tsv", MALFORMED, 1, "E114"),
    ("submissions/ann/gonito.yaml", "tags: [x]\n", 1, "E101"),
    ("challenge/config.txt", "--metric LogLoss\n", 1, "a merge request of ann may change submissions/ann/ alone\n"),
], ids=["fine", "malformed", "no output", "the challenge"])  # fmt: skip
def test_gitlab_checks_what_is_proposed(runner, path, text, status, said):
    """The main branch has gone on meanwhile, which is no change of the merge request's."""
    assert runner.run("git checkout -q -b proposed")[0] == 0
    write(runner.folder / path, text)
    runner.commit("A proposal")
    assert runner.run("git checkout -q main")[0] == 0
    write(runner.folder / "README.md", "News\n")
    runner.commit("News")
    assert runner.run("git checkout -q --detach proposed")[0] == 0
    variables = {"GITLAB_USER_LOGIN": "ann", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}
    found = runner.run(gitlab_script("check"), **variables)
    assert (found[0], said in found[1]) == (status, True), found[1]
    assert re.search(r"\ninstall -q \S+/tmp\.\w+/\*\.whl\n$", runner.installed.read_text())
    is_own = path.startswith("submissions/ann/")
    assert (runner.folder / "check.json").exists() == is_own
    if is_own:
        severities = [problem["severity"] for problem in json.loads((runner.folder / "check.json").read_text())]
        assert ("major" in severities) == bool(status)


@pytest.mark.slow
def test_gitlab_adds_and_publishes_what_is_merged(runner, postgresql):
    """Two merges, each on a new machine, the first one of a malformed output too; the database is a server's."""
    variables = {"BOARD_ANSWERS": packed_answers(runner), "GEVAL_BOARD_DATABASE": postgresql.new_database()}
    again = "geval board init again --challenge challenge --answers $ANSWERS"
    assert runner.run(again, ANSWERS=runner.answers, **variables)[0] == 0
    runner.propose(f"submissions/dan/{TEST}/out.tsv", MALFORMED)
    for day, name in enumerate(("ann", "bob"), 20):
        runner.propose(f"submissions/{name}/{TEST}/out.tsv", output(0.5, seed=day))
        assert runner.run("git clean -qfdx")[0] == 0
        done = runner.run(gitlab_script("pages"), CI_PIPELINE_CREATED_AT=f"2025-01-{day}T11:00:00Z", **variables)
        assert done[0] == 0, done[1]
    assert "scored\tbob\tbob" in done[1]
    page = (runner.folder / "public/index.html").read_text()
    assert [f">{name}</a>" in page for name in ("ann", "bob", "dan")] == [True, True, False]
    rows = csv.DictReader(io.StringIO((runner.folder / "public/data/submissions.csv").read_text()))
    assert sorted((row["submitter"], row["state"], row["arrived"]) for row in rows) == [
        (name, state, f"2025-01-{day}T11:00:00Z")
        for name, state, day in (("ann", "scored", 20), ("bob", "scored", 21), ("dan", "rejected", 20))
    ]
    assert runner.installed.read_text().count("/*.whl[board,postgresql]\n") == 2
