"""Seeds of requests, as choices: one of each API, and what belongs together."""

from __future__ import annotations

from typing import Any

from faircopy.api.routes import schema_of
from faircopy.wire.api_keys import ApiKey
from tests.fuzz import broker
from tests.fuzz.seeds.bodies import plain_body
from tests.fuzz.seeds.chosen import Chosen
from tests.fuzz.seeds.seed import Seeds
from tests.fuzz.world import TOPIC

PARTITIONS = {"topics": [{"name": TOPIC, "partitions": [0]}]}
PRODUCER: dict[str, Any] = {"transactional_id": TOPIC, "producer_id": None, "producer_epoch": None}
TRANSACTIONAL_BATCH = 2


def produced(records: int, transactional_id: str) -> dict[str, Any]:
    data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": records}]}]
    return {"transactional_id": transactional_id, "acks": -1, "timeout_ms": 1_000, "topic_data": data}


def begun() -> Chosen:
    """A transaction with a message in it."""
    init = {
        "transactional_id": TOPIC,
        "transaction_timeout_ms": 60_000,
        "producer_id": -1,
        "producer_epoch": -1,
    }
    chosen = Chosen().request(ApiKey.INIT_PRODUCER_ID, 4, init, "producer_id", "producer_epoch")
    chosen.request(ApiKey.ADD_PARTITIONS_TO_TXN, 3, PRODUCER | PARTITIONS)
    return chosen.request(ApiKey.PRODUCE, 9, produced(TRANSACTIONAL_BATCH, TOPIC))


def fetched(offset: int) -> dict[str, Any]:
    asked = {
        "partition": 0,
        "fetch_offset": offset,
        "partition_max_bytes": 60_000,
        "current_leader_epoch": -1,
    }
    return {"max_wait_ms": 0, "max_bytes": 60_000, "topics": [{"topic": TOPIC, "partitions": [asked]}]}


def listed(timestamp: int) -> dict[str, Any]:
    asked = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}
    return {"replica_id": -1, "topics": [{"name": TOPIC, "partitions": [asked]}]}


def requests() -> Seeds:
    for api_key, _, last in broker.VERSIONS:
        body = plain_body(schema_of(api_key).request, last)
        yield f"{schema_of(api_key).name}-{last}", bytes(Chosen().request(ApiKey(api_key), last, body).bytes)
    for name, commit in (("commit", True), ("abort", False)):
        ended = begun().request(ApiKey.END_TXN, 3, PRODUCER | {"committed": commit})
        yield f"transaction-{name}", bytes(ended.request(ApiKey.FETCH, 12, fetched(0)).bytes)
    offsets = {"topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "committed_offset": 1}]}]}
    grouped = begun().request(ApiKey.ADD_OFFSETS_TO_TXN, 3, PRODUCER | {"group_id": "group"})
    grouped.request(ApiKey.TXN_OFFSET_COMMIT, 2, PRODUCER | {"group_id": "group"} | offsets)
    yield (
        "transaction-offsets",
        bytes(grouped.request(ApiKey.END_TXN, 3, PRODUCER | {"committed": True}).bytes),
    )
    plain = Chosen().request(ApiKey.PRODUCE, 9, produced(1, ""))
    plain.request(ApiKey.LIST_OFFSETS, 7, listed(1_000)).request(ApiKey.FETCH, 11, fetched(1))
    yield "produce-and-read", bytes(plain.bytes)
    joining = {
        "group_id": "group", "session_timeout_ms": 60_000, "rebalance_timeout_ms": 60_000, "member_id": "",
        "group_instance_id": None, "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }  # fmt: skip
    member = {"group_id": "group", "member_id": None, "generation_id": None, "group_instance_id": None}
    group = Chosen().request(ApiKey.JOIN_GROUP, 3, joining, "member_id", "generation_id")
    group.request(ApiKey.SYNC_GROUP, 3, member | {"assignments": [{"member_id": None}]})
    group.request(ApiKey.HEARTBEAT, 3, member).request(ApiKey.OFFSET_COMMIT, 6, member | offsets)
    yield "group", bytes(group.request(ApiKey.LEAVE_GROUP, 2, {"group_id": "group", "member_id": None}).bytes)
