"""Outputs derived from others: tuned by parameters, mixed by weights, or both with the frequent words of train."""

from __future__ import annotations

import json
import math
import operator
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar, NamedTuple, TypeAlias

from geval_py import errors
from geval_py.reading import challenge, compression, schemes, splits, wordprobs
from geval_py.reading import rewriting as files
from geval_py.reading.lines import LineReader, decode_lines, read_lines
from geval_py.reading.outputs import Output, output_at
from geval_py.reading.sources import can_be_reread, find_file
from geval_py.scoring.kernel import backends, rewriting
from geval_py.text import named, some_of, visible

Shares: TypeAlias = Mapping[
    str, float
]  # of words in all answers, the most frequent first; each above 0, at most 1 in all

DEFAULT_WORDS = 100
ALL_WORDS = 10_000  # of train, with which tuning by line is tried: rarer ones make no difference
BY_LINE = "by-line"
REST_OFFSET = 0.001  # added to a rest before its logarithm is taken
MIN_PART, MAX_PART = 1e-6, 1 - 1e-6  # of lambda and nu, so that other words always keep a rest
MAX_FIGURE = 4.0  # standard deviations of a line's figure: a stranger line counts as one so far off
MIN_SCALE = 0.01  # of a figure: a smaller spread is noise
VECTOR_CHARACTERS = 13  # of a bucket's mass, as a vector is written
ENTRY_CHARACTERS = 12  # of an entry, beside its word
OUTPUT_ENDING = ".tsv"
KEPT_ENDING = ".tuning.json"
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
    path = splits.training_answers(split)
    return {} if path is None else frequent_words(read_lines(path, header=split.output_header), count)


def line_figures(masses: Sequence[float], rest: float) -> tuple[float, float, float, float]:
    """Return what lambda and nu of a line depend on, from the masses of its entries, or of its buckets.

    ln(rest + 0.001), the greatest mass, ln(1 + number of entries), and 1 for a line without entries.

    >>> [round(figure, 3) for figure in line_figures([0.5, 0.2], 0.3)], line_figures([], 0.999)
    ([-1.201, 0.5, 1.099, 0.0], (0.0, 0.0, 0.0, 1.0))
    """
    return (
        math.log(rest + REST_OFFSET),
        max(masses, default=0.0),
        math.log1p(len(masses)),
        0.0 if masses else 1.0,
    )


