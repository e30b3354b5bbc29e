"""Branches of git repositories: real ones, fetched by the file transport, and hostile ones."""

import os
import subprocess
from operator import itemgetter
from pathlib import Path

import pytest
from hostile import LINE, OUT
from hypothesis import example, given
from hypothesis import strategies as st
from raising import refused

from geval_py.board.intake import identity, sandbox
from geval_py.board.intake.identity import address_of, check_source, own_name, shown_source, submitter_of
from geval_py.board.settings import BoardSettings, Limits, Test
from geval_py.errors import FailedError, MissingFileError, UsageError

MESSAGE = "A bigram model\n\nof words\n"


class Repository:
    """A bare repository, to which commits are made object by object, whatever git would say to them."""

    def __init__(self, path):
        self.path = path
        self.git("init", "-q", "--bare", "-b", "main", path)

    def git(self, *words, data=None):
        who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in WHO.items()}
        environment = {"PATH": os.environ["PATH"], "GIT_DIR": str(self.path), "GIT_CONFIG_GLOBAL": "/dev/null", **who}
        run = subprocess.run(["git", *words], input=data, capture_output=True, check=True, env=environment)
        return run.stdout.strip()

    def blob(self, data):
        return self.git("hash-object", "-w", "--stdin", data=data)

    def tree(self, *entries):
        """Make a tree of entries: mode, name, digest."""
        raw = b"".join(b"%s %s\0%s" % (mode, name, bytes.fromhex(digest.decode())) for mode, name, digest in entries)
        return self.git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", data=raw)

    def commit(self, tree, branch="main", message=MESSAGE):
        commit = self.git("commit-tree", tree.decode(), data=message.encode())
        self.git("update-ref", f"refs/heads/{branch}", commit.decode())
        return commit.decode()

    def commit_files(self, files, **more):
        tops = {}
        for name, (mode, digest) in files.items():
            folder, _, file = name.rpartition("/")
            tops.setdefault(folder, []).append((mode, file.encode(), digest))
        entries = tops.pop("", [])
        entries += [(b"40000", name.encode(), self.tree(*sorted(of, key=itemgetter(1)))) for name, of in tops.items()]
        return self.commit(self.tree(*sorted(entries, key=itemgetter(1))), **more)

    def plain(self, data):
        return b"100644", self.blob(data)

    def source(self, branch="main"):
        return f"git+file://{self.path}@{branch}"


WHO = {"NAME": "Anna Nowak", "EMAIL": "anna@example.org", "DATE": "1700000000 +0000"}


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "anna.git")


def test_what_is_taken(receiving, repository, tmp_path):
    files = {OUT: LINE, "gonito.yaml": b"tags: [mine]\nparams: {k: 3}\n", "code.py": b"x\n", "empty/out.tsv": b""}
    committed = {name: repository.plain(data) for name, data in files.items()}
    committed["test-A/out-k=3.tsv"] = (b"100755", repository.blob(LINE * 2))
    revision = repository.commit_files(committed)
    parcel = receiving(repository.source())
    taken = [("gonito.yaml", 28), ("test-A/out-k=3.tsv", 2 * len(LINE)), (OUT, len(LINE))]
    assert [(file.name, file.bytes) for file in parcel.files] == taken
    assert (parcel.name, parcel.source) == ("anna@main", f"git+file://{repository.path}@main")
    details = parcel.details
    assert (details.description, details.author, details.revision) == ("A bigram model", "Anna Nowak", revision)
    assert (details.tags, details.params) == (("mine",), {"k": "3"})
    assert Path(parcel.files[2].path).read_bytes() == LINE


