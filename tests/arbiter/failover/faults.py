"""What goes wrong with a replica set and its arbiter, and what must hold meanwhile."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.arbiter.etcd import EtcdCluster, Member
from tests.arbiter.failover.brokers import LOCKED, NEW_LIFE, SetMember
from tests.arbiter.failover.clients import Outcome, Unit, Writer
from tests.broker_process import eventually

HANGS_SECONDS = 4.0  # longer than a watch may hang
SHORT = 0.5  # of a lease
DOWN_SECONDS = 2.0


@dataclass
class World:
    """What there is to break. `oddities` are what should not have been seen."""

    etcd: EtcdCluster
    brokers: list[SetMember]
    writers: list[Writer]
    lease_seconds: float
    chance: random.Random
    oddities: list[str] = field(default_factory=list)

    @property
    def leader(self) -> SetMember:
        """Who led last."""
        return max(self.brokers, key=lambda each: max((epoch for _, epoch in each.lives), default=0))

    @property
    def standby(self) -> SetMember:
        """The other one."""
        return next(each for each in self.brokers if each is not self.leader)

    @property
    def lives(self) -> int:
        """How many lives have led."""
        return sum(len(each.lives) for each in self.brokers)

    def units(self) -> Iterable[Unit]:
        """What has ended so far."""
        return [unit for writer in self.writers for unit in list(writer.units)]

    def expect_no_ack(self, since: float, until: float, why: str) -> None:
        """Nothing that began since then was acknowledged by then."""
        answered = [
            each
            for each in self.units()
            if each.outcome is Outcome.ACKED and each.began > since and each.ended < until
        ]
        if answered:
            self.oddities.append(f"{len(answered)} were acknowledged {why}: {answered[0]}")

    def leader_of_etcd(self) -> Member:
        """The member that leads the others."""
        return eventually(lambda: [each for each in self.etcd.members if each.leads()])[0]

    def other_of_etcd(self) -> Member:
        """One that does not lead."""
        leader = self.leader_of_etcd()
        return self.chance.choice([each for each in self.etcd.members if each is not leader])


def kill(world: World) -> None:
    """kill -9 of the leader."""
    world.leader.end()


def terminate(world: World) -> None:
    """SIGTERM of the leader."""
    leader = world.leader
    code = leader.end(signal.SIGTERM)
    if code:
        world.oddities.append(f"broker {leader.number} ended with {code} after SIGTERM")


def pause_for_long(world: World) -> None:
    """The leader is stopped until its successor waits for its lock. Nobody answers meanwhile."""
    leader, standby = world.leader, world.standby
    assert leader.process is not None
    pid, lives, locks = leader.process.pid, leader.log.count(NEW_LIFE), standby.log.count(LOCKED)
    led = world.lives
    leader.pause()
    stopped = time.monotonic()
    eventually(lambda: standby.log.count(LOCKED) > locks)
    time.sleep(1.0)
    world.expect_no_ack(stopped, time.monotonic(), "while the leader was stopped")
    if world.lives != led:
        world.oddities.append("somebody led while the former leader had the lock")
    leader.go_on()
    eventually(lambda: leader.log.count(NEW_LIFE) > lives)
    if leader.has_ended or leader.process.pid != pid:
        world.oddities.append(f"broker {leader.number} has ended instead of beginning a new life")


def pause_for_short(world: World) -> None:
    """The leader is stopped for less than its lease."""
    world.leader.pause()
    time.sleep(world.lease_seconds * SHORT)
    world.leader.go_on()


def kill_members(world: World, members: list[Member]) -> None:
    for each in members:
        each.kill()
    time.sleep(DOWN_SECONDS)
    for each in members:
        each.start()


def pause_members(members: list[Member]) -> None:
    for each in members:
        each.pause()
    time.sleep(HANGS_SECONDS)
    for each in members:
        each.go_on()


def pause_etcd_for_long(world: World) -> None:
    """Answers are held, and the leader still says how it is."""
    leader = world.leader
    for each in world.etcd.members:
        each.pause()
    stopped = time.monotonic()
    try:
        eventually(lambda: leader.status()["lease_in_doubt"])
        doubted = time.monotonic()
        time.sleep(max(0.0, stopped + world.lease_seconds + 1.0 - doubted))
        if not leader.status()["lease_in_doubt"]:
            world.oddities.append("the lease is not in doubt while nobody renews it")
        world.expect_no_ack(doubted, time.monotonic(), "while the lease was in doubt")
    finally:
        for each in world.etcd.members:
            each.go_on()


FAULTS: dict[str, Callable[[World], None]] = {
    "leader killed": kill,
    "leader ended by SIGTERM": terminate,
    "leader stopped > lease": pause_for_long,
    "leader stopped < lease": pause_for_short,
    "member of etcd killed": lambda world: kill_members(world, [world.other_of_etcd()]),
    "etcd's leader killed": lambda world: kill_members(world, [world.leader_of_etcd()]),
    "member of etcd stopped": lambda world: pause_members([world.other_of_etcd()]),
    "etcd's leader stopped": lambda world: pause_members([world.leader_of_etcd()]),
    "all etcd stopped > lease": pause_etcd_for_long,
    "all etcd killed": lambda world: kill_members(world, world.etcd.members),
}
