"""The answer to a Fetch request: whole batches, byte for byte as they are in the log."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from faircopy.api.fetch.sessions import Asking, SessionRefused
from faircopy.catalogue.topics import UnknownTopic, UnknownTopicId
from faircopy.datalog.check import check_up_to
from faircopy.datalog.log import OffsetOutOfRange
from faircopy.datalog.read import DamagedLog, ReadPlan, find_batches, read_from_disk
from faircopy.errors import FaircopyError
from faircopy.hosting.hosted_topics import HostedTopics
from faircopy.hosting.leader_epoch import UNNAMED, check_leader_epoch
from faircopy.journal.identity import TopicIdPartition
from faircopy.net.exchange import Exchange
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.participant import NotLed
from faircopy.serving.codes import code_of
from faircopy.settings.table import Settings
from faircopy.storage.epoch_history import UNDEFINED, EpochEnd
from faircopy.storage.failures import Shortage
from faircopy.storage.file import FileRange
from faircopy.storage.sealed import DamagedState
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.fetch import (
    DivergingEpoch,
    FetchPartition,
    FetchResult,
    encode_fetch_response,
)
from faircopy.wire.messages import RequestHeader

INLINE_READ_BYTES = 256 << 10

log = logging.getLogger(__name__)


class OtherEpoch(FaircopyError):
    """The client names a leader epoch that is over, or one that this broker does not know yet."""

    def __init__(self, code: ErrorCode, what: str) -> None:
        super().__init__(what)
        self.code = code


class Diverged(FaircopyError):
    """What the client fetched last is not in this log. `end` is where the two logs diverge."""

    def __init__(self, end: EpochEnd) -> None:
        super().__init__(f"the logs diverge at offset {end.end}, where leader epoch {end.epoch} ends")
        self.end = end


class ToRead(NamedTuple):
    """One partition's share of an answer: its number in the results, what to read, and how much of it."""

    number: int
    partition: HostedPartition
    plan: ReadPlan
    max_bytes: int


class Room:
    """The room in a response, while partitions are read into it one by one (KIP-74). It takes the first
    batch in any case, so that a large one can't block a reader; what else does not fit is left out.
    """

    def __init__(self, left_bytes: int) -> None:
        self._left_bytes = left_bytes
        self._is_empty = True

    def for_partition(self, max_bytes: int) -> tuple[int, bool]:
        """How many bytes of a partition there is room for, of `max_bytes`, and whether its first batch may
        exceed that.
        """
        return min(max_bytes, self._left_bytes), self._is_empty

    def take(self, size_bytes: int) -> None:
        """Note what was read."""
        self._left_bytes = max(0, self._left_bytes - size_bytes)
        self._is_empty = self._is_empty and not size_bytes


