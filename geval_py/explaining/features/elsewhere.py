"""The features of an evaluation's lines, counted by the workers of a cluster, each of the pieces that it reads.

A worker is given the inputs and expected words of its lines, and their weights; what it gives is added up, to the
same last bit as on one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import compress, islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from geval_py.errors import UsageError
from geval_py.explaining.features.exact import Parts
from geval_py.explaining.features.tally import FieldTally, added_up, tally_parts
from geval_py.reading.features import FeatureKinds, Field, Fields
from geval_py.reading.items import ScoredItem
from geval_py.reading.lines import LineReader, decode_lines
from geval_py.scoring.cluster import Cluster, PieceReader

if TYPE_CHECKING:
    from geval_py.scoring.blocks import Block
    from geval_py.scoring.evaluation import Evaluation
    from geval_py.scoring.parallel import Progress

Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Found = dict[Field, FieldTally]


class _Lines(NamedTuple):
    """What goes with some lines: their inputs and expected words; which of them count; the parts of their weights."""

    beside: list[tuple[str, str]]
    known: Truths
    parts: Floats


@dataclass(frozen=True, slots=True)
class _Counted:
    """What was counted: Dask sends a dictionary in a way of its own, which would make plain tuples of its fields."""

    found: Found


def tally_on(
    cluster: Cluster,
    evaluation: Evaluation,
    known: Truths,
    weights: Floats,
    kinds: FeatureKinds,
    *,
    keep: bool,
    progress: Progress | None = None,
) -> Found:
    """Count the features of an evaluation's lines as :func:`tally_features` does.

    ``known`` tells which lines count, and ``weights`` has a column each of them. Raises UsageError where the lines
    were selected, or the output can be read only once, UnreadableFileError where it was changed, and ClusterError.
    """
    if evaluation.line_numbers is not None:
        raise UsageError(message="a cluster looks at all lines: leave out metrics whose flags (f, p) select some")
    parts, fields = Parts.split(weights), Fields(evaluation.split.in_header)
    found: Found = {}
    first = 0
    with LineReader(evaluation.output.path, header=evaluation.split.output_header) as outputs:
        evaluation.kept_texts().outputs.check(outputs)
        reader = PieceReader(outputs, None, cluster)
        lines = _lines_of(evaluation, known, parts)
        for block, of_lines in reader.map_pieces(_tally, lambda block: (lines(block), fields, kinds, keep)):
            for where, tally in of_lines.found.items():
                found.setdefault(where, FieldTally(kinds, keep)).extend(tally, first)
            first += int(known[block.first_line - 1 :][: block.lines].sum())
            if progress is not None:
                progress(first, len(weights[0]))
    return added_up(found, parts)


def _lines_of(evaluation: Evaluation, known: Truths, parts: Parts) -> Callable[[Block], _Lines]:
    """Give what tells what goes with the lines of a block, for blocks in order."""
    beside = zip(evaluation.input.lines(), evaluation.kept_texts().expected.read(), strict=False)  # "" without end
    before = 0

    def lines_of(block: Block) -> _Lines:
        nonlocal before
        of_block = known[block.first_line - 1 :][: block.lines]
        first, before = before, before + int(of_block.sum())
        return _Lines(list(islice(beside, block.lines)), of_block, parts.rows[:, first:before])

    return lines_of


def _tally(blocks: Iterable[Block], lines: _Lines, fields: Fields, kinds: FeatureKinds, keep: bool) -> _Counted:
    """Count the features of lines, which are numbered from 0."""
    outputs = (output for block in blocks for output in decode_lines(block.outputs))
    items = (ScoredItem(*beside, output) for beside, output in zip(lines.beside, outputs, strict=True))
    found = tally_parts(compress(items, lines.known.tolist()), lines.parts, fields, kinds, keep=keep)
    for of_field in found.values():
        for tally in of_field.tallies:
            tally.codes.default_factory = None  # which cannot be sent
    return _Counted(found)
