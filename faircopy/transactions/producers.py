"""The producers of a metadata journal: many are idle for ever, and these take little room.

Flink takes a new transactional id for each checkpoint and subtask. So a producer that is idle, and whose last
change is durable, *sleeps*: it is kept as a few bytes. It wakes when an entry changes it. Callers that only
look at it borrow an object. While one of them holds it, all others get the same object, so nobody has an old
copy.

What a producer is does not depend on whether it sleeps, and the fold does not know. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, MutableMapping
from struct import Struct, error
from types import MappingProxyType
from weakref import WeakValueDictionary

from faircopy.transactions.state import TransactionState
from faircopy.transactions.transaction import Producer

PACKED = Struct("<qqqqhhBB")
"""Producer id, updated_ms, last number, timeout in ms, epoch, previous epoch, place of the last state in
`LAST_STATES`, flags. These bytes are stored, too (`idle_row`).
"""
PLACE_AT = -2
PRODUCER_ID = Struct("<q")
USED = Struct("<qq")
LAST_STATES = (None, *TransactionState)  # their places are stored: new ones come last
PLACE_OF = {state: place for place, state in enumerate(LAST_STATES)}
MUST_ABORT, UNTOUCHED, DURABLE = 1, 2, 4  # flags
IDLE = b"\0"  # JSON begins with another byte
NAME_AT = len(IDLE) + PACKED.size


def pack(
    producer_id: int,
    epoch: int,
    timeout_ms: int,
    previous_epoch: int,
    last_state: TransactionState | None,
    last_number: int,
    updated_ms: int,
    flags: int,
) -> bytes | None:
    """The fields of an idle producer as bytes; None for numbers that no client sends."""
    place = PLACE_OF[last_state]
    try:
        return PACKED.pack(
            producer_id, updated_ms, last_number, timeout_ms, epoch, previous_epoch, place, flags
        )
    except error:
        return None


def flags_of(*, must_abort: bool, is_durable: bool) -> int:
    """The flags of a producer."""
    return (MUST_ABORT if must_abort else 0) | (DURABLE if is_durable else 0)


def packed_producer(producer: Producer, flags: int) -> bytes | None:
    """A producer as bytes, with these flags besides its own; None if it is not idle."""
    if producer.is_busy or producer.membership is not None:
        return None
    return pack(
        producer.producer_id,
        producer.epoch,
        producer.timeout_ms,
        producer.previous_epoch,
        producer.last_state,
        producer.last_number,
        producer.updated_ms,
        flags | flags_of(must_abort=producer.must_abort, is_durable=producer.is_durable),
    )


def unpack(transactional_id: str, packed: bytes) -> Producer:
    """The producer in these bytes."""
    producer_id, updated_ms, number, timeout_ms, epoch, previous_epoch, place, flags = PACKED.unpack(packed)
    producer = Producer(transactional_id, producer_id, epoch, timeout_ms)
    producer.previous_epoch, producer.last_state = previous_epoch, LAST_STATES[place]
    producer.last_number, producer.updated_ms = number, updated_ms
    producer.must_abort, producer.is_durable = bool(flags & MUST_ABORT), bool(flags & DURABLE)
    return producer


def idle_row(producer: Producer) -> bytes | None:
    """A producer as a checkpoint stores it: IDLE, its bytes as of one that the next start finds asleep, its
    transactional id in UTF-8. None if it is not idle.
    """
    packed = packed_producer(producer, UNTOUCHED)
    return None if packed is None else IDLE + packed + producer.transactional_id.encode()


def read_idle_row(row: bytes) -> tuple[str, bytes]:
    """The transactional id and the packed producer in a row that begins with IDLE. Raises ValueError."""
    packed = row[len(IDLE) : NAME_AT]
    if len(packed) < PACKED.size or packed[PLACE_AT] >= len(LAST_STATES):
        raise ValueError(f"a producer can't have a row of {len(row)} bytes that begins with {packed.hex()}")
    return row[NAME_AT:].decode(), packed


class Producers(MutableMapping[str, Producer]):
    """The producers of a metadata journal by transactional id. To change one, `wake` it first.

    `on_wake` and `on_sleep` are called for each that wakes, or falls asleep. All transactions of one that
    sleeps are durably over. `_lent` has those that sleep, and that somebody looks at.
    """

    def __init__(self) -> None:
        self._awake: dict[str, Producer] = {}
        self._asleep: dict[str, bytes] = {}
        self._lent: WeakValueDictionary[str, Producer] = WeakValueDictionary()
        self.on_wake: Callable[[Producer], None] | None = None
        self.on_sleep: Callable[[Producer], None] | None = None

    # -- as a mapping ----------------------------------------------------------------------------------------

    def __getitem__(self, transactional_id: str) -> Producer:
        """A producer to look at."""
        producer = self._awake.get(transactional_id)
        if producer is None:
            producer = self._lent.get(transactional_id)
        if producer is None:
            producer = unpack(transactional_id, self._asleep[transactional_id])
            self._lent[transactional_id] = producer
        return producer

    def __setitem__(self, transactional_id: str, producer: Producer) -> None:
        self._asleep.pop(transactional_id, None)
        self._lent.pop(transactional_id, None)
        self._awake[transactional_id] = producer

    def __delitem__(self, transactional_id: str) -> None:
        if self._awake.pop(transactional_id, None) is None:
            del self._asleep[transactional_id]
            self._lent.pop(transactional_id, None)

    def __contains__(self, transactional_id: object) -> bool:
        return transactional_id in self._awake or transactional_id in self._asleep

    def __iter__(self) -> Iterator[str]:
        yield from self._awake
        yield from self._asleep

    def __len__(self) -> int:
        return len(self._awake) + len(self._asleep)

    # -- waking and sleeping ---------------------------------------------------------------------------------

    @property
    def awake(self) -> Mapping[str, Producer]:
        """Those that are awake: all that are busy, all members of joint groups, and some more."""
        return MappingProxyType(self._awake)

    def wake(self, transactional_id: str) -> Producer | None:
        """A producer that is about to change; None if it is not known."""
        producer = self._awake.get(transactional_id)
        if producer is None and transactional_id in self._asleep:
            producer = self[transactional_id]
            self[transactional_id] = producer
            if self.on_wake is not None:
                self.on_wake(producer)
        return producer

    def sleep(self, undurable: Container[str], flags: int = 0) -> None:
        """Put those that are idle to sleep, except those whose last change may not be durable."""
        packed = {
            transactional_id: found
            for transactional_id, producer in self._awake.items()
            if transactional_id not in undurable and (found := packed_producer(producer, flags)) is not None
        }
        for transactional_id in packed:
            producer = self._lent[transactional_id] = self._awake.pop(transactional_id)
            if self.on_sleep is not None:
                self.on_sleep(producer)
        if packed:
            self._awake = dict(self._awake)  # a dict keeps the room of what was taken out
            self._asleep |= packed

    def restore(self, transactional_id: str, packed: bytes) -> None:
        """Add a producer that sleeps."""
        self._asleep[transactional_id] = packed

    # -- those that sleep ------------------------------------------------------------------------------------

    def is_untouched(self, transactional_id: str) -> bool:
        """Whether a producer was idle when the journal was recovered, and no entry has woken it since."""
        packed = self._asleep.get(transactional_id)
        return packed is not None and bool(packed[-1] & UNTOUCHED)

    def last_used_before(self, moment_ms: int) -> list[Producer]:
        """The idle producers that nobody has used since this moment."""
        awake = [
            producer
            for producer in self._awake.values()
            if not producer.is_busy and producer.updated_ms < moment_ms
        ]
        asleep = [name for name, packed in self._asleep.items() if USED.unpack_from(packed)[1] < moment_ms]
        return awake + [self[name] for name in asleep]

    def producer_ids(self) -> Iterator[int]:
        """The producer ids of all."""
        for producer in self._awake.values():
            yield producer.producer_id
        for packed in self._asleep.values():
            yield PRODUCER_ID.unpack_from(packed)[0]

    def make_abort(self, *, is_all: bool) -> set[str]:
        """Producers must abort before anything else; unless it `is_all`, not those that are safe. Returns the
        transactional ids of those that must.
        """
        found = [each for each in self._awake.values() if is_all or not each.is_safe]
        for producer in found:
            producer.must_abort = True
        return {each.transactional_id for each in found} | self._make_sleeping_abort(is_all=is_all)

    def _make_sleeping_abort(self, *, is_all: bool) -> set[str]:
        found = {name for name, packed in self._asleep.items() if is_all or not packed[-1] & DURABLE}
        for name in found:
            self._asleep[name] = flagged(self._asleep[name], MUST_ABORT)
            lent = self._lent.get(name)
            if lent is not None:
                lent.must_abort = True
        return found


def flagged(packed: bytes, flag: int) -> bytes:
    """The same producer with one more flag."""
    return packed[:-1] + bytes((packed[-1] | flag,))
