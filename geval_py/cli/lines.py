"""GEval's modes that show features or lines.

First the modes that show features: of the worst lines, and of lines that are worse than another output's. Then the
modes that show lines: line by line, the differences between two outputs, the best of several, and tokens.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import chain, islice

from geval_py.cli.score import evaluate_with_texts, show_of_task
from geval_py.cli.terminal import ItemBar, colours_are_unwanted, note, shows_colours
from geval_py.errors import UsageError
from geval_py.explaining import line_by_line
from geval_py.explaining.worst_features import FeatureListing, WorstFeatures, rank_features
from geval_py.reading.config import FEATURES, Settings, Task
from geval_py.reading.features import FeatureKinds, Fields, parse_filter, read_references, tokens_of
from geval_py.reading.files import STANDARD_INPUT
from geval_py.reading.lines import LineReader, decode_lines
from geval_py.reading.preparation import find_tokenizer, preparation_of
from geval_py.scoring.metrics.base import NOISE
from geval_py.scoring.scores import Evaluation
from geval_py.tables.formats import FOR_PEOPLE
from geval_py.text import counted, named, visible

TOP_ON_SCREEN = 20  # lines or features that a terminal shows without --top


def show_features(task: Task, settings: Settings) -> None:
    """Show by rising p the features that go with bad scores, or with being worse than another output."""
    evaluations = _evaluated(task, settings, settings.most_worsening_features)
    evaluation, other = evaluations[0], next(iter(evaluations[1:]), None)
    scores = evaluation.line_scores() if other is None else evaluation.score_differences(other)
    undefined, infinite = sum(map(math.isnan, scores)), sum(map(math.isinf, scores))
    score, unscored = evaluation.scores[0], 0
    if score.metric.measure.corpus_score is not None:  # as a correlation, it may be of no line by itself
        by_line = zip(*(one.line_scores() for one in evaluations), strict=True)
        unscored = sum(any(map(math.isnan, row)) for row in by_line)
    if unscored:
        note(f"{score.name} has no value for {unscored} of {len(scores)} lines alone: left out")
    if undefined > unscored:
        note(f"the score of {undefined} of {len(scores)} lines is infinite in both outputs: left out")
    if infinite:
        where = "" if other is None else " in one output"
        note(f"the score of {infinite} of {len(scores)} lines is infinite{where}: means are infinite or NaN")
    features = rank(task, settings, evaluation, other, best=settings.reverse_sort)
    if not len(features):
        lines = counted(len(scores) - undefined, "line")
        note(f"no feature is shown: none is on at least {features.least} of {lines}, and missing from as many")
    if settings.min_frequency is None and features.least > 1:
        note(f"features on fewer than {features.least} lines are left out (--min-frequency 1 shows them)")
    top, total = _top(settings), len(features)
    for_people = settings.format in FOR_PEOPLE and _escapes(settings)
    if for_people and not settings.all_features:
        features = features.readable(top)
    elif top is not None:
        features = features.at(range(min(top, total)))
    note(*features.notes)
    listing = FeatureListing(
        evaluations=evaluations,
        features=features,
        for_terminal=_escapes(settings),
        with_q=settings.documents is not None,
        below=_more(settings, total, "features") if len(features) == top else "",
    )
    show_of_task(task, listing, settings)


def _evaluated(task: Task, settings: Settings, other: str | None) -> list[Evaluation]:
    """Score one output, and another if it is named; say so if they are explained without the input."""
    evaluations = evaluate_with_texts(task, settings, [] if other is None else [other])
    split = evaluations[0].split
    if split.input is None:
        of_features = settings.mode in FEATURES
        shown = "features are of answers and outputs alone" if of_features else "lines are shown without it"
        note(f"there is no input {named(split.input_place)}: {shown}")
    return evaluations


def rank(
    task: Task,
    settings: Settings,
    evaluation: Evaluation,
    other: Evaluation | None = None,
    *,
    best: bool = False,
) -> WorstFeatures:
    """Rank the features of the lines as the options ask: what goes with bad scores, or with the best.

    Documents are looked for where there is more to see than p, which is GEval's, by line.
    """
    only_p = settings.format in FOR_PEOPLE
    with ItemBar("features") as progress:
        return rank_features(
            evaluation,
            kinds_of(task, settings),
            other=other,
            best=best,
            least=settings.min_frequency,
            least_of_pair=settings.min_cartesian_frequency,
            costs=_escapes(settings),
            documents=False if only_p and settings.documents is None else settings.documents_by,
            progress=progress,
        )


def kinds_of(task: Task, settings: Settings) -> FeatureKinds:
    """Return the kinds of features that the options ask for."""
    return FeatureKinds(
        bigrams=settings.bigrams,
        word_shapes=settings.word_shapes,
        numerical=settings.numerical_features,
        cartesian=settings.cartesian,
        tokens=tokens_of(task.tokenizer),
        references=None if settings.references is None else read_references(settings.references),
    )


def show_lines(task: Task, settings: Settings) -> None:
    """Show every line: score, input, expected word, output.

    Of two outputs, only lines where they and their scores differ: by how much, the texts, the other's output, this.
    """
    evaluations = _evaluated(task, settings, settings.diff)
    evaluation = evaluations[0]
    fields = Fields(evaluation.split.in_header)
    item_filter = greatest_first = None
    if settings.filters:
        item_filter = parse_filter(settings.filters, fields, kinds_of(task, settings))
    if settings.sort or settings.reverse_sort:
        greatest_first = evaluation.scores[0].greatest_first(worst=settings.sort)
    places = line_by_line.places_of_lines(*evaluations, item_filter=item_filter, greatest_first=greatest_first)
    other, top = next(iter(evaluations[1:]), None), _top(settings)
    rows = line_by_line.read_lines(evaluation, other, places)
    total = evaluation.line_count if places is None else len(places)
    if other is not None and settings.top != top:  # a terminal says how many lines differ
        shown = list(islice(rows, top))
        total, rows = len(shown) + sum(1 for _ in rows), iter(shown)
    first = list(islice(rows, 1))
    if not first and top != 0:
        note("no line differs in both its output and its score")
    rows = islice(chain(first, rows), top)
    lines = map(_preparation(evaluation, task), rows) if settings.show_preprocessed else rows
    listing = line_by_line.LineListing(
        evaluations=evaluations,
        lines=lines,
        for_terminal=_escapes(settings),
        below=_more(settings, total, "lines"),
    )
    if settings.mark_worst_features:
        if settings.format != "text":
            note("words are marked in text only")
        elif shows_colours(sys.stdout):
            features = rank(task, settings.replace(documents=None, no_documents=True), evaluation)
            marked = features.at((features.columns["p"] < line_by_line.STYLES[-1][0]).nonzero()[0].tolist())
            p_values = dict(zip(marked.names, marked.columns["p"].tolist(), strict=True))
            marker = line_by_line.Marker(p_values, fields, tokens_of(task.tokenizer))
            listing = replace(listing, marker=marker)
            note(f"marked words go with bad lines: {line_by_line.marks_text()}, not corrected for their number")
        elif colours_are_unwanted():
            note("words are marked by colours, and NO_COLOR is set")
        else:
            note("words are marked on a terminal only; FORCE_COLOR=1 marks them everywhere")
    show_of_task(task, listing, settings)


def show_best(task: Task, settings: Settings) -> None:
    """Show for each line the output with the best score: of several the last; the first if lines have no score."""
    evaluations = evaluate_with_texts(task, settings, settings.alt_out_files)
    for other in evaluations[1:]:
        evaluations[0].check_same_lines(other)
    for_terminal = sys.stdout.isatty()
    best_of = max if evaluations[0].scores[0].greatest_first(worst=False) else min
    scores = zip(*(evaluation.line_scores() for evaluation in evaluations), strict=True)
    outputs = zip(*(one.texts("output") for one in evaluations), strict=True)
    for of_line, candidates in zip(scores, outputs, strict=True):
        best = best_of(of_line)
        ties = (index for index, score in enumerate(of_line) if math.isclose(score, best, rel_tol=NOISE))
        line = candidates[max(ties, default=0)]  # none ties where a single line has no score
        sys.stdout.write((visible(line) if for_terminal else line) + "\n")


def write_tokens(task: Task, _: Settings) -> None:
    """Write each line of standard input with spaces between the tokens of a tokenizer (``geval --just-tokenize``).

    A terminal is shown no control character but TAB. Raises UsageError without a tokenizer's name, or as
    :func:`find_tokenizer`, and UnreadableFileError.
    """
    if task.tokenizer is None:
        raise UsageError("a tokenizer must be specified with --tokenizer option")
    tokenizer = find_tokenizer(task.tokenizer)
    for_terminal = sys.stdout.isatty()
    with LineReader(STANDARD_INPUT) as reader:
        while block := reader.block():
            for text in decode_lines(block):
                line = tokenizer(text)
                sys.stdout.write(("\t".join(map(visible, line.split("\t"))) if for_terminal else line) + "\n")


MODES: dict[str, Callable[[Task, Settings], None]] = {  # by the fields of their options
    "line_by_line": show_lines,
    "diff": show_lines,
    "oracle_item_based": show_best,
    "worst_features": show_features,
    "most_worsening_features": show_features,
    "just_tokenize": write_tokens,
}


def _top(settings: Settings) -> int | None:
    """Return how many lines or features are shown; None: all."""
    is_on_screen = settings.format == "text" and sys.stdout.isatty()
    return TOP_ON_SCREEN if is_on_screen and settings.top is None else settings.top


def _more(settings: Settings, number: int, what: str) -> str:
    """Return a sentence on what a terminal does not show without --top; "" if it shows all."""
    is_all = settings.top is not None or number <= (_top(settings) or number)
    return "" if is_all else f"The first {TOP_ON_SCREEN} of {number} {what}; for all, --top {number} or | less."


def _escapes(settings: Settings) -> bool:
    """Whether texts are escaped: files and pipes get them as they are, but only in GEval's own format."""
    return settings.format != "text" or sys.stdout.isatty()


def _preparation(evaluation: Evaluation, task: Task) -> Callable[[line_by_line.ScoredLine], line_by_line.ScoredLine]:
    """Return the function that prepares a line to be shown, with flags and tokenizer.

    As in GEval, the tokenizer splits the input of any metric, and flags change it for a metric that needs it.
    """
    scheme, metric = evaluation.scores[0].scheme, evaluation.scores[0].metric
    of_answers: Callable[[str], str] = preparation_of(scheme) or str
    flags = scheme.flags if metric.needs_input else ()
    of_input: Callable[[str], str] = preparation_of(scheme._replace(flags=flags, tokenizer=task.tokenizer)) or str

    def prepared(line: line_by_line.ScoredLine) -> line_by_line.ScoredLine:
        expected, output, other_output = map(of_answers, (line.expected, line.output, line.other_output))
        return line._replace(input=of_input(line.input), expected=expected, output=output, other_output=other_output)

    return prepared
