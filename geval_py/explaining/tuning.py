"""Tuning: how much each parameter would improve an output on held-out lines, and which parameters to take.

    evaluation ──> guesses ──> trials, one parameter after the other ──> parameters ──> tuned outputs

The parameters and their formulas are in :mod:`geval_py.explaining.derived`. Each is tried on top of the parameters
taken before it: all are fitted on nine tenths of the lines and tried on the last tenth, in turn. A parameter is taken
if the change is for the better (:func:`geval_py.explaining.cross_validation.change_of`): surely, if its interval is
below 0; otherwise probably. By the mean alone, a useless parameter would be taken in a tenth of cases or more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from geval_py import errors, version
from geval_py.explaining import cross_validation, derived
from geval_py.explaining.documents import DocumentsBy
from geval_py.explaining.guesses import bucket_shares, read_guesses
from geval_py.explaining.significance import mean_of
from geval_py.reading import config
from geval_py.reading.outputs import output_at
from geval_py.scoring import blocks, scores
from geval_py.scoring.recipes import BY_LINE, Parameters
from geval_py.tables.formats import Tabular, json_fields
from geval_py.tables.table import Column, Table, named_columns
from geval_py.text import visible

BY_LINE_TEXT = "lambda and nu by line"
MAX_P_BY_LINE = 0.01  # of the ten numbers by line, which fit what is chance
LADDER = (("temperature",), ("lambda",), ("lambda", "nu"), (BY_LINE,))  # what is tried, one after the other


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Parameters tried on held-out lines, on top of others.

    ``names`` are the parameters fitted together, ``against`` the parameters taken before; ``found`` has the values
    fitted on all lines, and the frequent words, of which there are ``words``. ``score`` is on the held-out lines, in
    the metric's unit; ``infinite`` of these lines have an infinite loss. ``change`` is the change of the mean loss in
    nats; ``taken`` is whether it is below 0 by its p-value or its interval.
    """

    names: tuple[str, ...]
    against: tuple[str, ...]
    found: Parameters = field(repr=False)
    score: float
    infinite: int
    change: cross_validation.Change
    taken: bool

    @property
    def words(self) -> int:
        """The number of frequent words that get a part of the rest."""
        return len(self.found.frequent) if self.found.uses_words else 0

    def to_dict(self) -> dict[str, Any]:
        return {
            "parameters": {name: value for name, value in self.found.numbers.items() if name in self.names},
            "words": self.words,
            "against": list(self.against),
            "score": cross_validation.ten_digits(self.score),
            "infinite_losses": self.infinite,
            "change": self.change.to_dict(),
            "taken": self.taken,
        }


@dataclass(frozen=True, kw_only=True, repr=False)
class Tuning(Tabular):
    """The improvement of an output by tuning. Printed as a table.

    ``test`` is the name of the test set, ``output`` of the output; ``score`` is the output's present score on
    ``lines`` lines, of which ``infinite`` have an infinite loss. The lines were held out in ``folds`` folds, dealt
    with ``seed``; ``documents`` is the number of documents that were kept together, None if lines were dealt one by
    one. ``words`` is the number of frequent words that nu was tried with, 0 if it was not tried. ``trials`` are in
    the order in which they were made. ``parameters`` are the ones taken, fitted on all lines; ``predicted`` is the
    score with them on the same lines, slightly better than on other lines. ``notes`` are warnings, for people;
    ``header`` is the first name of the header line that the output may begin with.
    """

    test: str
    output: str
    metric: str
    unit: str
    direction: str
    lines: int
    infinite: int
    score: float
    folds: int
    documents: int | None
    seed: int
    words: int
    trials: tuple[Trial, ...]
    parameters: Parameters
    predicted: float
    notes: tuple[str, ...]
    signature: scores.Signature | None
    header: str | None

    @property
    def taken(self) -> tuple[str, ...]:
        """The names of the parameters to take; none if the output is best left as it is."""
        return next((trial.names for trial in reversed(self.trials) if trial.taken), ())

    def to_dict(self) -> dict[str, Any]:
        values = json_fields(self, "header")
        return values | {
            "infinite_losses": values.pop("infinite"),
            "parameters": self.parameters.numbers,
            "predicted": cross_validation.ten_digits(self.predicted),
        }

    def signatures(self) -> Iterator[str]:
        return scores.signature_lines([(self.output, self.signature)])

    def table(self) -> Table:
        rows = [("(as it is)", cross_validation.score_text(self.score), self.infinite, "", "", "", "")]
        for trial in self.trials:
            score, verdict = cross_validation.score_text(trial.score), trial.change.verdict(taken=trial.taken)
            more = f", {trial.words} words" if trial.words > self.words else ""
            rows.append((f"{', '.join(trial.names)}{more}", score, trial.infinite, *trial.change.cells(), verdict))
        columns = [
            Column("tuned"),
            *named_columns(("score", "infinite", "nats"), "right"),
            Column("95 %", alignment="centre"),
            Column("p", alignment="right"),
            Column("verdict"),
        ]
        infinite = self.infinite > 0 or any(trial.infinite for trial in self.trials)
        return Table(columns, rows).without(() if infinite else ("infinite",))

    def legend(self) -> Iterator[str]:
        what = f"{self.metric} ({self.unit}, {self.direction} is better) of {self.output}"
        how = cross_validation.folds_text(self.documents, self.folds, self.seed)
        yield visible(f"{what} on {self.lines} lines of {self.test}; {how}.")
        taken = [trial for trial in self.trials if trial.taken]
        if not taken:
            yield "No change is significantly better: leave the output as it is."
            return
        last = taken[-1]
        numbers = last.found.numbers
        values = (BY_LINE_TEXT if name == BY_LINE else f"{name} {numbers[name]:.4g}" for name in last.names)
        words = f", for the {last.words} commonest words of train" if last.words else ""
        predicted = cross_validation.score_text(self.predicted)
        yield f"Take {', '.join(values)}{words}: {predicted} on {visible(self.test)}."
        if any(not trial.change.high < 0 for trial in taken):
            yield "Probably better, and taken: p, of a likelihood ratio test, is small, but the interval includes 0."

    def kept(self) -> dict[str, Any]:
        """Return the contents of ``.tuning.json`` beside a tuned output, with which others can be tuned alike."""
        return {
            "version": version.__version__,
            "test": self.test,
            "output": self.output,
            "metric": self.metric,
            "header": self.header,
            "signature": self.signature and str(self.signature),
            "parameters": self.parameters.to_dict(),
        }

    def apply(
        self, output: str | os.PathLike[str], *, folder: str | os.PathLike[str] | None = None, force: bool = False
    ) -> str:
        """Tune an output of the same model with the parameters taken; return the path of the file written.

        Its name is the output's with ``tuned=…`` appended. It is written beside the output or into a ``folder``, with
        a ``.tuning.json`` that has the parameters. Raises UsageError if no parameter was taken,
        ExistingFileError if a file would be overwritten without ``force``, MalformedLineError and the other
        DataErrors of a file.
        """
        source = output_at(os.fspath(output))
        if not self.taken:
            raise errors.UsageError(message="no parameter makes the output significantly better: leave it as it is")
        tuned = derived.tuned_output(
            self.parameters, source, os.fspath(folder or os.path.dirname(source.path)), self.header
        )
        tuned.check_free(force)
        tuned.write(self.parameters, self.kept())
        return tuned.path


