"""Answers in other formats than TSV, as files in a test set's folder."""

import json


def as_json_lines(folder, words):
    (folder / "expected.jsonl").write_text("".join(json.dumps({"answer": word}) + "\n" for word in words))


def as_json(folder, words):
    (folder / "expected.json").write_text(json.dumps([{"expected": word} for word in words]))


WRITE = {"expected.jsonl": as_json_lines, "expected.json": as_json}  # by their names


def in_another_format(folder, name):
    """Replace a folder's expected.tsv by the same answers in another format."""
    words = (folder / "expected.tsv").read_text(encoding="utf-8").splitlines()
    (folder / "expected.tsv").unlink()
    WRITE[name](folder, words)
