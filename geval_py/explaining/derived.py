"""Outputs derived from others: tuned by parameters, mixed by weights, or both with the frequent words of train."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from geval_py import errors
from geval_py.reading import challenge, compression, rewriting, splits, wordprobs
from geval_py.reading.files import changed, find_file
from geval_py.reading.lines import (
    Bytes,
    LineReader,
    check_line_count,
    count_lines,
    decode_lines,
    first_name,
    read_lines,
)
from geval_py.reading.outputs import Output, output_at
from geval_py.scoring.evaluate import kept_path
from geval_py.scoring.kernel import backends
from geval_py.scoring.recipes import Parameters, Recipe, Shares
from geval_py.text import named, some_of, visible

DEFAULT_WORDS = 100
ALL_WORDS = 10_000  # of train, with which tuning by line is tried: rarer ones make no difference
OUTPUT_ENDING = ".tsv"
MAX_LABEL = 100  # characters of the names of mixed outputs


def frequent_words(answers: Iterable[str], count: int) -> Shares:
    """Return the shares of the ``count`` most frequent answers that an output can list.

    In case of ties they are the first by code points. Answers that an output cannot list, such as those with a space,
    count in the total but are left out.
    """
    counts = Counter(answers)
    total = counts.total()
    words = sorted(filter(wordprobs.is_listable, counts), key=lambda word: (-counts[word], word))[:count]
    return {word: counts[word] / total for word in words}


def frequent_words_of_train(split: splits.Split, count: int) -> Shares:
    """Return the most frequent answers in the train/expected.tsv beside a test set; none without such a file."""
    path = splits.training_answers(split.expected)
    return {} if path is None else frequent_words(read_lines(path, header=split.output_header), count)


def read_parameters(path: str) -> tuple[Parameters, dict[str, Any]]:
    """Read a file of tuning: its parameters and the whole document; raises UnreadableFileError."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        return Parameters.of_dict(document["parameters"]), document
    except OSError as error:
        raise errors.UnreadableFileError(path=path, reason=error.strerror or str(error)) from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        reason = "it holds no parameters as geval tune writes them"
        raise errors.UnreadableFileError(path=path, reason=reason) from error


class Derived(NamedTuple):
    """An output that is computed line by line from the ``sources`` and written to ``path``.

    ``header`` is the first name of the header line that a source may begin with. The new output has no header.
    """

    sources: tuple[Output, ...]
    path: str
    header: str | None = None

    def check_free(self, force: bool) -> None:
        """Raise ExistingFileError if a file would be overwritten, unless forced; a source is never overwritten."""
        for path in (self.path, kept_path(self.path)):
            same = os.path.exists(path) and any(
                os.path.samefile(path, source.path) for source in self.sources if os.path.exists(source.path)
            )
            if same or (os.path.lexists(path) and not force):
                raise errors.ExistingFileError(path=path)

    def check_lines(self, test: challenge.DataSet | None = None, counts: Mapping[str, int] | None = None) -> int:
        """Return the number of lines; ``counts`` are those of files that were read before.

        Raises LineCountError for a source with another number of lines than a test set's files or the first source.
        """
        beside = () if test is None else ((test.input, test.in_header), (test.expected, test.out_header))
        files = [(file, first_name(names)) for file, names in beside if file is not None]
        counts = dict(counts or {})
        for file, header in (*files, *((source.file, self.header) for source in self.sources)):
            if file.name not in counts:
                counts[file.name] = count_lines(file, header=header)
        first = self.sources[0].path
        for path in (*(file.name for file, _ in files), first):
            for source in self.sources:
                check_line_count("output", source.path, counts[source.path], path, counts[path])
        return counts[first]

    def write(
        self, recipe: Recipe, kept: Mapping[str, Any], *, progress: Callable[[int], None] | None = None
    ) -> None:
        """Write the lines, compressed by the path's ending, and ``kept``, the parameters, as JSON beside them.

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


def _compressed_ending(path: str) -> str:
    return next((ending for ending in compression.COMPRESSED_ENDINGS if path.endswith(ending)), "")


def derived_output(sources: Sequence[Output], name: str, parameter: str, folder: str, header: str | None) -> Derived:
    """Return an output in a folder, with one more parameter in its name, compressed like the first source.

    >>> bigram = output_at("dev-0/out-model=bigram.tsv.xz")
    >>> derived_output([bigram], bigram.name, "tuned=nu", "dev-0", None).path
    'dev-0/out-model=bigram,tuned=nu.tsv.xz'
    """
    stem = name.removesuffix(OUTPUT_ENDING)
    joined = f"{stem}{',' if '-' in stem else '-'}{parameter}{OUTPUT_ENDING}{_compressed_ending(sources[0].path)}"
    return Derived(tuple(sources), os.path.join(folder, joined), header)


def tuned_output(parameters: Parameters, output: Output, folder: str, header: str | None) -> Derived:
    """Return the tuned version of an output, in a folder."""
    unchanged = Parameters().numbers
    changed = (name for name, value in parameters.numbers.items() if value != unchanged.get(name))
    return derived_output([output], output.name, f"tuned={'-'.join(changed)}", folder, header)


def mixed_output(outputs: Sequence[Output], folder: str, header: str | None, more: Sequence[str] = ()) -> Derived:
    """Return the mixture of two or more outputs, in a folder; ``more`` are names of other ingredients.

    >>> outputs = [output_at(f"dev-0/out{name}") for name in ("-model=bigram,lr=0.1.tsv.xz", ".tsv")]
    >>> mixed_output(outputs, "dev-0", None).path
    'dev-0/out-mix=bigram-0.1+out.tsv.xz'
    """
    labels = []
    for output in outputs:
        stem = output.name.removesuffix(OUTPUT_ENDING).removeprefix("out-")
        labels.append(re.sub(r"[^\w.-]", "-", "-".join(output.parameters.values()) or stem))
    labels += more
    label = "+".join(labels)
    if len(label) > MAX_LABEL or len(set(labels)) < len(labels):
        label = f"{len(labels)}-outputs"
    return derived_output(outputs, "out.tsv", f"mix={label}", folder, header)


def find_output(test: challenge.DataSet, output: Output) -> Output:
    """Find the output with the same name in another test set; raises MissingFileError, AmbiguousFileError."""
    place = os.path.join(test.directory, output.name)
    path = find_file(place)
    if path is None:
        there = some_of(one.name for one in test.outputs) or "no output"
        hint = f"the output for {visible(test.name)} must have the same name; {named(test.directory)} holds {there}"
        raise errors.MissingFileError(what="No file with the test results", path=place, hint=hint)
    return output_at(path)
