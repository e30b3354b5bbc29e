"""Sorting of more texts than should be in memory."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import closing


def sort_texts(keyed: Iterable[tuple[float, str]], *, greatest_first: bool) -> Iterator[str]:
    """Yield texts by their keys; equals in order, and NaN last.

    Meanwhile they are in temporary files of SQLite's, since those of a million lines would take a gigabyte of memory.
    """
    import sqlite3

    with closing(sqlite3.connect("")) as database:
        try:
            database.execute("PRAGMA page_size = 65536")  # larger pages are fewer system calls
            database.execute("CREATE TABLE texts (key REAL, text TEXT)")
            database.executemany("INSERT INTO texts VALUES (?, ?)", keyed)  # NaN becomes NULL
            order = "DESC" if greatest_first else "ASC"
            for (text,) in database.execute(f"SELECT text FROM texts ORDER BY key IS NULL, key {order}, rowid"):
                yield text
        except sqlite3.OperationalError as error:
            number = errno.ENOSPC if error.sqlite_errorcode == sqlite3.SQLITE_FULL else errno.EIO
            raise OSError(number, os.strerror(number)) from error
