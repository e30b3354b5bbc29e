"""Files that hold something else than lines, known by their first bytes: pointers, archives, arrays, pages."""

from __future__ import annotations

import re

_ZIP = rb"PK\x03\x04.{26}"  # up to the name of the first member
_ARRAYS = "write its rows with geval_py.write_output('out.tsv', probabilities, vocabulary=words)"
CONTENTS = (  # how a file begins, what it is, and what to do; the first that fits
    (rb"version https://git-lfs\.github\.com/spec/", "a git-lfs pointer", "run git lfs pull"),
    (rb"[./]*(\.git)?/annex/objects/", "a git-annex pointer", "run git annex get"),
    (rb".{257}ustar(\x00|  \x00)", "a tar archive", "unpack it with tar -xf"),
    (_ZIP + rb"(\[Content_Types\]\.xml|docProps/|_rels/|xl/)", "an Excel workbook", "save it as text or CSV"),
    (_ZIP + rb"[^/]+\.npy", "a file of numpy arrays (.npz)", _ARRAYS),
    (_ZIP + rb"[^/]+/data\.pkl", "a file of PyTorch", f"load it with torch.load, and {_ARRAYS}"),
    (rb"PK(\x03\x04|\x05\x06)", "a zip archive", "unpack it"),
    (rb".{6}\x00\x00\{\"", "a file of safetensors", f"it has numbers without words: {_ARRAYS}"),
    (rb"\x80[\x02-\x05]", "a pickle of Python or PyTorch", f"load it, and {_ARRAYS}"),
    (rb"\x93NUMPY", "a numpy array (.npy)", _ARRAYS),
    (rb"PAR1\x15", "Parquet", "name it .parquet"),
    (rb"SQLite format 3\x00", "an SQLite database", "export the table as CSV"),
    (rb"%PDF-", "a PDF document", "export the text"),
    (rb"\s*(?i:<!doctype html)", "an HTML page", "download the file itself, perhaps by its raw link"),
)


def foreign_content(head: bytes) -> str | None:
    """Return what a file is that begins with these bytes, and what to do; None for lines of text.

    ``head`` are the first 512 bytes or more; of a compressed file, those inside.

    >>> foreign_content(b"%PDF-1.7"), foreign_content(b"the:0.5 :0.5")
    ('a PDF document: export the text', None)
    """
    matches = (f"{what}: {advice}" for start, what, advice in CONTENTS if re.match(start, head, re.DOTALL))
    return next(matches, None)
