"""A consumer of any library, whose reads and queries are recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.checker.history import Committed, End, Poll, Read
from tests.clients.adapter import Consumer, Got, Place
from tests.soak.record import Recorder
from tests.soak.stage import name_of, now


class RecordedConsumer:
    """Its positions may jump only when `assignment` grows: when it gets partitions, seeks, or fails."""

    def __init__(self, process: str, recorder: Recorder, consumer: Consumer) -> None:
        self.process = process
        self.consumer = consumer
        self._recorder = recorder
        self._assignment = 0
        self._known_assignment = 0

    def _assigned(self) -> None:
        self._assignment += 1

    def assign(self, offsets: Mapping[Place, int]) -> None:
        self._assigned()
        self._known_assignment = self._assignment
        self.consumer.assign(offsets)

    def subscribe(self, topics: Sequence[str]) -> None:
        self.consumer.subscribe(topics, self._assigned)

    def poll(self, seconds: float) -> list[Read]:
        """The messages that it gets now. Raises what the library does."""
        try:
            found = [read_of(each) for each in self.consumer.poll(seconds)]
        except BaseException:
            self._assigned()
            raise
        if self._assignment != self._known_assignment:
            # It got partitions before or after some of these messages: nobody knows which.
            for read in found:
                self._assigned()
                self._record([read])
            self._assigned()
            self._known_assignment = self._assignment
        elif found:
            self._record(found)
        return found

    def _record(self, reads: list[Read]) -> None:
        self._recorder.write(Poll(self.process, self._assignment, now(), reads))

    def ask_end(self, place: Place) -> int:
        """Ask where a partition ends."""
        asked = now()
        end_offset = self.consumer.ends([place])[place]
        self._recorder.write(End(name_of(place), asked, end_offset))
        return end_offset

    def ask_committed(self, group: str, place: Place) -> int | None:
        """Ask what its group has committed."""
        asked = now()
        offset = self.consumer.committed([place])[place]
        told = -1 if offset is None else offset
        self._recorder.write(Committed(group, name_of(place), asked, now(), told))
        return offset


def read_of(got: Got) -> Read:
    assert got.value is not None
    return Read(f"{got.topic}-{got.partition}", got.offset, got.value.decode())
