"""Compare a sanitized build of the native kernel with the reference: called by scripts/fuzz.

An input is a byte for the number of bits, two for the first line's number, then output lines; what follows the last
byte 1 is the expected word of all of them.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import lzma
import math
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import atheris
import numpy as np

from geval_py.reading import wordprobs
from geval_py.reading.lines import decode_lines
from geval_py.scoring.kernel import ERROR_KINDS, MALFORMED, NO_COLON, NOT_A_NUMBER, NOT_ASCII, reference

ROOT = Path(__file__).parent.parent
WORK = ROOT / "build" / "fuzz"
DATA = ROOT / "tests" / "data"
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
    losses, flag_bytes, malformed, undecided, _ = native.score_lines(outputs, expected, bits, first_line, True)
    true_losses, true_flags = reference.score_lines(outputs, expected, bits, first_line)
    got = list(memoryview(losses).cast("d"))
    flags = list(memoryview(flag_bytes).cast("I"))
    left = [index for index, flag in enumerate(flags) if flag & (MALFORMED | ERROR_KINDS) == MALFORMED]
    assert undecided == (left[0] if left else -1)
    for index in left:  # only what hangs on characters beyond ASCII is left to the reference
        assert flags[index] & NOT_ASCII
        assert true_flags[index] & (NO_COLON | NOT_A_NUMBER)
        flags[index] |= true_flags[index] & ERROR_KINDS
    assert flags == list(true_flags), (flags, true_flags)
    bad = [index for index, flag in enumerate(true_flags) if flag & MALFORMED]
    assert malformed == (bad[0] if bad else -1)
    for one, true in zip(got, true_losses, strict=True):
        assert (
            one == true
            or (math.isnan(one) and math.isnan(true))
            or math.isclose(one, true, rel_tol=1e-12, abs_tol=1e-12)
        ), (one, true)
    compare_guesses(native, outputs, expected, bits, first_line, bad)
    compare_rows(native, outputs, expected, bits, first_line, true_losses)


def compare_guesses(
    native: ModuleType, outputs: bytes, expected: bytes, bits: int, first_line: int, bad: list[int]
) -> None:
    """Raise if the two kernels differ in what lines guess; ``bad`` are the malformed ones, where reading ends."""
    counts, masses, hits, rests, malformed = native.read_guesses(outputs, expected, bits, first_line)
    assert malformed == (bad[0] if bad else -1)
    if bad:
        return
    true = reference.read_guesses(outputs, expected, bits, first_line)
    assert list(memoryview(counts).cast("q")) == list(true.counts)
    assert hits == true.hits
    for got, wanted in ((masses, true.masses), (rests, true.rests)):
        for one, other in zip(memoryview(got).cast("d"), wanted, strict=True):
            assert math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-300), (one, other)


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
        ids = np.array([vocabulary[word] for word, _ in listed], np.int64)
        got, _, fault = native.array_losses(
            packed, np.array([value for _, value in listed]), ids, np.array([0, len(ids)]), rest,
            answer.encode() + b"\n", np.array([line & 0xFFFFFFFF], np.uint32), bits, 0 if is_probabilities else 1,
        )  # fmt: skip
        assert fault == -1
        (one,) = memoryview(got).cast("d")
        assert one == loss or math.isclose(one, loss, rel_tol=1e-11, abs_tol=1e-11), (one, loss)


def run_input(native: ModuleType, data: bytes) -> None:
    """Score one fuzzer input with both kernels."""
    if len(data) < 3:
        return
    outputs, _, word = data[3:].rpartition(b"\1")
    lines = reference.count_lines(outputs)
    expected = (word.replace(b"\n", b"") + b"\n") * lines
    compare(native, outputs, expected, 1 + data[0] % 24, int.from_bytes(data[1:3], "little"))


def seeds() -> list[bytes]:
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


def main() -> None:
    """Run the known cases, or the fuzzer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("library", type=Path)
    parser.add_argument("--cases", action="store_true", help="only the known cases")
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--file", type=Path, help="only this input")
    arguments = parser.parse_args()
    native = load(arguments.library)
    if arguments.file:
        run_input(native, arguments.file.read_bytes())
        return
    if arguments.cases:
        inputs = seeds()
        for data in inputs:
            run_input(native, data)
        for outputs, expected, bits in pathological(1 << (20 if arguments.minutes >= 1 else 16)):
            compare(native, outputs, expected, bits, 1)
        print(f"fuzz: {arguments.library.name}: {len(inputs)} known lines and the pathological ones agree")
        return
    for index, data in enumerate(seeds()):
        (WORK / "corpus" / f"seed-{index}").write_bytes(data)
    words = WORK / "dictionary"
    words.write_text("".join(f'"{word}"\n' for word in DICTIONARY))
    options = [
        f"-max_total_time={round(arguments.minutes * 60)}",
        f"-artifact_prefix={WORK / 'findings'}/",
        f"-dict={words}",
        "-max_len=2048",
        "-timeout=20",
        "-print_final_stats=1",
        "-verbosity=0",
    ]
    atheris.Setup([sys.argv[0], *options, str(WORK / "corpus")], lambda data: run_input(native, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
