"""A member of a joint group: it writes, and others may commit for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from faircopy.client.brokers import RETRIABLE, Brokers, KnownTopic, TopicPartition, outcome_of
from faircopy.client.errors import ConnectionFailed, request_failed
from faircopy.client.outgoing import Batch, Describe, Encode, Outgoing, ProducerIdentity, nowhere
from faircopy.client.protocol import ADD_PARTITIONS_TO_TXN, END_TXN, PRODUCE
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.murmur2 import partition_for
from faircopy.wire.records import NewRecord
from faircopy.wire.schema import UUID_ZERO

WAITING_BYTES_MAX = 32 << 20
"""How much a member holds that is not written yet; then `send` waits."""
ACKS_ALL = -1

Header = tuple[str, bytes | None]


class JointMember:
    """Made by `Client.join`. Everything it sends is a draft: nobody sees it before the group commits it.

    `producer_id` names the member in a commit, also from another process.
    """

    def __init__(
        self, brokers: Brokers, transactional_id: str, producer_id: int, epoch: int, timeout_seconds: float
    ) -> None:
        self.producer_id = producer_id
        self._brokers = brokers
        self._transactional_id = transactional_id
        self._producer = ProducerIdentity(producer_id, epoch)
        self._timeout_seconds = timeout_seconds
        self._outgoing: dict[TopicPartition, Outgoing] = {}
        self._senders: dict[TopicPartition, asyncio.Task[None]] = {}
        self._added: set[TopicPartition] = set()
        self._sticky: dict[str, int] = {}
        self._failure: Exception | None = None

    # -- sending ---------------------------------------------------------------------------------------------

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[Header] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        """Send a record. It may wait in memory until `flush`. Without a partition, the key chooses one as
        Kafka's clients do; without a key, partitions take turns. Raises RequestFailed, OutcomeUnknown.
        """
        if partition is None:
            partition = await self._partition(topic, key)
        now_ms = time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
        outgoing = self._outgoing_of(topic, partition)
        outgoing.add(NewRecord(value, key, now_ms, tuple(headers)))
        await self._send_some(topic, partition)

    async def send_batch(
        self, topic: str, partition: int, records: int, encode: Encode, describe: Describe = nowhere
    ) -> None:
        """Send a batch of so many records that `encode` makes: a v2 batch of this producer, transactional,
        with the sequence number that it is given. It is divided if it is too large for the topic. If records
        are refused, the error says by `describe` where they come from. Raises RequestFailed, OutcomeUnknown.
        """
        self._outgoing_of(topic, partition).add_batch(records, encode, describe)
        await self._send_some(topic, partition)

    async def flush(self) -> None:
        """Return when everything that was sent is written by the broker. Call it before the commit.

        Raises RequestFailed, OutcomeUnknown.
        """
        for (topic, partition), outgoing in self._outgoing.items():
            outgoing.seal()
            self._start_sender(topic, partition)
        await self._senders_done()

    def _outgoing_of(self, topic: str, partition: int) -> Outgoing:
        if self._failure is not None:
            raise self._failure
        outgoing = self._outgoing.get((topic, partition))
        if outgoing is None:
            outgoing = self._outgoing[topic, partition] = Outgoing(self._producer)
        return outgoing

    async def _partition(self, topic: str, key: bytes | None) -> int:
        count = await self.partitions_of(topic)
        if key is not None:
            return partition_for(key, count)
        # A partition gets a whole batch before it is the next one's turn.
        chosen = self._sticky.get(topic, self.producer_id) % count
        outgoing = self._outgoing.get((topic, chosen))
        if outgoing is not None and outgoing.batches:
            chosen = (chosen + 1) % count
        self._sticky[topic] = chosen
        return chosen

    async def partitions_of(self, topic: str) -> int:
        """The number of partitions of a topic. Raises RequestFailed, OutcomeUnknown."""
        return await self._brokers.partitions_of(topic, self._timeout_seconds)

    async def topic(self, topic: str) -> KnownTopic:
        """A topic as it is now. Raises RequestFailed, OutcomeUnknown."""
        return await self._brokers.topic(topic, UUID_ZERO, self._timeout_seconds)

    async def _send_some(self, topic: str, partition: int) -> None:
        if self._outgoing[topic, partition].batches:
            self._start_sender(topic, partition)
        if sum(outgoing.bytes for outgoing in self._outgoing.values()) > WAITING_BYTES_MAX:
            await self._senders_done()

    def _start_sender(self, topic: str, partition: int) -> None:
        sender = self._senders.get((topic, partition))
        if self._outgoing[topic, partition].batches and (sender is None or sender.done()):
            sender = asyncio.get_running_loop().create_task(self._drain(topic, partition))
            self._senders[topic, partition] = sender

    async def _senders_done(self) -> None:
        """Wait until nothing is on its way. Raises what a sender failed with."""
        results = await asyncio.gather(*self._senders.values(), return_exceptions=True)
        self._senders.clear()
        failures = [result for result in results if isinstance(result, Exception)]
        if failures and self._failure is None:
            self._failure = failures[0]
        if self._failure is not None:
            raise self._failure

    async def _drain(self, topic: str, partition: int) -> None:
        """Send a partition's batches, in order, until all are written."""
        outgoing = self._outgoing[topic, partition]
        doing = f"writing to {topic}-{partition}"
        await self._add(topic, partition)
        while outgoing.batches:
            await self._brokers.patiently(
                lambda: self._send_window(topic, partition, outgoing, doing), doing, self._timeout_seconds
            )

    async def _send_window(self, topic: str, partition: int, outgoing: Outgoing, doing: str) -> None:
        """Send some batches at once. Raises ConnectionFailed, RequestFailed."""
        link = await self._brokers.leader(topic, partition)
        window = outgoing.window()

        async def send(batch: Batch) -> tuple[int | None, str | None]:
            body = self._produce(topic, partition, batch.payload)
            try:
                answer = await link.ask(PRODUCE, body, self._timeout_seconds)
            except ConnectionFailed as error:
                return None, str(error)
            result = answer.responses[0].partition_responses[0]
            return result.error_code, result.error_message

        answers = await asyncio.gather(*map(send, window))
        codes = [None if code in RETRIABLE else code for code, _ in answers]
        error = outgoing.take(window, codes)
        reasons = [each for each in answers if each[0] is None or each[0] in RETRIABLE]
        if error is not None:
            batch, message = next(
                (batch, message)
                for batch, (code, message) in zip(window, answers, strict=True)
                if code == error
            )
            raise request_failed(
                error, advised(error, message), f"{batch.place}: {doing}" if batch.place else doing
            )
        if reasons and not window[0].is_written:
            code, message = reasons[0]
            if code is None:
                raise ConnectionFailed(str(message))
            raise request_failed(code, message, doing)

    def _produce(self, topic: str, partition: int, payload: bytes | bytearray) -> dict[str, object]:
        return {
            "transactional_id": self._transactional_id,
            "acks": ACKS_ALL,
            "timeout_ms": round(self._timeout_seconds * 1000),
            "topic_data": [{"name": topic, "partition_data": [{"index": partition, "records": payload}]}],
        }

    async def _add(self, topic: str, partition: int) -> None:
        """Add a partition to the transaction, if it is not in it. Raises RequestFailed, OutcomeUnknown."""
        if (topic, partition) in self._added:
            return
        await self._brokers.ask(
            lambda: self._brokers.coordinator(self._transactional_id),
            ADD_PARTITIONS_TO_TXN,
            self._identity() | {"topics": [{"name": topic, "partitions": [partition]}]},
            lambda answer: (answer.results[0].partitions[0].error_code, None),
            f"adding {topic}-{partition} to a transaction",
            self._timeout_seconds,
        )
        self._added.add((topic, partition))

    def _identity(self) -> dict[str, object]:
        return {
            "transactional_id": self._transactional_id,
            "producer_id": self._producer.producer_id,
            "producer_epoch": self._producer.epoch,
        }

    # -- ending ----------------------------------------------------------------------------------------------

    async def end(self, *, commit: bool) -> None:
        """Commit or abort on its own: an abort of any member, a commit of one without a key. Raises
        RequestFailed, OutcomeUnknown.
        """
        if commit:
            await self.flush()
        else:
            await self._stop()
        if self._added:
            await self._brokers.ask(
                lambda: self._brokers.coordinator(self._transactional_id),
                END_TXN,
                self._identity() | {"committed": commit},
                outcome_of,
                "committing" if commit else "aborting",
                self._timeout_seconds,
            )
        self._added.clear()

    async def _stop(self) -> None:
        """Send nothing more."""
        for sender in self._senders.values():
            sender.cancel()
        await asyncio.gather(*self._senders.values(), return_exceptions=True)
        self._senders.clear()

    @property
    def is_spent(self) -> bool:
        """Whether it can't begin another transaction: what it has sent is not all known to be written."""
        return self._failure is not None or any(outgoing.bytes for outgoing in self._outgoing.values())


def advised(code: ErrorCode, message: str | None) -> str | None:
    """The message of a refusal, and what to do about it."""
    if code != ErrorCode.MESSAGE_TOO_LARGE or message is None:
        return message
    return f"{message}. It is one record: raise max.message.bytes of the topic, or make the record smaller"
