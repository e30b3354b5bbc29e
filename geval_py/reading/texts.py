"""The lines of a file that are asked for again: kept in memory or, where that can be, read again."""

from __future__ import annotations

from geval_py.reading.lines import READ_AHEAD_BYTES, LineReader, decode_lines
from geval_py.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from geval_py.reading.lines import Bytes


class Text:
    """The lines of a file, taken as a reader reads them; it has to be read to its end.

    With ``reread``, those of a regular file are not kept, but read again.
    """

    def __init__(self, reader: LineReader, *, header: str | None, reread: bool) -> None:
        self._path, self._header = reader.path, header
        self._state = reader.state
        self._reread = reread and self._state is not None
        self._blocks: list[bytes] = []

    def add(self, block: Bytes) -> None:
        """Take the next block, of whole lines."""
        if not self._reread:
            self._blocks.append(bytes(block))

    def read(self) -> Iterator[str]:
        """Give the lines, decoded; raises UnreadableFileError if the file was changed since, and as LineReader."""
        blocks = self._read_again() if self._reread else self._blocks
        return (line for block in blocks for line in decode_lines(block))

    def check(self, reader: LineReader) -> None:
        """Raise UnreadableFileError if a reader of the file finds it changed since."""
        reader.check_state(self._state)

    def _read_again(self) -> Iterator[bytes]:
        with LineReader(self._path, header=self._header) as reader:
            reader.check_state(self._state)
            while block := reader.block(READ_AHEAD_BYTES):
                yield block


class Texts(Value):
    """The texts that were scored."""

    outputs: Text
    expected: Text

    @classmethod
    def of(cls, outputs: LineReader, expected: LineReader, header: str | None, *, reread: bool) -> Texts:
        """Take the texts as they are read; see :class:`Text`."""
        both = (Text(reader, header=header, reread=reread) for reader in (outputs, expected))
        return cls(outputs=next(both), expected=next(both))
