"""Digests of submissions that are not opened: they depend on the files alone, and are bounded."""

import os
from contextlib import contextmanager

import pytest

from geval_py.board.intake import identity
from geval_py.board.intake.identity import fingerprint, unopened_digest


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "ann"
    for name, size in (("a/out.tsv", 60), ("b/out.tsv", 50), ("c.tsv", 40)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name[:1].encode() * size)
    return folder


def digests_of(folder, monkeypatch, *, reverse):
    """The digests, if the disk has the entries of each folder in an order."""
    scandir = os.scandir

    @contextmanager
    def ordered(path):
        with scandir(path) as entries:
            yield iter(sorted(entries, key=lambda entry: entry.name, reverse=reverse))

    with monkeypatch.context() as context:
        context.setattr(os, "scandir", ordered)
        return unopened_digest(str(folder)), fingerprint(str(folder))


@pytest.mark.parametrize("most", [0, 49, 100, 1000])
def test_the_order_of_the_disk_does_not_matter(most, source, monkeypatch):
    """Of files that are more bytes than may be hashed, the same ones are hashed."""
    monkeypatch.setattr(identity, "MAX_HASHED", most)
    assert digests_of(source, monkeypatch, reverse=False) == digests_of(source, monkeypatch, reverse=True)


@pytest.mark.parametrize(("name", "counts"), [("a/out.tsv", True), ("b/out.tsv", False), ("c.tsv", True)])
def test_files_are_hashed_in_order_as_far_as_they_fit(name, counts, source, monkeypatch):
    monkeypatch.setattr(identity, "MAX_HASHED", 100)
    digest = unopened_digest(str(source))
    (source / name).write_bytes(b"x" * (source / name).stat().st_size)
    assert (unopened_digest(str(source)) != digest) == counts
