r"""Outputs made of others, line by line: where they are written, and that nothing is written over.

out-model=bigram.tsv.xz ──> out-model=bigram,tuned=lambda-nu.tsv.xz, and .tuning.json beside it
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import count

from geval_py.errors import ExistingFileError, LineCountError, MalformedLineError, MissingFileError, UsageError
from geval_py.reading.compression import COMPRESSED_ENDINGS, compression_by_ending
from geval_py.reading.dataset import DataSet
from geval_py.reading.lines import LineReader, read_lines
from geval_py.reading.outputs import Output, output_at
from geval_py.reading.rewriting import written_whole
from geval_py.reading.sources import can_be_reread, find_file
from geval_py.reading.tuned import Parameters
from geval_py.text import named
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    LineMaker: TypeAlias = Callable[[Sequence[str], int], str]  # from a line of each source, and its number

OUTPUT_ENDING = ".tsv"
KEPT_ENDING = ".tuning.json"
MOST_LABEL = 100  # characters of the names of what is mixed


class Derived(Value):
    """An output that is to be made of others: the ``sources``, and the ``path`` that it is written to.

    ``header`` is the first name of the header line that a source may begin with. What is made has none.
    """

    sources: tuple[str, ...]
    path: str
    header: str | None = None

    @property
    def kept_path(self) -> str:
        """The file beside it that says how it was made."""
        plain, _ = _split_ending(self.path)
        return plain.removesuffix(OUTPUT_ENDING) + KEPT_ENDING

    def check_free(self, force: bool) -> None:
        """Raise ExistingFileError for what would be written over, unless it is forced; never over a source."""
        for path in (self.path, self.kept_path):
            if os.path.lexists(path) and (not force or any(map(_same_file(path), self.sources))):
                raise ExistingFileError(path=path)
        for source in self.sources:
            if not can_be_reread(source):
                raise UsageError(message=f"{named(source)} has to be read more than once: give a file")

    def check_lines(self, test: DataSet | None = None) -> int:
        """Give the number of lines.

        Raises LineCountError for a source with another number of lines than a test set's files, or than the first.
        """
        found = {source: _count_lines(source, self.header) for source in self.sources}
        beside = () if test is None else ((test.input, test.in_header), (test.expected, test.out_header))
        for path, names in beside:
            if path is not None:
                self._check_counts(found, path, _count_lines(path, next(iter(names), None)))
        first = self.sources[0]
        self._check_counts(found, first, found[first])
        return found[first]

    @staticmethod
    def _check_counts(found: Mapping[str, int], path: str, lines: int) -> None:
        for source, of_source in found.items():
            if of_source != lines:
                raise LineCountError(
                    what="output", path=source, lines=of_source, expected_path=path, expected_lines=lines
                )

    def write(
        self, make: LineMaker, kept: Mapping[str, Any], *, progress: Callable[[int], None] | None = None
    ) -> None:
        """Write the lines, compressed by the path's ending, and beside them what is kept of how they were made.

        Each file is written whole or not at all; ``progress`` is called with the number of each line. Raises
        MalformedLineError and UsageError.
        """
        import json

        with written_whole(self.path, compression=compression_by_ending(self.path)) as file:
            for texts, number in self._lines():
                file.write(f"{self._made(make, texts, number)}\n".encode())
                if progress is not None:
                    progress(number)
        with written_whole(self.kept_path) as file:
            file.write((json.dumps(kept, indent=2) + "\n").encode())

    def _lines(self) -> Iterator[tuple[tuple[str, ...], int]]:
        with ExitStack() as stack:
            readers = [stack.enter_context(closing(read_lines(path, header=self.header))) for path in self.sources]
            yield from zip(zip(*readers, strict=True), count(1), strict=False)

    def _made(self, make: LineMaker, texts: Sequence[str], number: int) -> str:
        try:
            return make(texts, number)
        except MalformedLineError as error:
            error.path = next(path for path, text in zip(self.sources, texts, strict=True) if text == error.text)
            raise


def derived_output(sources: Sequence[str], name: str, parameter: str, folder: str, header: str | None) -> Derived:
    """Make an output in a folder, named after another by one more parameter, and compressed as the first source is.

    >>> derived_output(["dev-0/out-model=bigram.tsv.xz"], "out-model=bigram.tsv", "tuned=nu", "dev-0", None).path
    'dev-0/out-model=bigram,tuned=nu.tsv.xz'
    """
    _, ending = _split_ending(sources[0])
    stem = name.removesuffix(OUTPUT_ENDING)
    joined = f"{stem}{',' if '-' in stem else '-'}{parameter}{OUTPUT_ENDING}{ending}"
    return Derived(sources=tuple(sources), path=os.path.join(folder, joined), header=header)


def tuned_output(parameters: Parameters, path: str, folder: str, header: str | None) -> Derived:
    """Make the output that is another, tuned, in a folder."""
    name = output_at(path).name
    return derived_output([path], name, f"tuned={'-'.join(parameters.changed)}", folder, header)


def mixed_output(paths: Sequence[str], folder: str, header: str | None, more: Sequence[str] = ()) -> Derived:
    """Make the output that is a mixture of others (two or more), in a folder; ``more`` names what else is in it."""
    labels = [*map(_label, map(output_at, paths)), *more]
    label = "+".join(labels)
    if len(label) > MOST_LABEL or len(set(labels)) < len(labels):
        label = f"{len(labels)}-outputs"
    return derived_output(paths, "out.tsv", f"mix={label}", folder, header)


def _label(output: Output) -> str:
    """Name an output for short, in a name in which some characters mean something.

    >>> _label(output_at("out-model=bigram,lr=0.1.tsv.xz")), _label(output_at("out.tsv"))
    ('bigram-0.1', 'out')
    """
    short = "-".join(output.parameters.values()) or output.name.removesuffix(OUTPUT_ENDING).removeprefix("out-")
    return re.sub(r"[^\w.-]", "-", short)


def find_output(test: DataSet, output: Output) -> str:
    """Find the output of the same name in another test set; raises MissingFileError, AmbiguousFileError."""
    place = os.path.join(test.directory, output.name)
    path = find_file(place)
    if path is None:
        raise MissingFileError(what="No file with the test results", path=place)
    return path


def _split_ending(path: str) -> tuple[str, str]:
    """Split off the ending of a compression, "" for none."""
    ending = next((ending for ending in COMPRESSED_ENDINGS if path.endswith(ending)), "")
    return path.removesuffix(ending), ending


def _count_lines(path: str, header: str | None) -> int:
    with LineReader(path, header=header) as reader:
        return reader.count_rest()


def _same_file(path: str) -> Callable[[str], bool]:
    return lambda other: os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)
