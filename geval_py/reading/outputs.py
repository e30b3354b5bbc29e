"""The outputs of a test set: files such as ``out-epochs=10,lr=0.01.tsv``, and the names that users type for them."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from geval_py.errors import DataError, MalformedLineError, MissingFileError, UsageError
from geval_py.reading import files
from geval_py.reading.files import File
from geval_py.reading.lines import read_lines
from geval_py.text import natural_order, some_of, suggestion, visible

if TYPE_CHECKING:
    from geval_py.reading.wordprobs import WordProbs

OUTPUT_FILE = "out.tsv"
READ_ENDINGS = ".tsv, .jsonl, .parquet and .csv"
_ANY_FORMAT = "|".join((".tsv", *files.FORMAT_ENDINGS)).replace(".", r"\.")
COMPANIONS = MODEL_ENDING, MIXING_ENDING = ".model.json", ".mixing.json"  # written beside outputs by predict and mix
_NOT_KEPT = "".join(f"(?<!{re.escape(ending)})" for ending in COMPANIONS)
_ANY_COMPRESSION = r"(?:\.(?:xz|gz|bz2|zst))?"
# An output's name, without the ending of a compression and as a whole, and what tells it from others: model=a,k=3.
OUTPUT_NAME = rf"(?s)(out(?:-(.*))?(?:{_ANY_FORMAT}){_NOT_KEPT}){_ANY_COMPRESSION}"


_MISNAMED = r"(?i)(?:out|pred|result|submi|hyp|guess).*?(\.[^.]*|)"  # with its ending


BASELINES = ("rest", "uniform", "unigram", "document", "ngram", "ngram-both")  # of geval baseline, the worse first
MIXED = "mix"  # the parameter of outputs that geval mix made
RUNS = ("seed", "random_seed", "run", "rep", "repetition", "trial")  # parameters that often tell training runs apart


class Output(NamedTuple):
    """One output to score: its file, its name and the parameters in the name (``out-epochs=10,lr=0.01.tsv``).

    ``fault`` is the error, if it is known before the file is opened: a broken link, or several compressed files.
    """

    file: File
    name: str
    parameters: dict[str, str]
    fault: DataError | None = None

    @property
    def path(self) -> str:
        """The file as it was named."""
        return self.file.name

    @property
    def is_baseline(self) -> bool:
        """Whether the name is one that ``geval baseline`` writes."""
        return self.parameters.get("model") in BASELINES and len(self.parameters) == 1


def output_at(path: str) -> Output:
    """Return the output at a path; its name lacks the ending of a compression."""
    name = files.name_of(os.path.basename(path))
    file = File(path)
    if files.format_ending(name):
        from geval_py.reading.formats import output_lines

        file = File(path, output_lines)
    return Output(file, name, parse_parameters(name))


def find_outputs(directory: str) -> tuple[Output, ...]:
    """Return the outputs in a directory: out.tsv, out-*.tsv and other formats, compressed or not, in natural order.

    A directory that does not exist has none. Raises UnreadableFileError if it cannot be read; one output's fault does
    not hide the others.
    """
    present = files.names_in(directory) if os.path.isdir(directory) else ()
    matches = (re.fullmatch(OUTPUT_NAME, name) for name in present)
    outputs: list[Output] = []
    for name in sorted({match[1] for match in matches if match}, key=natural_order):
        fault = None
        path: str | None
        try:
            path = files.find_file(os.path.join(directory, name))
        except DataError as error:
            path, fault = error.path, error
        if path is not None:  # otherwise it was removed meanwhile
            outputs.append(output_at(path)._replace(fault=fault))
    return tuple(outputs)


def advice_on_names(names: Iterable[str]) -> str:
    """Return what to do with the files of a test set without an output that seem to be outputs; "" without any.

    >>> advice_on_names(["expected.tsv", "output.tsv"])
    'output.tsv is not scored; rename it to out-NAME.tsv'
    >>> advice_on_names(["OUT.TSV"])
    'OUT.TSV is not scored; rename it to out-NAME.tsv'
    """
    for name in sorted((name for name in names if not name.endswith(COMPANIONS)), key=natural_order):
        whole, ending = files.name_of(name), files.format_ending(name)
        match = re.fullmatch(_MISNAMED, whole)
        if match and (ending or match[1].lower() in ("", ".tsv", ".txt", ".out")):
            new = f"out-NAME{ending or '.tsv'}{name.removeprefix(whole)}"
            return f"{visible(name)} is not scored; rename it to {new}"
        if re.match(r"out[-.]", name):
            unpack = "unpack it: " if name.endswith((".zip", ".tar", ".tgz", ".7z", ".rar")) else ""
            return f"{visible(name)} is not scored; {unpack}an output ends in .tsv, .jsonl, .json, .parquet or .csv"
    return ""


def parse_parameters(name: str) -> dict[str, str]:
    """Parse the parameters in an output's name; empty unless the whole name has the form.

    >>> parse_parameters("out-epochs=10,lr=0.01.tsv.xz")
    {'epochs': '10', 'lr': '0.01'}
    """
    match = re.fullmatch(rf"[^-]+-(.*?)(?:{_ANY_FORMAT})?{_ANY_COMPRESSION}", name, re.DOTALL)
    pairs = [pair.partition("=") for pair in match[1].split(",")] if match else []
    if not all(key.strip() and equals for key, equals, _ in pairs):
        return {}
    return {key.strip(): value.strip() for key, _, value in pairs}


def by_runs(outputs: Sequence[Output], parameter: str) -> dict[str, list[int]]:
    """Group outputs that differ only in a parameter, by their path without it: the indices of each group."""
    pair = f"{re.escape(parameter)}=[^,]*"
    pair = rf"(?<=[-,]){pair},|[-,]{pair}?(?=(?:{_ANY_FORMAT})?$)"
    groups: dict[str, list[int]] = {}
    for n, output in enumerate(outputs):
        folder, file_name = os.path.split(output.path)
        path = os.path.join(folder if output.name in file_name else "", re.sub(pair, "", output.name))
        groups.setdefault(path, []).append(n)
    return groups


def run_parameter(runs: str) -> str:
    """Return the parameter that tells training runs apart; of a pattern, the one with a usual name or the last.

    >>> run_parameter("runs/{seed}/{model}.tsv"), run_parameter("fold")
    ('seed', 'fold')
    """
    names: list[str] = re.findall(r"\{(\w+)\}", runs) or [runs]
    return next((name for name in names if name in RUNS), names[-1])


def outputs_of_pattern(pattern: str) -> tuple[Output, ...]:
    """Return the outputs at the paths of a pattern, such as ``runs/{model}/seed={seed}/out.tsv``.

    They are named as if they were in one folder: ``out-model=lstm,seed=1.tsv``. Raises UsageError if there are none.
    """
    names, texts = re.findall(r"\{(\w+)\}", pattern), re.split(r"\{\w+\}", pattern)
    paths = glob.glob("*".join(map(glob.escape, texts)))
    expression = "([^/]+)".join(map(re.escape, texts))
    outputs = []
    for path in sorted(paths, key=natural_order):
        if match := re.fullmatch(expression, path):
            parameters = dict(zip(names, match.groups(), strict=True))
            name = ",".join(map("=".join, parameters.items()))
            outputs.append(output_at(path)._replace(name=f"out-{name}.tsv", parameters=parameters))
    if not outputs:
        raise UsageError(f"no file has a path of the pattern {visible(pattern)}")
    return tuple(outputs)


def unique_names(outputs: Sequence[Output]) -> list[str]:
    """Return a unique name for each output: its name or its path, with a number if it is there twice."""
    alike = [output.name for output in outputs]
    names = [o.path if alike.count(o.name) > 1 else o.name for o in outputs]
    numbers = [names[: place + 1].count(name) for place, name in enumerate(names)]
    return [name if number == 1 else f"{name} ({number})" for name, number in zip(names, numbers, strict=True)]


def accepted_names(name: str, output: Output) -> tuple[set[str], ...]:
    """Return what a user may type for an output with a unique ``name``, in order of precedence.

    The name; a path; a file's name, also without its beginning and ending; all parameters (``epochs=10,lr=0.01``),
    the first of them or all as values (``10,lr=0.01``, ``10,0.01``); one parameter or value (``lr=0.01``, ``0.01``).
    """
    stem = re.sub(rf"(?:{_ANY_FORMAT})$", "", output.name)
    pairs = [f"{key}={value}" for key, value in output.parameters.items()]
    values = list(output.parameters.values())
    return (
        {name},
        {output.path, os.path.normpath(output.path)},
        {os.path.basename(output.path), output.name, stem, stem.removeprefix("out-")},
        {",".join(pairs), ",".join([*values[:1], *pairs[1:]]), ",".join(values)} - {""},
        {*pairs, *values} - {""},
    )


def by_accepted_names(names: Sequence[str], outputs: Sequence[Output]) -> dict[str, list[int]]:
    """Map each of the :func:`accepted_names` to the indices of the outputs that it means."""
    accepted: dict[str, list[int]] = {}
    for kind in zip(*map(accepted_names, names, outputs), strict=True):
        new: dict[str, list[int]] = {}
        for n, typed in enumerate(kind):
            for name in typed:
                new.setdefault(name, []).append(n)
        accepted = new | accepted
    return accepted


def short_names(outputs: Sequence[Output]) -> list[str]:
    """Return the name of each output in tables: unique, short, and one that commands accept.

    >>> short_names([output_at(f"out{name}.tsv") for name in ("", "-model=bigram", "-k=3,lr=0.1", "-k=4,lr=0.1")])
    ['out', 'bigram', 'k=3,lr=0.1', 'k=4,lr=0.1']
    """
    names = unique_names(outputs)
    accepted = by_accepted_names(names, outputs)
    short = []
    for n, output in enumerate(outputs):
        pairs = [f"{key}={value}" for key, value in output.parameters.items()]
        first = list(output.parameters.values())[:1]
        if first and first[0][:1].isdecimal():  # a number says nothing without what it is of
            first = pairs[:1]
        stem = re.sub(rf"(?:{_ANY_FORMAT})$", "", output.name).removeprefix("out-")
        name = ",".join([*first, *pairs[1:]]) or stem
        short.append(name if accepted.get(name) == [n] else names[n])
    return short


def own_names(given: Mapping[str, str], names: Sequence[str], outputs: Sequence[Output], what: str) -> dict[str, str]:
    """Return a user's own names for outputs, by the unique ``names`` of these; raises as :func:`find_output`."""
    return {names[find_output(name, names, outputs, what)]: text for name, text in given.items()}


