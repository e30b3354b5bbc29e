"""Outputs derived from others: mixed line by line, and written."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from geval_py import errors
from geval_py.reading import challenge, compression, rewriting
from geval_py.reading.files import changed, find_file
from geval_py.reading.lines import (
    Bytes,
    LineReader,
    check_line_count,
    count_lines,
    decode_lines,
    first_name,
)
from geval_py.reading.outputs import MIXED, Output, output_at
from geval_py.scoring.evaluate import kept_path
from geval_py.scoring.kernel import backends
from geval_py.scoring.kernel.rewriting import Mixing
from geval_py.text import named, some_of, visible

OUTPUT_ENDING = ".tsv"
MAX_LABEL = 100  # characters of the names of mixed outputs


class Derived(NamedTuple):
    """An output that is computed line by line from the ``sources`` and written to ``path``.

    ``header`` is the first name of the header line that a source may begin with. The new output has no header.
    """

    sources: tuple[Output, ...]
    path: str
    header: str | None = None

    def check_free(self, force: bool) -> None:
        """Raise ExistingFileError if a file would be overwritten, unless forced; a source is never overwritten."""
        sources = {os.path.realpath(source.path) for source in self.sources}
        for path in (self.path, kept_path(self.path)):
            if os.path.realpath(path) in sources or (os.path.lexists(path) and not force):
                raise errors.ExistingFileError(path=path)

    def check_lines(self, test: challenge.DataSet | None = None) -> int:
        """Return the number of lines.

        Raises LineCountError for a source with another number of lines than a test set's files or the first source.
        """
        beside = () if test is None else ((test.input, test.in_header), (test.expected, test.out_header))
        files = [(file, first_name(names)) for file, names in beside if file is not None]
        files.append((self.sources[0].file, self.header))
        lines = [count_lines(source.file, header=self.header) for source in self.sources]
        for file, header in files:
            count = count_lines(file, header=header)
            for source, source_lines in zip(self.sources, lines, strict=True):
                check_line_count("output", source.path, source_lines, file.name, count)
        return lines[0]

    def write(
        self, recipe: Mixing, kept: Mapping[str, Any], *, progress: Callable[[int], None] | None = None
    ) -> None:
        """Write the lines, compressed by the path's ending, and ``kept``, the weights, as JSON beside them.

        Each file is written whole or not at all; ``progress`` is called with the number of lines written. Raises
        MalformedLineError, UsageError, and UnreadableFileError for a source that was changed.
        """
        codec = compression.compression_by_ending(self.path)
        with ExitStack() as stack:
            file = stack.enter_context(rewriting.written_whole(self.path, compression=codec))
            readers = [stack.enter_context(LineReader(source.file, header=self.header)) for source in self.sources]
            blocks: list[Bytes] = [b""] * len(readers)
            written = 0
            while True:
                blocks = [block or reader.block() for block, reader in zip(blocks, readers, strict=True)]
                if not all(blocks):
                    break
                try:
                    new, lines, ends = backends.rewrite_lines(blocks, written + 1, recipe)
                except errors.MalformedLineError as error:
                    texts = [decode_lines(block)[error.line - written - 1] for block in blocks]
                    error.path = self.sources[texts.index(error.text)].path
                    raise
                file.write(new)
                blocks = [memoryview(block)[end:] for block, end in zip(blocks, ends, strict=True)]
                written += lines
                if progress is not None:
                    progress(written)
            if any(blocks):
                raise changed(self.sources[list(map(bool, blocks)).index(False)].path)
        with rewriting.written_whole(kept_path(self.path)) as file:
            file.write((json.dumps(kept, indent=2) + "\n").encode())


def mixed_output(outputs: Sequence[Output], last: str, folder: str, header: str | None) -> Derived:
    """Return the mixture of outputs and a ``last`` component, in a folder, compressed like the first output.

    >>> outputs = [output_at(f"dev-0/out{name}") for name in ("-model=bigram,lr=0.1.tsv.xz", ".tsv")]
    >>> mixed_output(outputs, "train", "dev-0", None).path
    'dev-0/out-mix=bigram-0.1+out+train.tsv.xz'
    """
    labels = []
    for output in outputs:
        stem = output.name.removesuffix(OUTPUT_ENDING).removeprefix("out-")
        labels.append(re.sub(r"[^\w.-]", "-", "-".join(output.parameters.values()) or stem))
    label = "+".join([*labels, last])
    if len(label) > MAX_LABEL or len(set(labels)) < len(labels):
        label = f"{len(labels)}-outputs+{last}"
    compression_ending = next((end for end in compression.COMPRESSED_ENDINGS if outputs[0].path.endswith(end)), "")
    name = f"out-{MIXED}={label}{OUTPUT_ENDING}{compression_ending}"
    return Derived(tuple(outputs), os.path.join(folder, name), header)


def find_output(test: challenge.DataSet, output: Output) -> Output:
    """Find the output with the same name in another test set; raises MissingFileError, AmbiguousFileError."""
    place = os.path.join(test.directory, output.name)
    path = find_file(place)
    if path is None:
        there = some_of(one.name for one in test.outputs) or "no output"
        hint = f"the output for {visible(test.name)} must have the same name; {named(test.directory)} holds {there}"
        raise errors.MissingFileError(what="No file with the test results", path=place, hint=hint)
    return output_at(path)