class ByLine(NamedTuple):
    """How lambda and nu of a line depend on its figures.

    With x = (1, (figures - ``centres``) / ``scales``), they are 1 / (1 + exp(-a.x)), where a is ``lambda_`` or
    ``nu``.
    """

    centres: tuple[float, ...]
    scales: tuple[float, ...]
    lambda_: tuple[float, ...]
    nu: tuple[float, ...]

    def parts(self, figures: Sequence[float]) -> tuple[float, float]:
        """Return lambda and nu of a line."""
        columns = zip(figures, self.centres, self.scales, strict=True)
        apart = ((figure - centre) / scale for figure, centre, scale in columns)
        x = (1.0, *(min(max(figure, -MAX_FIGURE), MAX_FIGURE) for figure in apart))

        def part(weights: Sequence[float]) -> float:
            place = max(-700.0, sum(map(operator.mul, weights, x)))  # the exponential is finite
            return min(max(1.0 / (1.0 + math.exp(-place)), MIN_PART), MAX_PART)

        return part(self.lambda_), part(self.nu)

    def to_dict(self) -> dict[str, list[float]]:
        """Return the numbers for JSON."""
        return {name.rstrip("_"): list(numbers) for name, numbers in self._asdict().items()}

    @classmethod
    def of_dict(cls, values: dict[str, Any]) -> ByLine:
        """Read the result of :meth:`to_dict`; raises KeyError, TypeError and ValueError for anything else."""
        columns = [tuple(map(float, values[name])) for name in ("centres", "scales", "lambda", "nu")]
        figures = len(line_figures((), 0.0))
        are_finite = all(map(math.isfinite, chain(*columns)))
        lengths = [len(column) for column in columns]
        if lengths != [figures, figures, figures + 1, figures + 1] or not are_finite or min(columns[1]) < MIN_SCALE:
            raise ValueError("the numbers by line are too many, too few, or out of range")
        return cls(centres=columns[0], scales=columns[1], lambda_=columns[2], nu=columns[3])


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters of tuning; the defaults change nothing. ``bits`` are those of the metric's hash.

    The masses of words are raised to the power 1/``temperature`` and keep their total. The part ``lambda_`` of all
    mass then goes to the rest, and the part ``nu`` of the rest to the ``frequent`` words, by their shares. With
    ``by_line``, each line has a lambda and a nu of its own instead.
    """

    temperature: float = 1.0
    lambda_: float = 0.0
    nu: float = 0.0
    frequent: Shares = field(default_factory=dict)
    bits: int = schemes.DEFAULT_BITS
    by_line: ByLine | None = None
    weights: ClassVar[tuple[float, ...]] = ()

    @property
    def numbers(self) -> dict[str, Any]:
        """All numbers by their names, for JSON."""
        by_line = {} if self.by_line is None else {BY_LINE: self.by_line.to_dict()}
        return {"temperature": self.temperature, "lambda": self.lambda_, "nu": self.nu} | by_line

    @property
    def tuning(self) -> tuple[float, ...]:
        """All numbers in a row, as the native kernel takes them."""
        return (self.temperature, self.lambda_, self.nu, *chain(*(self.by_line or ())))

    @property
    def uses_words(self) -> bool:
        """Whether a part of some rest goes to the frequent words."""
        return self.nu > 0.0 or self.by_line is not None

    @property
    def as_vectors(self) -> bool:
        """Whether a tuned line is written as masses of buckets, since its words would take more room."""
        characters = sum(len(word) + ENTRY_CHARACTERS for word in self.frequent)
        return self.uses_words and characters > VECTOR_CHARACTERS << self.bits

    def rewrite_line(self, texts: Sequence[str], line: int) -> str:
        """Tune the one output line in a sequence; ``line`` is its number. Raises MalformedLineError without a path.

        The line of a vector is a vector, and so is any line with so many frequent words that it is shorter as one.
        """
        (text,) = texts
        is_vector = ":" not in text
        words: list[str] = []
        if is_vector:
            values = wordprobs.parse_vector(text, line)
            if len(values) != 1 << self.bits:
                raise wordprobs.wrong_vector_length(text, line, len(values), self.bits)
            listed, rest = wordprobs.vector_masses(values), 0.0
        else:
            words, values = wordprobs.parse_entries(text, line)
            listed, rest = wordprobs.entry_masses(words, values)
        lambda_, nu = self.lambda_, self.nu
        if self.by_line is not None:
            lambda_, nu = self.by_line.parts(line_figures(listed, rest))
        greatest, scale = max(listed, default=0.0), 1.0 - lambda_
        if self.temperature != 1.0 and greatest != 0.0:
            listed = [(mass / greatest) ** (1.0 / self.temperature) for mass in listed]
            scale = scale * (1.0 - rest) / sum(listed)
        listed = [scale * mass for mass in listed]
        rest = (1.0 - lambda_) * rest + lambda_
        to_words = rest * nu
        masses = {} if is_vector else wordprobs.merge_masses(filter(None, words), listed)
        for word, share in self.frequent.items() if to_words else ():
            masses[word] = masses.get(word, 0.0) + to_words * share
        tuned = wordprobs.Distribution(masses=masses, rest=rest - to_words * sum(self.frequent.values()))
        if not is_vector and not self.as_vectors:
            return wordprobs.line_of_masses(masses, tuned.rest)
        buckets = wordprobs.bucket_masses(tuned, self.bits, line)
        return wordprobs.line_of_buckets(list(map(operator.add, buckets, listed)) if is_vector else buckets)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters for JSON: the numbers, the bits, and the frequent words with their shares."""
        frequent = self.frequent if self.uses_words else {}
        return {**self.numbers, "bits": self.bits, "frequent_words": frequent}

    @classmethod
    def of_dict(cls, values: dict[str, Any]) -> Parameters:
        """Read the result of :meth:`to_dict`; raises KeyError, TypeError and ValueError for anything else."""
        frequent = {str(word): float(share) for word, share in values["frequent_words"].items()}
        made = cls(
            temperature=float(values["temperature"]),
            lambda_=float(values["lambda"]),
            nu=float(values["nu"]),
            frequent=frequent,
            bits=int(values["bits"]),
            by_line=ByLine.of_dict(values[BY_LINE]) if BY_LINE in values else None,
        )
        if not (
            made.temperature > 0.0
            and schemes.MIN_BITS <= made.bits <= schemes.MAX_BITS
            and all(map(wordprobs.is_listable, frequent))
            and sum(frequent.values()) <= 1.0 + 1e-9
            and all(0.0 <= part <= 1.0 for part in (made.lambda_, made.nu, *frequent.values()))
        ):
            raise ValueError("a parameter, a word or a share is out of range")
        return made


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixing:
    """The weights of outputs and, last, of the ``frequent`` words, if there are any; together they are 1.

    A mixture adds up the masses of each word, and the rests, by these weights. ``bits`` are those of the metric's
    hash: the mixture of a vector and words is a vector.
    """

    weights: tuple[float, ...]
    frequent: Shares = field(default_factory=dict)
    bits: int = schemes.DEFAULT_BITS
    tuning: ClassVar[tuple[float, ...]] = ()
    as_vectors: ClassVar[bool] = False

    def rewrite_line(self, texts: Sequence[str], line: int) -> str:
        """Return the mixture of one line of each output; ``line`` is its number in the files.

        Raises MalformedLineError, without a path, for the first malformed text.
        """
        parsed = [wordprobs.parse_line(text, line) for text in texts]
        rest = max(0.0, 1.0 - sum(self.frequent.values()))
        frequent = wordprobs.Distribution(masses=dict(self.frequent), rest=rest)
        parts = [frequent] if self.frequent else []
        if any(part.words is None for part in parsed):
            columns = [part.buckets(self.bits, line) for part in parsed]
            columns += [wordprobs.bucket_masses(part, self.bits, line) for part in parts]
            rows = zip(*columns, strict=True)
            return wordprobs.line_of_buckets([sum(map(operator.mul, self.weights, row)) for row in rows])
        parts = [*(part.normalised() for part in parsed), *parts]
        masses: dict[str, float] = {}
        for weight, part in zip(self.weights, parts, strict=True):
            for word, mass in part.masses.items():
                masses[word] = masses.get(word, 0.0) + weight * mass
        return wordprobs.line_of_masses(masses, sum(map(operator.mul, self.weights, (part.rest for part in parts))))

    def to_dict(self) -> dict[str, Any]:
        """Return the mixing for JSON: the weights, the bits, and the frequent words with their shares."""
        return {"weights": self.weights, "bits": self.bits, "frequent_words": self.frequent}


