"""Decompression: every codec's real encoder, and bytes that were made to hurt."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import cramjam
import pytest
import zstandard
from aiokafka.codec import snappy_encode
from hypothesis import given
from hypothesis import strategies as st

from faircopy.wire import compression
from faircopy.wire.compression import RecordsError, TooLargeError, decompress
from tests.peak_memory import takes_less_than

MEBIBYTE = 1 << 20

ENCODERS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "none": (compression.NONE, bytes),
    "gzip": (compression.GZIP, lambda data: bytes(cramjam.gzip.compress(data))),
    "gzip of two members": (
        compression.GZIP,
        lambda data: b"".join(bytes(cramjam.gzip.compress(part)) for part in (data[:9], data[9:])),
    ),
    "snappy raw": (compression.SNAPPY, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    "snappy java": (compression.SNAPPY, lambda data: bytes(snappy_encode(data))),
    "lz4": (compression.LZ4, lambda data: bytes(cramjam.lz4.compress(data))),
    "zstd": (compression.ZSTD, lambda data: bytes(cramjam.zstd.compress(data))),
    "zstd with its size": (compression.ZSTD, zstandard.ZstdCompressor().compress),
    "zstd of two frames": (
        compression.ZSTD,
        lambda data: b"".join(map(zstandard.ZstdCompressor().compress, (data[:9], data[9:]))),
    ),
}

every_codec = pytest.mark.parametrize("name", ENCODERS)
every_real_codec = pytest.mark.parametrize("name", [name for name in ENCODERS if name != "none"])


@every_codec
@given(data=st.binary(max_size=2000), times=st.integers(1, 200))
def test_what_was_compressed_comes_back(name: str, data: bytes, times: int) -> None:
    codec, encode = ENCODERS[name]
    assert decompress(codec, encode(data * times), len(data) * times) == data * times


@every_codec
def test_one_byte_beyond_the_bound_is_refused(name: str) -> None:
    codec, encode = ENCODERS[name]
    data = b"fair copy" * 100_000
    assert decompress(codec, encode(data), len(data)) == data
    with pytest.raises(TooLargeError):
        decompress(codec, encode(data), len(data) - 1)


@every_codec
def test_memoryviews_are_taken(name: str) -> None:
    codec, encode = ENCODERS[name]
    assert decompress(codec, memoryview(b"--" + encode(b"draft"))[2:], 100) == b"draft"


@every_real_codec
@given(data=st.data())
def test_garbage_raises_our_error_or_gives_bytes_within_the_bound(name: str, data: st.DataObject) -> None:
    codec, encode = ENCODERS[name]
    garbled = bytearray(encode(data.draw(st.binary(max_size=300)) * 20))
    for at in data.draw(st.lists(st.integers(0, max(0, len(garbled) - 1)), max_size=4)):
        garbled[at : at + 1] = data.draw(st.binary(max_size=3))
    with contextlib.suppress(RecordsError):
        assert len(decompress(codec, garbled, 10_000)) <= 10_000


@every_real_codec
@given(cut=st.integers(1, 40))
def test_cut_short(name: str, cut: int) -> None:
    codec, encode = ENCODERS[name]
    encoded = encode(bytes(range(256)) * 10)
    with pytest.raises(RecordsError):
        decompress(codec, encoded[:-cut], MEBIBYTE)


@pytest.mark.parametrize("name", ["gzip", "lz4", "zstd"])
def test_a_bomb_takes_no_more_memory_than_the_bound(name: str) -> None:
    codec, encode = ENCODERS[name]
    one_piece = 32 * MEBIBYTE if name == "zstd" else MEBIBYTE  # what may come before the bound is looked at
    bomb = encode(bytes(64 * MEBIBYTE))

    def refuse() -> None:
        with pytest.raises(TooLargeError):
            decompress(codec, bomb, 4 * MEBIBYTE)

    assert takes_less_than(4 * MEBIBYTE + one_piece, refuse, name)


def test_a_zstd_frame_that_claims_more_than_it_holds_takes_no_memory() -> None:
    frame = bytearray(zstandard.ZstdCompressor().compress(bytes(100_000)))
    assert frame[4] & 0xC0 == 0x80, "a content size of 4 bytes follows the descriptor"
    frame[5:9] = (2**32 - 1).to_bytes(4, "little")

    def refuse() -> None:
        with pytest.raises(RecordsError):
            decompress(compression.ZSTD, frame, 1 << 40)

    assert takes_less_than(33 * MEBIBYTE, refuse, "a zstd frame")


def test_zstd_after_garbage_and_on_several_threads() -> None:
    plain = [bytes([number]) * 300_000 + bytes(range(256)) * number for number in range(40)]

    frames = [zstandard.ZstdCompressor().compress(data) for data in plain]

    def work(data: bytes, frame: bytes) -> bool:
        with contextlib.suppress(RecordsError):
            decompress(compression.ZSTD, frame[:-5], MEBIBYTE)
        return decompress(compression.ZSTD, frame, MEBIBYTE) == data

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, plain, frames))


def test_a_zstd_window_of_a_client_is_not_kept() -> None:
    wide = zstandard.ZstdCompressionParameters(window_log=27)
    stream = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    frame = stream.compress(b"fair copy" * 1000) + stream.flush()
    assert decompress(compression.ZSTD, frame, MEBIBYTE) == b"fair copy" * 1000
    kept = [each.memory_size() for each in compression._idle_decompressors]
    assert all(size < 11 * MEBIBYTE for size in kept)


def test_snappy_that_claims_gigabytes() -> None:
    claim = b"\xff\xff\xff\xff\x0f" + b"\x00garbage"
    with pytest.raises(RecordsError, match="claim"):
        decompress(compression.SNAPPY, claim, 1 << 40)


@pytest.mark.parametrize("size", [-1, 2**31 - 1, 6])
def test_a_java_snappy_block_that_claims_what_is_not_there(size: int) -> None:
    header = b"\x82SNAPPY\x00" + bytes(8)
    with pytest.raises(RecordsError, match="claims"):
        decompress(compression.SNAPPY, header + size.to_bytes(4, "big", signed=True) + b"12345", MEBIBYTE)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codec(codec: int) -> None:
    with pytest.raises(RecordsError, match="not known"):
        decompress(codec, b"anything", MEBIBYTE)
