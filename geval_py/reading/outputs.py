"""Outputs: found in a folder, with the parameters in their names and the short names that users type; their lines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import chain, count

from geval_py.errors import AmbiguousFileError, DataError, MalformedLineError, MissingFileError, UsageError
from geval_py.reading import sources
from geval_py.reading.lines import read_lines
from geval_py.text import natural_order, visible
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from geval_py.reading.wordprobs import WordProbs

OUTPUT_FILE = "out.tsv"
_VARIANT = r"(out(?:-.*)?\.tsv)(?:\.(?:xz|gz|bz2|zst))?"


class Output(Value):
    """One output to score: its path, its name and the parameters in the name (``out-epochs=10,lr=0.01.tsv``).

    ``fault`` is the error, if it is known before the file is opened: a broken link, or several compressed files.
    """

    path: str
    name: str
    parameters: dict[str, str]
    fault: DataError | None = None


def output_at(path: str) -> Output:
    """Return the output at a path; its name lacks the ending of a compression and the numbers of parts."""
    name = sources.name_of(os.path.basename(path))
    return Output(path=path, name=name, parameters=parse_parameters(name))


def find_outputs(directory: str) -> tuple[Output, ...]:
    """Return the outputs in a directory: out.tsv and out-*.tsv, compressed or not, in natural order.

    The parts of an output count as one. Raises UnreadableFileError if the directory cannot be read; one output's
    fault does not hide the others.
    """
    entries = sources.names_in(directory)
    wholes = sources.wholes_among(entries)
    alone = [*wholes, *(name for name in entries if sources.part_of(name) is None)]
    matches = (re.fullmatch(_VARIANT, name, re.DOTALL) for name in alone)
    names = sorted({match[1] for match in matches if match}, key=natural_order)
    return tuple(output for name in names for output in _found(directory, name, wholes.get(name)))


def _found(directory: str, name: str, whole: str | None) -> Iterator[Output]:
    """Yield the output, unless it was removed meanwhile; ``whole`` is its name with a star if it is in parts."""
    fault = None
    place = os.path.join(directory, name)
    try:
        path = sources.find_file(place)
        if path == place and whole is not None:
            raise AmbiguousFileError(path=place, candidates=(place, os.path.join(directory, whole)))
    except DataError as error:
        path, fault = error.path, error
    if path is not None:
        yield Output(path=path, name=name, parameters=parse_parameters(name), fault=fault)


def read_output(path: str | os.PathLike[str], *, header: str | None = None) -> Iterator[WordProbs]:
    """Read an output's lines one by one: from a file, compressed or not, standard input (``-``) or an address.

    ``header`` is the first name of the header line to skip, if the file begins with it. The file is opened when the
    first line is read. Raises MissingFileError and other DataErrors for a file, and MalformedLineError with path and
    line for the first line that is not in the format.
    """
    from contextlib import closing

    from geval_py.reading.wordprobs import parse_line

    name = os.fspath(path)
    if name != sources.STANDARD_INPUT and not sources.is_address(name):
        found = sources.find_file(name)
        if found is None:
            raise MissingFileError(what="No file with the test results", path=name)
        name = found
    with closing(read_lines(name, header=header)) as lines:
        for number, text in enumerate(lines, 1):
            try:
                yield parse_line(text, number)
            except MalformedLineError as error:
                error.path = name
                raise


def parse_parameters(name: str) -> dict[str, str]:
    """Parse the parameters in an output's name; empty unless the whole name has the form.

    >>> parse_parameters("out-epochs=10,lr=0.01.tsv.xz")
    {'epochs': '10', 'lr': '0.01'}
    """
    match = re.fullmatch(r"[^-]+-(.*?)(?:\.tsv)?(?:\.(?:xz|gz|bz2|zst))?", name, re.DOTALL)
    pairs = [pair.partition("=") for pair in match[1].split(",")] if match else []
    if not all(key.strip() and equals for key, equals, _ in pairs):
        return {}
    return {key.strip(): value.strip() for key, _, value in pairs}


def unique_names(outputs: Sequence[Output]) -> list[str]:
    """Return a unique name for each output: its name, its path, or either with a number."""
    names = [output.name for output in outputs]
    names = [o.path if names.count(name) > 1 else name for o, name in zip(outputs, names, strict=True)]
    unique: list[str] = []
    for name in names:
        numbered = chain([name], (f"{name} ({number})" for number in count(2)))
        unique.append(next(new for new in numbered if new not in unique and (new == name or new not in names)))
    return unique


def by_accepted_names(names: Sequence[str], outputs: Sequence[Output]) -> dict[str, list[int]]:
    """Map each name that a user may type to the indices of the outputs that it means.

    In order of precedence: a name, a path, a file's name, all parameters or values (``epochs=10,lr=0.01`` or
    ``10,0.01``), one parameter or value (``lr=0.01`` or ``10``).
    """
    pairs = [[f"{key}={value}" for key, value in output.parameters.items()] for output in outputs]
    values = [list(output.parameters.values()) for output in outputs]
    called: dict[str, list[int]] = {}
    for kind in (
        [{name} for name in names],
        [{output.path, os.path.normpath(output.path)} for output in outputs],
        [_file_names(output) for output in outputs],
        [{",".join(p), ",".join(v)} - {""} for p, v in zip(pairs, values, strict=True)],
        [{*p, *v} - {""} for p, v in zip(pairs, values, strict=True)],
    ):
        called = {name: [n for n, known in enumerate(kind) if name in known] for name in set().union(*kind)} | called
    return called


def _file_names(output: Output) -> set[str]:
    stem = output.name.removesuffix(".tsv")
    return {os.path.basename(output.path), output.name, stem, stem.removeprefix("out-")}


def only_output(outputs: Sequence[Output]) -> Output:
    """Return the only one of the outputs; raises UsageError where there are several."""
    if len(outputs) > 1:
        names = visible(", ".join(output.name for output in outputs))
        raise UsageError(message=f"there are several outputs ({names}): choose one with", arguments=("out",))
    return outputs[0]
