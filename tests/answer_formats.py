"""Answers in other formats than TSV, as files in a test set's folder."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq


def as_json_lines(folder, words):
    (folder / "expected.jsonl").write_text("".join(json.dumps({"answer": word}) + "\n" for word in words))


def as_parquet(folder, words):
    pq.write_table(pa.table({"answer": words}), folder / "expected.parquet")


def as_dataset(folder, words):
    """Write what ``Dataset.save_to_disk`` of the package datasets writes."""
    place = folder / "expected"
    place.mkdir()
    table = pa.table({"answer": words})
    with (
        pa.OSFile(str(place / "data-00000-of-00001.arrow"), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as to,
    ):
        to.write_table(table)
    (place / "dataset_info.json").write_text('{"features": {"answer": {"dtype": "string", "_type": "Value"}}}')
    (place / "state.json").write_text('{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}')


WRITE = {"expected.jsonl": as_json_lines, "expected.parquet": as_parquet, "expected": as_dataset}  # by their names


def in_another_format(folder, name):
    """Replace a folder's expected.tsv by the same answers in another format."""
    words = (folder / "expected.tsv").read_text(encoding="utf-8").splitlines()
    (folder / "expected.tsv").unlink()
    WRITE[name](folder, words)


def remove(folder, name):
    if name == "expected":
        shutil.rmtree(folder / name)
    else:
        (folder / name).unlink()
