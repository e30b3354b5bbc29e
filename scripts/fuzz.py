"""The fuzz targets that need Python, called by scripts/fuzz.

twin
    A sanitized build of the native kernel gives what the reference gives.
ranges
    The byte ranges of a file, of any size, have the lines that the single reader has.

"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import inspect
import json
import lzma
import math
import os
import sys
import zipfile
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType

import atheris
import numpy as np

from geval_py.errors import MalformedLineError, UnsupportedEncodingError
from geval_py.reading import compression, lines, wordprobs
from geval_py.reading.compression import compression_of
from geval_py.reading.lines import LineReader, decode_lines, read_lines_between, whole_lines
from geval_py.scoring.kernel import ERROR_KINDS, MALFORMED, NO_COLON, NOT_A_NUMBER, NOT_ASCII, reference

ROOT = Path(__file__).parent.parent
WORK = ROOT / "build" / "fuzz"
DATA = ROOT / "tests" / "data"
MEMORY_FILE = os.memfd_create("lines")
lines.READ_AHEAD_BYTES = 1 << 5  # so that small files reach it
DICTIONARY = (
    *(":", " ", ":1", ":0", ":0.5", ":-1", "e-", "E+", "0.", "1e309", "1e-400", "-800", "800", "4.9e-324"),
    *("0.3333333333333333", "12345678901234567890", ",", ";"),
    *("1 nan", "inf", "infinity", "0,5", "5%", "0x", "1_0", "1'0", "--"),
    *(r"\x0d", r"\x0a", r"\x01", r"\xe2\x82", r"\xed\xa0\x80", r"\xf0\x9f\x92\x96", r"\xff"),
)


def load(path: Path) -> ModuleType:
    """Load a build of the native kernel from a file."""
    spec = importlib.util.spec_from_file_location("_native", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compare(native: ModuleType, outputs: bytes, expected: bytes, bits: int, first_line: int) -> None:
    """Raise if the two kernels differ: in a loss by more than 1e-12, in a flag, in what is malformed and how."""
    losses, flags, undecided = native.score_lines(outputs, expected, bits, first_line)
    true_losses, true_flags = reference.score_lines(outputs, expected, bits, first_line)
    left = [index for index, flag in enumerate(flags) if flag & (MALFORMED | ERROR_KINDS) == MALFORMED]
    assert undecided == (left[0] if left else -1)
    for index in left:  # only what hangs on characters beyond ASCII is left to the reference
        assert flags[index] & NOT_ASCII
        assert true_flags[index] & (NO_COLON | NOT_A_NUMBER)
        flags[index] |= true_flags[index] & ERROR_KINDS
    assert flags == true_flags, (flags, true_flags)
    bad = [index for index, flag in enumerate(true_flags) if flag & MALFORMED]
    for one, true in zip(losses, true_losses, strict=True):
        assert (
            one == true
            or (math.isnan(one) and math.isnan(true))
            or math.isclose(one, true, rel_tol=1e-12, abs_tol=1e-12)
        ), (one, true)
    malformed = []
    try:
        native.bounded_losses(outputs, expected, bits, first_line)
    except MalformedLineError as error:
        malformed = [error.line - first_line]
    assert malformed == bad[:1]
    compare_rows(native, outputs, expected, bits, first_line, true_losses)


def compare_rows(
    native: ModuleType, outputs: bytes, expected: bytes, bits: int, first_line: int, losses: Sequence[float]
) -> None:
    """Raise if the entries of a line, as a row of numbers, have another loss, or do not read back as written."""
    texts = [decode_lines(line + b"\n")[0] for line in outputs.split(b"\n")[: len(losses)]]
    answers = decode_lines(expected)
    for line, (text, answer, loss) in enumerate(zip(texts, answers, losses, strict=True), first_line):
        if math.isnan(loss) or ":" not in text:
            continue
        words, values = wordprobs.parse_entries(text, line)
        is_probabilities = wordprobs.are_probabilities(values)
        written = native.format_entries(
            "".join(f"{word}\n" for word in words).encode(), array("d", values), -math.inf, math.inf
        )
        assert wordprobs.parse_entries(written, line) == (words, values)
        if words.count("") > 1:
            continue
        listed = [(word, value) for word, value in zip(words, values, strict=True) if word]
        rest = next((np.array([value]) for word, value in zip(words, values, strict=True) if not word), None)
        vocabulary = {word: number for number, word in enumerate(dict.fromkeys(word for word, _ in listed))}
        packed = native.pack_words("".join(f"{word}\n" for word in vocabulary).encode())
        ids = np.array([[vocabulary[word] for word, _ in listed]], np.int64)
        got, _, fault = native.array_losses(
            packed, np.array([[value for _, value in listed]]), ids, rest,
            answer.encode() + b"\n", np.array([line & 0xFFFFFFFF], np.uint32), bits, 0 if is_probabilities else 1,
        )  # fmt: skip
        assert fault == (0 if not is_probabilities and wordprobs.total_far_above_one(values) else -1)
        if fault == 0:
            continue
        (one,) = got
        assert one == loss or math.isclose(one, loss, rel_tol=1e-11, abs_tol=1e-11), (one, loss)


def run_twin(native: ModuleType, data: bytes) -> None:
    """Score one input of the target lines with both kernels; tests/fuzz/kernel.hpp describes it."""
    if len(data) < 4 or b"\1" not in data[3:]:
        return
    outputs, _, word = data[3:].rpartition(b"\1")
    lines = reference.count_lines(outputs)
    expected = (word.replace(b"\n", b"") + b"\n") * lines
    compare(native, outputs, expected, 1 + data[0] % 24, int.from_bytes(data[1:3], "little"))


def twin_seeds() -> list[bytes]:
    """Return the golden lines and the malformed lines, as fuzzer inputs."""
    with lzma.open(DATA / "golden-lines.jsonl.xz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    inputs = [
        bytes([row["bits"] - 1]) + row["line"].to_bytes(2, "little") + f"{row['out']}\n\1{row['expected']}".encode()
        for row in rows
    ]
    bad = json.loads((DATA / "bad-lines.json").read_text())
    inputs += [b"\x09\0\0" + row["out"].encode() + b"\1ka" for row in bad]
    findings = sorted((DATA / "fuzz-findings").glob("*"))
    return inputs + [path.read_bytes() for path in findings]


def pathological(size: int) -> list[tuple[bytes, bytes, int]]:
    """Lines of at least so many bytes that would hurt a careless parser: outputs, expected words, bits."""
    lines = [
        b"\0" * size,
        b"a" * size,
        b"a" * size + b":1",
        b":" * size,
        b":" * size + b"1",
        b" " * size,
        b"a:0." + b"3" * size,
        b"a:" + b"9" * size,
        b"a:0." + b"0" * size + b"1 :0.5",
        b"a:1e" + b"9" * size,
        b"a:1e-" + b"9" * size,
        b" ".join([b"w:0.000001"] * (size // 5)),
        b" ".join([b"w:-20.5"] * (size // 5)),
        b"a:1:" * (size // 5) + b"1",
        b"\r" * size,
        b"\xff" * size,
        b"\xf0\x9f\x92" * (size // 3) + b":1",
        b" ".join([b"-1.5"] * (size // 5)),
        b"a:0.1,b:" * (size // 8) + b"1",
    ]
    return [(line + b"\n", b"a\n", 16) for line in lines] + [(b"\n" * (size // 10), b"\n" * (size // 10), 10)]


def run_ranges(_: ModuleType, data: bytes) -> None:
    """Read a file's lines whole and in ranges; the first byte chooses the header, the second the size of a range."""
    if len(data) < 2 or compression_of(data[2:]):
        return
    header, size = ("Answer" if data[0] % 2 else None), 1 + data[1]
    os.ftruncate(MEMORY_FILE, 0)
    os.pwrite(MEMORY_FILE, data[2:], 0)
    path = f"/proc/self/fd/{MEMORY_FILE}"
    try:
        reader = LineReader(path, header=header)
    except UnsupportedEncodingError:
        return
    with reader:
        whole = b"".join(iter(partial(reader.block, 64), b""))
    with LineReader(path, header=header) as reader:
        first, end, read_at = reader.offset, len(data) - 2, reader.read_at
        assert read_at is not None
        between = partial(read_lines_between, path, read_at, first=first, size=end)
        found = [bytes(whole_lines(between(start, min(start + size, end)))) for start in range(first, end, size)]
        assert all(not piece or piece.endswith(b"\n") for piece in found)
    assert b"".join(found) == whole, (found, whole)