def test_only_the_branch_is_fetched_nothing_is_checked_out_and_no_hook_is_run(receiving, repository, tmp_path):
    repository.commit_files({OUT: repository.plain(b"older\n")}, branch="other")
    repository.commit_files({OUT: repository.plain(LINE), "hooks/post-checkout": repository.plain(b"#!/bin/sh\n")})
    for name in ("post-checkout", "pre-receive", "reference-transaction"):
        hook = repository.path / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        hook.chmod(0o755)
    receiving(repository.source())
    assert not (tmp_path / "ran").exists()
    refs = ["git", "--git-dir", tmp_path / "place" / "repository", "for-each-ref", "--format=%(refname)"]
    assert subprocess.run(refs, capture_output=True, text=True, check=True).stdout == "refs/heads/main\n"
    assert not (tmp_path / "place" / "repository" / "hooks").exists()
    assert sorted(os.listdir(tmp_path / "place")) == ["000", "repository"]


@pytest.mark.parametrize("mode", [b"120000", b"160000"], ids=["link", "submodule"])
def test_members_that_are_no_files(refusal, repository, mode):
    repository.commit_files({OUT: (mode, repository.blob(b"/etc/passwd"))})
    assert refusal(repository.source()) == f"`{OUT}` is a link or a submodule; neither is followed"


@pytest.mark.parametrize("name", [b"..", b".git", b"a\nb"], ids=["dots", "dot-git", "odd"])
def test_names_that_git_refuses_and_an_odd_one_that_it_does_not(receiving, repository, name):
    """fsck is on: a tree with .. or .git in it is not taken."""
    tree = repository.tree((b"100644", b"out.tsv", repository.blob(LINE)))
    repository.commit(repository.tree((b"100644", name, repository.blob(b"x")), (b"40000", b"test-A", tree)))
    if name == b"a\nb":
        assert len(receiving(repository.source()).files) == 1
    else:
        with pytest.raises(FailedError, match="the branch cannot be fetched"):
            receiving(repository.source())


def test_the_bytes_are_those_of_the_commit_whatever_the_attributes(receiving, repository):
    """`git archive` would change line ends, replace $Format$, and leave files out."""
    content = b"the:0.5 $Format:%H$ $Id$ :0.5\n"
    attributes = b"* text eol=crlf export-subst ident\n*.tsv export-ignore working-tree-encoding=UTF-16\n"
    files = {OUT: content, ".gitattributes": attributes, "test-A/.gitattributes": attributes}
    repository.commit_files({name: repository.plain(data) for name, data in files.items()})
    (file,) = receiving(repository.source()).files
    assert (file.name, Path(file.path).read_bytes()) == (OUT, content)


def test_a_link_and_a_large_file_beside_the_outputs_reject_nothing(receiving, repository):
    large = repository.plain(os.urandom(300_000))
    files = {OUT: repository.plain(LINE), "model.bin": large, "current": (b"120000", repository.blob(b"/etc/passwd"))}
    repository.commit_files(files)
    assert [file.name for file in receiving(repository.source(), bytes=200_000).files] == [OUT]


FOUR = {f"{n}": b"" for n in range(4)}


@pytest.mark.parametrize(("files", "limits", "reason"), [
    ({OUT: bytes(300_000)}, {"bytes": 200_000}, f"its files have more than 200000 bytes, unpacked: `{OUT}`"),
    (FOUR, {"listed": 3}, "its repository has more than 3 files"),
    ({f"{'a' * 250}/{'b' * 250}{n}": b"" for n in range(4)}, {"listed": 1}, "its repository has more than 1 files"),
    ({f"{'a' * 250}/{'b' * 250}": b""}, {}, f"`{'a' * 100}…{'b' * 99}` has a name of more than 500 characters"),
], ids=["file", "tree", "listing", "name"])  # fmt: skip
def test_what_is_too_large(refusal, repository, files, limits, reason):
    repository.commit_files({name: repository.plain(data) for name, data in files.items()}, message="x")
    assert refusal(repository.source(), **limits) == reason


