"""Idempotent producers without transactions, one after the other."""

from __future__ import annotations

import itertools
import logging
import random
import threading
import time

from tests.checker.history import Result, Send
from tests.clients.adapter import Client, Producer
from tests.soak.dismissal import EXPECTED, dismiss
from tests.soak.record import Attempt, Recorder
from tests.soak.stage import PLACES, name_of

log = logging.getLogger(__name__)

LIFE_SECONDS = 20.0
PAUSE_SECONDS_MAX = 0.1
RETRY_SECONDS = 0.3
BURST_MAX = 5


class PlainProducer:
    """Sends a few messages to one partition, waits for their offsets, and goes on."""

    def __init__(self, client: Client, address: str, recorder: Recorder, seed: int) -> None:
        self._client = client
        self._address = address
        self._recorder = recorder
        self._chosen = random.Random(seed)
        self._values = itertools.count(1)

    def run(self, name: str, is_over: threading.Event) -> None:
        """Run one producer after the other; each ends when it fails, or when its time is up."""
        for number in itertools.count(1):
            ends_at = time.monotonic() + self._chosen.expovariate(1 / LIFE_SECONDS)
            try:
                producer = self._client.producer(self._address, idempotent=True)
                with dismiss(producer):
                    while time.monotonic() < ends_at:
                        if is_over.is_set():
                            return
                        time.sleep(self._chosen.random() * PAUSE_SECONDS_MAX)
                        self._send(f"{name} plain#{number}", producer)
            except EXPECTED as error:
                log.info("%s plain#%d ends: %s", name, number, error)
                time.sleep(RETRY_SECONDS)

    def _send(self, process: str, producer: Producer) -> None:
        """Send a few messages to one partition. They are acknowledged in order."""
        place = self._chosen.choice(PLACES)
        sends = [
            Send(name_of(place), f"{process}:{next(self._values)}")
            for _ in range(self._chosen.randint(1, BURST_MAX))
        ]
        attempts = [Attempt(self._recorder, process, None, [send]) for send in sends]
        for attempt in attempts:
            attempt.ask_commit()
        try:
            for send in sends:
                producer.send(place[0], str(send.value).encode(), partition=place[1])
            offsets = producer.flush()
        except BaseException:
            for attempt in attempts:
                attempt.end(Result.UNKNOWN)
            raise
        for attempt, send, offset in zip(attempts, sends, offsets, strict=True):
            attempt.end(Result.OK, [send._replace(offset=offset)])