def find_output(name: str, names: Sequence[str], outputs: Sequence[Output], what: str) -> int:
    """Return the index of the output that a name, a path or a shorter name means; ``what`` outputs there are.

    Raises UsageError if none or several are meant.
    """
    accepted = by_accepted_names(names, outputs)
    meant = accepted.get(name) or accepted.get(os.path.normpath(name), [])
    if len(meant) == 1:
        return meant[0]
    if meant:
        what = f"{len(meant)} of the outputs {what}\n  {some_of(names[n] for n in meant)}"
        raise UsageError(f"`{visible(name)}` names {what}")
    close = suggestion(name, (other for other, indices in accepted.items() if len(indices) == 1))
    advice = f"{close}there are {some_of(names)}"
    raise UsageError(f"`{visible(name)}` is none of the outputs {what}\n  {advice}")


def only_output(outputs: Sequence[Output]) -> Output:
    """Return the only one of the outputs; raises UsageError where there are several."""
    if len(outputs) > 1:
        names = some_of(output.name for output in outputs)
        raise UsageError(f"there are several outputs ({names}): choose one with", arguments=("output",))
    return outputs[0]


def output_named(name: str) -> Output:
    """Return the output at a path, which is completed; raises MissingFileError."""
    path = files.find_file(name)
    if path is None:
        raise MissingFileError(what="No file with the test results", path=name)
    return output_at(path)


def read_output(path: str | os.PathLike[str], *, header: str | None = None) -> Iterator[WordProbs]:
    """Read an output's lines one by one: from a file, compressed or not, standard input (``-``) or an address.

    A file that ends in .jsonl, .json, .parquet or .csv is in that format. ``header`` is the first name of the header
    line to skip, if the file begins with it. The file is opened when the first line is read. Raises MissingFileError
    and other DataErrors for a file, and MalformedLineError with path and line for the first line that is not in the
    format.
    """
    from geval_py.reading.wordprobs import parse_line

    file = output_named(os.fspath(path)).file
    with closing(read_lines(file, header=header)) as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield parse_line(line, number)
            except MalformedLineError as error:
                error.path = file.name
                raise
