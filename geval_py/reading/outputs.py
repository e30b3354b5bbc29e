"""Outputs: those in a folder, the parameters in their names, what people call them, and what their lines say."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import chain, count

from geval_py.errors import AmbiguousFileError, DataError, MalformedLineError, MissingFileError, UsageError
from geval_py.reading.lines import read_lines
from geval_py.reading.parts import name_of, part_of, wholes_among
from geval_py.reading.sources import STANDARD_INPUT, find_file, is_address, names_in, naming
from geval_py.text import natural_order, visible
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from geval_py.reading.wordprobs import WordProbs

OUTPUT_FILE = "out.tsv"
_VARIANT = r"(out(?:-.*)?\.tsv)(?:\.(?:xz|gz|bz2|zst))?"


class Output(Value):
    """One output to score: where it is, and the parameters in its name (``out-epochs=10,lr=0.01.tsv``).

    ``fault`` says why it cannot be read, where that is seen before anyone opens it: a link that leads nowhere, or
    several compressed files in place of one.
    """

    path: str
    name: str
    parameters: dict[str, str]
    fault: DataError | None = None


def output_at(path: str) -> Output:
    """Make an output of a path; its name is that of the file, without compression, and without the parts' numbers."""
    name = name_of(os.path.basename(path))
    return Output(path=path, name=name, parameters=parse_parameters(name))


def find_outputs(directory: str) -> tuple[Output, ...]:
    """Give the outputs in a test set's directory: out.tsv and out-*.tsv, compressed or not, in natural order.

    Parts of an output are one (:mod:`geval_py.reading.parts`).
    Raises UnreadableFileError where the directory cannot be read; one output's fault does not hide the others.
    """
    with naming(directory):
        entries = names_in(directory)
    wholes = wholes_among(entries)
    alone = [*wholes, *(name for name in entries if part_of(name) is None)]
    matches = (re.fullmatch(_VARIANT, name, re.DOTALL) for name in alone)
    names = sorted({match[1] for match in matches if match}, key=natural_order)
    return tuple(output for name in names for output in _found(directory, name, wholes.get(name)))


def _found(directory: str, name: str, whole: str | None) -> Iterator[Output]:
    """Give the output of a name, if it was not removed meanwhile; ``whole`` is its name if it is in parts."""
    fault = None
    place = os.path.join(directory, name)
    try:
        path = find_file(place)
        if path == place and whole is not None:
            raise AmbiguousFileError(path=place, candidates=(place, os.path.join(directory, whole)))
    except DataError as error:
        path, fault = error.path, error
    if path is not None:
        yield Output(path=path, name=name, parameters=parse_parameters(name), fault=fault)


def read_output(path: str | os.PathLike[str], *, header: str | None = None) -> Iterator[WordProbs]:
    """Read an output's lines, one by one: of a file, compressed or not, of standard input (``-``), of an address.

    ``header`` is the first name of the header line to skip, if the file begins with it. Nothing is opened before the
    first line is asked for. Raises MissingFileError and the other DataErrors of a file; and MalformedLineError, with
    path and line, at the first line that is not in the format.
    """
    from contextlib import closing

    from geval_py.reading.wordprobs import parse_line

    name = _complete(os.fspath(path))
    with closing(read_lines(name, header=header)) as lines:
        for number, text in enumerate(lines, 1):
            try:
                yield parse_line(text, number)
            except MalformedLineError as error:
                error.path = name
                raise


def _complete(path: str) -> str:
    if path == STANDARD_INPUT or is_address(path):
        return path
    found = find_file(path)
    if found is None:
        raise MissingFileError(what="No file with the test results", path=path)
    return found


def parse_parameters(name: str) -> dict[str, str]:
    """Read the parameters in an output's name; empty unless the whole name has the form.

    >>> parse_parameters("out-epochs=10,lr=0.01.tsv.xz")
    {'epochs': '10', 'lr': '0.01'}
    """
    match = re.fullmatch(r"[^-]+-(.*?)(?:\.tsv)?(?:\.(?:xz|gz|bz2|zst))?", name, re.DOTALL)
    pairs = [pair.partition("=") for pair in match[1].split(",")] if match else []
    if not all(key.strip() and equals for key, equals, _ in pairs):
        return {}
    return {key.strip(): value.strip() for key, _, value in pairs}


def unique_names(outputs: Sequence[Output]) -> list[str]:
    """Name outputs so that no two names are the same: by their paths, and numbers, where need be."""
    names = [output.name for output in outputs]
    names = [o.path if names.count(name) > 1 else name for o, name in zip(outputs, names, strict=True)]
    unique: list[str] = []
    for name in names:
        numbered = chain([name], (f"{name} ({number})" for number in count(2)))
        unique.append(next(new for new in numbered if new not in unique and (new == name or new not in names)))
    return unique


def by_accepted_names(names: Sequence[str], outputs: Sequence[Output]) -> dict[str, list[int]]:
    """Give which outputs may be called so, by their indices: of what a name may mean, the surest."""
    called: dict[str, list[int]] = {}
    for kind in (
        [{name} for name in names],
        [{output.path, os.path.normpath(output.path)} for output in outputs],
        [_file_names(output) for output in outputs],
        [_all_parameters(output) for output in outputs],
        [_one_parameter(output) for output in outputs],
    ):
        called = {name: [n for n, known in enumerate(kind) if name in known] for name in set().union(*kind)} | called
    return called


def _file_names(output: Output) -> set[str]:
    stem = output.name.removesuffix(".tsv")
    return {os.path.basename(output.path), output.name, stem, stem.removeprefix("out-")}


def _all_parameters(output: Output) -> set[str]:
    """Give ``epochs=10,lr=0.01`` and ``10,0.01``: all parameters, or all values."""
    values, pairs = output.parameters.values(), (f"{key}={value}" for key, value in output.parameters.items())
    return {",".join(pairs), ",".join(values)} - {""}


def _one_parameter(output: Output) -> set[str]:
    """Give ``10``, ``lr=0.01`` and the like for epochs=10,lr=0.01: a parameter, or a value."""
    pairs = (f"{key}={value}" for key, value in output.parameters.items())
    return {*pairs, *output.parameters.values()} - {""}


def only_output(outputs: Sequence[Output]) -> Output:
    """Return the only one of the outputs; raises UsageError where there are several."""
    if len(outputs) > 1:
        names = visible(", ".join(output.name for output in outputs))
        raise UsageError(message=f"there are several outputs ({names}): choose one with", arguments=("out",))
    return outputs[0]
