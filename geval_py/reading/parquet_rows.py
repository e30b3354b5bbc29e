"""The rows of an output in Parquet for a score: decoded by the kernel where the file is of the usual form.

That is what most writers write by default. pyarrow reads all else, and what is wanted of an output beside a score
(:mod:`geval_py.reading.parquet`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain

from geval_py.reading.arrow import import_pyarrow_alone
from geval_py.reading.parquet_footer import opened_file, read_footer
from geval_py.reading.parquet_headers import Unpacked
from geval_py.reading.parquet_lists import ListReader, NotUsualError
from geval_py.reading.parquet_schema import usual_leaves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from geval_py.reading.listed import ListedRows
    from geval_py.reading.parquet_batches import ParquetFile
    from geval_py.reading.parquet_lists import Decoding, Planned


def read_rows(path: str, decoding: Decoding) -> Iterator[ListedRows | Any]:
    """Yield the rows of a file for a score: decoded if they are lists of the usual form, otherwise in record batches.

    Raises as :func:`geval_py.reading.parquet.batches`. Where the command needs pyarrow, it imports it without numpy.
    """
    with opened_file(path) as file:
        yield from _rows(path, file, decoding)


def _rows(path: str, file: BinaryIO, decoding: Decoding) -> Iterator[ListedRows | Any]:
    footer = read_footer(path, file, decoding.read_struct)
    unpacked = Unpacked(path, footer.size)

    @cache
    def by_pyarrow() -> ParquetFile:
        from geval_py.reading.parquet_batches import ParquetFile

        import_pyarrow_alone()
        return ParquetFile(path, file, footer, unpacked)

    leaves = usual_leaves(footer)
    if leaves is None:
        yield from by_pyarrow().batches()
        return
    reader = ListReader(path, file, footer, leaves, decoding)

    def alone(planned: Planned) -> Iterator[ListedRows | Any]:
        done, before = 0, unpacked.size
        try:
            for listed in reader.read([planned], reader.limit_of([planned], unpacked)):
                done += len(listed.offsets) - 1
                yield listed
        except NotUsualError:
            unpacked.size = before
            yield from by_pyarrow().of_group(planned.number, done)

    for run, together in reader.runs():
        if together is None:
            yield from chain.from_iterable(map(alone, run))
        else:
            unpacked.add(together.unpacked)
            yield from together.rows
