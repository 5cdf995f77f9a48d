"""Produce: the hot path in. Batches are checked from outside, appended, and answered when they are safe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from faircopy.broker.catalog import Catalog, HostedPartition, HostedTopic
from faircopy.broker.connection import Exchange
from faircopy.broker.handlers.context import message_of
from faircopy.copier.partition import NoOpenTransaction
from faircopy.copier.producers import OutOfOrderSequence, StaleDuplicate, StaleEpoch
from faircopy.errors import FaircopyError
from faircopy.journal.entry import TransactionId
from faircopy.storage.clock import Clock
from faircopy.wire.batch import (
    BatchHeader,
    CorruptBatch,
    InvalidBatch,
    OldMagic,
    check_produced,
    with_log_append_time,
)
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.messages import RequestHeader
from faircopy.wire.produce import (
    FIRST_ACCEPTED_VERSION,
    ProduceRequest,
    ProduceResult,
    encode_produce_response,
    read_produce_request,
    refusals,
)

if TYPE_CHECKING:
    from faircopy.broker.producer_ids import ProducerIds
    from faircopy.broker.transactions.coordinator import TransactionCoordinator

CODES: tuple[tuple[type[FaircopyError], ErrorCode], ...] = (
    (CorruptBatch, ErrorCode.CORRUPT_MESSAGE),
    (OldMagic, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
    (InvalidBatch, ErrorCode.INVALID_RECORD),
    (StaleEpoch, ErrorCode.INVALID_PRODUCER_EPOCH),
    (OutOfOrderSequence, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    (StaleDuplicate, ErrorCode.DUPLICATE_SEQUENCE_NUMBER),
    (NoOpenTransaction, ErrorCode.INVALID_TXN_STATE),
)


class Refused(FaircopyError):
    """A batch is refused with this code."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class Operation:
    """One Produce request in the works: it is answered when each of its batches is safe or refused."""

    __slots__ = ("correlation_id", "exchange", "request", "results", "version", "waiting")

    def __init__(self, exchange: Exchange, header: RequestHeader, request: ProduceRequest) -> None:
        self.exchange = exchange
        self.version = header.api_version
        self.correlation_id = header.correlation_id
        self.request = request
        self.results: list[ProduceResult | None] = [None] * len(request.partitions)
        self.waiting = len(self.results)

    def settle(self, number: int, result: ProduceResult) -> None:
        """The outcome of one partition's batch."""
        self.results[number] = result
        self.waiting -= 1
        if not self.waiting:
            self.answer()

    def answer(self) -> None:
        results = [result for result in self.results if result is not None]
        if self.request.acks != 0:
            self.exchange.answer(encode_produce_response(self.version, self.correlation_id, results))
            return
        self.exchange.answer(None)
        if any(result.error_code for result in results):
            # As Kafka does: without acks, closing the connection is the only way to tell that something is wrong.
            self.exchange.connection.close()


class ProduceHandler:
    """Takes Produce requests."""

    def __init__(
        self, catalog: Catalog, coordinator: TransactionCoordinator, producer_ids: ProducerIds, clock: Clock
    ) -> None:
        self._catalog = catalog
        self._coordinator = coordinator
        self._producer_ids = producer_ids
        self._clock = clock

    def handle(self, exchange: Exchange, header: RequestHeader, frame: memoryview) -> None:
        """Take a request; the exchange is answered later. Raises MalformedMessage."""
        request = read_produce_request(header.api_version, frame, header.body_at)
        operation = Operation(exchange, header, request)
        if not operation.results:
            operation.answer()
        if (refused := self._refusal(header, request)) is not None:
            for number, result in enumerate(refusals(request, refused.code, message_of(refused))):
                operation.settle(number, result)
            return
        for number, (topic, partition, records) in enumerate(request.partitions):
            try:
                self._append(operation, number, topic, partition, records)
            except FaircopyError as error:
                code = self._code(error)
                result = ProduceResult(topic, partition, code, error_message=message_of(error))
                operation.settle(number, result)

    def _code(self, error: FaircopyError) -> ErrorCode:
        if isinstance(error, Refused):
            return error.code
        return next((code for kind, code in CODES if isinstance(error, kind)), ErrorCode.KAFKA_STORAGE_ERROR)

    def _refusal(self, header: RequestHeader, request: ProduceRequest) -> Refused | None:
        """Why the whole request is refused, if it is."""
        if header.api_version < FIRST_ACCEPTED_VERSION:
            return Refused(
                ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
                "Produce below version 3 has no record batches v2: use Kafka 0.11 or newer",
            )
        if request.acks not in (-1, 0, 1):
            return Refused(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}: give 0, 1 or all (-1)")
        return None

    def _append(
        self, operation: Operation, number: int, topic: str, partition_number: int, records: memoryview | None
    ) -> None:
        partition = self._catalog.find(topic, partition_number)
        if partition is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{partition_number}")
        partition.ensure_sound()
        hosted = self._catalog.topics[topic]
        header = self._check_batch(hosted, records)
        assert records is not None
        stamp_ms = -1
        if hosted.has_log_append_time:
            stamp_ms = self._clock.wall_ms()
            records = memoryview(with_log_append_time(records, stamp_ms))
        start_offset = partition.log.start_offset

        def safe(base_offset: int) -> None:
            operation.settle(number, ProduceResult(topic, partition_number, 0, base_offset, stamp_ms, start_offset))

        if header.is_transactional:
            transaction = self._transaction(operation.request, partition, header)
            safe_with_transaction = self._coordinator.once_known(transaction, safe)
            partition.append_draft(records, header, header.records, transaction, safe_with_transaction)
        else:
            partition.append_plain(records, header, header.records, safe)

    def _check_batch(self, hosted: HostedTopic, records: memoryview | None) -> BatchHeader:
        if records is None:
            raise CorruptBatch("no record batch came")
        if len(records) > hosted.max_message_bytes:
            raise Refused(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"record batch of {len(records)} bytes; topic {hosted.topic.name!r} takes {hosted.max_message_bytes} "
                f"(max.message.bytes)",
            )
        header = check_produced(records)
        if header.producer_id >= self._producer_ids.limit:
            raise Refused(ErrorCode.UNKNOWN_PRODUCER_ID, f"producer id {header.producer_id} was never given to anyone")
        return header

    def _transaction(self, request: ProduceRequest, partition: HostedPartition, header: BatchHeader) -> TransactionId:
        """The open transaction that a draft belongs to; tells a zombie from a late draft."""
        try:
            return partition.open_transaction_of(header.producer_id, header.producer_epoch)
        except NoOpenTransaction as error:
            if not request.transactional_id:
                raise
            identity = (header.producer_id, header.producer_epoch)
            raise Refused(
                self._coordinator.refusal_of_draft(request.transactional_id, *identity), str(error)
            ) from error
