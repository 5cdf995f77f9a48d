"""The commit protocols, as programs of messages and durable writes.

All transactions take the same steps: register the partitions, send one message to each and wait for their
acks, ask the coordinator to commit, and publish to the consumer. The protocols differ in what each step waits
for.
"""

from __future__ import annotations

import simpy

from bench.distance.conditions import Conditions
from bench.distance.world import Node, Steps, World, nothing


class Protocol:
    """A transaction in a world. `previous` is the same producer's last one. Subclasses define what each step
    waits for."""

    is_patient = False

    def __init__(self, world: World, previous: Protocol | None = None) -> None:
        self.world = world
        self.previous = previous
        self.published: simpy.Event = world.clock.event()

    def live(self) -> Steps:
        """The whole transaction; it notes its moments in the world."""
        world = self.world
        world.note("begun")
        yield from world.pause_before_registration()
        yield from world.ask(world.producer, world.coordinator, self.admit())
        world.note("registered")
        yield world.together(
            *(world.produce(self.home(leader), self.store(leader)) for leader in world.leaders)
        )
        world.note("flushed")
        yield from world.ask(world.producer, world.coordinator, self.end())
        world.note("acked")

    def admit(self) -> Steps:
        """At the coordinator: a patient one waits until the last transaction is published."""
        if self.is_patient and self.previous is not None:
            yield self.previous.published
        yield from self.register()

    def end(self) -> Steps:
        """Decide, and start to publish; nobody waits for the publication."""
        yield from self.decide()
        self.world.begin(self.publish())

    def publish(self) -> Steps:
        """Tell each leader, and wait until it answers that this is durable."""
        yield self.world.together(*(self.publish_at(leader) for leader in self.world.leaders))
        self.published.succeed()

    def publish_at(self, leader: Node) -> Steps:
        """APPLY, a marker or the data itself: durable at the leader, then with the consumer."""
        yield from self.world.send(self.world.coordinator, leader)
        yield from leader.write()
        self.world.begin(self.deliver(leader))
        yield from self.world.send(leader, self.world.coordinator)

    def deliver(self, leader: Node) -> Steps:
        """To the consumer, which has all messages when it has the last."""
        yield from self.world.send(leader, self.world.consumer)
        self.world.note("visible")

    # -- what differs ----------------------------------------------------------------------------------------

    def register(self) -> Steps:
        """At the coordinator, before it answers that partitions are part of the transaction."""
        return nothing()

    def home(self, leader: Node) -> Node:
        """Where the messages of a leader's partition are sent."""
        return leader

    def store(self, leader: Node) -> Steps:
        """At a message's home, before it is acked."""
        return nothing()

    def decide(self) -> Steps:
        """At the coordinator, before the commit is acked."""
        yield from self.world.coordinator.write()


class LocalCopy(Protocol):
    """faircopy: drafts are acked at once; PREPARE_COMMIT and every PREPARED become durable side by side."""

    def register(self) -> Steps:
        """Leaders are told the TxId, and answer with their incarnation. Nothing has to be durable."""
        world = self.world
        yield world.together(*(world.ask(world.coordinator, leader, nothing()) for leader in world.leaders))

    def decide(self) -> Steps:
        world = self.world
        prepared = (world.ask(world.coordinator, leader, leader.write()) for leader in world.leaders)
        yield world.together(world.coordinator.write(), *prepared)


class ParallelPrepare(LocalCopy):
    """Redpanda's RFC of 2020-11-17: the same commit, then markers, for which the next transaction waits.

    The RFC also makes "prepared" durable between the ack and the markers; this leaves that write out, like
    the rival.
    """

    is_patient = True


class RemoteCopy(Protocol):
    """Double journaling: all messages go to the coordinator's journal. PREPARE_COMMIT makes it durable.

    After the ack the coordinator sends the messages to their leaders, so all data crosses the network twice,
    and all of a group's passes through one node. Bytes take no time in this model.
    """

    def home(self, leader: Node) -> Node:
        return self.world.coordinator


class Markers(Protocol):
    """KIP-98, Apache Kafka: messages go to the log at once, acked when durable; markers end the transaction.

    Not in the model: a consumer waits for older transactions of the same partition that are still open.
    """

    is_patient = True

    def register(self) -> Steps:
        yield from self.world.coordinator.write()

    def store(self, leader: Node) -> Steps:
        yield from leader.write()


class NoTransaction(Protocol):
    """The same requests without a transaction: messages are plain, and reach the consumer when durable."""

    def store(self, leader: Node) -> Steps:
        yield from leader.write()
        self.world.begin(self.deliver(leader))

    def end(self) -> Steps:
        return nothing()


PROTOCOLS: dict[str, type[Protocol]] = {
    "local-copy": LocalCopy,
    "remote-copy": RemoteCopy,
    "markers": Markers,
    "parallel-prepare": ParallelPrepare,
    "none": NoTransaction,
}


def moments(protocol: str, conditions: Conditions, *, is_following: bool = False) -> dict[str, float]:
    """When a transaction began, and was registered, flushed, acked and visible, in ms.

    Commit is called after the last send. If it `is_following`, the transaction begins at the ack of another
    one of the same producer.
    """
    world = World(conditions)
    world.begin(lives(PROTOCOLS[protocol], world, is_following))
    world.clock.run()
    return world.moments


def lives(protocol: type[Protocol], world: World, is_following: bool) -> Steps:
    """One transaction from its start to its end; if it `is_following`, preceded by another one."""
    previous = None
    if is_following:
        previous = protocol(world)
        yield from previous.live()
    yield from protocol(world, previous).live()
