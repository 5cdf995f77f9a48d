"""Reading: what is visible, where to stop so that no transaction is divided, and what belongs to which."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import NamedTuple

from faircopy.client.brokers import PAUSE_SECONDS, Brokers, Outcome, TopicPartition, outcome_of
from faircopy.client.errors import DataLost, OutcomeUnknown, RequestFailed, made_anew
from faircopy.client.protocol import CUT, FETCH, LIST_OFFSETS, SPANS, Request
from faircopy.wire.batch import HEADER_BYTES, LENGTH_OVERHEAD_BYTES, PLACE, read_header
from faircopy.wire.codec import Body, Message
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import Record, decode_records
from faircopy.wire.schema import UUID_ZERO

PIECE_BYTES = 4 << 20
WAIT_MS = 500
FROM_THE_START = -1
NO_LIMIT = -1
EARLIEST, LATEST = -2, -1
"""Stand for timestamps, in `offsets_at`."""
NO_OFFSET = -1
LOST = (ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_TOPIC_ID)


class PartitionToRead(NamedTuple):
    """Where somebody reads. With its topic's id, it is never a partition of a topic that was made anew under
    the same name; without, it is one of the topic that has the name now.
    """

    topic: str
    partition: int
    topic_id: bytes = UUID_ZERO

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OffsetRange(NamedTuple):
    """Offsets of one partition: from `start` up to `end`, which is not included."""

    start: int
    end: int


class Piece(NamedTuple):
    """Whole record batches, one after the other; those before `next_offset` are in it or in earlier ones."""

    data: bytes
    next_offset: int


class TransactionSpan(NamedTuple):
    """The offsets in a partition that belong to one transaction, both included. `txid` is unique."""

    first_offset: int
    last_offset: int
    txid: str


class Reading:
    """Requests of readers, to the brokers that lead what is read."""

    def __init__(self, brokers: Brokers, timeout_seconds: float) -> None:
        self._brokers = brokers
        self._timeout_seconds = timeout_seconds

    # -- where -----------------------------------------------------------------------------------------------

    async def cut(
        self,
        starts: Mapping[TopicPartition, int],
        limit_rows: int | None,
        limit_bytes: int | None,
        topic_ids: Mapping[str, bytes],
    ) -> dict[TopicPartition, OffsetRange]:
        """See `Client.cut`."""
        body = {
            "limit_rows": NO_LIMIT if limit_rows is None else limit_rows,
            "limit_bytes": NO_LIMIT if limit_bytes is None else limit_bytes,
            "topics": [
                {
                    "name": topic,
                    "topic_id": topic_ids.get(topic, UUID_ZERO),
                    "partitions": [{"partition": n, "start_offset": start} for n, start in rows],
                }
                for topic, rows in by_topic(starts).items()
            ],
        }
        try:
            answer = await self._brokers.ask(
                self._brokers.any, CUT, body, outcome_of_cut, "looking for a cut", self._timeout_seconds
            )
        except RequestFailed as error:
            if error.code not in LOST:
                raise
            raise DataLost(error.code, str(error)) from error
        return {
            (topic.name, row.partition): OffsetRange(row.start_offset, row.end_offset)
            for topic in answer.topics
            for row in topic.partitions
        }

    async def offsets_at(
        self, timestamps: Mapping[TopicPartition, int], topic_ids: Mapping[str, bytes]
    ) -> dict[TopicPartition, int | None]:
        """See `Client.offsets_at`."""
        places = [PartitionToRead(*each, topic_ids.get(each[0], UUID_ZERO)) for each in timestamps]
        found = await asyncio.gather(*map(self._offset_at, places, timestamps.values()))
        return dict(zip(timestamps, found, strict=True))

    async def _offset_at(self, place: PartitionToRead, timestamp: int) -> int | None:
        rows = [{"partition_index": place.partition, "timestamp": timestamp}]
        answer = await self._by_name(
            place,
            LIST_OFFSETS,
            {"topics": [{"name": place.topic, "partitions": rows}]},
            lambda answer: (answer.topics[0].partitions[0].error_code, None),
            f"looking for an offset of {place}",
        )
        offset = int(answer.topics[0].partitions[0].offset)
        return offset if offset != NO_OFFSET else None

    async def spans(self, place: PartitionToRead, start: int, end: int) -> list[TransactionSpan]:
        """See `Client.spans`."""
        found: list[TransactionSpan] = []
        at = start
        until = asyncio.get_running_loop().time() + self._timeout_seconds
        while at < end:
            answer = await self._of_partition(
                place,
                SPANS,
                body_of_spans(place, at, end),
                outcome_of,
                f"asking for the transactions of {place} from offset {at} on",
            )
            found += [
                TransactionSpan(
                    span.first_offset,
                    span.last_offset,
                    f"{span.producer_id}.{span.producer_epoch}.{span.number}",
                )
                for span in answer.spans
            ]
            if answer.next_offset <= at:
                await self._pause(place, at, until)
            at = answer.next_offset
        return found

    async def _pause(self, place: PartitionToRead, offset: int, until: float) -> None:
        """Wait for what is committed and about to be visible. Raises OutcomeUnknown."""
        if asyncio.get_running_loop().time() > until:
            raise OutcomeUnknown(f"{place} has nothing at offset {offset} after {self._timeout_seconds:g} s")
        await asyncio.sleep(PAUSE_SECONDS)

    # -- what ------------------------------------------------------------------------------------------------

    async def pieces(self, place: PartitionToRead, start: int, end: int) -> AsyncIterator[Piece]:
        """See `Client.read_pieces`. While one is being used, the next is on its way."""
        loop = asyncio.get_running_loop()
        fetching = loop.create_task(self._fetch(place, start)) if start < end else None
        until = loop.time() + self._timeout_seconds
        try:
            while fetching is not None:
                piece = await fetching
                fetching = None
                if not piece.data:
                    await self._pause(place, piece.next_offset, until)
                if piece.next_offset < end:
                    fetching = loop.create_task(self._fetch(place, piece.next_offset))
                if piece.data:
                    yield piece
                    until = loop.time() + self._timeout_seconds
        finally:
            if fetching is not None:
                fetching.cancel()

    async def _fetch(self, place: PartitionToRead, offset: int) -> Piece:
        """Whole batches from an offset on; none if there is nothing yet."""
        asked = {"partition": place.partition, "fetch_offset": offset, "partition_max_bytes": PIECE_BYTES}
        answer = await self._by_name(
            place,
            FETCH,
            {
                "max_wait_ms": WAIT_MS,
                "min_bytes": 1,
                "max_bytes": PIECE_BYTES,
                "topics": [{"topic": place.topic, "partitions": [asked]}],
            },
            outcome_of_fetch,
            f"reading {place} from offset {offset} on",
        )
        return whole_batches(bytes(answer.responses[0].partitions[0].records or b""), offset)

    # -- asking ----------------------------------------------------------------------------------------------

    async def _by_name(
        self, place: PartitionToRead, request: Request, body: Body, outcome: Outcome, doing: str
    ) -> Message:
        """The answer to a request that has room for a topic's name only. An id is never used again: if it is
        still there after the answer, the answer is about no other topic.
        """
        try:
            answer = await self._of_partition(place, request, body, outcome, doing)
        except DataLost:
            await self._ensure_is_there(place, doing)
            raise
        await self._ensure_is_there(place, doing)
        return answer

    async def _ensure_is_there(self, place: PartitionToRead, doing: str) -> None:
        """Raise DataLost if the topic has an id, and it is gone."""
        if place.topic_id != UUID_ZERO:
            await self._of_partition(place, SPANS, body_of_spans(place, 0, 0), outcome_of_presence, doing)

    async def _of_partition(
        self, place: PartitionToRead, request: Request, body: Body, outcome: Outcome, doing: str
    ) -> Message:
        try:
            return await self._brokers.ask(
                lambda: self._brokers.leader(*place), request, body, outcome, doing, self._timeout_seconds
            )
        except RequestFailed as error:
            if error.code not in LOST:
                raise
            raise DataLost(error.code, what_is_lost(error, place, doing)) from error


def place_of(topic: str, partition: int, topic_id: bytes | None) -> PartitionToRead:
    """A partition of a topic with this id, or of the one that has the name now."""
    return PartitionToRead(topic, partition, topic_id or UUID_ZERO)


def by_topic(starts: Mapping[TopicPartition, int]) -> dict[str, list[tuple[int, int]]]:
    """Partition numbers and offsets, by topic."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for (topic, partition), start in starts.items():
        found[topic].append((partition, start))
    return found


