"""Acks of drafts tell the offsets to be expected, unless the topic says that they do not."""

from __future__ import annotations

from typing import Any

from faircopy.api.add_partitions_to_txn import SCHEMA as ADD_PARTITIONS_TO_TXN
from faircopy.api.create_topics import SCHEMA as CREATE_TOPICS
from faircopy.api.end_txn import SCHEMA as END_TXN
from faircopy.api.init_producer_id import SCHEMA as INIT_PRODUCER_ID
from faircopy.api.produce.produce import SCHEMA as PRODUCE
from faircopy.client.connection import BrokerConnection
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch


def test_acks_of_drafts_tell_expected_offsets_unless_the_topic_says_no(
    connections: list[BrokerConnection],
) -> None:
    """Those that the messages get if nobody else writes before the commit, and never a higher one."""
    connection = connections[0]
    made: dict[str, Any] = {"num_partitions": 1, "replication_factor": 1, "assignments": []}
    silent = [{"name": "transactional.ack.offset", "value": "none"}]
    topics = [
        made | {"name": "expecting", "configs": []},
        made | {"name": "silent", "configs": silent},
    ]
    answer = connection.ask(CREATE_TOPICS, 5, {"topics": topics, "timeout_ms": 5_000})
    assert [each.error_code for each in answer.topics] == [ErrorCode.NONE] * 2
    given = connection.ask(INIT_PRODUCER_ID, 2, {"transactional_id": "e/1", "transaction_timeout_ms": 60_000})
    identity = {
        "transactional_id": "e/1",
        "producer_id": given.producer_id,
        "producer_epoch": given.producer_epoch,
    }

    def add() -> None:
        for topic in ("expecting", "silent"):
            topics = {"topics": [{"name": topic, "partitions": [0]}]}
            answer = connection.ask(ADD_PARTITIONS_TO_TXN, 1, identity | topics)
            assert answer.results[0].partitions[0].error_code == ErrorCode.NONE

    def produce(topic: str, sequence: int | None, *values: bytes) -> int:
        named = {
            "producer_id": given.producer_id,
            "producer_epoch": given.producer_epoch,
            "transactional": True,
        }
        header = named | {"base_sequence": sequence} if sequence is not None else {}
        batch = build_batch([NewRecord(value) for value in values], **header)
        data = {"name": topic, "partition_data": [{"index": 0, "records": batch}]}
        transactional_id = "e/1" if sequence is not None else None
        body = {"transactional_id": transactional_id, "acks": -1, "timeout_ms": 5_000, "topic_data": [data]}
        answer = connection.ask(PRODUCE, 7, body).responses[0].partition_responses[0]
        assert answer.error_code == ErrorCode.NONE
        return int(answer.base_offset)

    add()
    assert produce("expecting", None, b"plain") == 0
    assert [produce("expecting", 0, b"a", b"b"), produce("expecting", 2, b"c")] == [1, 3]
    assert produce("expecting", 0, b"a", b"b") == 1, "repeated"
    assert produce("silent", 0, b"a draft") == -1
    assert produce("silent", None, b"plain") == 0
    assert produce("expecting", None, b"plain: in between") == 1
    assert produce("expecting", 3, b"d") == 5, "after what this transaction and others have by now"
    end = connection.ask(END_TXN, 1, identity | {"committed": True})
    assert end.error_code == ErrorCode.NONE
    add()
    assert produce("expecting", 4, b"e") == 6