def tune(
    evaluation: scores.Evaluation,
    *,
    words: int | None = None,
    temperature: bool = False,
    documents: DocumentsBy = None,
    seed: int = config.DEFAULT_SEED,
    force: bool = False,
    threads: int | None = None,
    progress: blocks.Progress | None = None,
) -> Tuning:
    """Find parameters that improve an output without training, on a test set with known answers.

    Lambda, nu and, if asked for, a ``temperature`` are tried. ``words`` is the number of frequent words of the
    challenge's train that nu is for (default: 100, or 0 without a train; 0: none). Lines of a document are held out
    together: ``documents`` is as in :func:`geval_py.compare`. ``seed`` is for the random folds; ``progress`` is
    called as the output is read.

    Raises UsageError for a metric that is not hashed or has flags that choose or change lines, for fewer than a
    hundred lines without ``force`` and for words without a train.
    """
    scores.checked_evaluation(evaluation)
    config.check_sampling(1, seed)
    folds, notes = cross_validation.folds_of([evaluation], documents, seed, force=force)
    most = derived.ALL_WORDS if words is None else words
    more = derived.frequent_words_of_train(evaluation.split, most) if most else {}
    frequent = dict(islice(more.items(), derived.DEFAULT_WORDS)) if words is None else more
    if most and not frequent:
        missing = "there is no train/expected.tsv, whose commonest words nu would be for"
        if words is not None:
            raise errors.UsageError(message=missing)
        notes.append(f"{missing}: it is left out")
    guesses = read_guesses(evaluation, frequent, keep_entries=temperature, threads=threads, progress=progress)
    steps = [step for step in LADDER if (temperature or "temperature" not in step) and (frequent or "nu" not in step)]
    first, held_out = evaluation.scores[0], np.array(evaluation.line_losses)
    parameters, predicted = Parameters(frequent=frequent, bits=guesses.bits), first.value
    taken: tuple[str, ...] = ()
    trials = []
    while steps:
        step = steps.pop(0)
        kept = [name for name in taken if name == "temperature" or BY_LINE not in step]
        names = tuple(dict.fromkeys((*kept, *step)))
        start = replace(parameters, frequent=guesses.frequent)
        fitted, *fits = cross_validation.fit(guesses, names, start, folds.of_line)
        fitted = min((fitted, start), key=lambda one: mean_of(guesses.losses(one)))
        tried = np.empty(guesses.lines)
        for out, at in zip(folds, fits, strict=True):
            tried[out] = guesses.losses(at, np.flatnonzero(out))
        change = cross_validation.change_of(tried, held_out, folds.groups)
        is_taken = change.is_better and (BY_LINE not in step or change.p_value <= MAX_P_BY_LINE)
        trials.append(
            Trial(
                names=names,
                against=taken,
                found=fitted,
                score=cross_validation.score_of(first, tried),
                infinite=int(np.isinf(tried).sum()),
                change=change,
                taken=is_taken,
            )
        )
        if is_taken:
            taken, parameters, held_out = names, fitted, tried
            predicted = cross_validation.score_of(first, guesses.losses(fitted))
        if not steps and taken and len(more) > len(frequent):  # it is tried again with more words
            shares = bucket_shares(evaluation.split, more, guesses.bits)
            guesses, steps = replace(guesses, frequent=more, shares=shares), [(BY_LINE,)]
            more = {}
    return Tuning(
        output=evaluation.output.name,
        **cross_validation.described(evaluation, folds, seed),
        infinite=first.statistics.infinite,
        score=first.value,
        words=len(frequent),
        trials=tuple(trials),
        parameters=parameters,
        predicted=predicted,
        notes=tuple(notes),
        signature=evaluation.signature,
    )
