"""Nodes, a network and disks on a virtual clock.

All that takes time is a generator of simpy events, here called steps: `yield from` runs steps one after the
other, `together` side by side.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import simpy

from bench.distance.conditions import Conditions

Steps = Generator[simpy.Event, Any, None]


class Node:
    """A machine: it works on one message at a time, and makes many of its files durable side by side."""

    def __init__(self, clock: simpy.Environment, conditions: Conditions, *, is_broker: bool) -> None:
        self.is_broker = is_broker
        self._clock = clock
        self._conditions = conditions
        self._free_at_ms = 0.0

    def work(self) -> Steps:
        """Work on one message, after the ones that arrived before it."""
        self._free_at_ms = max(self._free_at_ms, self._clock.now) + self._conditions.processing_ms
        yield self._clock.timeout(self._free_at_ms - self._clock.now)

    def write(self) -> Steps:
        """Make an entry durable."""
        yield self._clock.timeout(self._conditions.write_ms)


class World:
    """A producer, a consumer, a coordinator and the partitions' leaders. `moments` are times in ms."""

    def __init__(self, conditions: Conditions) -> None:
        self.conditions = conditions
        self.clock = simpy.Environment()
        self.producer = Node(self.clock, conditions, is_broker=False)
        self.consumer = Node(self.clock, conditions, is_broker=False)
        self.coordinator = Node(self.clock, conditions, is_broker=True)
        self.leaders = [Node(self.clock, conditions, is_broker=True) for _ in range(conditions.partitions)]
        self.moments: dict[str, float] = {}
        self._in_flight = simpy.Resource(self.clock, conditions.requests_in_flight or conditions.partitions)

    def note(self, moment: str) -> None:
        """Note that this moment is now."""
        self.moments[moment] = self.clock.now

    def send(self, sender: Node, receiver: Node) -> Steps:
        """One message, until the receiver has worked on it."""
        between_brokers = sender.is_broker and receiver.is_broker
        round_trip_ms = (
            self.conditions.broker_round_trip_ms if between_brokers else self.conditions.round_trip_ms
        )
        yield self.clock.timeout(round_trip_ms / 2)
        yield from receiver.work()

    def ask(self, caller: Node, callee: Node, work: Steps) -> Steps:
        """A request, the callee's work before it answers, and the answer."""
        yield from self.send(caller, callee)
        yield from work
        yield from self.send(callee, caller)

    def produce(self, home: Node, store: Steps) -> Steps:
        """A produce request, sent as soon as few enough others are unanswered."""
        with self._in_flight.request() as turn:
            yield turn
            yield from self.ask(self.producer, home, store)

    def pause_before_registration(self) -> Steps:
        """The client library waits for more partitions to register in the same request."""
        yield self.clock.timeout(self.conditions.registration_pause_ms)

    def begin(self, steps: Steps) -> simpy.Event:
        """Run steps at the same time as the following ones."""
        return self.clock.process(steps)

    def together(self, *steps: Steps) -> simpy.Event:
        """Run steps side by side, until all have ended."""
        return self.clock.all_of([self.begin(each) for each in steps])


def nothing() -> Steps:
    """No steps: the answer comes at once."""
    yield from ()
