"""The client for code that is not asynchronous: the same calls, each of which returns when it is done."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, TypeVar

from faircopy.client.brokers import METADATA_MAX_AGE_SECONDS, KnownTopic, TopicPartition
from faircopy.client.client import TIMEOUT_SECONDS, TRANSACTION_TIMEOUT_MS, Client
from faircopy.client.errors import OutcomeUnknown, RequestFailed
from faircopy.client.member import Header, JointMember
from faircopy.client.outgoing import Describe, Encode, nowhere
from faircopy.client.reading import OffsetRange, Piece, TransactionSpan
from faircopy.client.transaction import OpenTransaction
from faircopy.wire.records import Record

Result = TypeVar("Result")


class Loop:
    """An event loop on a thread of its own."""

    def __init__(self) -> None:
        # Others may schedule work on it, from any thread.
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="faircopy-client", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run something there, and return its result. Raises what it raises."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class BlockingMember:
    """A `JointMember` whose calls block. Use it from one thread at a time."""

    def __init__(self, loop: Loop, member: JointMember) -> None:
        self._loop = loop
        self.member = member

    @property
    def producer_id(self) -> int:
        """What names the member in a commit, also from another process."""
        return self.member.producer_id

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[Header] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        """See `JointMember.send`."""
        self._loop.run(
            self.member.send(
                topic, value, key=key, headers=headers, partition=partition, timestamp_ms=timestamp_ms
            )
        )

    def send_batch(
        self, topic: str, partition: int, records: int, encode: Encode, describe: Describe = nowhere
    ) -> None:
        """See `JointMember.send_batch`."""
        self._loop.run(self.member.send_batch(topic, partition, records, encode, describe))

    def partitions_of(self, topic: str) -> int:
        """See `JointMember.partitions_of`."""
        return self._loop.run(self.member.partitions_of(topic))

    def topic(self, topic: str) -> KnownTopic:
        """See `JointMember.topic`."""
        return self._loop.run(self.member.topic(topic))

    def flush(self) -> None:
        """See `JointMember.flush`."""
        self._loop.run(self.member.flush())

    def abort(self) -> None:
        """Discard what this member has written."""
        self._loop.run(self.member.end(commit=False))


class BlockingTransaction:
    """An `OpenTransaction` whose calls block."""

    def __init__(self, loop: Loop, transaction: OpenTransaction) -> None:
        self._loop = loop
        self._transaction = transaction

    def __enter__(self) -> BlockingTransaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run(self._transaction.__aexit__(kind, error, trace))

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[Header] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        """See `JointMember.send`."""
        self._loop.run(
            self._transaction.send(
                topic, value, key=key, headers=headers, partition=partition, timestamp_ms=timestamp_ms
            )
        )

    def commit(self) -> None:
        """See `OpenTransaction.commit`."""
        self._loop.run(self._transaction.commit())

    def abort(self) -> None:
        """See `OpenTransaction.abort`."""
        self._loop.run(self._transaction.abort())


class BlockingClient:
    """A `Client` whose calls block; any thread may use it. Use it as a context manager."""

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        *,
        client_id: str = "faircopy",
        timeout_seconds: float = TIMEOUT_SECONDS,
        metadata_max_age_seconds: float = METADATA_MAX_AGE_SECONDS,
    ) -> None:
        self._client = Client(
            bootstrap_servers,
            client_id=client_id,
            timeout_seconds=timeout_seconds,
            metadata_max_age_seconds=metadata_max_age_seconds,
        )
        self._loop = Loop()
        self._forgetting: set[Future[None]] = set()
        """What nobody else refers to, and would otherwise be collected as garbage."""

    def __enter__(self) -> BlockingClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """See `Client.close`. What `forget_soon` has not done by now is given up."""
        for forgetting in list(self._forgetting):
            forgetting.cancel()
        self._loop.run(self._client.close())
        self._loop.stop()

    def join(
        self,
        group: str,
        *,
        run: str,
        key: int,
        member: str,
        transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS,
    ) -> BlockingMember | None:
        """See `Client.join`."""
        joined = self._loop.run(
            self._client.join(
                group, run=run, key=key, member=member, transaction_timeout_ms=transaction_timeout_ms
            )
        )
        return BlockingMember(self._loop, joined) if joined is not None else None

    def commit(self, group: str, *, run: str, key: int, members: Iterable[BlockingMember | int]) -> None:
        """See `Client.commit`."""
        named = [each.member if isinstance(each, BlockingMember) else each for each in members]
        self._loop.run(self._client.commit(group, run=run, key=key, members=named))

    def abort(self, group: str, *, run: str, key: int) -> None:
        """See `Client.abort`."""
        self._loop.run(self._client.abort(group, run=run, key=key))

    def forget(self, group: str) -> None:
        """See `Client.forget`."""
        self._loop.run(self._client.forget(group))

    def forget_soon(self, group: str) -> None:
        """Begin to forget a group, and don't wait: a commit that is still being copied delays it. If that
        fails, or this process ends before it is done, the group stays.
        """
        forgetting = asyncio.run_coroutine_threadsafe(self._forget_quietly(group), self._loop.loop)
        self._forgetting.add(forgetting)
        forgetting.add_done_callback(self._forgetting.discard)

    async def _forget_quietly(self, group: str) -> None:
        with contextlib.suppress(RequestFailed, OutcomeUnknown):
            await self._client.forget(group)

    def cut(
        self,
        partitions: Iterable[TopicPartition] | Mapping[TopicPartition, int],
        *,
        limit_rows: int | None = None,
        limit_bytes: int | None = None,
        topic_ids: Mapping[str, bytes] | None = None,
    ) -> dict[TopicPartition, OffsetRange]:
        """See `Client.cut`."""
        return self._loop.run(
            self._client.cut(partitions, limit_rows=limit_rows, limit_bytes=limit_bytes, topic_ids=topic_ids)
        )

    def offsets_at(
        self,
        timestamps: Mapping[TopicPartition, int],
        *,
        topic_ids: Mapping[str, bytes] | None = None,
    ) -> dict[TopicPartition, int | None]:
        """See `Client.offsets_at`."""
        return self._loop.run(self._client.offsets_at(timestamps, topic_ids=topic_ids))

    def spans(
        self, topic: str, partition: int, start: int, end: int, *, topic_id: bytes | None = None
    ) -> list[TransactionSpan]:
        """See `Client.spans`."""
        return self._loop.run(self._client.spans(topic, partition, start, end, topic_id=topic_id))

    def read_pieces(
        self, topic: str, partition: int, start: int, end: int, *, topic_id: bytes | None = None
    ) -> Iterator[Piece]:
        """See `Client.read_pieces`."""
        return self._iterate(self._client.read_pieces(topic, partition, start, end, topic_id=topic_id))

    def read(
        self, topic: str, partition: int, start: int, end: int, *, topic_id: bytes | None = None
    ) -> Iterator[Record]:
        """See `Client.read`."""
        return self._iterate(self._client.read(topic, partition, start, end, topic_id=topic_id))

    def _iterate(self, found: AsyncIterator[Result]) -> Iterator[Result]:
        async def following() -> Result | None:
            return await anext(found, None)

        while (each := self._loop.run(following())) is not None:
            yield each

    def topics(self) -> dict[str, KnownTopic]:
        """See `Client.topics`."""
        return self._loop.run(self._client.topics())

    def topic(self, topic: str, *, topic_id: bytes | None = None) -> KnownTopic:
        """See `Client.topic`."""
        return self._loop.run(self._client.topic(topic, topic_id=topic_id))

    def partitions_of(self, topic: str) -> int:
        """See `Client.partitions_of`."""
        return self._loop.run(self._client.partitions_of(topic))

    def begin(self) -> BlockingTransaction:
        """See `Client.begin`."""
        return BlockingTransaction(self._loop, self._loop.run(self._client.begin()))