def range_seeds() -> list[bytes]:
    """Return files with and without a header, a byte order mark, a last LF and carriage returns."""
    texts = [b"a:1\nb:1\n", b"\xef\xbb\xbfa\n\nb", b"Answer\tOther\na\n", b"a\r\n\r", b"\n\n", b""]
    return [bytes((header, size)) + text for text in texts for header in (0, 1) for size in (0, 3)]


def instrument(module: ModuleType) -> None:
    """Let the coverage of a module's functions and methods guide the fuzzer."""
    for owner in (module, *(value for value in vars(module).values() if inspect.isclass(value))):
        for value in list(vars(owner).values()):
            if inspect.isfunction(value) and value.__module__ == module.__name__:
                atheris.instrument_func(value)


def compare_sample(native: ModuleType, path: Path) -> None:
    """Compare the inputs that the native target lines has left in a file, and print their lengths."""
    data, place, lengths = path.read_bytes(), 0, []
    while place + 4 <= len(data):
        size = int.from_bytes(data[place : place + 4], "little")
        one = data[place + 4 : place + 4 + size]
        if len(one) < size:
            break  # the process was ended while it wrote
        try:
            run_twin(native, one)
        except AssertionError:
            (WORK / "findings" / f"twin-{hashlib.sha1(one).hexdigest()}").write_bytes(one)
            raise
        lengths.append(size)
        place += 4 + size
    shown = [sorted(lengths)[len(lengths) * percent // 101] for percent in (10, 50, 90, 100)] if lengths else []
    print(f"fuzz: {len(lengths)} inputs of lines agree with the twin; bytes at 10, 50, 90 and 100 %: {shown}")


def pack_corpus(target: str, folder: Path) -> None:
    """Pack the inputs in a folder, by their size, for tests/fuzz; equal inputs give an equal file."""
    inputs = sorted((path.read_bytes() for path in folder.iterdir()), key=lambda data: (len(data), data))
    with zipfile.ZipFile(ROOT / "tests" / "fuzz" / "corpora" / f"{target}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number, data in enumerate(inputs):
            archive.writestr(zipfile.ZipInfo(f"{number:03}"), data, zipfile.ZIP_DEFLATED)


def main() -> None:
    """Run the known cases, a sample, one input, or the fuzzer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", default="twin")
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--cases", type=Path, help="only the known cases, with this build of the kernel")
    parser.add_argument("--size", type=int, default=1 << 16, help="of the pathological cases")
    parser.add_argument("--sample", type=Path, help="only the inputs in this file")
    parser.add_argument("--file", type=Path, help="only this input")
    parser.add_argument("options", nargs="*", help="of libFuzzer")
    parser.add_argument("--pack", type=Path, help="only pack this folder as the corpus of the target")
    arguments = parser.parse_args()
    if arguments.pack:
        pack_corpus(arguments.target, arguments.pack)
        return
    native = load(arguments.cases or WORK / "_native.so")
    if arguments.cases:
        inputs = twin_seeds()
        for data in inputs:
            run_twin(native, data)
        for outputs, expected, bits in pathological(arguments.size):
            compare(native, outputs, expected, bits, 1)
        print(f"fuzz: {arguments.cases.name}: {len(inputs)} known lines and the pathological ones agree")
        return
    if arguments.sample:
        compare_sample(native, arguments.sample)
        return
    run, seeds = TARGETS[arguments.target]
    if arguments.file:
        run(native, arguments.file.read_bytes())
        return
    for index, data in enumerate(seeds()):
        (arguments.corpus / f"seed-{index}").write_bytes(data)
    for module in (compression, lines):
        instrument(module)
    words = WORK / "dictionary"
    words.write_text("".join(f'"{word}"\n' for word in DICTIONARY))
    options = [f"-dict={words}", *arguments.options]
    atheris.Setup([sys.argv[0], *options, str(arguments.corpus)], partial(run, native))
    atheris.Fuzz()


TARGETS: dict[str, tuple[Callable[[ModuleType, bytes], None], Callable[[], list[bytes]]]] = {
    "twin": (run_twin, twin_seeds),
    "ranges": (run_ranges, range_seeds),
}

if __name__ == "__main__":
    main()
