"""Seeds of values in the state store."""

from __future__ import annotations

import json
import struct

from faircopy.copier.checkpoint import encode_transaction as encode_branch
from faircopy.copier.fold import Branch, Standing
from faircopy.copier.producer_row import encode_producer as encode_seen
from faircopy.copier.producers import ProducerState, SeenBatch
from faircopy.groups.group_metadata import GroupMetadata, MemberMetadata, encode_group
from faircopy.journal.entry import TransactionId
from faircopy.journal.identity import TopicIdPartition
from faircopy.transactions.metadata_journal import encode_producer
from faircopy.transactions.producers import idle_row
from faircopy.transactions.transaction import Producer, Transaction
from tests.fuzz import state
from tests.fuzz.seeds.seed import Seeds, sized

MEMBER = MemberMetadata("member", None, "client", "/host", 60_000, 60_000, (("range", b"said"),), b"given")
MEMBERS = encode_group("group", GroupMetadata(1, "consumer", "range", "member", (MEMBER,)))


def state_values() -> Seeds:
    transaction_id, topic_id = TransactionId(1, 0, 1), bytes(16)
    place, number = struct.pack(">QQq", 0, 0, 7), struct.pack(">Q", 1)
    producer = encode_seen(ProducerState(0, (SeenBatch(0, 1, 0),), 0))
    branch = encode_branch(Branch(Standing.OPEN, head=0, first=0, drafts=1, records=1, size=100))
    txid = struct.pack(">qhq", *transaction_id)
    topic = json.dumps(
        {"id": topic_id.hex(), "partitions": 1, "configs": {}, "first_producer_id": 7}
    ).encode()
    open_producer = Producer("orders", 1, 0, 60_000)
    open_producer.current = Transaction(transaction_id, "orders", 60_000, 1)
    open_producer.current.epochs = {TopicIdPartition(topic_id, 0): 1}
    producers = b"\x08" + struct.pack(">q", 1) + sized(producer)
    branches = bytes([len(txid)]) + txid + sized(branch)
    committed = json.dumps(["group", topic_id.hex(), 0, 1, 0, "", 1]).encode()
    yield "partition", b"\0" + sized(state.SOUND_CHECKPOINT) + producers + branches
    places = b"\x08" + bytes(8) + sized(place)
    yield "indexes", b"\1" + places + number * 3
    span = struct.pack(">QQqqhq", 1, 1, 5, *transaction_id)
    yield "spans", b"\2\x08" + number + sized(b"") + struct.pack(">H", 1) + span
    yield "group-offsets", b"\3\1g" + sized(committed) + b"\1g" + sized(MEMBERS)
    whole = json.dumps(encode_producer(open_producer)).encode()
    yield "transactional-ids", b"\4" + sized(b"") + b"\1o" + sized(whole)
    idle = idle_row(Producer("orders", 1, 0, 60_000))
    assert idle is not None
    yield "idle-ids", b"\4" + sized(b"") + b"\1o" + sized(idle)
    yield "catalogue", b"\5\6orders" + sized(number + topic) + sized(number + b"1000")