class FetchPlanner:
    """Decides what a reader gets and what it is told. Both isolation levels get the same (P1)."""

    def __init__(self, hosted_topics: HostedTopics, settings: Settings) -> None:
        self.hosted = hosted_topics
        self.settings = settings

    def find(self, asked: FetchPartition) -> HostedPartition | None:
        """The partition of this name or topic id; None if there is none."""
        if isinstance(asked.topic, bytes):
            return self.hosted.find_by_id(TopicIdPartition(asked.topic, asked.partition))
        return self.hosted.find(asked.topic, asked.partition)

    def _unknown(self, asked: FetchPartition) -> UnknownTopic:
        what = f"there is no partition {name_of(asked)}"
        is_of_known_id = isinstance(asked.topic, str) or self.find(asked._replace(partition=0)) is not None
        return UnknownTopic(what) if is_of_known_id else UnknownTopicId(what)

    def plan(self, asked: FetchPartition) -> tuple[HostedPartition, ReadPlan | None]:
        """A partition, and where to read in it: None at the end of its log. Raises UnknownTopic, OtherEpoch,
        Diverged, OffsetOutOfRange, and whatever stopped the partition.
        """
        partition = self.find(asked)
        if partition is None:
            raise self._unknown(asked)
        if partition.failure is not None:
            raise partition.failure
        if asked.current_leader_epoch not in (UNNAMED, partition.journal.leader_epoch):
            ensure_current(asked, partition)
        if asked.last_fetched_epoch != UNNAMED:
            ensure_same_history(asked, partition)
        try:
            return partition, partition.log.plan_read(asked.fetch_offset)
        except (DamagedLog, DamagedState) as error:
            self.hosted.stop(partition, error)
            raise

    def result_of(self, asked: FetchPartition, partition: HostedPartition) -> FetchResult:
        """The answer for a partition, without records. The last stable offset is the end of the log (P1)."""
        end, start = partition.log.end_offset, partition.log.start_offset
        return FetchResult(asked.topic, asked.partition, 0, end, end, start, [])

    def encode(
        self, version: int, correlation_id: int, results: list[FetchResult], session_id: int
    ) -> list[Any]:
        """The response in pieces, as `encode_fetch_response` makes them."""
        return encode_fetch_response(version, correlation_id, results, session_id=session_id)

    def refusal(self, asked: FetchPartition, error: FaircopyError) -> FetchResult:
        """The answer for a partition that can't be read."""
        log.debug(
            "refused: Fetch of %s from offset %d: %s",
            name_of(asked),
            asked.fetch_offset,
            error,
        )
        partition = self.find(asked)
        if isinstance(error, OffsetOutOfRange) and partition is not None:
            return self.result_of(asked, partition)._replace(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        if isinstance(error, Diverged) and partition is not None:
            return self.result_of(asked, partition)._replace(diverging=DivergingEpoch(*error.end))
        code = error.code if isinstance(error, OtherEpoch) else code_of(error)
        return FetchResult(asked.topic, asked.partition, code, -1, -1, -1, [])

    def failure_of(self, read: ToRead, error: FaircopyError, *, has_ids: bool = False) -> ErrorCode:
        """The error code for a partition that could not be read. Stops the partition if it is damaged."""
        partition = read.partition
        if isinstance(partition.failure, NotLed):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.hosted.find(partition.name.topic, partition.name.partition) is not partition:
            return ErrorCode.UNKNOWN_TOPIC_ID if has_ids else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if read.plan.offset < partition.log.start_offset:
            return ErrorCode.OFFSET_OUT_OF_RANGE  # deleted while it was read
        if not isinstance(error, Shortage):
            self.hosted.stop(partition, error)
        return ErrorCode.KAFKA_STORAGE_ERROR


def name_of(asked: FetchPartition) -> str:
    """A partition as the client calls it."""
    topic = asked.topic.hex() if isinstance(asked.topic, bytes) else asked.topic
    return f"{topic}-{asked.partition}"


def ensure_current(asked: FetchPartition, partition: HostedPartition) -> None:
    """Raise OtherEpoch unless the client names the current leader epoch, or none."""
    named, current = asked.current_leader_epoch, partition.leader_epoch
    code = check_leader_epoch(named, current)
    if code is not ErrorCode.NONE:
        raise OtherEpoch(code, f"the client names leader epoch {named}, and {partition.name} is in {current}")


def ensure_same_history(asked: FetchPartition, partition: HostedPartition) -> None:
    """Raise Diverged unless the batch before the offset may be of the leader epoch that the client has for it
    (KIP-595). Raise OffsetOutOfRange if the partition has not had that epoch.
    """
    named, log = asked.last_fetched_epoch, partition.log
    end = partition.epochs.end_of(named, log.end_offset)
    if end == UNDEFINED:
        raise OffsetOutOfRange(f"{partition.name} has not had leader epoch {named}")
    diverges = end.epoch < named or end.end < asked.fetch_offset
    if diverges and asked.fetch_offset >= log.start_offset:
        raise Diverged(end)


class Answer:
    """An answer in the making: a result for each partition, and what is still to be read."""

    def __init__(self, planner: FetchPlanner, asking: Asking) -> None:
        request = asking.request
        self._asking = asking
        self.results: list[FetchResult] = []
        self.to_read: list[ToRead] = []
        self._planner = planner
        self._max_bytes = min(request.max_bytes, planner.settings.fetch_max_bytes)
        self._left = self._max_bytes
        self._missing_bytes = max(request.min_bytes, 1)
        if request.max_wait_ms <= 0 or not asking.partitions:
            self._missing_bytes = 0

    @property
    def is_enough(self) -> bool:
        """Whether it can be sent without waiting for more."""
        return self._missing_bytes <= 0

    def add(self, asked: FetchPartition) -> None:
        """Add one more partition."""
        if self._asking.goes_on:
            partition = self._planner.find(asked)
            if self._asking.has_nothing_new(asked, partition):
                return
        try:
            partition, plan = self._planner.plan(asked)
        except FaircopyError as error:
            self.results.append(self._planner.refusal(asked, error))
            self._missing_bytes = 0
            return
        if plan is not None:
            # An answer has what one segment holds of a partition, so at its end waiting would bring no more.
            if partition.log.goes_on_after(plan):
                self._missing_bytes = 0
            self._missing_bytes -= max(plan.available_bytes, 1)
            if self._left > 0 or not self.to_read:
                max_bytes = max(min(asked.partition_max_bytes, self._left), 0)
                self.to_read.append(ToRead(len(self.results), partition, plan, max_bytes))
                self._left -= min(plan.available_bytes, max_bytes)
        self.results.append(self._planner.result_of(asked, partition))

    def encoded(self, header: RequestHeader) -> list[Any]:
        """The response in pieces. Called once."""
        results, session_id = self._asking.told(self.results), self._asking.session_id
        return self._planner.encode(header.api_version, header.correlation_id, results, session_id)

    def room(self) -> Room:
        """The room that there is before anything is read."""
        return Room(self._max_bytes)

    def take(self, read: ToRead, outcome: bytes | FileRange | FaircopyError) -> None:
        """Put in what was read for a partition, or the error that reading it raised."""
        result = self.results[read.number]
        if isinstance(outcome, FaircopyError):
            code = self._planner.failure_of(read, outcome, has_ids=self._asking.request.has_ids)
            self.results[read.number] = result._replace(error_code=code)
        elif len(outcome):
            self.results[read.number] = result._replace(records=[outcome])


def total_bytes(to_read: list[ToRead]) -> int:
    """Roughly how many bytes will be read."""
    return sum(min(read.max_bytes, read.plan.available_bytes) for read in to_read)


def find_all(to_read: list[ToRead], room: Room, in_memory: bool) -> list[bytes | FileRange | FaircopyError]:
    """Each plan's batches, checked: their bytes, or only where they are in the file. Blocks."""
    outcomes: list[bytes | FileRange | FaircopyError] = []
    for read in to_read:
        try:
            max_bytes, may_exceed = room.for_partition(read.max_bytes)
            found = find_batches(read.plan, max_bytes, read_from_disk, may_exceed=may_exceed)
            check_up_to(read.plan, found.position + found.size)
            outcomes.append(found.file.read(found.size, found.position) if in_memory else found)
            room.take(found.size)
        except FaircopyError as error:
            outcomes.append(error)
    return outcomes


def send(exchange: Exchange, response: list[Any]) -> None:
    """Answer with pieces that are in memory or in files."""
    if any(isinstance(piece, FileRange) for piece in response):
        exchange.answer_from_files(response)
    else:
        exchange.answer(response)


def refuse_session(exchange: Exchange, header: RequestHeader, refused: SessionRefused) -> None:
    """Refuse to go on with a fetch session."""
    log.debug("refused to %s: Fetch: %s", exchange.connection.peer, refused)
    exchange.answer(encode_fetch_response(header.api_version, header.correlation_id, [], refused.code))
