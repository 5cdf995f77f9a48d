"""The client for asyncio."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import TracebackType

from faircopy.client.brokers import METADATA_MAX_AGE_SECONDS, Brokers, KnownTopic, TopicPartition, outcome_of
from faircopy.client.errors import OutcomeUnknown, RequestFailed
from faircopy.client.member import JointMember
from faircopy.client.protocol import (
    END_JOINT_TRANSACTION,
    FORGET_TRANSACTION_GROUP,
    JOIN_TRANSACTION,
    Request,
)
from faircopy.client.reading import (
    OffsetRange,
    Piece,
    Reading,
    TransactionSpan,
    place_of,
    records_of,
    starts_of,
)
from faircopy.client.transaction import OpenTransaction
from faircopy.wire.codec import Body, Message
from faircopy.wire.records import Record
from faircopy.wire.schema import UUID_ZERO

TIMEOUT_SECONDS = 60.0
TRANSACTION_TIMEOUT_MS = 60_000
NO_KEY = -1


class Client:
    """Talks to the brokers behind `bootstrap_servers`, a list or a text with commas. Use it as an async
    context manager, from one event loop.

    `timeout_seconds`: how long a call tries before it raises OutcomeUnknown. `metadata_max_age_seconds`: how
    long it may take until partitions are used that were added to a topic.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        *,
        client_id: str = "faircopy",
        timeout_seconds: float = TIMEOUT_SECONDS,
        metadata_max_age_seconds: float = METADATA_MAX_AGE_SECONDS,
    ) -> None:
        addresses = bootstrap_servers.split(",") if isinstance(bootstrap_servers, str) else bootstrap_servers
        self._brokers = Brokers(
            [address.strip() for address in addresses], client_id, metadata_max_age_seconds
        )
        self._timeout_seconds = timeout_seconds
        self._reading = Reading(self._brokers, timeout_seconds)
        self._own_group = f"{client_id}-{uuid.uuid4()}".replace("/", "-")
        self._idle: list[JointMember] = []
        self._has_own_group = False

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Abort the transactions that `begin` has begun, and close all connections."""
        if self._has_own_group:
            with contextlib.suppress(RequestFailed, OutcomeUnknown):
                await self._end(self._own_group, self._own_group, NO_KEY, (), commit=False)
                await self.forget(self._own_group)
        await self._brokers.close()

    # -- joint transactions ----------------------------------------------------------------------------------

    async def join(
        self,
        group: str,
        *,
        run: str,
        key: int,
        member: str,
        transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS,
    ) -> JointMember | None:
        """A new member of a group, to write for this key; None if the key is committed already.

        `run` is one life of the application: one that the group does not know fences the present one.
        `member` says who it is, for people; each call makes a member of its own. What it writes is discarded
        if the group has not committed the key within `transaction_timeout_ms` after its first record. Raises
        Fenced, RequestFailed, OutcomeUnknown.
        """
        answer = await self._ask(
            group,
            JOIN_TRANSACTION,
            {"group": group, "run": run, "key": key, "member": member, "timeout_ms": transaction_timeout_ms},
            f"joining {group!r}",
        )
        if answer.is_committed:
            return None
        return JointMember(
            self._brokers,
            answer.transactional_id,
            answer.producer_id,
            answer.producer_epoch,
            self._timeout_seconds,
        )

    async def commit(self, group: str, *, run: str, key: int, members: Iterable[JointMember | int]) -> None:
        """Commit what these members, or producer ids of members, have written for a key; all else that was
        written for it is discarded. Keys of a group are committed in growing order, each once: if the key is
        committed already, this does nothing. When it returns, the commit can't be lost.

        Raises TransactionAborted if a member was aborted meanwhile (then nothing is committed), Fenced,
        RequestFailed, OutcomeUnknown.
        """
        producer_ids = []
        for member in members:
            if isinstance(member, JointMember):
                await member.flush()
            producer_ids.append(member.producer_id if isinstance(member, JointMember) else member)
        await self._end(group, run, key, producer_ids, commit=True)

    async def abort(self, group: str, *, run: str, key: int) -> None:
        """Discard what members have written for a key. Raises TransactionAborted if it is committed already,
        Fenced, RequestFailed, OutcomeUnknown.
        """
        await self._end(group, run, key, (), commit=False)

    async def forget(self, group: str) -> None:
        """Forget a group, and which of its keys are committed: the next user of its name begins anew. Raises
        RequestFailed while it is in use, OutcomeUnknown.
        """
        await self._ask(group, FORGET_TRANSACTION_GROUP, {"group": group}, f"forgetting {group!r}")

    async def _end(
        self, group: str, run: str, key: int, producer_ids: Iterable[int], *, commit: bool
    ) -> None:
        await self._ask(
            group,
            END_JOINT_TRANSACTION,
            {
                "group": group,
                "run": run,
                "key": key,
                "committed": commit,
                "producer_ids": list(producer_ids),
            },
            f"{'committing' if commit else 'aborting'} key {key} of {group!r}",
        )

    # -- transactions of this process ------------------------------------------------------------------------

    async def begin(self) -> OpenTransaction:
        """Begin a transaction, beside any others of this client. Raises RequestFailed, OutcomeUnknown."""
        return OpenTransaction(self._idle.pop() if self._idle else await self._join_alone(), self._give_back)

    async def _join_alone(self) -> JointMember:
        self._has_own_group = True
        member = await self.join(self._own_group, run=self._own_group, key=NO_KEY, member="begin")
        assert member is not None, "members without a key always have something to write"
        return member

    async def _give_back(self, member: JointMember) -> None:
        if not member.is_spent:
            self._idle.append(member)

    # -- reading ---------------------------------------------------------------------------------------------

    async def cut(
        self,
        partitions: Iterable[TopicPartition] | Mapping[TopicPartition, int],
        *,
        limit_rows: int | None = None,
        limit_bytes: int | None = None,
        topic_ids: Mapping[str, bytes] | None = None,
    ) -> dict[TopicPartition, OffsetRange]:
        """Where to stop reading these partitions, (topic, number) each, so that no transaction is divided.

        A mapping says from where each is read; otherwise that is its start. With a limit, the cut is the
        largest one below it, but it has at least one transaction, or one plain message, if there is
        anything to read. A limit of bytes divides no batch.
        With its id, as in `topics`, a topic that was made anew is told from the one of the same name before.
        Raises DataLost, RequestFailed, OutcomeUnknown.
        """
        return await self._reading.cut(starts_of(partitions), limit_rows, limit_bytes, topic_ids or {})

    async def offsets_at(
        self,
        timestamps: Mapping[TopicPartition, int],
        *,
        topic_ids: Mapping[str, bytes] | None = None,
    ) -> dict[TopicPartition, int | None]:
        """The first offset of each partition at or after a time, in milliseconds (EARLIEST and LATEST stand
        for its start and its end); None if there is none. `topic_ids` as in `cut`. Raises DataLost,
        RequestFailed, OutcomeUnknown.
        """
        return await self._reading.offsets_at(timestamps, topic_ids or {})

    async def spans(
        self, topic: str, partition: int, start: int, end: int, *, topic_id: bytes | None = None
    ) -> list[TransactionSpan]:
        """Which offsets between these belong to which transaction. `topic_id` as in `read_pieces`. Raises
        DataLost, RequestFailed, OutcomeUnknown.
        """
        return await self._reading.spans(place_of(topic, partition, topic_id), start, end)

    def read_pieces(
        self, topic: str, partition: int, start: int, end: int, *, topic_id: bytes | None = None
    ) -> AsyncIterator[Piece]:
        """The record batches from offset `start` up to `end`, as they are in the log, some megabytes at a
        time; the last may reach beyond `end`. With its id, nothing is read of a topic that was made anew
        under the same name: that raises DataLost. Raises RequestFailed, OutcomeUnknown.
        """
        return self._reading.pieces(place_of(topic, partition, topic_id), start, end)

    async def read(
        self, topic: str, partition: int, start: int, end: int, *, topic_id: bytes | None = None
    ) -> AsyncIterator[Record]:
        """The records from offset `start` up to `end`. Takes an id, and raises, as `read_pieces` does."""
        async for piece in self.read_pieces(topic, partition, start, end, topic_id=topic_id):
            for record in records_of(piece, start, end):
                yield record

    async def topics(self) -> dict[str, KnownTopic]:
        """All topics by name. Raises RequestFailed, OutcomeUnknown."""
        return await self._brokers.topics(self._timeout_seconds)

    async def topic(self, topic: str, *, topic_id: bytes | None = None) -> KnownTopic:
        """A topic as it is now; with an id, that one. Raises DataLost if it is gone, RequestFailed,
        OutcomeUnknown.
        """
        return await self._brokers.topic(topic, topic_id or UUID_ZERO, self._timeout_seconds)

    async def partitions_of(self, topic: str) -> int:
        """The number of partitions of a topic. Raises RequestFailed, OutcomeUnknown."""
        return await self._brokers.partitions_of(topic, self._timeout_seconds)

    async def _ask(self, group: str, request: Request, body: Body, doing: str) -> Message:
        return await self._brokers.ask(
            lambda: self._brokers.coordinator(group), request, body, outcome_of, doing, self._timeout_seconds
        )
