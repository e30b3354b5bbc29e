"""Metrics on lines that the text flags of an evaluation scheme have changed."""

from __future__ import annotations

from dataclasses import dataclass

from geval_py.errors import MalformedLineError
from geval_py.reading.lines import Bytes
from geval_py.reading.preparation import Preparation
from geval_py.scoring.metrics.base import LineStatistics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from geval_py.scoring.metrics.base import Column


@dataclass(frozen=True, slots=True)
class PreparedColumn:
    """Another column, of the lines as a preparation leaves them. Lines keep their numbers."""

    column: Column
    preparation: Preparation

    def statistics(self, outputs: Bytes, expected: bytes, first_line: int) -> LineStatistics:
        try:
            return self.column.statistics(self._prepared(outputs), self._prepared(expected), first_line)
        except MalformedLineError as error:
            error.prepared_by = str(self.preparation)
            raise

    def _prepared(self, block: Bytes) -> bytes:
        text = str(block, "utf-8", "replace").replace("\r", "")
        # A lone surrogate, from the command line's bytes, is replaced when it is read, as in a file.
        return self.preparation.of_lines(text).encode("utf-8", "surrogatepass")
