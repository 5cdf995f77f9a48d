"""InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn, and what shows transactions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from faircopy.broker.catalog import Catalog
from faircopy.broker.groups.offset_requests import HasPartition, sort_offsets
from faircopy.broker.groups.offsets import OffsetToCommit
from faircopy.broker.handlers.context import Body, Context, Message
from faircopy.broker.offsets_journals import OffsetsJournals
from faircopy.broker.producer_ids import ProducerIds
from faircopy.broker.transactions.coordinator import TransactionCoordinator
from faircopy.broker.transactions.table import Phase, Producer, TransactionRefused
from faircopy.copier.partition import NoOpenTransaction, Partition
from faircopy.errors import FaircopyError
from faircopy.storage.clock import Clock
from faircopy.wire.error_codes import ErrorCode

PRODUCER_FENCED_SINCE = 2  # AddPartitionsToTxn, AddOffsetsToTxn and EndTxn; InitProducerId since 4
INIT_PRODUCER_FENCED_SINCE = 4

CheckMember = Callable[[Message], ErrorCode]


def fenced_code(version: int, since: int = PRODUCER_FENCED_SINCE) -> ErrorCode:
    """What a zombie is told; older clients know only the older code (KIP-588)."""
    return ErrorCode.PRODUCER_FENCED if version >= since else ErrorCode.INVALID_PRODUCER_EPOCH


class TransactionHandlers:
    """The requests of transactional producers."""

    def __init__(
        self,
        catalog: Catalog,
        offsets: OffsetsJournals,
        coordinator: TransactionCoordinator,
        producer_ids: ProducerIds,
        clock: Clock,
        check_member: CheckMember,
        has_partition: HasPartition,
    ) -> None:
        self._catalog = catalog
        self._offsets = offsets
        self._coordinator = coordinator
        self._producer_ids = producer_ids
        self._clock = clock
        self._check_member = check_member
        self._has_partition = has_partition

    async def init_producer_id(self, request: Message, context: Context) -> Body:
        """InitProducerId."""
        try:
            if request.transactional_id is None:
                producer_id, epoch = await self._producer_ids.next(), 0
            elif not request.transactional_id:
                return {"error_code": ErrorCode.INVALID_REQUEST, "producer_id": -1, "producer_epoch": -1}
            else:
                producer_id, epoch = await self._coordinator.init_producer(
                    request.transactional_id,
                    request.transaction_timeout_ms,
                    request.producer_id,
                    request.producer_epoch,
                )
        except TransactionRefused as error:
            code = error.code
            if code is ErrorCode.PRODUCER_FENCED:
                code = fenced_code(context.version, INIT_PRODUCER_FENCED_SINCE)
            return {"error_code": code, "producer_id": -1, "producer_epoch": -1}
        return {"error_code": ErrorCode.NONE, "producer_id": producer_id, "producer_epoch": epoch}

    # -- in a transaction ----------------------------------------------------------------------------------------

    async def add_partitions_to_txn(self, request: Message, context: Context) -> Body:
        """AddPartitionsToTxn: all the partitions, or none."""
        asked = [(topic.name, number) for topic in request.topics for number in topic.partitions]
        found = [self._catalog.find(*name) for name in asked]
        if None in found:
            codes = [
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if partition is None else ErrorCode.OPERATION_NOT_ATTEMPTED
                for partition in found
            ]
        else:
            sound = [partition for partition in found if partition is not None]
            codes = [await self._add(request, context, sound)] * len(asked)
        code_by_name = dict(zip(asked, codes, strict=True))
        return {
            "results": [
                {
                    "name": topic.name,
                    "partitions": [
                        {"partition_index": number, "error_code": code_by_name[topic.name, number]}
                        for number in topic.partitions
                    ],
                }
                for topic in request.topics
            ]
        }

    async def _add(self, request: Message, context: Context, partitions: Sequence[Partition]) -> ErrorCode:
        try:
            for partition in partitions:
                partition.ensure_sound()
            await self._coordinator.add_partitions(
                request.transactional_id,
                request.producer_id,
                request.producer_epoch,
                partitions,
                context.connection,
                fenced_code(context.version),
            )
        except TransactionRefused as error:
            return error.code
        except FaircopyError:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    async def add_offsets_to_txn(self, request: Message, context: Context) -> Body:
        """AddOffsetsToTxn: the group's offsets partition takes part."""
        partition = self._offsets.partition_of(request.group_id)
        return {"error_code": await self._add(request, context, [partition])}

    async def txn_offset_commit(self, request: Message, context: Context) -> Body:
        """TxnOffsetCommit: drafts in the group's offsets partition."""
        accepted, body = sort_offsets(request.topics, self._check_member(request), self._has_partition)
        if accepted:
            code = await self._commit_draft(request, accepted, context)
            if code is not ErrorCode.NONE:
                _, body = sort_offsets(request.topics, code, self._has_partition)
        return body

    async def _commit_draft(self, request: Message, rows: list[OffsetToCommit], context: Context) -> ErrorCode:
        identity = (request.transactional_id, request.producer_id, request.producer_epoch)
        try:
            self._coordinator.ensure_offsets_not_older(*identity, context.connection)
            await self._offsets.commit_draft(
                request.group_id, rows, request.producer_id, request.producer_epoch, self._coordinator.once_known
            )
        except TransactionRefused as error:
            return error.code
        except NoOpenTransaction:
            return self._coordinator.refusal_of_draft(*identity)
        except FaircopyError:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return ErrorCode.NONE

    async def end_txn(self, request: Message, context: Context) -> Body:
        """EndTxn: answered when the commit can't be lost any more."""
        try:
            await self._coordinator.end(
                request.transactional_id,
                request.producer_id,
                request.producer_epoch,
                commit=request.committed,
                connection=context.connection,
                fenced=fenced_code(context.version),
            )
        except TransactionRefused as error:
            return {"error_code": error.code}
        return {"error_code": ErrorCode.NONE}

    # -- showing -------------------------------------------------------------------------------------------------

    async def list_transactions(self, request: Message, context: Context) -> Body:
        """ListTransactions (KIP-664)."""
        known = {phase.value for phase in Phase} | {"Empty"}
        now_ms = self._clock.steady_ms()
        return {
            "error_code": ErrorCode.NONE,
            "unknown_state_filters": [state for state in request.state_filters if state not in known],
            "transaction_states": [
                {
                    "transactional_id": producer.transactional_id,
                    "producer_id": producer.producer_id,
                    "transaction_state": producer.phase_name,
                }
                for producer in self._producers()
                if is_wanted(producer, request, now_ms)
            ],
        }

    def _producers(self) -> list[Producer]:
        return [producer for home in self._coordinator.journals for producer in home.table.producers.values()]

    async def describe_transactions(self, request: Message, context: Context) -> Body:
        """DescribeTransactions (KIP-664)."""
        return {"transaction_states": [self._describe(name) for name in request.transactional_ids]}

    def _describe(self, transactional_id: str) -> Body:
        answer: Body = {"transactional_id": transactional_id, "topics": []}
        producer = self._coordinator.journal_of(transactional_id).table.producers.get(transactional_id)
        if producer is None:
            nothing = {"transaction_state": "", "transaction_timeout_ms": 0, "transaction_start_time_ms": -1}
            identity = {"producer_id": -1, "producer_epoch": -1}
            return answer | nothing | identity | {"error_code": ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}
        transaction = producer.current or next(reversed(producer.ending.values()), None)
        topics: dict[str, list[int]] = {}
        for topic, partition in transaction.participants if transaction else ():
            topics.setdefault(topic, []).append(partition)
        return answer | {
            "error_code": ErrorCode.NONE,
            "transaction_state": producer.phase_name,
            "transaction_timeout_ms": producer.timeout_ms,
            "transaction_start_time_ms": transaction.started_ms if transaction else -1,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.epoch,
            "topics": [{"topic": topic, "partitions": numbers} for topic, numbers in topics.items()],
        }

    async def describe_producers(self, request: Message, context: Context) -> Body:
        """DescribeProducers (KIP-664)."""
        return {
            "topics": [
                {
                    "name": topic.name,
                    "partitions": [self._producers_of(topic.name, number) for number in topic.partition_indexes],
                }
                for topic in request.topics
            ]
        }

    def _producers_of(self, topic: str, number: int) -> Body:
        answer: Body = {"partition_index": number, "active_producers": []}
        partition = self._catalog.find(topic, number)
        if partition is None:
            return answer | {"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        # Drafts have no offset yet, so a transaction that is open has no first one to show.
        return answer | {
            "error_code": ErrorCode.NONE,
            "active_producers": [
                {
                    "producer_id": producer_id,
                    "producer_epoch": producer.epoch,
                    "last_sequence": producer.seen[-1].last_sequence if producer.seen else -1,
                    "last_timestamp": -1,
                    "coordinator_epoch": 0,
                    "current_txn_start_offset": -1,
                }
                for producer_id, producer in partition.state.producers.items()
            ],
        }


def is_wanted(producer: Producer, request: Message, now_ms: int) -> bool:
    """Whether the filters of a ListTransactions request let a transactional id through."""
    if request.state_filters and producer.phase_name not in request.state_filters:
        return False
    if request.producer_id_filters and producer.producer_id not in request.producer_id_filters:
        return False
    if request.duration_filter >= 0:
        transaction = producer.current or next(iter(producer.ending.values()), None)
        return transaction is not None and now_ms - transaction.started_ms > request.duration_filter
    return True
