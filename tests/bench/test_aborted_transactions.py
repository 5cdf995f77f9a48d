"""Aborted transactions are put where the protocol has them, and nothing else of a Fetch response changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.protocols.aborted_transactions import AbortedTransaction, put_aborted
from faircopy.api.fetch.fetch import SCHEMA as FETCH
from faircopy.wire.fetch import FetchResult, encode_fetch_response
from faircopy.wire.messages import decode_response

FETCH_VERSIONS = range(4, 13)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)
offsets = st.integers(0, 1 << 40)
aborted = st.lists(st.builds(AbortedTransaction, int64, offsets), max_size=3) | st.just(
    [AbortedTransaction(7, 42)] * 200
)
payloads = st.binary(max_size=20) | st.just(b"r" * 300)
# What is read for a partition is one piece; a partition that nothing is read for has none.
pieces = st.lists(payloads, max_size=1)
results = st.builds(
    FetchResult,
    st.sampled_from(["a", "b"]),
    st.integers(0, 9),
    st.just(0),
    offsets,
    offsets,
    offsets,
    pieces,
    st.none(),
)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@settings(max_examples=60, deadline=None)
@given(told=st.lists(st.tuples(results, aborted), max_size=5))
def test_aborted_transactions_of_each_partition(
    version: int, told: list[tuple[FetchResult, list[AbortedTransaction]]]
) -> None:
    response = encode_fetch_response(version, 77, [result for result, _ in told])
    before = rows(version, response)
    put_aborted(version, response, [transactions for result, transactions in told if result.records])
    after = rows(version, response)
    assert [row[:-1] for row in after] == [row[:-1] for row in before]
    assert [row[-1] for row in after] == [
        transactions if result.records else [] for result, transactions in told
    ]


def rows(version: int, response: list[Any]) -> list[tuple[Any, ...]]:
    """What a client reads of each partition; the aborted transactions are last."""
    frame = b"".join(response)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    _, decoded = decode_response(FETCH, version, memoryview(frame)[4:])
    return [
        (
            topic.topic, row.partition_index, row.error_code, row.high_watermark, row.last_stable_offset,
            row.log_start_offset, row.preferred_read_replica, bytes(row.records),
            [(each.producer_id, each.first_offset) for each in row.aborted_transactions],
        )
        for topic in decoded.responses
        for row in topic.partitions
    ]  # fmt: skip
