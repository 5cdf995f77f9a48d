"""The records section of a Kafka v2 batch, decompressed within a hard bound.

A megabyte of zstd can hold 32 gigabytes, so the size that the input claims never decides how much memory is
taken: output beyond the bound is refused. gzip and zstd are decompressed piece by piece, on demand. zstd
contexts are expensive to make, so they are reused. The output buffer of lz4 grows in steps; a step that is
too small costs one more pass over the input. Each step is four times as large as the last, so all passes
together cost at most a third more than the last one.

Codecs, the low three bits of a batch's attributes: 0 none, 1 gzip, 2 snappy, 3 lz4 frame, 4 zstd. Snappy is
either raw, or in the frame of snappy-java, which Java clients and franz-go send (integers big-endian):

     0  magic     8 bytes  82 "SNAPPY" 00
     8  version   i32, and the oldest version that can read it, i32
    16  blocks    each: length i32, then that many bytes of raw snappy
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator

import cramjam
import zstandard

from faircopy.errors import FaircopyError

NONE = 0
GZIP = 1
SNAPPY = 2
LZ4 = 3
ZSTD = 4

Bytes = bytes | bytearray | memoryview
_FIRST_OUTPUT_BYTES = 64 * 1024
_GROWTH = 4
_OUTPUT_IS_FULL = (
    "write whole buffer"  # in cramjam's message: the output is too small, the input may be valid
)

_JAVA_SNAPPY_MAGIC = b"\x82SNAPPY\x00"
_JAVA_SNAPPY_HEADER_BYTES = 16
_INT32 = struct.Struct(">i")
_SNAPPY_GREATEST_RATIO = 32  # its densest element copies 64 bytes and takes 2

_GZIP_FORMAT = 31  # tells zlib to expect gzip's header and trailer
_GZIP_PIECE_BYTES = 64 << 10
_GZIP_INPUT_BYTES = 16 << 10  # at a time, since zlib copies the input that it did not use
_ZSTD_INPUT_BYTES_MIN = 128  # these make at most 4 MiB: zstd's densest block turns 4 bytes into 128 KiB
_ZSTD_INPUT_BYTES_MAX = 1024
_ZSTD_PIECE_BYTES = 256 << 10  # after a larger piece of output, less input is given at a time
_ZSTD_KEPT_BYTES = 10 << 20  # larger contexts are not kept: the client chooses the window, up to 128 MiB
_idle_decompressors: list[zstandard.ZstdDecompressor] = []  # each is used by one thread at a time


class RecordsError(FaircopyError):
    """The records section of a batch can't be decompressed, or is not a sequence of records."""


class TooLargeError(RecordsError):
    """The records section of a batch decompresses to more than the bound."""


def decompress(codec: int, compressed: Bytes, limit_bytes: int) -> Bytes:
    """The decompressed bytes, at most `limit_bytes` of them; with codec 0, `compressed` itself.

    Raises TooLargeError beyond the bound, and RecordsError for bytes that the codec can't decompress.
    """
    if codec == NONE:
        _check_size(len(compressed), limit_bytes)
        return compressed
    if codec == SNAPPY:
        return _snappy(memoryview(compressed), limit_bytes)
    if codec == LZ4:
        return _lz4(compressed, limit_bytes)
    if codec not in _STREAMS:
        raise RecordsError(f"decompressing a record batch: compression {codec} is not known")
    output = bytearray()
    for piece in decompress_pieces(codec, compressed, limit_bytes):
        output += piece
    return output


def decompress_pieces(codec: int, compressed: Bytes, limit_bytes: int) -> Iterator[Bytes]:
    """The same in pieces; gzip and zstd make each piece on demand."""
    if codec not in _STREAMS:
        yield decompress(codec, compressed, limit_bytes)
        return
    size = 0
    for piece in _STREAMS[codec](memoryview(compressed)):
        size += len(piece)
        _check_size(size, limit_bytes)
        yield piece


def _check_size(size_bytes: int, limit_bytes: int) -> None:
    if size_bytes > limit_bytes:
        raise TooLargeError(
            f"decompressing a record batch: it holds more than the {limit_bytes} bytes allowed"
        )


def _lz4(compressed: Bytes, limit_bytes: int) -> memoryview:
    room = min(limit_bytes, max(_FIRST_OUTPUT_BYTES, _GROWTH * len(compressed)))
    while (output := _lz4_attempt(compressed, room)) is None:
        _check_size(room + 1, limit_bytes)
        room = min(limit_bytes, room * _GROWTH)
    return output


def _lz4_attempt(compressed: Bytes, room: int) -> memoryview | None:
    """The output, or None if it needs more than `room` bytes."""
    output = bytearray(room)
    try:
        size = cramjam.lz4.decompress_into(compressed, output)
    except cramjam.DecompressionError as error:
        if _OUTPUT_IS_FULL in str(error):
            return None
        raise _not_of_codec(error) from error
    return memoryview(output)[:size]  # not cut: that would copy it


def _not_of_codec(error: Exception) -> RecordsError:
    return RecordsError(f"decompressing a record batch: {error}")


def _gzip(compressed: memoryview) -> Iterator[bytes]:
    """The content of all gzip members, of which there may be several, one after the other."""
    at = 0
    try:
        while at < len(compressed) or at == 0:
            member = zlib.decompressobj(_GZIP_FORMAT)
            while not member.eof:
                piece = member.decompress(compressed[at : at + _GZIP_INPUT_BYTES], _GZIP_PIECE_BYTES)
                if not piece and at >= len(compressed):
                    raise RecordsError("decompressing a record batch: its gzip member is cut short")
                at = min(at + _GZIP_INPUT_BYTES, len(compressed)) - len(member.unconsumed_tail)
                yield piece
            at -= len(member.unused_data)
    except zlib.error as error:
        raise _not_of_codec(error) from error


def _zstd(compressed: memoryview) -> Iterator[bytes]:
    """The content of all zstd frames, of which there may be several, one after the other."""
    try:
        decompressor = _idle_decompressors.pop()  # atomic: no other thread gets the same one
    except IndexError:
        decompressor = zstandard.ZstdDecompressor()
    try:
        yield from _zstd_frames(decompressor, compressed)
    except zstandard.ZstdError as error:
        raise _not_of_codec(error) from error
    finally:
        if decompressor.memory_size() <= _ZSTD_KEPT_BYTES:
            _idle_decompressors.append(decompressor)


def _zstd_frames(decompressor: zstandard.ZstdDecompressor, compressed: memoryview) -> Iterator[bytes]:
    at, step = 0, _ZSTD_INPUT_BYTES_MIN
    while at < len(compressed) or at == 0:
        frame = decompressor.decompressobj()
        while not frame.eof:
            if at >= len(compressed):
                raise RecordsError("decompressing a record batch: its zstd frame is cut short")
            piece = frame.decompress(compressed[at : at + step])
            at = min(at + step, len(compressed))
            step = (
                min(2 * step, _ZSTD_INPUT_BYTES_MAX)
                if len(piece) < _ZSTD_PIECE_BYTES
                else _ZSTD_INPUT_BYTES_MIN
            )
            yield piece
        at -= len(frame.unused_data)


_STREAMS: dict[int, Callable[[memoryview], Iterator[bytes]]] = {GZIP: _gzip, ZSTD: _zstd}


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
    """The size that the block claims; a claim that snappy can't achieve is refused before memory is taken."""
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
        raise RecordsError(
            f"decompressing a record batch: a snappy block holds {written} of {len(room)} bytes"
        )
