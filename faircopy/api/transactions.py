"""InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn, and what shows transactions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from faircopy.api.context import Body, Context, Message
from faircopy.api.refusals import log_reason
from faircopy.cluster.producer_ids import ProducerIds
from faircopy.errors import FaircopyError
from faircopy.groups.offset_requests import HasPartition, sort_offsets
from faircopy.groups.offsets import OffsetToCommit
from faircopy.groups.offsets_journals import OFFSETS_TOPIC, OffsetsJournals
from faircopy.hosting.catalog import Catalog
from faircopy.journal.identity import OFFSETS_TOPIC_ID, TopicIdPartition
from faircopy.partition.partition import NoOpenTransaction, Partition, PartitionName
from faircopy.storage.clock import Clock
from faircopy.transactions.connections import Sent
from faircopy.transactions.coordinator import TransactionCoordinator
from faircopy.transactions.decisions import TransactionRefused
from faircopy.transactions.state import TransactionState
from faircopy.transactions.transaction import Producer
from faircopy.wire.error_codes import ErrorCode

PRODUCER_FENCED_SINCE = 2  # AddPartitionsToTxn, AddOffsetsToTxn and EndTxn; InitProducerId since 4
INIT_PRODUCER_FENCED_SINCE = 4

CheckMember = Callable[[Message], ErrorCode]


def fenced_code(version: int, since: int = PRODUCER_FENCED_SINCE) -> ErrorCode:
    """What a zombie is told; older clients know only the older code (KIP-588)."""
    return ErrorCode.PRODUCER_FENCED if version >= since else ErrorCode.INVALID_PRODUCER_EPOCH


def sent(context: Context, content: Hashable) -> Sent:
    """Where a request came from, and what tells it from others of its kind."""
    return Sent(context.connection, context.correlation_id, content)


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
            log_reason(error)
            code = error.code
            if code is ErrorCode.PRODUCER_FENCED:
                code = fenced_code(context.version, INIT_PRODUCER_FENCED_SINCE)
            return {"error_code": code, "producer_id": -1, "producer_epoch": -1}
        return {"error_code": ErrorCode.NONE, "producer_id": producer_id, "producer_epoch": epoch}

    # -- in a transaction ----------------------------------------------------------------------------------------

    async def add_partitions_to_txn(self, request: Message, context: Context) -> Body:
        """AddPartitionsToTxn: all the partitions, or none."""
        pace = context.pace
        results: dict[str, list[Body]] = {topic.name: [] for topic in request.topics}
        found: dict[tuple[str, int], Partition | None] = {}

        def find(place: tuple[str, int]) -> None:
            found[place] = self._catalog.find(*place)

        def answer(place: tuple[str, int]) -> None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if found[place] is None else code
            results[place[0]].append({"partition_index": place[1], "error_code": error})

        await pace.each(find, ((topic.name, number) for topic in request.topics for number in topic.partitions))
        pace.ensure_wanted()
        sound = [partition for partition in found.values() if partition is not None]
        code = ErrorCode.OPERATION_NOT_ATTEMPTED
        if len(sound) == len(found):
            code = await self._add(request, context, sound, tuple(found))
        await pace.each(answer, found)
        return {"results": [{"name": topic, "partitions": partitions} for topic, partitions in results.items()]}

    async def _add(
        self, request: Message, context: Context, partitions: Sequence[Partition], content: Hashable
    ) -> ErrorCode:
        try:
            for partition in partitions:
                partition.ensure_sound()
            await self._coordinator.add_partitions(
                request.transactional_id,
                request.producer_id,
                request.producer_epoch,
                partitions,
                sent(context, content),
                fenced_code(context.version),
            )
        except TransactionRefused as error:
            log_reason(error)
            return error.code
        except FaircopyError as error:
            log_reason(error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    async def add_offsets_to_txn(self, request: Message, context: Context) -> Body:
        """AddOffsetsToTxn: the group's offsets partition takes part."""
        partition = self._offsets.partition_of(request.group_id)
        return {"error_code": await self._add(request, context, [partition], request.group_id)}

    async def txn_offset_commit(self, request: Message, context: Context) -> Body:
        """TxnOffsetCommit: drafts in the group's offsets partition."""
        offsets = await sort_offsets(request.topics, self._has_partition, context.pace)
        error = self._check_member(request)
        if not error and (accepted := offsets.accepted):
            error = await self._commit_draft(request, accepted, context)
        return await offsets.answer(request.topics, error, context.pace)

    async def _commit_draft(self, request: Message, rows: list[OffsetToCommit], context: Context) -> ErrorCode:
        identity = (request.transactional_id, request.producer_id, request.producer_epoch)
        try:
            self._coordinator.admit_offsets(*identity, sent(context, (request.group_id, *rows)))
            await self._offsets.commit_draft(request.group_id, rows, *identity, self._coordinator.once_written)
        except TransactionRefused as error:
            log_reason(error)
            return error.code
        except NoOpenTransaction as error:
            log_reason(error)
            return self._coordinator.refusal_of_draft(*identity)
        except FaircopyError as error:
            log_reason(error)
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
                sent=sent(context, request.committed),
                fenced=fenced_code(context.version),
            )
        except TransactionRefused as error:
            log_reason(error)
            return {"error_code": error.code}
        return {"error_code": ErrorCode.NONE}

    # -- showing -------------------------------------------------------------------------------------------------

    async def list_transactions(self, request: Message, context: Context) -> Body:
        """ListTransactions (KIP-664)."""
        known = {state.value for state in TransactionState} | {"Empty"}
        now_ms = self._clock.steady_ms()
        return {
            "error_code": ErrorCode.NONE,
            "unknown_state_filters": [state for state in request.state_filters if state not in known],
            "transaction_states": [
                {
                    "transactional_id": producer.transactional_id,
                    "producer_id": producer.producer_id,
                    "transaction_state": producer.state_name,
                }
                for producer in self._producers()
                if is_wanted(producer, request, now_ms)
            ],
        }

    def _producers(self) -> list[Producer]:
        return [producer for home in self._coordinator.journals for producer in home.table.producers.values()]

    async def describe_transactions(self, request: Message, context: Context) -> Body:
        """DescribeTransactions (KIP-664). One that is asked for twice is described once."""
        names = context.pace.over(dict.fromkeys(request.transactional_ids))
        return {"transaction_states": [self._describe(name) async for name in names]}

    def _describe(self, transactional_id: str) -> Body:
        answer: Body = {"transactional_id": transactional_id, "topics": []}
        producer = self._coordinator.journal_of(transactional_id).table.producers.get(transactional_id)
        if producer is None:
            nothing = {"transaction_state": "", "transaction_timeout_ms": 0, "transaction_start_time_ms": -1}
            identity = {"producer_id": -1, "producer_epoch": -1}
            return answer | nothing | identity | {"error_code": ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}
        transaction = producer.current or next(reversed(producer.ending.values()), None)
        topics: dict[str, list[int]] = {}
        for name in map(self._name_of, transaction.participants if transaction else ()):
            if name is not None:
                topics.setdefault(name.topic, []).append(name.partition)
        return answer | {
            "error_code": ErrorCode.NONE,
            "transaction_state": producer.state_name,
            "transaction_timeout_ms": producer.timeout_ms,
            "transaction_start_time_ms": self._wall_ms(transaction.started_ms) if transaction else -1,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.epoch,
            "topics": [{"topic": topic, "partitions": numbers} for topic, numbers in topics.items()],
        }

    def _name_of(self, participant: TopicIdPartition) -> PartitionName | None:
        """A participant's name; None if its topic is deleted."""
        if participant.topic_id == OFFSETS_TOPIC_ID:
            return PartitionName(OFFSETS_TOPIC, participant.partition)
        return self._catalog.name_of(participant)

    def _wall_ms(self, steady_ms: int) -> int:
        """A moment of the steady clock, as people's clocks have it now."""
        return self._clock.wall_ms() - (self._clock.steady_ms() - steady_ms)

    async def describe_producers(self, request: Message, context: Context) -> Body:
        """DescribeProducers (KIP-664)."""
        return {
            "topics": [
                {
                    "name": topic.name,
                    "partitions": [
                        self._producers_of(topic.name, number)
                        async for number in context.pace.over(dict.fromkeys(topic.partition_indexes))
                    ],
                }
                async for topic in context.pace.over({topic.name: topic for topic in request.topics}.values())
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
    if request.state_filters and producer.state_name not in request.state_filters:
        return False
    if request.producer_id_filters and producer.producer_id not in request.producer_id_filters:
        return False
    if request.duration_filter >= 0:
        transaction = producer.current or next(iter(producer.ending.values()), None)
        return transaction is not None and now_ms - transaction.started_ms > request.duration_filter
    return True