class Derived(NamedTuple):
    """An output that is computed line by line from the ``sources`` and written to ``path``.

    ``header`` is the first name of the header line that a source may begin with. The new output has no header.
    """

    sources: tuple[str, ...]
    path: str
    header: str | None = None

    def check_free(self, force: bool) -> None:
        """Raise ExistingFileError if a file would be overwritten, unless forced; a source is never overwritten."""
        for path in (self.path, kept_path(self.path)):
            same = os.path.exists(path) and any(
                os.path.samefile(path, source) for source in self.sources if os.path.exists(source)
            )
            if same or (os.path.lexists(path) and not force):
                raise errors.ExistingFileError(path=path)
        check_reread(self.sources)

    def check_lines(self, test: challenge.DataSet | None = None) -> int:
        """Return the number of lines.

        Raises LineCountError for a source with another number of lines than a test set's files or the first source.
        """
        beside = () if test is None else ((test.input, test.in_header), (test.expected, test.out_header))
        headers = {path: next(iter(names), None) for path, names in beside if path is not None}
        counts = {}
        for path, header in (headers | dict.fromkeys(self.sources, self.header)).items():
            with LineReader(path, header=header) as reader:
                counts[path] = reader.count_rest()
        first = self.sources[0]
        for path in (*headers, first):
            for source in self.sources:
                if counts[source] != counts[path]:
                    raise errors.LineCountError(
                        what="output",
                        path=source,
                        lines=counts[source],
                        expected_path=path,
                        expected_lines=counts[path],
                    )
        return counts[first]

    def write(
        self, recipe: rewriting.Recipe, kept: Mapping[str, Any], *, progress: Callable[[int], None] | None = None
    ) -> None:
        """Write the lines, compressed by the path's ending, and ``kept``, the parameters, as JSON beside them.

        Each file is written whole or not at all; ``progress`` is called with the number of lines written. Raises
        MalformedLineError and UsageError.
        """
        codec = compression.compression_by_ending(self.path)
        with ExitStack() as stack:
            file = stack.enter_context(files.written_whole(self.path, compression=codec))
            first, *others = (stack.enter_context(LineReader(path, header=self.header)) for path in self.sources)
            written = 0
            while True:
                block = first.block()
                lines = backends.count_lines(block)
                blocks = [block, *(reader.take(lines or 1) for reader in others)]
                if not any(blocks):
                    break
                try:
                    file.write(backends.rewrite_lines(blocks, written + 1, recipe))
                except errors.MalformedLineError as error:
                    texts = [decode_lines(block)[error.line - written - 1] for block in blocks]
                    error.path = self.sources[texts.index(error.text)]
                    raise
                written += lines
                if progress is not None:
                    progress(written)
        with files.written_whole(kept_path(self.path)) as file:
            file.write((json.dumps(kept, indent=2) + "\n").encode())


