"""Consumers: one that assigns all partitions to itself, and a member of a group."""

from __future__ import annotations

import itertools
import logging
import random
import threading
import time
from collections.abc import Callable

from tests.checker.history import Offset, Read, Result
from tests.clients.adapter import Client, Consumer
from tests.soak.consumer import RecordedConsumer
from tests.soak.dismissal import EXPECTED, dismiss
from tests.soak.record import Attempt, Recorder
from tests.soak.stage import MEMBERS_GROUP, PLACES, TOPICS

log = logging.getLogger(__name__)

LIFE_SECONDS = 20.0
POLL_SECONDS = 0.2
RETRY_SECONDS = 0.3
SESSION_MS = 1_000  # so that the share of a client that was killed is soon read by others
BEHIND_MAX = 300  # messages that a reader reads again when it starts


class Reader:
    """Assigns all partitions to itself and reads them, at either isolation level: both see the same (P1)."""

    def __init__(self, client: Client, address: str, recorder: Recorder, isolation: str, seed: int) -> None:
        self._client = client
        self._address = address
        self._recorder = recorder
        self._isolation = isolation
        self._chosen = random.Random(seed)

    def run(self, name: str, is_over: threading.Event) -> None:
        each_life(
            f"{name} {self._isolation}",
            is_over,
            self._chosen,
            lambda: self._client.consumer(self._address, isolation=self._isolation),
            self._life,
        )

    def _life(self, process: str, made: Consumer, is_ending: Callable[[], bool]) -> None:
        consumer = RecordedConsumer(process, self._recorder, made)
        ends = made.ends(PLACES)
        consumer.assign(
            {place: max(end - self._chosen.randint(0, BEHIND_MAX), 0) for place, end in ends.items()}
        )
        while not is_ending():
            consumer.poll(POLL_SECONDS)


class Member:
    """Reads the partitions that its group assigns to it, and commits its positions."""

    def __init__(self, client: Client, address: str, recorder: Recorder, seed: int) -> None:
        self._client = client
        self._address = address
        self._recorder = recorder
        self._chosen = random.Random(seed)

    def run(self, name: str, is_over: threading.Event) -> None:
        each_life(
            f"{name} member",
            is_over,
            self._chosen,
            lambda: self._client.consumer(self._address, group=MEMBERS_GROUP, session_ms=SESSION_MS),
            self._life,
        )

    def _life(self, process: str, made: Consumer, is_ending: Callable[[], bool]) -> None:
        consumer = RecordedConsumer(process, self._recorder, made)
        consumer.subscribe(list(TOPICS))
        while not is_ending():
            if reads := consumer.poll(POLL_SECONDS):
                self._commit(process, made, reads)

    def _commit(self, process: str, consumer: Consumer, reads: list[Read]) -> None:
        """Commit what was read. Raises what the library does: then the outcome is unknown."""
        offsets = {read.partition: read.offset + 1 for read in reads}
        attempt = Attempt(self._recorder, process, None)
        attempt.ask_commit(offsets=[Offset(MEMBERS_GROUP, name, offset) for name, offset in offsets.items()])
        try:
            consumer.commit({place_of(name): offset for name, offset in offsets.items()})
        except BaseException:
            attempt.end(Result.UNKNOWN)
            raise
        attempt.end(Result.OK)


def place_of(name: str) -> tuple[str, int]:
    """The topic and number of a partition such as `orders-0`."""
    topic, _, number = name.rpartition("-")
    return topic, int(number)


def each_life(
    name: str,
    is_over: threading.Event,
    chosen: random.Random,
    make: Callable[[], Consumer],
    live: Callable[[str, Consumer, Callable[[], bool]], None],
) -> None:
    """Run one consumer after the other; each ends when it fails, or when its time is up."""
    for number in itertools.count(1):
        if is_over.is_set():
            return
        ends_at = time.monotonic() + chosen.expovariate(1 / LIFE_SECONDS)

        def is_ending(at: float = ends_at) -> bool:
            return is_over.is_set() or time.monotonic() > at

        try:
            consumer = make()
            with dismiss(consumer):
                live(f"{name}#{number}", consumer, is_ending)
        except EXPECTED as error:
            log.info("%s#%d ends: %s", name, number, error)
            time.sleep(RETRY_SECONDS)
