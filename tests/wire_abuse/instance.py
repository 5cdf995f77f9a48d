"""An instance of a transactional producer, made by hand: no real client sends what it does on demand."""

from __future__ import annotations

from faircopy.api.add_partitions_to_txn import SCHEMA as ADD_PARTITIONS_TO_TXN
from faircopy.api.end_txn import SCHEMA as END_TXN
from faircopy.api.fetch.fetch import SCHEMA as FETCH
from faircopy.api.init_producer_id import SCHEMA as INIT_PRODUCER_ID
from faircopy.api.list_offsets import SCHEMA as LIST_OFFSETS
from faircopy.api.produce.produce import SCHEMA as PRODUCE
from faircopy.client.connection import BrokerConnection
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch, decode_records

TOPIC = "haunted"


class Instance:
    """A transactional producer, one request at a time, on any of its connections."""

    def __init__(self, connection: BrokerConnection, transactional_id: str) -> None:
        self.connection = connection
        self._id = transactional_id
        answer = connection.ask(
            INIT_PRODUCER_ID,
            2,
            {"transactional_id": transactional_id, "transaction_timeout_ms": 60_000},
        )
        assert answer.error_code == ErrorCode.NONE
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequence = 0

    def identity(self) -> dict[str, object]:
        return {"transactional_id": self._id, "producer_id": self.producer_id, "producer_epoch": self.epoch}

    def add(self, version: int = 1, on: BrokerConnection | None = None) -> int:
        topics = {"topics": [{"name": TOPIC, "partitions": [0]}]}
        answer = (on or self.connection).ask(ADD_PARTITIONS_TO_TXN, version, self.identity() | topics)
        return int(answer.results[0].partitions[0].error_code)

    def produce(self, value: bytes, sequence: int | None = None, on: BrokerConnection | None = None) -> int:
        """Produce one message; a repeated one if its sequence is given."""
        batch = build_batch(
            [NewRecord(value)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence if sequence is None else sequence,
            transactional=True,
        )
        partitions = [{"index": 0, "records": batch}]
        body = {"transactional_id": self._id, "acks": -1, "timeout_ms": 5_000}
        topics = {"topic_data": [{"name": TOPIC, "partition_data": partitions}]}
        answer = (on or self.connection).ask(PRODUCE, 7, body | topics)
        code = int(answer.responses[0].partition_responses[0].error_code)
        if sequence is None and not code:
            self.sequence += 1
        return code

    def end(self, *, commit: bool = True, on: BrokerConnection | None = None, version: int = 1) -> int:
        body = self.identity() | {"committed": commit}
        return int((on or self.connection).ask(END_TXN, version, body).error_code)


def renew(
    connection: BrokerConnection, transactional_id: str, identity: tuple[int, int], version: int
) -> tuple[int, int]:
    """Ask for the next epoch as the owner of an old identity (KIP-360): the error, and the epoch."""
    body = {"transactional_id": transactional_id, "transaction_timeout_ms": 60_000}
    body |= dict(zip(("producer_id", "producer_epoch"), identity, strict=True))
    answer = connection.ask(INIT_PRODUCER_ID, version, body)
    return int(answer.error_code), int(answer.producer_epoch)


def visible(connection: BrokerConnection) -> list[bytes]:
    """All values in the topic's log, once what is acked is visible (P8)."""
    end = connection.ask(
        LIST_OFFSETS,
        5,
        {"topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "timestamp": -1}]}]},
    )
    end_offset = end.topics[0].partitions[0].offset
    values: list[bytes] = []
    while len(values) < end_offset:
        asked = {"partition": 0, "fetch_offset": len(values), "partition_max_bytes": 1}
        body = {
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 1,
            "topics": [{"topic": TOPIC, "partitions": [asked]}],
        }
        records = connection.ask(FETCH, 11, body).responses[0].partitions[0].records
        values += [record.value or b"" for record in decode_records(bytes(records))]
    return values
