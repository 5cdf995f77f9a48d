"""The records section of a Kafka v2 batch, decompressed within a hard bound.

A megabyte of zstd can hold 32 gigabytes, so the output is never sized by what the input claims: it grows in
steps, and what would pass the bound is refused. A step that proves too small costs one more pass over the
input; the steps quadruple, so all passes together cost at most a third more than the last one.

Codecs, the low three bits of a batch's attributes: 0 none, 1 gzip, 2 snappy, 3 lz4 frame, 4 zstd. Snappy
comes raw, or in the frame of snappy-java, which Java clients and franz-go send (integers big-endian):

     0  magic     8 bytes  82 "SNAPPY" 00
     8  version   i32, and the oldest version that can read it, i32
    16  blocks    each: length i32, then that many bytes of raw snappy
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import cramjam

from faircopy.errors import FaircopyError

NONE = 0
GZIP = 1
SNAPPY = 2
LZ4 = 3
ZSTD = 4

Bytes = bytes | bytearray | memoryview
_DecompressInto = Callable[[Bytes, bytearray], int]

_FIRST_OUTPUT_BYTES = 64 * 1024
_GROWTH = 4
_OUTPUT_IS_FULL = "write whole buffer"  # in cramjam's message: the output is too small, the input may be good

_JAVA_SNAPPY_MAGIC = b"\x82SNAPPY\x00"
_JAVA_SNAPPY_HEADER_BYTES = 16
_INT32 = struct.Struct(">i")
_SNAPPY_GREATEST_RATIO = 32  # its densest element copies 64 bytes and takes 2

_STREAMS: dict[int, _DecompressInto] = {
    GZIP: cramjam.gzip.decompress_into,
    LZ4: cramjam.lz4.decompress_into,
    ZSTD: cramjam.zstd.decompress_into,
}


class RecordsError(FaircopyError):
    """The records section of a batch does not decompress, or is not a sequence of records."""


class TooLargeError(RecordsError):
    """The records section of a batch decompresses to more than the bound."""


def decompress(codec: int, compressed: Bytes, limit_bytes: int) -> Bytes:
    """The bytes that `compressed` holds, at most `limit_bytes` of them; with codec 0, `compressed` itself.

    Raises TooLargeError beyond the bound, and RecordsError for bytes that are not of the codec.
    """
    if codec == NONE:
        _check_size(len(compressed), limit_bytes)
        return compressed
    if codec == SNAPPY:
        return _snappy(memoryview(compressed), limit_bytes)
    if codec in _STREAMS:
        return _stream(_STREAMS[codec], compressed, limit_bytes)
    raise RecordsError(f"decompressing a record batch: compression {codec} is not known")


def _check_size(size_bytes: int, limit_bytes: int) -> None:
    if size_bytes > limit_bytes:
        raise TooLargeError(f"decompressing a record batch: it holds more than the {limit_bytes} bytes allowed")


def _stream(decompress_into: _DecompressInto, compressed: Bytes, limit_bytes: int) -> bytearray:
    room = min(limit_bytes, max(_FIRST_OUTPUT_BYTES, _GROWTH * len(compressed)))
    while (output := _attempt(decompress_into, compressed, room)) is None:
        _check_size(room + 1, limit_bytes)
        room = min(limit_bytes, room * _GROWTH)
    return output


def _attempt(decompress_into: _DecompressInto, compressed: Bytes, room: int) -> bytearray | None:
    """The output, or None if it takes more than `room` bytes."""
    output = bytearray(room)
    try:
        del output[decompress_into(compressed, output) :]
    except cramjam.DecompressionError as error:
        if _OUTPUT_IS_FULL in str(error):
            return None
        raise _not_of_codec(error) from error
    return output


def _not_of_codec(error: Exception) -> RecordsError:
    return RecordsError(f"decompressing a record batch: {error}")


def _snappy(compressed: memoryview, limit_bytes: int) -> bytearray:
    blocks = list(_java_blocks(compressed)) if compressed[:8] == _JAVA_SNAPPY_MAGIC else [compressed]
    sizes = [_raw_snappy_size(block) for block in blocks]
    _check_size(sum(sizes), limit_bytes)
    output = bytearray(sum(sizes))
    at = 0
    with memoryview(output) as room:
        for block, size in zip(blocks, sizes, strict=True):
            _raw_snappy_into(block, room[at : at + size])
            at += size
    return output


def _java_blocks(framed: memoryview) -> Iterator[memoryview]:
    at = _JAVA_SNAPPY_HEADER_BYTES
    while at < len(framed):
        if at + _INT32.size > len(framed):
            raise RecordsError("decompressing a record batch: its snappy frame is cut short")
        size = _INT32.unpack_from(framed, at)[0]
        at += _INT32.size
        if not 0 <= size <= len(framed) - at:
            raise RecordsError(f"decompressing a record batch: a snappy block claims {size} bytes")
        yield framed[at : at + size]
        at += size


def _raw_snappy_size(block: memoryview) -> int:
    """What the block claims to hold; a claim that snappy can't keep is refused before memory is taken."""
    try:
        size = int(cramjam.snappy.decompress_raw_len(block))
    except cramjam.DecompressionError as error:
        raise _not_of_codec(error) from error
    if size > _SNAPPY_GREATEST_RATIO * len(block):
        raise RecordsError(f"decompressing a record batch: {len(block)} bytes of snappy claim to hold {size}")
    return size


def _raw_snappy_into(block: memoryview, room: memoryview) -> None:
    try:
        written = cramjam.snappy.decompress_raw_into(block, room)
    except cramjam.DecompressionError as error:
        raise _not_of_codec(error) from error
    if written != len(room):
        raise RecordsError(f"decompressing a record batch: a snappy block holds {written} of {len(room)} bytes")
