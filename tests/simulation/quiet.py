"""When faults and clients are gone, the broker finishes everything it has started: nothing waits forever."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from faircopy.broker.broker import Broker
from tests.known_transactions import known_transactions

PATIENCE_SECONDS = 130  # twice the longest time between two checkpoints, and a little


async def ensure_quiet(broker: Broker) -> None:
    """Wait until nothing is left to do. Raises AssertionError."""
    for _ in range(PATIENCE_SECONDS):
        await asyncio.sleep(1)
        left = list(unfinished(broker))
        if not left:
            return
    raise AssertionError(f"the broker did not finish: {'; '.join(left)}")


def unfinished(broker: Broker, *, checkpoints: bool = True) -> Iterator[str]:
    """What a broker still has to do. With `checkpoints`, this includes what it has to checkpoint."""
    for home in broker.shards.metadata_journals():
        for transaction in home.table.transactions.values():
            yield f"transaction {transaction.id} is {transaction.state.name}"
        if checkpoints and home.table.gone:
            yield f"{len(home.table.gone)} members of journal {home.number} are yet to be forgotten"
        if checkpoints and home.bytes_since_checkpoint:
            yield f"journal {home.number} has no checkpoint"
    yield from remembered_in_vain(broker)
    yield from miscounted(broker)
    open_connections = {connection.number for connection in broker.server.admission.connections}
    for number in broker.producer_connections.known - open_connections:
        yield f"connection {number} is over, and remembered"
    for partition in broker.shards.partitions():
        for txid in partition.state.undecided:
            yield f"transaction {txid} is undecided in {partition.name}"
        if checkpoints and partition.bytes_since_checkpoint:
            yield f"{partition.name} has no checkpoint"


def remembered_in_vain(broker: Broker) -> Iterator[str]:
    """Transactions that partitions remember although their transactional ids are forgotten."""
    tables = [home.table for home in broker.shards.metadata_journals()]
    known = {producer.producer_id for table in tables for producer in table.producers.values()}
    known |= {txid.producer_id for table in tables for txid in table.transactions}
    known |= {producer_id for table in tables for producer_id in table.gone}  # soon to be forgotten
    for partition in broker.shards.partitions():
        for txid in known_transactions(partition.state):
            if txid.producer_id not in known:
                yield f"{partition.name} remembers {txid}, whose transactional id is forgotten"


def miscounted(broker: Broker) -> Iterator[str]:
    """Drafts that are counted wrongly: clients would be refused for nothing, or would not be refused."""
    partitions = broker.shards.partitions()
    if any(partition.failure is not None for partition in partitions):
        return
    taken = sum(branch.size for partition in partitions for branch in partition.state.undecided.values())
    if broker.draft_space.bytes != taken:
        yield f"drafts of {taken} bytes are counted as {broker.draft_space.bytes}"
