"""Readers that name a topic's id: they are told when it is gone, and get nothing of one that has its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from faircopy.client import EARLIEST, BlockingClient, DataLost
from tests.broker_process import BrokerProcess
from tests.joint.asking import PARTITIONS, TOPIC

PLACE = (TOPIC, 0)
LARGE = 900_000
WAIT_SECONDS = 30
MADE_ANEW = f"topic {TOPIC} was deleted, or deleted and made anew"
Read = Callable[[BlockingClient, bytes], Any]
READS: dict[str, Read] = {
    "read": lambda client, its: list(client.read(*PLACE, 0, 5, topic_id=its)),
    "read on": lambda client, its: list(client.read(*PLACE, 4, 5, topic_id=its)),
    "read_pieces": lambda client, its: list(client.read_pieces(*PLACE, 0, 5, topic_id=its)),
    "spans": lambda client, its: client.spans(*PLACE, 0, 5, topic_id=its),
    "offsets_at": lambda client, its: client.offsets_at({PLACE: EARLIEST}, topic_ids={TOPIC: its}),
    "cut": lambda client, its: client.cut([PLACE], topic_ids={TOPIC: its}),
}


@pytest.mark.parametrize("rows", [None, 0, 5], ids=["only deleted", "made anew, empty", "made anew, as long"])
@pytest.mark.parametrize("way", READS)
def test_a_reader_with_an_id_reads_no_other_topic(
    own_broker: BrokerProcess, way: str, rows: int | None
) -> None:
    with BlockingClient(own_broker.address) as client:
        write(own_broker, b"old", 5)
        its = client.topics()[TOPIC].topic_id
        READS[way](client, its)
        delete(own_broker)
        if rows is not None:
            make(own_broker)
            write(own_broker, b"new", rows)
        with pytest.raises(DataLost, match=MADE_ANEW):
            READS[way](client, its)
        assert (TOPIC in client.topics()) == (rows is not None), "nobody made it who only wanted to read it"


def test_a_reader_with_an_id_stops_where_the_topic_is_made_anew(own_broker: BrokerProcess) -> None:
    with BlockingClient(own_broker.address) as client:
        write(own_broker, b"o" * LARGE, 20)
        found = client.read_pieces(*PLACE, 0, 20, topic_id=client.topics()[TOPIC].topic_id)
        first = next(found)
        delete(own_broker)
        make(own_broker)
        write(own_broker, b"n" * LARGE, 20)
        later: list[bytes] = []
        with pytest.raises(DataLost, match=MADE_ANEW):
            later.extend(piece.data for piece in found)
        assert b"n" * LARGE not in first.data + b"".join(later)


def write(broker: BrokerProcess, value: bytes, rows: int) -> None:
    with BlockingClient(broker.address) as client, client.begin() as transaction:
        for _ in range(rows):
            transaction.send(TOPIC, value, partition=0)


def delete(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.delete_topics([TOPIC])[TOPIC].result(WAIT_SECONDS)


def make(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(WAIT_SECONDS)
