"""The tables of the pages for programs: each as CSV and as JSON, with disclosed figures only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from geval_py.board.publishing.site.analyses import Progress
from geval_py.board.publishing.site.figures import iso
from geval_py.board.publishing.site.view import SiteView, SubmissionView
from geval_py.showing.json import json_list_text
from geval_py.showing.tables import Column, Table

_NAMES = tuple[str, ...]
SUBMISSION_NAMES: _NAMES = (
    "code", "submitter", "arrived", "state", "reason", "baseline",
    "description", "author", "tags", "params", "remark",
)  # fmt: skip
OUTPUT_NAMES: _NAMES = (
    "code", "submitter", "arrived", "test", "variant", "params", "metric", "score", "low", "high",
)  # fmt: skip
RECORD_NAMES: _NAMES = ("arrived", "code", "submitter", "variant", "score", "low", "high")


def submissions(view: SiteView) -> Iterator[list[Any]]:
    """Give a row a submission; of one that was withdrawn, only that."""
    for one in view.submissions:
        head = [one.code, one.submitter, iso(one.arrived), one.status]
        if one.withdrawn:
            yield [*head, "", one.baseline, "", "", [], {}, one.remark]
        else:
            told = [one.description, one.author, list(one.tags), dict(one.params), one.remark]
            yield [*head, one.reason, one.baseline, *told]


def outputs(submissions: Iterable[SubmissionView]) -> Iterator[list[Any]]:
    """Give a row an output and metric whose score is shown."""
    for one in submissions:
        for output in one.outputs if one.is_ranked else ():
            for metric, figures in output.figures.items():
                params = {**one.params, **output.params}
                head = [one.code, one.submitter, iso(one.arrived), output.test, output.variant, params, metric]
                yield [*head, figures.value, figures.low, figures.high]


def records(progress: Progress) -> Iterator[list[Any]]:
    """Give a row an output that was better than all before it."""
    for one in progress.records:
        submission = one.submission
        named = [iso(submission.arrived), submission.code, submission.submitter, one.output.variant]
        yield [*named, one.value, one.low, one.high]


def csv_of(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write CSV; lists are joined by commas, mappings written as name=value."""
    columns = [Column(name=name) for name in names]
    return "".join(Table(columns, ([_flat(value) for value in row] for row in rows)).csv())


def _flat(value: object) -> object:
    if isinstance(value, Mapping):
        return ",".join(f"{key}={item}" for key, item in value.items())
    return ",".join(map(str, value)) if isinstance(value, list) else value


def json_of(head: Mapping[str, Any], names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write JSON: a head, and an object a row."""
    return "".join(json_list_text(head, "rows", (dict(zip(names, row, strict=True)) for row in rows)))