def outcome_of_cut(answer: Message) -> tuple[int, str | None]:
    """The first error in an answer: it holds only if there is none."""
    if answer.error_code:
        return answer.error_code, None
    for topic in answer.topics:
        for row in topic.partitions:
            if row.error_code == ErrorCode.UNKNOWN_TOPIC_ID:
                return row.error_code, made_anew(topic.name)
            if row.error_code:
                where = f"{topic.name}-{row.partition}, of which the log begins at offset {row.log_start}"
                return row.error_code, f"{where}: offset {row.start_offset} is not there"
    return 0, None


def outcome_of_presence(answer: Message) -> tuple[int, str | None]:
    """The error of an answer that has to say no more than that a topic is there."""
    return (answer.error_code if answer.error_code != ErrorCode.OFFSET_OUT_OF_RANGE else 0), None


def what_is_lost(error: RequestFailed, place: PartitionToRead, doing: str) -> str:
    """Why there is nothing to read."""
    if error.code == ErrorCode.UNKNOWN_TOPIC_ID:
        return f"{doing}: {made_anew(place.topic)} ({error.code.name})"
    is_known = place.topic_id != UUID_ZERO
    return f"{error}: it was deleted" + ("" if is_known else ", or the topic was made anew")


def body_of_spans(place: PartitionToRead, start: int, end: int) -> Body:
    """Asks for the spans between two offsets."""
    return {
        "topic_id": place.topic_id,
        "name": place.topic,
        "partition": place.partition,
        "start_offset": start,
        "end_offset": end,
    }


def outcome_of_fetch(answer: Message) -> tuple[int, str | None]:
    """The error of an answer for one partition."""
    return answer.error_code or answer.responses[0].partitions[0].error_code, None


def whole_batches(data: bytes, offset: int) -> Piece:
    """The batches of an answer; one that is cut at the end is left for the next."""
    at = 0
    while at + HEADER_BYTES <= len(data):
        size = PLACE.unpack_from(data, at)[1] + LENGTH_OVERHEAD_BYTES
        if at + size > len(data):
            break
        last, at = at, at + size
    if not at:
        return Piece(b"", offset)
    return Piece(data[:at], read_header(data, last).last_offset + 1)


def records_of(piece: Piece, start: int, end: int) -> Iterator[Record]:
    """The records of a piece that lie between two offsets."""
    at = 0
    while at < len(piece.data):
        size = PLACE.unpack_from(piece.data, at)[1] + LENGTH_OVERHEAD_BYTES
        for record in decode_records(piece.data[at : at + size]):
            if start <= record.offset < end:
                yield record
        at += size


def starts_of(
    partitions: Iterable[TopicPartition] | Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Where each partition is to be read from; from its start if nothing is said."""
    return dict(partitions) if isinstance(partitions, Mapping) else dict.fromkeys(partitions, FROM_THE_START)
