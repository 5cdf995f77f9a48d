"""A simulated producer, idempotent or transactional, with Kafka's retries and rules (KIP-98, KIP-360)."""

from __future__ import annotations

import asyncio
import random
from typing import Any, NamedTuple

from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch
from tests.checker.history import Value
from tests.simulation.network import Disconnected, Remote

TRIES = 8
IN_FLIGHT_MAX = 5  # batches, as Kafka's clients have it
PAUSE_SECONDS = 0.1
TRANSACTION_TIMEOUT_MS = 8_000

RETRIABLE = {
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
FENCED = {
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.PRODUCER_FENCED,
}


GIVEN_UP = {ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE}


class Refused(Exception):
    """The broker refused: the request had no effect. If `is_certain`, no earlier try had one either.
    `gives_up`: the broker has ended the transaction, and its client did not ask for that.
    """

    def __init__(self, code: ErrorCode, *, is_certain: bool) -> None:
        super().__init__(code.name)
        self.code = code
        self.is_certain = is_certain
        self.gives_up = code in GIVEN_UP


class GaveUp(Exception):
    """No try got an answer: whether the request had an effect is unknown."""


def partition_of(name: str) -> tuple[str, int]:
    """Topic and number of a partition such as `a-0`."""
    topic, _, number = name.rpartition("-")
    return topic, int(number)


class Batch:
    """One batch on its way. `is_certain`: no try of it can have had an unknown effect."""

    def __init__(self, name: str, records: bytes) -> None:
        self.name = name
        self.records = records
        self.base_offset = -1
        self.is_written = False
        self.error: Refused | GaveUp | None = None
        self._is_certain = True

    def take(self, code: int | None, *, is_first: bool) -> None:
        """Take the answer to a try, as Kafka's clients do. `is_first`: all batches before it are written."""
        if code is None:
            self._is_certain = False
        elif code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self.is_written = True
        elif code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not is_first:
            pass  # it waits for the one that was not accepted
        elif code not in RETRIABLE:
            self.error = Refused(ErrorCode(code), is_certain=self._is_certain)

    def give_up(self) -> None:
        """Do not send it again."""
        if self.error is None:
            is_certain = self._is_certain
            self.error = (
                Refused(ErrorCode.REQUEST_TIMED_OUT, is_certain=True) if is_certain else GaveUp("PRODUCE")
            )

    def offset(self) -> int:
        """Its base offset; -1 within a transaction. Raises Refused, GaveUp."""
        if self.error is not None:
            raise self.error
        return self.base_offset


class Snapshot(NamedTuple):
    """What a producer knows: its ids, and the next sequence of each partition."""

    transactional_id: str | None
    identity: tuple[int, int]
    sequences: dict[str, int]


class SimulatedProducer:
    """One instance of a producer. `transactional_id` is None if it is only idempotent."""

    def __init__(
        self,
        remote: Remote,
        transactional_id: str | None,
        chosen: random.Random,
        given: set[tuple[int, int]] | None = None,
        tries: int = TRIES,
    ) -> None:
        """`given` are all producer ids and epochs assigned so far: none is assigned again. `tries`: how often
        it asks before it gives up.
        """
        self._remote = remote
        self._given = given if given is not None else set()
        self._transactional_id = transactional_id
        self._chosen = chosen
        self._tries = tries
        self._identity = (-1, -1)
        self._sequences: dict[str, int] = {}
        self._must_bump = False

    def snapshot(self) -> Snapshot:
        """What it knows."""
        return Snapshot(self._transactional_id, self._identity, dict(self._sequences))

    @classmethod
    def restored(cls, snapshot: Snapshot, remote: Remote, chosen: random.Random) -> SimulatedProducer:
        """The same producer with another connection."""
        producer = cls(remote, snapshot.transactional_id, chosen)
        producer._identity, producer._sequences = snapshot.identity, dict(snapshot.sequences)
        return producer

    @classmethod
    async def join(
        cls, remote: Remote, chosen: random.Random, group: str, run: str, key: int, name: str
    ) -> SimulatedProducer | None:
        """A member of a joint group; None if its key is committed. Raises Refused, GaveUp."""
        member = cls(remote, None, chosen)
        body = {"group": group, "run": run, "key": key, "member": name, "timeout_ms": TRANSACTION_TIMEOUT_MS}
        answer = await member._ask(ApiKey.JOIN_TRANSACTION, 0, body, lambda answer: answer.error_code)
        if answer.is_committed:
            return None
        member._transactional_id = answer.transactional_id
        member._identity = answer.producer_id, answer.producer_epoch
        return member

    @classmethod
    async def end_joint(
        cls,
        remote: Remote,
        chosen: random.Random,
        group: str,
        run: str,
        key: int,
        members: list[SimulatedProducer],
        *,
        committed: bool,
    ) -> None:
        """Commit or abort what members have written for a key. Raises Refused, GaveUp."""
        producer_ids = [member._identity[0] for member in members]
        body = {"group": group, "run": run, "key": key, "committed": committed, "producer_ids": producer_ids}
        asking = cls(remote, None, chosen)
        await asking._ask(ApiKey.END_JOINT_TRANSACTION, 0, body, lambda answer: answer.error_code)

    async def _ask(self, api_key: ApiKey, version: int, body: dict[str, Any], code_of: Any) -> Any:
        """Repeat a request until its answer is final. Raises Refused, GaveUp."""
        is_certain = True
        for _ in range(self._tries):
            try:
                answer = await self._remote.ask(api_key, version, body)
            except Disconnected:
                is_certain = False
            else:
                code = code_of(answer)
                if code == ErrorCode.NONE:
                    return answer
                if code not in RETRIABLE:
                    raise Refused(ErrorCode(code), is_certain=is_certain)
                if code == ErrorCode.NOT_COORDINATOR:
                    is_certain = False  # it may have decided before it stopped being the coordinator
            await asyncio.sleep(PAUSE_SECONDS * (0.5 + self._chosen.random()))
        if is_certain:
            raise Refused(ErrorCode.REQUEST_TIMED_OUT, is_certain=True)
        raise GaveUp(api_key.name)

    def _who(self) -> dict[str, Any]:
        producer_id, epoch = self._identity
        return {
            "transactional_id": self._transactional_id,
            "producer_id": producer_id,
            "producer_epoch": epoch,
        }

    async def begin_life(self) -> None:
        """Get a producer id, and fence earlier instances of this transactional id. Raises Refused, GaveUp."""
        body = self._who() | {"transaction_timeout_ms": TRANSACTION_TIMEOUT_MS}
        answer = await self._ask(ApiKey.INIT_PRODUCER_ID, 4, body, lambda answer: answer.error_code)
        self._identity = answer.producer_id, answer.producer_epoch
        assert self._identity not in self._given, f"producer id and epoch {self._identity} were given before"
        self._given.add(self._identity)
        self._sequences.clear()
        self._must_bump = False

    async def prepare_next(self) -> None:
        """After a send with an unknown result, get a new epoch: no later transaction can get it then
        (KIP-360).
        """
        if self._must_bump:
            await self.begin_life()

    async def add_partitions(self, partitions: list[str]) -> None:
        topics: dict[str, list[int]] = {}
        for name in partitions:
            topic, number = partition_of(name)
            topics.setdefault(topic, []).append(number)
        body = self._who() | {
            "topics": [{"name": topic, "partitions": found} for topic, found in topics.items()]
        }
        await self._ask(
            ApiKey.ADD_PARTITIONS_TO_TXN, 3, body, lambda answer: answer.results[0].partitions[0].error_code
        )

    # -- sending ---------------------------------------------------------------------------------------------

    async def send(self, name: str, values: list[Value], time_ms: int) -> int:
        """Send one batch; return its offset, -1 within a transaction. Raises Refused, GaveUp."""
        (batch,) = await self.send_all([(name, values)], time_ms)
        return batch.offset()

    async def send_all(self, sends: list[tuple[str, list[Value]]], time_ms: int) -> list[Batch]:
        """Send batches, several at a time, and resend those not accepted. Each batch has its result."""
        batches = [self._batch(name, values, time_ms) for name, values in sends]
        places = asyncio.Semaphore(IN_FLIGHT_MAX)
        names = dict.fromkeys(batch.name for batch in batches)
        await asyncio.gather(
            *(self._drain([each for each in batches if each.name == name], places) for name in names)
        )
        self._must_bump = self._must_bump or any(batch.error is not None for batch in batches)
        return batches

    def _batch(self, name: str, values: list[Value], time_ms: int) -> Batch:
        producer_id, epoch = self._identity
        sequence = self._sequences.get(name, 0)
        self._sequences[name] = sequence + len(values)
        return Batch(
            name,
            build_batch(
                [NewRecord(str(value).encode(), timestamp_ms=time_ms) for value in values],
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
                transactional=self._transactional_id is not None,
            ),
        )

    async def _drain(self, waiting: list[Batch], places: asyncio.Semaphore) -> None:
        """Send a partition's batches, in order, until all are written or one can't be."""
        for _ in range(self._tries):
            window = waiting[:IN_FLIGHT_MAX]
            codes = await asyncio.gather(*(self._try(batch, places) for batch in window))
            is_first_missing = True
            for batch, code in zip(window, codes, strict=True):
                batch.take(code, is_first=is_first_missing)
                is_first_missing = is_first_missing and batch.is_written
            waiting = [batch for batch in waiting if not batch.is_written]
            if not waiting or any(batch.error is not None for batch in waiting):
                break
            await asyncio.sleep(PAUSE_SECONDS * (0.5 + self._chosen.random()))
        for batch in waiting:
            batch.give_up()

    async def _try(self, batch: Batch, places: asyncio.Semaphore) -> int | None:
        """Send a batch once. Returns the code of the answer, or None if there was none."""
        topic, number = partition_of(batch.name)
        data = {
            "name": topic,
            "partition_data": [{"index": number, "records": self._remote.spoilt(batch.records)}],
        }
        body = {
            "transactional_id": self._transactional_id,
            "acks": -1,
            "timeout_ms": 5_000,
            "topic_data": [data],
        }
        # No `with`: it would run when what is left of a dead client is collected, after the loop is gone.
        await places.acquire()
        try:
            answer = await self._remote.ask(ApiKey.PRODUCE, 8, body)
        except Disconnected:
            places.release()
            return None
        places.release()
        outcome = answer.responses[0].partition_responses[0]
        batch.base_offset = int(outcome.base_offset)
        return int(outcome.error_code)

    async def send_offsets(self, group: str, offsets: dict[str, int]) -> None:
        """Commit a group's offsets within the transaction."""
        await self._ask(
            ApiKey.ADD_OFFSETS_TO_TXN, 3, self._who() | {"group_id": group}, lambda answer: answer.error_code
        )
        topics = [
            {
                "name": partition_of(name)[0],
                "partitions": [{"partition_index": partition_of(name)[1], "committed_offset": offset}],
            }
            for name, offset in offsets.items()
        ]
        await self._ask(
            ApiKey.TXN_OFFSET_COMMIT,
            3,
            self._who() | {"group_id": group, "topics": topics},
            lambda answer: answer.topics[0].partitions[0].error_code,
        )

    async def end(self, *, committed: bool) -> None:
        await self._ask(
            ApiKey.END_TXN, 3, self._who() | {"committed": committed}, lambda answer: answer.error_code
        )
