"""Thrift's compact protocol: the native reader finds what the reference finds, whatever the bytes are."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from profiles import examples

from geval_py.reading import parquet_footer, parquet_headers
from geval_py.reading.thrift import BOOL, I16, I32, I64, TEXT, TooManyError, read_struct
from geval_py.scoring.kernel import native

SHAPE = {1: I16, 2: I32, 3: I64, 4: TEXT, 5: BOOL, 6: [I32], 7: [{1: I32, 3: [TEXT]}], 8: {2: {1: I64}}, 300: BOOL}


def outcome(read, data, shape, most):
    try:
        return read(data, shape, most)
    except (IndexError, ValueError) as error:
        return type(error)


def agree(data, shape, most=1000):
    wanted = outcome(read_struct, data, shape, most)
    assert outcome(native.read_struct, data, shape, most) == wanted, data.hex()
    assert outcome(native.read_struct, memoryview(data), shape, most) == wanted
    return wanted


KNOWN = {
    "nothing": ("", IndexError),
    "no field": ("00", ({}, 1)),
    "numbers": ("14 01 15 02 16 03 00", ({1: -1, 2: 1, 3: -2}, 7)),
    "a text": ("48 02 61 62 00", ({4: b"ab"}, 5)),
    "a text that does not end": ("48 03 61 62", IndexError),
    "true and false": ("51 00", ({5: True}, 2)),
    "false": ("52 00", ({5: False}, 2)),
    "a number of 16 bits": ("14 ff ff 03 00", ({1: -32768}, 5)),
    "a number of 17 bits": ("14 80 80 04 00", ValueError),
    "a number of 64 bits": ("36 ff ff ff ff ff ff ff ff ff 01 00", ({3: -(2**63)}, 12)),
    "a number of 65 bits": ("36 ff ff ff ff ff ff ff ff ff 02 00", ValueError),
    "a number that does not end": ("36 ff ff ff ff ff ff ff ff ff ff 00", ValueError),
    "a list": ("69 25 02 04 00", ({6: [1, 2]}, 5)),
    "a long list": ("69 f5 10" + " 02" * 16 + " 00", ({6: [1] * 16}, 20)),
    "a list of another kind": ("69 26 02 04 00", ValueError),
    "an empty list of another kind": ("69 06 00", ({6: []}, 3)),
    "too many entries": ("69 f5 e9 07 00", TooManyError),
    "structures": ("79 2c 15 02 00 39 18 01 61 00 00", ({7: [{1: 1}, {3: [b"a"]}]}, 11)),
    "an absolute number": ("01 d8 04 00", ({300: True}, 4)),
    "the number 0": ("01 00 00", ValueError),
    "a negative number of a field": ("05 01 02 00", ValueError),
    "a field that is there twice": ("15 02 05 02 02 00", ValueError),
    "another field that is there twice": ("95 02 05 12 02 00", ({}, 6)),
    "another kind": ("16 02 00", ValueError),
    "skipped fields": ("91 13 07 17 00 00 00 00 00 00 f0 3f 18 01 61 19 25 02 04 1a 13 01 1c 15 02 00 00", ({}, 27)),
    "a skipped map": ("9b 00 00", ValueError),
    "a skipped list of maps": ("99 1b 00", ValueError),
    "a skipped list of nothing": ("99 01 00", ({}, 3)),
    "structures in structures": ("9c " * 17 + "00 " * 18, ValueError),
    "some structures in structures": ("9c " * 16 + "00 " * 17, ({}, 33)),
}


@pytest.mark.parametrize(("data", "wanted"), KNOWN.values(), ids=KNOWN)
def test_known_bytes(data, wanted):
    assert agree(bytes.fromhex(data), SHAPE) == wanted


def test_bytes_that_are_changed(tmp_path):
    """A footer and the headers of pages, each with some bytes that are others, more or missing."""
    path = tmp_path / "out.parquet"
    table = pa.table({"words": [["a", "b"]] * 50, "probabilities": [[0.5, 0.5]] * 50})
    with open(path, "wb") as file:
        pq.write_table(table, file, row_group_size=20)
    data = path.read_bytes()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    assert read_struct(footer, parquet_footer._FOOTER, 1000)[1] == len(footer)
    draw, read = random.Random(1), 0
    for _ in range(examples(20_000, 300)):
        whole, shape = draw.choice(
            ((footer, parquet_footer._FOOTER), (data[4:200], parquet_headers._PAGE), (footer, SHAPE))
        )
        changed = bytearray(whole)
        for _ in range(draw.choice((0, 1, 1, 2, 5))):
            place = draw.randrange(len(changed))
            changed[place : place + draw.choice((0, 1, 1, 1, 2))] = draw.randbytes(draw.choice((0, 1, 1, 1, 3)))
        read += isinstance(agree(bytes(changed), shape, draw.choice((3, 1000))), tuple)
    assert read > 50


def test_any_bytes():
    """Short ones, of bytes that begin fields."""
    draw = random.Random(2)
    heads = [head for byte in range(13) for head in (byte, 16 + byte, 0x50 + byte)] + [0xF5, 0xFC, 0x80, 0xFF, 0x7F]
    for _ in range(examples(200_000, 2000)):
        agree(bytes(draw.choices(heads, k=draw.randrange(1, 30))), SHAPE, draw.choice((3, 1000)))
