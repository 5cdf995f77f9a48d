"""A client with transactions, as scripts have it: it asks what it is told to ask."""

from __future__ import annotations

import asyncio
from collections import Counter

from faircopy.partition.partition import NoOpenTransaction
from faircopy.transactions.connections import Sent
from faircopy.transactions.decisions import TransactionRefused
from faircopy.wire.batch import check_produced
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch
from tests.scenarios.scripted_broker import ScriptedBroker

TIMEOUT_MS = 60_000
FENCED = ErrorCode.PRODUCER_FENCED


class Client:
    """One producer. Each request returns its answer, for people. All raise TransactionRefused."""

    def __init__(self) -> None:
        self._transactional_id = ""
        self._producer_id, self._epoch = -1, -1
        self._sequences: Counter[str] = Counter()

    async def init(self, broker: ScriptedBroker, transactional_id: str, sent: Sent) -> str:
        """InitProducerId. A client that has an identity names it (KIP-360)."""
        self._transactional_id = transactional_id
        self._producer_id, self._epoch = await broker.coordinator.init_producer(
            transactional_id, TIMEOUT_MS, self._producer_id, self._epoch, sent.connection
        )
        self._sequences.clear()
        return f"producer {self._producer_id}, epoch {self._epoch}"

    async def add(self, broker: ScriptedBroker, words: list[str], sent: Sent) -> str:
        """AddPartitionsToTxn."""
        partitions = [broker.partition(word) for word in words]
        await broker.coordinator.add_partitions(
            self._transactional_id, self._producer_id, self._epoch, partitions, sent, FENCED
        )
        return "added"

    async def send(
        self, broker: ScriptedBroker, word: str, records: int, sent: Sent, *, sequence: int | None, value: int
    ) -> str:
        """Produce a batch of the open transaction."""
        first = self._sequences[word] if sequence is None else sequence
        coordinator, partition = broker.coordinator, broker.partition(word)
        identity = self._transactional_id, self._producer_id, self._epoch
        built = build_batch(
            [NewRecord(b"%d" % value)] * records,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=first,
            transactional=True,
        )
        batch = memoryview(built)
        try:
            transaction = partition.open_transaction_of(*identity)
        except NoOpenTransaction as error:
            raise TransactionRefused(coordinator.refusal_of_draft(*identity), str(error)) from error
        coordinator.admit_draft(transaction, sent)
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        header = check_produced(batch)
        coordinator.append_draft(partition, batch, header, records, transaction, done.set_result)
        self._sequences[word] = first + records
        await done
        return "sent"

    async def end(self, broker: ScriptedBroker, sent: Sent, *, commit: bool) -> str:
        """EndTxn."""
        await broker.coordinator.end(
            self._transactional_id, self._producer_id, self._epoch, commit=commit, sent=sent, fenced=FENCED
        )
        return "committed" if commit else "aborted"
