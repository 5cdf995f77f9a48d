"""Produce: the hot path in. Batches are checked, appended, and acknowledged when they are safe.

Requests and responses have a codec of their own (`wire/produce.py`). Its tests compare it with the schema.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from functools import partial
from typing import NamedTuple

from faircopy.api.produce.large_batches import LargeBatches
from faircopy.api.produce.refused_first import RefusedFirst
from faircopy.copier.producers import UNKNOWN_OFFSET, UnknownProducer
from faircopy.errors import FaircopyError
from faircopy.hosting.hosted_topic import HostedTopic
from faircopy.journal.entry import TransactionId
from faircopy.loop.pace import ClientGone, Pace
from faircopy.net.exchange import ClientConnection, Exchange
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.partition import NoOpenTransaction
from faircopy.serving.codes import Refused, code_of, message_of
from faircopy.serving.large_requests import LargeRequests
from faircopy.serving.parts import Parts
from faircopy.serving.route import HotRoute
from faircopy.transactions.connections import Sent
from faircopy.transactions.coordinator import TransactionCoordinator
from faircopy.wire.batch import (
    BatchHeader,
    CorruptBatch,
    check_produced,
    with_log_append_time,
    with_max_timestamp,
)
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.messages import RequestHeader
from faircopy.wire.primitives import TooManyElements
from faircopy.wire.produce import (
    FIRST_ACCEPTED_VERSION,
    ProduceRequest,
    ProduceResult,
    encode_produce_response,
    read_produce_request,
)
from faircopy.wire.record_count import CountingBudget, count_records
from faircopy.wire.schema import Schema
from faircopy.wire.timestamps import TimeRange, TimestampClaim

SCHEMA = Schema("""
api 0 Produce 3-12 flexible 9+
  request
    transactional_id                       string?           = null
    acks                                   int16
    timeout_ms                             int32
    topic_data                             []
        name                               string
        partition_data                     []
            index                          int32
            records                        records?
  response
    responses                              []
        name                               string
        partition_responses                []
            index                          int32
            error_code                     int16
            base_offset                    int64
            log_append_time_ms             int64             = -1
            log_start_offset               int64      5+     = -1
            record_errors                  []         8+     = []
                batch_index                int32
                batch_index_error_message  string?           = null
            error_message                  string?    8+     = null
            current_leader                 {}         10+    tag 0
                leader_id                  int32             = -1
                leader_epoch               int32             = -1
    throttle_time_ms                       int32             = 0
    node_endpoints                         []         10+    tag 0 = []
        node_id                            int32
        host                               string
        port                               int32
        rack                               string?           = null
""")
VERSIONS = range(12)
"""Versions below 3 are advertised, but refused: with a higher minimum, old librdkafka silently drops gzip
and lz4. Version 12 would promise that a draft adds its partition to the transaction (KIP-890); the schema has
it, and stops before topic ids (KIP-516).
"""

log = logging.getLogger(__name__)


NO_TIMESTAMP = -1
ELEMENTS_AT_ONCE = 200
FINAL = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)
"""A batch that is refused with one of these is not sent again."""


class Checked(NamedTuple):
    """A batch that may be appended once its records are counted, and the range of their times is known."""

    records: memoryview
    header: BatchHeader
    times: TimeRange | None


class PendingProduce:
    """A Produce request without an answer. It gets one when each of its batches is safe or refused."""

    __slots__ = ("correlation_id", "exchange", "request", "results", "version", "waiting")

    def __init__(self, exchange: Exchange, header: RequestHeader, request: ProduceRequest) -> None:
        self.exchange = exchange
        self.version = header.api_version
        self.correlation_id = header.correlation_id
        self.request = request
        self.results: list[ProduceResult | None] = [None] * len(request.partitions)
        self.waiting = len(self.results)

    def settle(self, number: int, result: ProduceResult) -> None:
        """Note the result of one partition's batch. The last one answers the request."""
        self.results[number] = result
        self.waiting -= 1
        if not self.waiting:
            self.answer()

    def answer(self) -> None:
        """Send the response."""
        if self.request.acks == 0:
            self.answer_nothing()
        else:
            self.exchange.answer(self.encoded())

    def encoded(self) -> bytes:
        """The response. Every batch must be settled."""
        results = [result for result in self.results if result is not None]
        return encode_produce_response(self.version, self.correlation_id, results)

    def answer_nothing(self) -> None:
        """Answer a client that wants no acks: send nothing, but close its connection after an error."""
        self.exchange.answer(None)
        if any(result is not None and result.error_code for result in self.results):
            # As Kafka does: without acks, there is no other way to tell the client.
            self.exchange.connection.close()


