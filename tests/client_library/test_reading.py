"""Reading with faircopy.client: cuts, records, and which of them belong together."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import pytest

from faircopy.client import EARLIEST, LATEST, BlockingClient, DataLost, OutcomeUnknown, RequestFailed
from faircopy.client.connection import BrokerConnection
from tests.broker_process import BrokerProcess
from tests.joint.asking import PARTITIONS, TOPIC

EVERYWHERE = [(TOPIC, number) for number in range(PARTITIONS)]
TRANSACTIONS = 30


def write(client: BlockingClient, first: int = 0) -> None:
    """Transactions of two records in each partition."""
    for number in range(first, first + TRANSACTIONS):
        with client.begin() as transaction:
            for _, partition in EVERYWHERE:
                for _ in range(2):
                    transaction.send(TOPIC, b"%d" % number, partition=partition)


def test_cuts_divide_no_transaction(own_broker: BrokerProcess) -> None:
    with BlockingClient(own_broker.address) as client:
        write(client)
        assert client.cut(EVERYWHERE) == dict.fromkeys(EVERYWHERE, (0, 2 * TRANSACTIONS))
        starts = dict.fromkeys(EVERYWHERE, 0)
        seen: list[int] = []
        while any(start < end for start, end in client.cut(starts).values()):
            cut = client.cut(starts, limit_rows=20)
            values: dict[int, int] = defaultdict(int)
            for (topic, partition), (start, end) in cut.items():
                for record in client.read(topic, partition, start, end):
                    values[int(record.value or b"")] += 1
            assert set(values.values()) == {2 * PARTITIONS}
            assert len(values) == 20 // (2 * PARTITIONS)
            seen += values
            starts = {each: end for each, (_, end) in cut.items()}
        assert seen == list(range(TRANSACTIONS))
        assert client.cut(EVERYWHERE, limit_bytes=1) == dict.fromkeys(EVERYWHERE, (0, 2))


def test_spans_say_what_belongs_together(own_broker: BrokerProcess) -> None:
    with BlockingClient(own_broker.address) as client:
        write(client)
        found = [client.spans(*each, 0, 2 * TRANSACTIONS) for each in EVERYWHERE]
        for spans in found:
            assert [span[:2] for span in spans] == [(n * 2, n * 2 + 1) for n in range(TRANSACTIONS)]
            assert [span.txid for span in spans] == [span.txid for span in found[0]]
        assert client.spans(*EVERYWHERE[0], 3, 6) == [
            found[0][1]._replace(first_offset=3), found[0][2]._replace(last_offset=5)
        ]  # fmt: skip


def test_members_of_one_joint_commit_have_one_txid(own_broker: BrokerProcess) -> None:
    with BlockingClient(own_broker.address) as client:
        members = [client.join("job", run="r", key=0, member=str(number)) for number in range(3)]
        named = [member for member in members if member is not None]
        for member in named:
            for _, partition in EVERYWHERE:
                member.send(TOPIC, b"value", partition=partition)
        client.commit("job", run="r", key=0, members=named)
        cut = client.cut(EVERYWHERE, limit_rows=1)
        assert cut == dict.fromkeys(EVERYWHERE, (0, 3))
        txids = {span.txid for each in EVERYWHERE for span in client.spans(*each, 0, 3)}
        assert len(txids) == 1


def test_what_is_not_there_is_told(own_broker: BrokerProcess) -> None:
    with BlockingClient(own_broker.address) as client:
        write(client)
        assert client.offsets_at({EVERYWHERE[0]: EARLIEST, EVERYWHERE[1]: LATEST}) == {
            EVERYWHERE[0]: 0,
            EVERYWHERE[1]: 2 * TRANSACTIONS,
        }
        assert client.offsets_at({EVERYWHERE[0]: 1 << 50}) == {EVERYWHERE[0]: None}
        with pytest.raises(DataLost, match=r"joint-0.*offset 999 is not there"):
            client.cut({EVERYWHERE[0]: 999})
        with pytest.raises(DataLost, match="UNKNOWN_TOPIC_ID"):
            client.cut({EVERYWHERE[0]: 0}, topic_ids={TOPIC: b"another topic id"})
        with pytest.raises(DataLost, match="OFFSET_OUT_OF_RANGE"):
            list(client.read(*EVERYWHERE[0], 999, 1000))
        with pytest.raises(RequestFailed):
            client.spans(*EVERYWHERE[0], 999, 1000)
        assert client.topics()[TOPIC].partitions == PARTITIONS


def test_what_does_not_come_is_not_awaited_for_ever(own_broker: BrokerProcess) -> None:
    with BlockingClient(own_broker.address) as client:
        write(client)
    with BlockingClient(own_broker.address, timeout_seconds=2) as impatient:
        with pytest.raises(OutcomeUnknown, match="joint-0 has nothing at offset 60 after 2 s"):
            list(impatient.read(*EVERYWHERE[0], 50, 70))
        with pytest.raises(OutcomeUnknown, match="joint-0 has nothing at offset 60 after 2 s"):
            impatient.spans(*EVERYWHERE[0], 50, 70)


def test_large_records_come_in_pieces(own_broker: BrokerProcess) -> None:
    values = [bytes([number]) * 900_000 for number in range(20)]
    with BlockingClient(own_broker.address) as client:
        with client.begin() as transaction:
            for value in values:
                transaction.send(TOPIC, value, partition=0)
        pieces = list(client.read_pieces(*EVERYWHERE[0], 0, 20))
        assert len(pieces) > 2
        assert [record.value for record in client.read(*EVERYWHERE[0], 0, 20)] == values
        assert [record.value for record in client.read(*EVERYWHERE[0], 5, 7)] == values[5:7]


def test_readers_give_up_their_fetch(own_broker: BrokerProcess) -> None:
    """Nothing is left over when a reader stops in the middle."""

    async def main() -> None:
        from faircopy.client import Client

        async with Client(own_broker.address) as client:
            pieces = client.read_pieces(*EVERYWHERE[0], 0, 10)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await anext(pieces)

    asyncio.run(main())
    with BrokerConnection(own_broker.address):
        pass
