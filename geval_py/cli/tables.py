"""Tables on standard output: as their reader, a person or a program, takes them."""

from __future__ import annotations

import sys

from geval_py.showing.tables import Table
from geval_py.showing.terminals import width_of


def write_table(table: Table) -> None:
    """Write a table line by line: in columns that fit into the terminal, elsewhere with TABs and without a header."""
    width = width_of(sys.stdout)
    sys.stdout.writelines(table.tabs() if width is None else table.terminal(width))


def write_listing(table: Table) -> None:
    """Write a table whose columns need no names: aligned, and cut only where a terminal is too narrow."""
    width = width_of(sys.stdout)
    sys.stdout.writelines(table.text(header=False) if width is None else table.terminal(width, header=False))