@pytest.mark.parametrize(("name", "branch", "said"), [
    ("anna.git", "nope", "fatal: Remote branch nope not found in upstream origin"),
    ("none.git", "main", "does not appear to be a git repository"),
], ids=["branch", "repository"])  # fmt: skip
def test_a_branch_that_is_not_there_is_not_the_submitters_fault(receiving, repository, tmp_path, name, branch, said):
    repository.commit_files({OUT: repository.plain(LINE)})
    with pytest.raises(FailedError) as raised:
        receiving(f"git+file://{tmp_path}/{name}@{branch}")
    assert raised.value.reason == "the branch cannot be fetched"
    assert raised.value.aside.startswith(f"git+file://{tmp_path}/{name}@{branch}: ")
    assert said in raised.value.aside


def test_no_git_at_all(receiving, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FailedError) as raised:
        receiving(f"git+file://{tmp_path}@main")
    assert raised.value.reason == "git is not installed"


def test_the_settings_of_the_machine_are_not_read(repository, monkeypatch, tmp_path):
    """Neither those of the user, nor those of the environment; a rewritten address would go elsewhere."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f'[url "file:///nowhere"]\n\tinsteadOf = file://{repository.path}\n')
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "url.file:///nowhere.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"file://{repository.path}")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "none")
    repository.commit_files({OUT: repository.plain(LINE)})
    settings = BoardSettings(
        title="", challenge="/nowhere", answers="", metric="LogLossHashed", tests=(Test(name="test-A"),),
        limits=Limits(seconds=60), transports=("file",),
    )  # fmt: skip
    monkeypatch.setattr(sandbox, "GRACE_SECONDS", 0)
    (tmp_path / "child").mkdir()
    result = sandbox.process_source(repository.source(), str(tmp_path / "child"), settings, ())
    assert len(result.parcel.files) == 1


NO_ADDRESS = (
    "not the address of a branch: write git+URL@BRANCH, such as git+https://example.org/anna/gap.git@main\n"
    "  in a login write %40 for @, %2F for / and %3A for :"
)


@pytest.mark.parametrize(("source", "message"), [
    *(
        (f"git+{address}", NO_ADDRESS)
        for address in (
            "https://example.org/a.git", "ssh://git@example.org/a.git", "git@example.org:a.git@main",
            "/srv/a.git@main", "https://example.org@main", "ext::sh -c id@main", "https://-oProxyCommand=x/a@main",
            "https://example.org/\x1b[2J@main", "https://anna:secret@example.org/a.git",
            "https://anna:sec/ret@example.org/a.git@main", "https://anna:sec@ret@example.org/a@main",
            "https://anna:1234/ret@example.org/a@main", "https://anna:12?ret@example.org/a",
            "https://anna@example.net:secret@example.org/a@main", "anna:secret@example.org/a.git@main",
        )
    ),
    *((f"git+https://example.org/a@{name}", f"`{name}` is not the name of a branch")
      for name in ("-b", "a..b", "a b", "")),
    *((f"git+{by}:///srv/a@main", f"board.yaml does not allow git to fetch by {by}; `transports` are https")
      for by in ("ext", "file")),
])  # fmt: skip
def test_addresses_that_are_none(source, message):
    """What is malformed is not repeated: it may hold a password."""
    with refused(message):
        address_of(source, ("https",))


@pytest.mark.parametrize(("source", "shown"), [
    ("git+https://anna:secret@example.org/a.git@main", "https://example.org/a.git"),
    ("git+https://example.org/a.git@feature/x", "https://example.org/a.git"),
    ("git+ssh://git:secret@example.org/a.git@main", "ssh://git@example.org/a.git"),
    ("git+https://anna:secret@example.org:8080/a.git@main", "https://example.org:8080/a.git"),
    ("git+https://secret@example.org/a.git@main", "https://example.org/a.git"),
    ("git+https://example.org/a.git?token=secret@main", "https://example.org/a.git"),
    ("git+https://[::1]:8080/a.git@main", "https://[::1]:8080/a.git"),
    ("git+https://anna%40example.net:sec%40ret@example.org/a.git@main", "https://example.org/a.git"),
])  # fmt: skip
def test_a_password_is_not_shown(source, shown):
    address = address_of(source, ("https", "ssh"))
    assert address.shown == shown_source(source) == f"git+{shown}@{address.branch}"


TYPED = "abcdefg0123456789@:/?#%[]."


@given(
    st.sampled_from(["https://", "ssh://", ""]),
    st.text(TYPED, max_size=12),
    st.text(TYPED, min_size=4, max_size=12),
    st.sampled_from(["host/team@main", "host:8080/team.git@main", "host/team.git"]),
    st.sampled_from(["git+", ""]),
)
@example("https://", "anna", "1234/5678", "host/team.git", "git+")
@example("https://", "anna@example.net", "s3cret", "host/team@main", "git+")
@example("", "https", "1234://5678", "host/team@main", "git+")
@example("", "anna", "s3cret", "host/team.git", "")
def test_no_part_of_any_password_is_shown(scheme, user, password, rest, git):
    """Of what is written as a login, no four characters of the password stand in any name or message."""
    source = f"{git}{scheme}{user}:{password}@{rest}"
    try:
        check_source(source, ("https", "ssh"))
        shown = identity.parse_address(source).shown
        said = f"{shown} {submitter_of(source)} {own_name(source)} {shown_source(source)}"
    except UsageError as error:
        said = str(error)
    except MissingFileError:  # a path with a slash before the colon
        assert (git, scheme) == ("", "")
        return
    others = f"{scheme}{user}:{rest} {NO_ADDRESS}"
    parts = {password[start : start + 4] for start in range(len(password) - 3)}
    assert not [part for part in parts if part in said and part not in others]


@pytest.mark.parametrize(("source", "name", "submitter"), [
    ("git+https://example.org/annA/gap.git@main", "gap@main", "example.org/annA/gap"),
    ("git+https://example.org/annB/gap.git@main", "gap@main", "example.org/annB/gap"),
    ("git+https://anna:secret@example.org/team.zip@main", "team.zip@main", "example.org/team.zip"),
    ("git+https://anna:secret@example.org:80/teams/gap/@feature/x", "gap@feature/x", "example.org:80/teams/gap"),
    ("git+ssh://git@example.org/gap.git@main", "gap@main", "git@example.org/gap"),
    ("git+file:///srv/gap.git@main", "gap@main", "srv/gap"), ("uploads/annA/gap.tar.gz", "gap", "gap"),
])  # fmt: skip
def test_a_branch_is_named_by_itself_and_who_submits_by_the_whole_repository(source, name, submitter):
    assert (own_name(source), submitter_of(source)) == (name, submitter)


PATHS = ("git@example.org:team/x.git", "a@b", "a:b", "uploads/a:b@c.zip")
NO_BRANCH = "an address alone is not a submission: write git+URL@BRANCH for a branch"
KINDS = "give a folder, an archive (.zip, .tar, .tar.gz, .tgz, .tar.xz, .tar.zst) or git+URL@BRANCH"


@pytest.mark.parametrize(("source", "error", "message"), [
    *((path, MissingFileError, f"No submission: `{path}`") for path in ("/nowhere", *PATHS)),
    *((address, UsageError, NO_BRANCH) for address in ("anna:s3cret@host/x", "git@host:x.git@main", "gti+https://a:b@c/d")),
    (__file__, UsageError, f"`{__file__}` is not a submission: {KINDS}"),
    ("pipe.tar", UsageError, f"`pipe.tar` is not a submission: {KINDS}"),
])  # fmt: skip
def test_what_is_no_source(source, error, message, tmp_path, monkeypatch):
    """What may be a path is named whole; an address, which may have a password, is not."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.tar")
    with refused(message, error):
        check_source(source, ("https",))
