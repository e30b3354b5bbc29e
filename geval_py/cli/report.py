"""``geval report``: an output explained on one page."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress

from geval_py.cli import score, terminal
from geval_py.cli.commands import DOCUMENTS, PLACES, command, metric_option, option, table_options
from geval_py.errors import UsageError
from geval_py.reading import challenge, config, rewriting
from geval_py.reading.outputs import find_outputs
from geval_py.scoring.evaluate import evaluate_split, select_schemes
from geval_py.text import named, visible

PAGE_FILE = "report.html"  # in the current folder
FOR_MIXING = (  # options that geval tune and geval mix need too
    "out_directory", "expected_directory", "test_name", "expected_file", "input_file", "in_header", "out_header",
    "alt_metrics", "documents", "no_documents",
)  # fmt: skip
GENERATOR = b'<meta name="generator" content="geval-py'  # in the head of every page of ours


@command(
    "report",
    """\
Explain an output on one page: how good it is and how sure that is, where its loss comes from,
which lines are hard. Of several outputs the first is explained, and compared with the others.""",
    """\
  geval report -t dev-0                write report.html: the first output of dev-0,
                                       compared with the others
  geval report -t dev-0 -o bigram --html report.html --svg charts
                                       one output; and its charts, a file each, in a folder
""",
    table_options("test_name", "out_files"),
    option("--html", metavar="FILE", help="the page, one file that loads nothing (default: report.html)"),
    option("--svg", metavar="DIR", help="the charts alone, a file each, in this folder"),
    metric_option("the metric"),
    DOCUMENTS,
    table_options("vocabulary", "tokenizer"),
    *PLACES,
    table_options("threads"),
)
def run_report(args: argparse.Namespace) -> None:
    """Run the command; raises GevalError."""
    html, svg = args.html, args.svg
    if html is None and svg is None:
        html = PAGE_FILE
        with suppress(OSError), open(html, "rb") as file:
            if GENERATOR not in file.read(4096):
                raise UsageError(
                    f"{named(html)} is not a page of geval report, and so is not overwritten\n"
                    "  name another file with --html FILE"
                )
    elif html and os.path.splitext(html)[1].lower() not in ("", ".html", ".htm"):
        raise UsageError(f"Cannot write {named(html)}: a report is HTML\n  name a file that ends in .html")
    from geval_py.reports.page import charts, page
    from geval_py.reports.report import Report

    task, settings = config.task_and_settings(args)
    with score.blaming_config(task):
        evaluation, *others = score.evaluate_with_texts(task, settings)
        beside = find_outputs(os.path.dirname(evaluation.split.expected) or ".")
        simple = tuple(one for one in beside if one.is_baseline and one.path != evaluation.output.path)
        results = evaluate_split(task, evaluation.split._replace(outputs=simple), select_schemes(task)[:1])
        baselines = {
            f"the baseline {one.output.parameters['model']}": one.scores[0].value for one in results if one.has_scores
        }
    with terminal.ItemBar("samples") as progress:
        report = Report(
            evaluation,
            others,
            documents=settings.documents_by,
            baselines=baselines,
            options=config.repeated_options(args, *FOR_MIXING),
            progress=progress,
        )
        title = challenge.Challenge(path=task.directory, task=task).title
        text = "" if html is None else page(report, title)
        drawn = {} if svg is None else dict(charts(report))
    if html is not None:
        _write_text(html, text)
        terminal.say(f"wrote {named(html)}: {visible(evaluation.output.name)}, {visible(evaluation.split.name)}")
    if svg is not None:
        with suppress(OSError):  # which writing the first chart says
            os.makedirs(svg, exist_ok=True)
        for name, text in drawn.items():
            path = os.path.join(svg, f"{name}.svg")
            _write_text(path, text)
            terminal.say(f"wrote {named(path)}")


def _write_text(path: str, text: str) -> None:
    with rewriting.written_whole(path) as file:
        file.write(text.encode())
