"""Seeds of record batches, of each codec and kind."""

from __future__ import annotations

import struct

import cramjam

from faircopy.wire.batch import HEADER, HEADER_BYTES, read_header
from faircopy.wire.records import NewRecord, build_batch, with_crc
from tests.fuzz.batches import ENCODERS
from tests.fuzz.columns import BATCHES_MAX
from tests.fuzz.seeds.seed import Seeds, sized
from tests.unit.publish.publish_oracle import POISON, with_section

MESSAGES = [
    NewRecord(b"value", b"key", 1_000),
    NewRecord(None, None, 2_000, (("h", b"x"), ("h", None))),
    NewRecord(b""),
]
CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
MADE = b"\0" + bytes(4) + b"\x0f" + bytes(9)  # the choices for one plain message, in a header that fits


def batches() -> Seeds:
    """Batches of each codec and kind."""
    plain = build_batch(MESSAGES, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    yield "transactional", plain
    yield "append-time", build_batch(MESSAGES, append_time_ms=5_000)
    for name, number in CODECS.items():
        section = bytes(ENCODERS[number](plain[HEADER_BYTES:]))
        header = read_header(plain)
        changed = header._replace(
            length=HEADER_BYTES - 12 + len(section), attributes=header.attributes | number
        )
        yield name, with_crc(HEADER.pack(*changed) + section)


def record_batches() -> Seeds:
    for name, batch in batches():
        yield name, b"\1" + batch
    yield "made", b"\3" + MADE


def decompression() -> Seeds:
    for name, number in CODECS.items():
        yield name, bytes([number]) + bytes(ENCODERS[number](b"some text, " * 20))
    framed = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    block = bytes(cramjam.snappy.compress_raw(b"some text, " * 20))
    yield "snappy-java", bytes([2]) + framed + (struct.pack(">i", len(block)) + block) * 2
    yield "zstd-bomb", bytes([4]) + bytes(cramjam.zstd.compress(bytes(64 << 20)))
    yield "gzip-bomb", bytes([1]) + bytes(cramjam.gzip.compress(bytes(4 << 20)))
    yield "none", b"\0text"


def columns() -> Seeds:
    found = dict(batches())
    for name, batch in found.items():
        yield name, b"\0" + sized(batch)
    yield "all", b"".join(b"\0" + sized(batch) for batch in found.values())
    yield "made", (b"\1" + MADE) * 2
    poison = [with_section(build_batch(MESSAGES[:1]), section) for section in POISON.values()]
    for first in range(0, len(poison), BATCHES_MAX):
        yield (
            f"poison-{first}",
            b"".join(b"\0" + sized(batch) for batch in poison[first : first + BATCHES_MAX]),
        )
