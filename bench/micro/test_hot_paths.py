"""What one core does of the work on the hot paths, without network and disk (pytest-benchmark).

python -m pytest bench/micro --benchmark-only
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

import cramjam
import pytest

from faircopy.api.end_txn import SCHEMA as END_TXN
from faircopy.api.routes import FLEXIBLE_FROM, schema_of
from faircopy.copier.fold import PartitionState
from faircopy.journal.entry import HEADER_BYTES, NOWHERE, Entry, Kind, TransactionId
from faircopy.journal.entry_format import encode_header
from faircopy.wire import batch as batches
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.batch import HEADER, check_produced, read_header
from faircopy.wire.fetch import FetchResult, encode_fetch_response
from faircopy.wire.messages import decode_request, encode_request, encode_response, read_request_header
from faircopy.wire.produce import ProduceResult, encode_produce_response, read_produce_request
from faircopy.wire.record_count import CountingBudget, count_records
from faircopy.wire.records import NewRecord, build_batch, with_crc
from faircopy.wire.timestamps import TimestampClaim

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

BATCH = build_batch(
    [NewRecord(b"x" * 1024) for _ in range(16)], producer_id=1, producer_epoch=0, base_sequence=0
)
TRANSACTION = TransactionId(1, 0, 1)


def frame(api_key: ApiKey, version: int, body: dict[str, Any]) -> memoryview:
    """A request as it comes from a client, without its length."""
    return memoryview(encode_request(schema_of(api_key), version, 1, "bench", body)[4:])


def produce_frame() -> memoryview:
    """A Produce request of one batch."""
    partition = {"index": 0, "records": BATCH}
    topic = {"name": "orders", "partition_data": [partition]}
    return frame(ApiKey.PRODUCE, 9, {"acks": -1, "timeout_ms": 30_000, "topic_data": [topic]})


def test_read_produce_of_16_kib(benchmark: Any) -> None:
    data = produce_frame()
    benchmark(lambda: read_produce_request(9, data, read_request_header(data, FLEXIBLE_FROM).body_at))


def test_check_batch_of_16_kib(benchmark: Any) -> None:
    benchmark(check_produced, memoryview(BATCH))


SHAPES = {
    "160 of 100 B": (160, 100),
    "16 of 1 KiB": (16, 1024),
    "1,000 of 1 KiB": (1_000, 1024),
    "1 of 1 KiB": (1, 1024),
}
CODECS: dict[str, tuple[int, Callable[[bytes], ReadableBuffer]]] = {
    "none": (0, bytes),
    "gzip": (1, cramjam.gzip.compress),
    "snappy": (2, cramjam.snappy.compress_raw),
    "lz4": (3, cramjam.lz4.compress),
    "zstd": (4, cramjam.zstd.compress),
}


def batch_of(shape: str, codec: str, *, varied: bool = False) -> memoryview:
    """Records of one size, or of sizes from half of it to one and a half, half of each being noise."""
    count, size = SHAPES[shape]
    random = Random(1)
    sizes = [random.randint(size // 2, size * 3 // 2) if varied else size for _ in range(count)]
    plain = build_batch([NewRecord(random.randbytes(each // 2) + bytes(each - each // 2)) for each in sizes])
    number, encode = CODECS[codec]
    section = bytes(encode(plain[batches.HEADER_BYTES :]))
    header = read_header(plain)._replace(attributes=number, length=batches.HEADER_BYTES - 12 + len(section))
    return memoryview(with_crc(HEADER.pack(*header) + section))


@pytest.mark.parametrize("shape", SHAPES)
def test_check_batch(benchmark: Any, shape: str) -> None:
    benchmark(check_produced, batch_of(shape, "none"))


@pytest.mark.parametrize("sizes", ["even", "varied"])
@pytest.mark.parametrize("shape", SHAPES)
def test_count_records(benchmark: Any, shape: str, sizes: str) -> None:
    batch = batch_of(shape, "none", varied=sizes == "varied")
    header = read_header(batch)
    benchmark(lambda: count_records(batch, header, CountingBudget(), TimestampClaim(header)))


@pytest.mark.parametrize("codec", list(CODECS)[1:])
@pytest.mark.parametrize("shape", ["160 of 100 B", "16 of 1 KiB"])
def test_count_compressed_records(benchmark: Any, shape: str, codec: str) -> None:
    batch = batch_of(shape, codec)
    header = read_header(batch)
    benchmark(lambda: count_records(batch, header, CountingBudget(), TimestampClaim(header)))


def test_encode_entry_of_16_kib(benchmark: Any) -> None:
    entry = Entry(Kind.PLAIN, 0, HEADER_BYTES + len(BATCH), 16, 0, NOWHERE, TRANSACTION, 0)
    benchmark(encode_header, entry, BATCH, 1)


def test_fold_plain(benchmark: Any) -> None:
    state = PartitionState()
    entry = Entry(Kind.PLAIN, 0, HEADER_BYTES + len(BATCH), 16, 0, NOWHERE, TRANSACTION, 0)
    benchmark(state.fold_plain, entry, read_header(BATCH), BATCH)


def test_encode_produce_response(benchmark: Any) -> None:
    benchmark(encode_produce_response, 9, 1, [ProduceResult("orders", 0, 0, 42)])


def test_encode_fetch_response(benchmark: Any) -> None:
    benchmark(encode_fetch_response, 12, 1, [FetchResult("orders", 0, 0, 42, 42, 0, [BATCH])])


@pytest.mark.parametrize("version", [1, 3])
def test_read_and_answer_end_txn(benchmark: Any, version: int) -> None:
    body = {"transactional_id": "orders/1", "producer_id": 1, "producer_epoch": 0, "committed": True}
    data = frame(ApiKey.END_TXN, version, body)

    def work() -> bytes:
        header = read_request_header(data, FLEXIBLE_FROM)
        decode_request(END_TXN, version, data, header.body_at)
        return encode_response(END_TXN, version, header.correlation_id, {"error_code": 0})

    benchmark(work)
