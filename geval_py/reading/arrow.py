"""pyarrow, of the extra parquet, and the arrays in its batches, without numpy and without pyarrow.compute."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from geval_py.errors import MissingPackageError, UnreadableFileError
from geval_py.version import installs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def pyarrow() -> Any:
    """Import pyarrow; raises MissingPackageError with the command that installs it."""
    try:
        import pyarrow as pa
    except ImportError as error:
        message = f"Parquet is read by pyarrow, of the extra parquet: {installs('parquet')}"
        raise MissingPackageError(message=message, package="pyarrow") from error
    return pa


def in_command() -> bool:
    """Whether this is the process of the command, not of a program that uses the package."""
    command = getattr(sys.modules["__main__"], "__spec__", None)
    return "geval_py.__main__" in sys.modules or (command is not None and command.name == "geval_py.__main__")


def import_pyarrow_alone(module: str = "pyarrow") -> None:
    """Import pyarrow, or a module of it, without what it imports if it can: numpy takes longer than the rest.

    pyarrow then has no numpy and no cloudpickle for as long as the process lives. So this is for the process of the
    command alone, where it only scores; anywhere else it does nothing.
    """
    if not in_command() or module in sys.modules or "numpy" in sys.modules:
        return
    modules: Any = sys.modules
    hidden = [name for name in ("numpy", "cloudpickle") if name not in modules]
    modules.update(dict.fromkeys(hidden))  # an import of None fails
    try:
        pyarrow()
        import_module(module)
    finally:
        for name in hidden:
            modules.pop(name, None)  # another thread may have been here


@contextmanager
def reading(path: str, fault: str = "not well-formed Parquet") -> Iterator[None]:
    """Turn pyarrow's errors into an UnreadableFileError."""
    pa = pyarrow()
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).split("\n", 1)[0]
        raise UnreadableFileError(path=path, reason=f"it is {fault}: {reason}") from error


def numbers_in(numbers: Any) -> memoryview[Any]:
    """Return the buffer of an array of int32, int64, float or double; ``to_numpy`` would need numpy."""
    kind: Any = {"int32": "i", "int64": "q", "float": "f", "double": "d"}[str(numbers.type)]
    buffer: memoryview[Any] = memoryview(numbers.buffers()[1] or b"").cast("B").cast(kind)
    return buffer[numbers.offset : numbers.offset + len(numbers)]


def starts_in(words: Any) -> memoryview[int]:
    """Return where the words of an array begin in its buffer of text, and where the last one ends."""
    kind: Any = "q" if str(words.type).startswith("large") else "i"
    buffer: memoryview[int] = memoryview(words.buffers()[1] or bytes(8)).cast("B").cast(kind)
    return buffer[words.offset : words.offset + len(words) + 1]


def text_size(values: Any) -> int:
    """Return how many bytes the words of an array have, each as often as it is there; 0 for numbers."""
    if hasattr(values, "dictionary"):
        sizes = compute("take", lengths(values.dictionary), values.indices)
        return compute("sum", sizes).as_py() or 0
    if "string" not in str(values.type):
        return 0
    starts = starts_in(values)
    return starts[-1] - starts[0]


def lengths(words: Any) -> Any:
    """Return the sizes of words."""
    return compute("binary_length", words)


def compute(function: str, *arrays: Any) -> Any:
    """Call one of Arrow's functions; the first call takes 0.02 s, and pyarrow.compute would take as long again."""
    import_pyarrow_alone("pyarrow._compute")
    from pyarrow._compute import call_function

    return call_function(function, list(arrays))


def leaves_in(batch: Any) -> list[Any]:
    """Return the arrays of words and numbers in a batch."""
    return [leaf for column in batch.columns for leaf in leaves_of(column)]


def leaves_of(array: Any) -> Iterator[Any]:
    """Yield the arrays of words and numbers in lists, structures and maps of them."""
    if hasattr(array, "field"):
        for number in range(array.type.num_fields):
            yield from leaves_of(array.field(number))
    elif hasattr(array, "offsets"):
        yield from leaves_of(entries_of(array))
    else:
        yield array


def entries_of(lists: Any) -> Any:
    """Return the entries of lists or maps as one array; ``flatten`` would import pyarrow.compute, which is slow."""
    offsets = numbers_in(lists.offsets)
    return lists.values.slice(offsets[0], offsets[-1] - offsets[0])
