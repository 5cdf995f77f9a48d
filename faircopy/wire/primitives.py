"""The building blocks of every message: varints, texts, lengths and tagged fields (KIP-482), for hand-written
code.

The readers take a buffer and the byte to start at, and return the value and the byte where the next one
starts. They compare a length with the number of bytes that remain before they read them. They raise
MalformedMessage. They also raise UnicodeDecodeError and, at the end of the buffer, IndexError and
struct.error: the reader of a whole message turns these into MalformedMessage.
"""

from __future__ import annotations

import struct

from faircopy.errors import FaircopyError

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_VARINT_BITS_MAX = 32

CUT_SHORT = (IndexError, struct.error, UnicodeDecodeError)
"""The exceptions other than MalformedMessage that readers raise when the bytes are not a message."""


ELEMENTS_MAX = 100_000
"""The limit on the elements of all arrays of one request together. A single byte of a request can be an
element; an element takes a hundred bytes and some microseconds, and its answer takes the same again.
"""

TAGS_MAX = 32
"""The limit on the tagged fields of one structure."""


class MalformedMessage(FaircopyError):
    """The bytes that a client sent are not a valid message. Nothing of it took effect."""


class TooManyElements(MalformedMessage):
    """The lists of a message are longer than allowed, or too long for its reader to read at once."""


class ElementBudget:
    """Counts the elements of one message up to a limit."""

    __slots__ = ("_left", "_most")

    def __init__(self, most: int = ELEMENTS_MAX) -> None:
        self._most = self._left = most

    def renew(self) -> None:
        """Start counting for another message."""
        self._left = self._most

    def take(self, count: int) -> int:
        """Return `count` if that many more elements are allowed. Raises TooManyElements."""
        self._left -= count
        if self._left < 0:
            raise TooManyElements(f"more than {self._most} elements in one message")
        return count


def read_varint(buffer: memoryview, at: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits."""
    if (number := buffer[at]) < 0x80:
        return number, at + 1
    number = 0
    for i in range(5):
        byte = buffer[at + i]
        number |= (byte & 0x7F) << 7 * i
        if byte < 0x80 and not number >> _VARINT_BITS_MAX:
            return number, at + i + 1
    raise MalformedMessage(f"varint at byte {at} has more than {_VARINT_BITS_MAX} bits")


def varint(number: int) -> bytes:
    """The bytes of an unsigned varint."""
    if number < 0x80:
        return number.to_bytes(1, "big")
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_compact_length(buffer: memoryview, at: int) -> tuple[int, int]:
    """A compact length or count; -1 for null."""
    number, at = read_varint(buffer, at)
    return number - 1, at


def read_count(buffer: memoryview, at: int) -> tuple[int, int]:
    """The count of a non-flexible array that may not be null."""
    count: int = _INT32.unpack_from(buffer, at)[0]
    if count < 0:
        raise MalformedMessage(f"array of {count} elements at byte {at}")
    return count, at + 4


def read_compact_count(buffer: memoryview, at: int) -> tuple[int, int]:
    """The count of a compact array that may not be null."""
    count, after = read_compact_length(buffer, at)
    if count < 0:
        raise MalformedMessage(f"array is null at byte {at}")
    return count, after


def read_text(buffer: memoryview, at: int) -> tuple[str | None, int]:
    """A non-flexible string, or None for null."""
    size = _INT16.unpack_from(buffer, at)[0]
    if size < -1:
        raise MalformedMessage(f"string of {size} bytes at byte {at}")
    view, at = read_view(buffer, at + 2, size)
    return (None if view is None else str(view, "utf-8")), at


def read_compact_text(buffer: memoryview, at: int) -> tuple[str | None, int]:
    """A compact string, or None for null."""
    size, at = read_compact_length(buffer, at)
    view, at = read_view(buffer, at, size)
    return (None if view is None else str(view, "utf-8")), at


def read_view(buffer: memoryview, at: int, size: int) -> tuple[memoryview | None, int]:
    """`size` bytes as a slice of the buffer; None for a size of -1, which means null."""
    if size < 0:
        return None, at
    end = at + size
    if end > len(buffer):
        raise MalformedMessage(f"{size} bytes announced at byte {at}, {len(buffer) - at} remain")
    return buffer[at:end], end


def read_tag_count(buffer: memoryview, at: int) -> tuple[int, int]:
    """How many tagged fields follow."""
    count, after = read_varint(buffer, at)
    if count > TAGS_MAX:
        raise MalformedMessage(f"{count} tagged fields at byte {at}, at most {TAGS_MAX} are read")
    return count, after


def read_tag_head(buffer: memoryview, at: int) -> tuple[int, int, int]:
    """Number and size in bytes of a tagged field, and where its value starts."""
    tag, at = read_varint(buffer, at)
    size, at = read_varint(buffer, at)
    left = len(buffer) - at
    if size > left:
        raise MalformedMessage(f"tagged field {tag} says {size} bytes at byte {at}, {left} remain")
    return tag, size, at


def skip_tags(buffer: memoryview, at: int) -> int:
    """The end of the section of tagged fields that starts at byte `at`."""
    if not (count := buffer[at]):
        return at + 1
    count, at = read_tag_count(buffer, at)
    for _ in range(count):
        _, size, at = read_tag_head(buffer, at)
        at += size
    return at
