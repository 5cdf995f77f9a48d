"""What the tests ask of a client, whichever it is: a small common face of three foreign libraries.

Each adapter translates words, and nothing else: no adapter retries, waits or corrects what its library does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

Place = tuple[str, int]
"""Topic and partition."""

Headers = Sequence[tuple[str, bytes]]

WAIT_SECONDS = 60.0
"""After so long a client is taken to hang; on a busy machine too, nothing that goes well comes near it."""

SESSION_MS = 20_000
"""No member that is alive is silent for so long, however busy the machine is."""

REBALANCE_MS = 60_000


class Got(NamedTuple):
    """A message as a consumer got it; `time_kind` is 0 for CreateTime and 1 for LogAppendTime."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    time_ms: int
    time_kind: int


class ClientFailed(Exception):
    """A client's call or delivery failed. `code` is Kafka's error code; the client's own ones are negative.

    `must_abort` says that the client asks the application to abort its transaction and go on.
    """

    def __init__(self, code: int, message: str, *, must_abort: bool = False) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.must_abort = must_abort


class Producer(Protocol):
    """One producer."""

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = (),
        time_ms: int | None = None,
    ) -> None:
        """Hand over a message. Raises ClientFailed, or lets `flush` or `commit` raise it."""

    def flush(self) -> Sequence[int | None]:
        """Wait for what was sent since the last call, and return the offsets, in order.

        An offset is None where the library is not told. Raises ClientFailed.
        """

    def init(self) -> None: ...

    def begin(self) -> None: ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def send_offsets(self, consumer: Consumer, offsets: Mapping[Place, int]) -> None:
        """Commit a group's offsets within the transaction."""

    def close(self) -> None:
        """End it, in whatever state it is; never raises."""


class Consumer(Protocol):
    """One consumer."""

    def assign(self, offsets: Mapping[Place, int]) -> None: ...

    def subscribe(self, topics: Sequence[str], when_assigned: Callable[[], None] | None = None) -> None:
        """Join the group; `when_assigned` is called, on whatever thread, whenever it is given partitions."""

    def poll(self, seconds: float) -> list[Got]: ...

    def assignment(self) -> set[Place]: ...

    def ends(self, places: Sequence[Place]) -> dict[Place, int]: ...

    def beginnings(self, places: Sequence[Place]) -> dict[Place, int]: ...

    def at_times(self, times_ms: Mapping[Place, int]) -> dict[Place, int | None]:
        """The first offset at or after each time; None if there is none."""

    def commit(self, offsets: Mapping[Place, int]) -> None: ...

    def committed(self, places: Sequence[Place]) -> dict[Place, int | None]: ...

    def close(self) -> None: ...


class Client(Protocol):
    """One library."""

    name: str
    compressions: tuple[str, ...]
    strategies: tuple[str, ...]

    def producer(
        self,
        address: str,
        *,
        acks: int = -1,
        idempotent: bool = False,
        transactional_id: str | None = None,
        timeout_ms: int = 60_000,
        compression: str = "none",
        linger_ms: int = 0,
        max_bytes: int = 1_000_000,
    ) -> Producer:
        """Make a producer.

        `timeout_ms` is that of its transactions, `max_bytes` the library's own limit of a message.
        """

    def consumer(
        self,
        address: str,
        *,
        group: str | None = None,
        isolation: str = "read_committed",
        strategy: str = "range",
        instance_id: str | None = None,
        from_end: bool = False,
        session_ms: int = SESSION_MS,
    ) -> Consumer:
        """Make a consumer. With a group, it is missed when it was silent for `session_ms`."""