def check_reread(paths: Iterable[str]) -> None:
    """Raise UsageError for a path that can be read only once."""
    for path in paths:
        if not can_be_reread(path):
            raise errors.UsageError(message=f"{named(path)} has to be read more than once: give a file")


def kept_path(path: str) -> str:
    """Return the path of the file that is beside an output made by tuning or mixing, with its parameters."""
    return path.removesuffix(_compressed_ending(path)).removesuffix(OUTPUT_ENDING) + KEPT_ENDING


def _compressed_ending(path: str) -> str:
    return next((ending for ending in compression.COMPRESSED_ENDINGS if path.endswith(ending)), "")


def set_tuned_on(output: Output) -> str | None:
    """Return the name of the test set that an output was tuned or mixed on, from the file beside it; None if none."""
    try:
        with open(kept_path(output.path), encoding="utf-8") as file:
            match json.load(file):
                case {"test": str(name)}:
                    return name
    except (OSError, ValueError, RecursionError):
        pass
    return None


def derived_output(sources: Sequence[str], name: str, parameter: str, folder: str, header: str | None) -> Derived:
    """Return an output in a folder, with one more parameter in its name, compressed like the first source.

    >>> derived_output(["dev-0/out-model=bigram.tsv.xz"], "out-model=bigram.tsv", "tuned=nu", "dev-0", None).path
    'dev-0/out-model=bigram,tuned=nu.tsv.xz'
    """
    stem = name.removesuffix(OUTPUT_ENDING)
    joined = f"{stem}{',' if '-' in stem else '-'}{parameter}{OUTPUT_ENDING}{_compressed_ending(sources[0])}"
    return Derived(sources=tuple(sources), path=os.path.join(folder, joined), header=header)


def tuned_output(parameters: Parameters, path: str, folder: str, header: str | None) -> Derived:
    """Return the tuned version of an output, in a folder."""
    unchanged = Parameters().numbers
    changed = (name for name, value in parameters.numbers.items() if value != unchanged.get(name))
    return derived_output([path], output_at(path).name, f"tuned={'-'.join(changed)}", folder, header)


def mixed_output(paths: Sequence[str], folder: str, header: str | None, more: Sequence[str] = ()) -> Derived:
    """Return the mixture of two or more outputs, in a folder; ``more`` are names of other ingredients.

    >>> mixed_output(["dev-0/out-model=bigram,lr=0.1.tsv.xz", "dev-0/out.tsv"], "dev-0", None).path
    'dev-0/out-mix=bigram-0.1+out.tsv.xz'
    """
    labels = []
    for output in map(output_at, paths):
        stem = output.name.removesuffix(OUTPUT_ENDING).removeprefix("out-")
        labels.append(re.sub(r"[^\w.-]", "-", "-".join(output.parameters.values()) or stem))
    labels += more
    label = "+".join(labels)
    if len(label) > MAX_LABEL or len(set(labels)) < len(labels):
        label = f"{len(labels)}-outputs"
    return derived_output(paths, "out.tsv", f"mix={label}", folder, header)


def find_output(test: challenge.DataSet, output: Output) -> str:
    """Find the output with the same name in another test set; raises MissingFileError, AmbiguousFileError."""
    place = os.path.join(test.directory, output.name)
    path = find_file(place)
    if path is None:
        there = some_of(one.name for one in test.outputs) or "no output"
        hint = f"the output for {visible(test.name)} must have the same name; {named(test.directory)} holds {there}"
        raise errors.MissingFileError(what="No file with the test results", path=place, hint=hint)
    return path