class LargePendingProduce(PendingProduce):
    """A Produce request of many partitions: its response is encoded on a thread."""

    __slots__ = ("_is_settled",)

    def __init__(self, exchange: Exchange, header: RequestHeader, request: ProduceRequest) -> None:
        super().__init__(exchange, header, request)
        self._is_settled = asyncio.Event()

    def answer(self) -> None:
        self._is_settled.set()

    async def answer_from_thread(self, large: LargeRequests) -> None:
        """Send the response when every batch is settled."""
        if self.results:
            await self._is_settled.wait()
        if self.request.acks == 0:
            self.answer_nothing()
        else:
            self.exchange.answer(await large.run(self.encoded))


class ProduceHandler:
    """Handles Produce requests."""

    def __init__(self, parts: Parts) -> None:
        self._hosted = parts.hosted
        self._shards = parts.shards
        self._producer_ids = parts.producer_ids
        self._clock = parts.clock
        self._large_batches = LargeBatches(parts.disk)
        self._large = parts.large_requests
        self._refused = RefusedFirst()

    def handle(self, exchange: Exchange, header: RequestHeader, frame: memoryview) -> Awaitable[None] | None:
        """Handle a request. It is answered later. If there is much work, the rest of it is returned.

        Raises MalformedMessage.
        """
        try:
            request = read_produce_request(header.api_version, frame, header.body_at, ELEMENTS_AT_ONCE)
        except TooManyElements:
            exchange.blocks_next = True
            return self._handle_many(exchange, header, frame)
        pending = PendingProduce(exchange, header, request)
        if not pending.results:
            pending.answer()
        refused, budget = self._refusal(header, request), CountingBudget()
        checked = [refused or self._check(*each, budget) for each in request.partitions]
        if budget.is_exceeded:
            exchange.blocks_next = True
            return self._count_and_append(pending, checked, self._large.pace_for(exchange.connection))
        for number, one in enumerate(checked):
            self._append(pending, number, one)
        return None

    async def _handle_many(self, exchange: Exchange, header: RequestHeader, frame: memoryview) -> None:
        """Handle a request with so many partitions that others must have their turn in between."""
        request = await self._large.run(read_produce_request, header.api_version, frame, header.body_at)
        pending = LargePendingProduce(exchange, header, request)
        refused, budget = self._refusal(header, request), CountingBudget()
        pace = self._large.pace_for(exchange.connection)
        checked = [refused or self._check(*each, budget) async for each in pace.over(request.partitions)]
        await self._count_and_append(pending, checked, pace)
        await pending.answer_from_thread(self._large)

    async def _count_and_append(
        self, pending: PendingProduce, checked: list[Checked | FaircopyError], pace: Pace
    ) -> None:
        """Count the records that take long to count, or whose times do, then append all. Raises ClientGone if
        the client left meanwhile.
        """
        connection = pending.exchange.connection
        for number, one in enumerate(checked):
            if isinstance(one, Checked) and one.times is None:
                hosted = self._hosted.topics.get(pending.request.partitions[number][0])
                needs_least = hosted is not None and hosted.has_limit_before
                checked[number] = await self._counted(one, needs_least, connection)
        pace.ensure_wanted()
        async for number, one in pace.through(enumerate(checked)):
            self._append(pending, number, one)
        pending.exchange.release_next()

    async def _counted(
        self, one: Checked, needs_least: bool, connection: ClientConnection
    ) -> Checked | FaircopyError:
        records, header, _ = one
        try:
            times = await self._large_batches.check(records, header, needs_least, lambda: connection.is_open)
        except ClientGone:
            raise
        except FaircopyError as error:
            return error
        return one._replace(times=times)

    def _append(self, pending: PendingProduce, number: int, checked: Checked | FaircopyError) -> None:
        """Append a batch, or settle it as refused."""
        topic, partition, _ = pending.request.partitions[number]
        if isinstance(checked, Checked):
            try:
                self._append_checked(pending, number, topic, partition, checked)
                return
            except FaircopyError as error:
                if code_of(error) not in FINAL:
                    self._refused.note(topic, partition, checked.header)
                checked = error
        code = code_of(checked)
        log.debug(
            "refused to %s: Produce to %s-%d: %s: %s",
            pending.exchange.connection.peer, topic, partition, code.name, checked,
        )  # fmt: skip
        found = self._hosted.find(topic, partition)
        # Java waits for the log's start: without it, it sends the same again and again.
        is_told_start = found is not None and code is ErrorCode.UNKNOWN_PRODUCER_ID
        start_offset = found.log.start_offset if found is not None and is_told_start else -1
        result = ProduceResult(
            topic, partition, code, log_start_offset=start_offset, error_message=message_of(checked)
        )
        pending.settle(number, result)

    def _refusal(self, header: RequestHeader, request: ProduceRequest) -> Refused | None:
        """Why the whole request is refused; None if it is not."""
        if header.api_version < FIRST_ACCEPTED_VERSION:
            return Refused(
                ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
                "Produce below version 3 has no record batches v2: use a client of Kafka 0.11 or newer",
            )
        if request.acks not in (-1, 0, 1):
            return Refused(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}: give 0, 1 or all (-1)")
        return None

    def _append_checked(
        self, pending: PendingProduce, number: int, topic: str, partition_number: int, checked: Checked
    ) -> None:
        partition = self._hosted.find(topic, partition_number)
        if partition is None:
            raise Refused(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{partition_number}"
            )
        partition.ensure_sound()
        hosted = self._hosted.topics[topic]
        records, header, times = checked
        stamp_ms = -1
        if hosted.has_log_append_time:
            stamp_ms = self._clock.wall_ms()
            records = memoryview(with_log_append_time(records, stamp_ms))
        else:
            assert times is not None, "the records are counted"
            records = self._with_true_times(hosted, records, header, times)
        start_offset = partition.log.start_offset

        def safe(base_offset: int) -> None:
            if header.is_transactional and not hosted.acks_expected_offsets:
                base_offset = UNKNOWN_OFFSET
            pending.settle(
                number, ProduceResult(topic, partition_number, 0, base_offset, stamp_ms, start_offset)
            )

        if header.is_transactional:
            coordinator, transaction = self._transaction(pending, partition, header)
            append = partial(
                coordinator.append_draft, partition, records, header, header.records, transaction, safe
            )
        else:
            partition.ensure_no_transaction(header.producer_id)
            append = partial(partition.append_plain, records, header, header.records, safe)
        try:
            append()
        except UnknownProducer:
            if not self._may_begin(hosted, partition_number, header):
                raise
            append(may_begin=True)

    def _may_begin(self, hosted: HostedTopic, partition: int, header: BatchHeader) -> bool:
        """Whether a batch that is not its producer's first may be the first one here.

        A producer that is older than the topic has written to a former topic of this name. Kafka takes any of
        its batches. But if the one before was refused a moment ago, librdkafka would count that one as
        acknowledged, too: then it has to come first.
        """
        topic = hosted.topic
        is_older = header.producer_id < topic.first_producer_id
        return is_older and self._refused.may_begin(topic.name, partition, header)

    def _check(
        self, topic: str, number: int, records: memoryview | None, budget: CountingBudget
    ) -> Checked | FaircopyError:
        """The batch and its header, or why it is refused."""
        hosted = self._hosted.topics.get(topic)
        try:
            if hosted is None:
                self._refused.note_unchecked(topic, number, records)
                raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r}")
            return self._check_batch(hosted, records, budget)
        except FaircopyError as error:
            return error

    def _check_batch(
        self, hosted: HostedTopic, records: memoryview | None, budget: CountingBudget
    ) -> Checked:
        if records is None:
            raise CorruptBatch("the request has no record batch for the partition")
        if len(records) > hosted.max_message_bytes:
            raise Refused(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"a record batch of {len(records)} bytes: topic {hosted.topic.name!r} takes at most "
                f"{hosted.max_message_bytes} (max.message.bytes)",
            )
        header = check_produced(records)
        if header.producer_id >= self._producer_ids.limit:
            raise Refused(
                ErrorCode.UNKNOWN_PRODUCER_ID, f"producer id {header.producer_id} was never given out"
            )
        claim = TimestampClaim(header)
        is_counted = count_records(records, header, budget, claim)
        times = claim.borne_out(hosted.has_limit_before) if is_counted else None
        budget.is_exceeded |= times is None
        return Checked(records, header, times)

    def _with_true_times(
        self, hosted: HostedTopic, records: memoryview, header: BatchHeader, times: TimeRange
    ) -> memoryview:
        """The batch, with the greatest of its records' times in its header: some clients don't set it, and
        searches by time rely on it. Raises Refused as `_check_times` does.
        """
        if hosted.has_timestamp_limits:
            self._check_times(hosted, times)
        if header.max_timestamp_ms == times.greatest_ms:
            return records
        return memoryview(with_max_timestamp(records, times.greatest_ms))

    def _check_times(self, hosted: HostedTopic, times: TimeRange) -> None:
        """Raise Refused if a timestamp of a batch is outside the topic's limits."""
        now_ms = self._clock.wall_ms()
        for time_ms in times:
            age_ms = now_ms - time_ms
            is_within = -hosted.timestamp_after_max_ms <= age_ms <= hosted.timestamp_before_max_ms
            if time_ms != NO_TIMESTAMP and not is_within:
                raise Refused(
                    ErrorCode.INVALID_TIMESTAMP,
                    f"a message has timestamp {time_ms}, and the broker's clock says {now_ms}: topic "
                    f"{hosted.topic.name!r} takes at most {hosted.timestamp_before_max_ms} ms before it and "
                    f"{hosted.timestamp_after_max_ms} ms after it (message.timestamp.before.max.ms, "
                    f"message.timestamp.after.max.ms)",
                )

    def _transaction(
        self, pending: PendingProduce, partition: HostedPartition, header: BatchHeader
    ) -> tuple[TransactionCoordinator, TransactionId]:
        """The open transaction that a draft belongs to, after its coordinator. Raises Refused for zombies,
        TransactionRefused for late requests.
        """
        transactional_id = pending.request.transactional_id or ""
        coordinator = self._shards.coordinator_of(transactional_id)
        identity = (header.producer_id, header.producer_epoch)
        try:
            transaction = partition.open_transaction_of(transactional_id, *identity)
        except NoOpenTransaction as error:
            if not transactional_id:
                raise
            raise Refused(coordinator.refusal_of_draft(transactional_id, *identity), str(error)) from error
        content = (partition.id, header.base_sequence)
        sent = Sent(pending.exchange.connection.number, pending.correlation_id, content)
        coordinator.admit_draft(transaction, sent)
        return coordinator, transaction


ROUTE = HotRoute(SCHEMA, lambda parts: ProduceHandler(parts).handle, VERSIONS)
