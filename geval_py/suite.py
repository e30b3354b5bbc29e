"""Score several outputs from Python: :func:`evaluate_all`, a :class:`Suite` of challenges, and their table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from geval_py.errors import DataError, SchemeError
from geval_py.evaluation import GUESSES_OF_TEST, Evaluation, interval_ends, locate_scored, warn_of_notes
from geval_py.reading.challenge import Challenge
from geval_py.reading.sources import VirtualFile
from geval_py.scoring.evaluate import evaluate_split
from geval_py.scoring.scores import evaluations_of, signature_lines
from geval_py.text import suggesting, visible

if TYPE_CHECKING:
    import distributed
    import pandas as pd

    from geval_py.evaluation import FilePath, Scored
    from geval_py.explaining.comparison import Baseline
    from geval_py.explaining.documents import DocumentsBy
    from geval_py.explaining.pooled import PooledComparison
    from geval_py.tables.table import Table


@suggesting(metric="metrics=…", out="evaluate(…, out=…)", **GUESSES_OF_TEST)
def evaluate_all(
    challenge: Scored,
    test: str = "test-A",
    *,
    metrics: str | Sequence[str] = (),
    tokenizer: str | None = None,
    keep_texts: bool = True,
    cluster: distributed.Client | None = None,
    on_fault: Callable[[DataError | SchemeError], object] | None = None,
) -> Evaluations:
    """Score all outputs of a test set, in the order of their names; see :func:`evaluate`.

    Raises the error of the first output that is at fault. With ``on_fault``, such as ``print``, calls that with each
    such error, and leaves the output out.
    """
    task, split = locate_scored(challenge, test, None, metrics, tokenizer)
    from geval_py.scoring.cluster import workers_of

    results = evaluate_split(
        task, split, texts="memory" if keep_texts else None, sign=True, workers=workers_of(cluster)
    )
    evaluations = Evaluations()
    for scored in evaluations_of(results, on_fault):
        warn_of_notes(scored)
        evaluations.append(Evaluation.of(scored))
    return evaluations


class Suite:
    """Several challenges, whose outputs are scored together; ``challenges`` are Challenges or their folders.

    Raises MissingFileError and ConfigError.
    """

    def __init__(self, challenges: Iterable[Challenge | FilePath]) -> None:
        self.challenges = [one if isinstance(one, Challenge) else Challenge.open(one) for one in challenges]

    def evaluate(self, test: str = "test-A", **settings: Any) -> Evaluations:
        """Score all outputs of a test set of each challenge; the arguments and errors are those of evaluate_all.

        A challenge that cannot be scored raises its error: no scores of the others are returned.
        """
        return Evaluations(one for challenge in self.challenges for one in evaluate_all(challenge, test, **settings))

    def compare(
        self,
        test: str | Sequence[str] = "test-A",
        *,
        baseline: Baseline = None,
        documents: DocumentsBy = None,
        **settings: Any,
    ) -> PooledComparison:
        """Compare the outputs of a test set, or of several, of each challenge, which are found by their names.

        ``baseline`` and ``documents`` are as in :func:`geval_py.compare`; the other arguments are those of
        :func:`evaluate_all`. Raises its errors, and UsageError for fewer than two test sets, metrics that are not
        made from one mean loss, and no output that two test sets share beside the baseline.
        """
        from geval_py.explaining.pooled import compare_sets

        tests = [test] if isinstance(test, str) else test
        sets = [evaluate_all(challenge, one, **settings) for challenge in self.challenges for one in tests]
        return compare_sets(sets, baseline=baseline, documents=documents)

    def __repr__(self) -> str:
        return f"<Suite: {', '.join(visible(challenge.path) for challenge in self.challenges)}>"


class Evaluations(list[Evaluation]):
    """A list of the scores of several outputs. Printed as a table with one row per output."""

    def to_frame(self, *, intervals: bool = False) -> pd.DataFrame:
        """Return a table with a row an output, in the list's order.

        Columns: ``challenge``, its folder, if there are several; ``output``, the name without ``out-`` and ``.tsv``,
        each parameter in the names (numbers, if all its values are numbers; None where an output lacks it), and each
        metric. With ``intervals``, the ends of the 95 % intervals are more columns, named as in
        :meth:`Evaluation.scores_dict`. They are by documents if :func:`geval_py.compare` would compare these outputs
        by documents.
        """
        import pandas as pd

        from geval_py.scoring.score_tables import score_columns

        rows = [one.scores_dict(intervals=False) for one in self]
        if intervals:
            from geval_py.explaining.documents import choose_documents

            sets: dict[tuple[object, str], list[int]] = {}  # the documents are chosen once for each test set
            for n, one in enumerate(self):
                place = one.split.expected
                state = place.state if isinstance(place, VirtualFile) else place
                sets.setdefault((state, one.scores[0].scheme.text), []).append(n)
            for members in sets.values():
                documents, _ = choose_documents([self[n] for n in members], None)
                for n in members:
                    rows[n] |= interval_ends(self[n].scores, documents)
        return pd.DataFrame(score_columns(self, rows))

    def to_markdown(self, *, precision: int | None = None, names: Mapping[str, str] | None = None) -> str:
        """Write a Markdown table: the columns of :meth:`to_frame`, a row an output; arguments as of to_latex."""
        from geval_py.scoring.score_tables import scores_table

        return "".join(scores_table(self, precision, names, for_paper=True).markdown())

    def to_latex(
        self,
        caption: str | None = None,
        label: str | None = None,
        *,
        precision: int | None = None,
        names: Mapping[str, str] | None = None,
    ) -> str:
        """Write a LaTeX table, with the package booktabs: the columns of :meth:`to_frame`, a row an output.

        A ``caption``, which is escaped, or a ``label`` puts it into a table environment. Scores have ``precision``
        digits after the point, by default as config.txt says, and all if it does not. ``names`` are shown instead of
        the outputs' own, by which they are given, or by a shorter name, as a baseline; there are then no columns of
        parameters. Raises UsageError for an output that is not there, and for a label with other characters than
        letters, digits and ``:._/+-``.
        """
        from geval_py.explaining.comparison import checked_label
        from geval_py.scoring.score_tables import scores_table
        from geval_py.tables.formats import latex_document

        table = scores_table(self, precision, names, for_paper=True)
        signed = signature_lines((one.output.name, one.signature) for one in self)
        return "".join(latex_document(table, (), (), signed, caption, checked_label(label)))

    def __repr__(self) -> str:
        return "".join(self._table().text()).removesuffix("\n") if self else "[]"

    def _repr_html_(self) -> str:
        return "".join(self._table().html()) if self else ""

    def _table(self) -> Table:
        from geval_py.scoring.score_tables import scores_table

        return scores_table(self)
