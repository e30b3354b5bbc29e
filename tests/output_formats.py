"""Outputs in other formats than TSV, as people write them with json, csv and pyarrow."""

import csv
import gzip
import io
import json
import lzma

import pyarrow as pa
import pyarrow.parquet as pq

from geval_py import parse_line
from geval_py.reading.wordprobs import are_probabilities

KEYS = ("words", "probabilities", "logprobs", "buckets")
PACK = {".gz": gzip.compress, ".xz": lzma.compress}


def values_of(line):
    row = parse_line(line)
    numbers = list(row.values)
    if row.words is None:
        return {"buckets": numbers}
    return {"words": list(row.words), "probabilities" if are_probabilities(numbers) else "logprobs": numbers}


def write_as(path, lines):
    """Write the lines of an output into a file in the format of its ending."""
    rows = [values_of(line) for line in lines]
    plain, _, ending = str(path).rpartition(".")
    pack = PACK.get(f".{ending}")
    name = str(path) if pack is None else plain
    if name.endswith((".parquet", ".pq")):
        numbers = pa.list_(pa.float64())
        schema = pa.schema([(key, pa.list_(pa.string()) if key == "words" else numbers) for key in KEYS])
        pq.write_table(pa.Table.from_pylist(rows, schema), path)
        return
    if name.endswith(".csv"):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        (unit,) = {key for row in rows for key in row if key != "words"}
        writer.writerow(["id", "label", "p" if unit == "probabilities" else "logprob"])
        for number, row in enumerate(rows, 1):
            writer.writerows([number, word, repr(p)] for word, p in zip(row["words"], row[unit], strict=True))
        data = text.getvalue()
    elif name.endswith(".json"):
        data = json.dumps(rows)
    else:
        data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    with open(path, "wb") as file:
        file.write((pack or bytes)(data.encode()))
