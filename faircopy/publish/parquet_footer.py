"""The footer of a Parquet file whose pages have moved. Pure.

A footer is a FileMetaData struct in Thrift's compact protocol, as parquet.thrift describes it. It has the
places of pages as bytes from the start of the file; all else stays as it was, also fields that are unknown
here:

    FileMetaData     4: list of RowGroup
    RowGroup         1: list of ColumnChunk, 5: file_offset
    ColumnChunk      2: file_offset, 3: ColumnMetaData, 4: offset_index_offset, 6: column_index_offset
    ColumnMetaData   9: data_page_offset, 10: index_page_offset, 11: dictionary_page_offset,
                     14: bloom_filter_offset

In the compact protocol, a struct is a series of fields, each with a byte of (difference of ids, type); 0 ends
it. Integers are zigzag varints; a list begins with a byte of (size, type).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from faircopy.errors import FaircopyError
from faircopy.wire import primitives, records

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_INTEGERS = (_I16, _I32, _I64)
_LONG_LIST = 15  # in place of a list's size: it follows
_DEPTH_MAX = 32

Places = dict[int, "Places | None"]
"""Where places are in a struct: fields by their ids, with the places in them; None for a place itself."""

_COLUMN_METADATA: Places = {9: None, 10: None, 11: None, 14: None}
_COLUMN_CHUNK: Places = {2: None, 3: _COLUMN_METADATA, 4: None, 6: None}
_ROW_GROUP: Places = {1: _COLUMN_CHUNK, 5: None}
_FILE_METADATA: Places = {4: _ROW_GROUP}


class FooterFormatError(FaircopyError):
    """A footer is not one that pyarrow writes."""


class _Field(NamedTuple):
    """A field of a struct. Values are integers, bytes, lists of `_Field`, or `_List`; for a boolean, None."""

    id: int
    kind: int
    value: Any


class _List(NamedTuple):
    """A list and the type of its elements."""

    kind: int
    elements: list[Any]


def moved(footer: bytes, by_bytes: int) -> bytes:
    """The footer of the same file with all pages moved to the back. Raises FooterFormatError."""
    try:
        reader = _FooterReader(footer)
        fields = reader.struct(0)
        if reader.at != len(footer) or _struct(fields) != footer:
            raise FooterFormatError("it is not encoded as it should be")
    except (IndexError, ValueError) as error:
        raise FooterFormatError(f"it can't be read ({error!r})") from error
    return _struct(_moved(fields, _FILE_METADATA, by_bytes))


def _moved(fields: list[_Field], places: Places, by_bytes: int) -> list[_Field]:
    return [
        field._replace(value=_moved_value(field, places[field.id], by_bytes)) if field.id in places else field
        for field in fields
    ]


def _moved_value(field: _Field, places: Places | None, by_bytes: int) -> Any:
    match field.value:
        case int() if places is None and field.kind in _INTEGERS:
            return field.value + by_bytes if field.value else 0  # 0: there is none
        case _List(kind=kind, elements=elements) if places is not None and kind == _STRUCT:
            return _List(kind, [_moved(each, places, by_bytes) for each in elements])
        case list() if places is not None:
            return _moved(field.value, places, by_bytes)
    raise FooterFormatError(f"its field {field.id} is of another type than it should be")


class _FooterReader:
    """Reads values from front to back."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def struct(self, depth: int) -> list[_Field]:
        """The fields of a struct."""
        if depth > _DEPTH_MAX:
            raise ValueError("it is nested too deep")
        fields: list[_Field] = []
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            fields.append(_Field(number, head & 15, self._value(head & 15, depth)))
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return None
        if kind == _BYTE:
            return self._byte()
        if kind in _INTEGERS:
            return self._zigzag()
        if kind == _DOUBLE:
            return self._take(8)
        if kind == _BINARY:
            return self._take(self._varint())
        if kind == _LIST:
            return self._list(depth)
        if kind == _STRUCT:
            return self.struct(depth + 1)
        raise ValueError(f"type {kind} is unknown")

    def _list(self, depth: int) -> _List:
        head = self._byte()
        size = self._varint() if head >> 4 == _LONG_LIST else head >> 4
        kind = head & 15
        if size > len(self._data):
            raise ValueError("a list is longer than the footer")
        # Booleans in lists take a byte each, other than in structs.
        return _List(
            kind,
            [self._byte() if kind in (_TRUE, _FALSE) else self._value(kind, depth + 1) for _ in range(size)],
        )

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _take(self, size: int) -> bytes:
        self.at += size
        if self.at > len(self._data):
            raise ValueError("it ends too early")
        return self._data[self.at - size : self.at]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)


def _struct(fields: list[_Field]) -> bytes:
    written = bytearray()
    before = 0
    for field in fields:
        difference = field.id - before
        if 0 < difference <= 15:
            written.append(difference << 4 | field.kind)
        else:
            written.append(field.kind)
            written += records.varint(field.id)
        written += _value(field.kind, field.value)
        before = field.id
    written.append(0)
    return bytes(written)


def _value(kind: int, value: Any) -> bytes:
    if kind in (_TRUE, _FALSE):
        return b""
    if kind == _BYTE:
        return bytes([value])
    if kind in _INTEGERS:
        return records.varint(value)
    if kind == _BINARY:
        return primitives.varint(len(value)) + bytes(value)
    if kind == _LIST:
        return _list(value)
    return _struct(value) if kind == _STRUCT else bytes(value)


def _list(value: _List) -> bytes:
    size = len(value.elements)
    short = min(size, _LONG_LIST)
    head = bytes([short << 4 | value.kind]) + (primitives.varint(size) if short == _LONG_LIST else b"")
    if value.kind in (_TRUE, _FALSE):
        return head + bytes(value.elements)
    return head + b"".join(_value(value.kind, each) for each in value.elements)
