"""One run: a set with a standby, clients, faults one after another, and the verdict."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from bench.systems.ports import HeldPorts
from tests.arbiter.etcd import EtcdCluster
from tests.arbiter.failover.brokers import SetMember
from tests.arbiter.failover.clients import (
    MESSAGES,
    OPTIONS,
    TRANSACTIONS,
    MessageWriter,
    Outcome,
    Reader,
    TransactionWriter,
    Unit,
    Writer,
)
from tests.arbiter.failover.faults import FAULTS, World
from tests.arbiter.failover.figures import Round, Row, rows_of
from tests.arbiter.failover.verdict import wrong
from tests.broker_process import eventually

BACK_SECONDS = 90.0
HEALTHY_SECONDS = 1.0
HEALTHY_ACKS = 5


@dataclass
class Result:
    """What a run has found. It is good if `wrong` is empty."""

    rows: list[Row] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    acked: dict[str, int] = field(default_factory=dict)
    epochs: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    """Why transactions were aborted that should not have been, or remained unknown."""


def run(
    directory: Path,
    rounds: int,
    settings: Sequence[str],
    lease_seconds: float,
    seed: int,
    say: Callable[[str], None],
) -> Result:
    """Run all faults so many times. Raises AssertionError if something does not come back."""
    ports = HeldPorts(2)
    with EtcdCluster(directory, 3).running() as etcd, contextlib.ExitStack() as ended:
        arbiter = f"etcd://{','.join(etcd.addresses)}"
        brokers = [SetMember(directory, 1 + n, ports.numbers[n], arbiter, settings) for n in range(2)]
        for each in brokers:
            ended.callback(each.end)
        addresses = ",".join(each.address for each in brokers)
        brokers[0].start("--new-set")
        eventually(lambda: brokers[0].is_ready)
        brokers[1].start()
        make_topics(addresses)
        writers: list[Writer] = [TransactionWriter(addresses), MessageWriter(addresses)]
        reader = Reader(addresses)
        world = World(etcd, brokers, writers, lease_seconds, random.Random(seed))
        with all_writing(writers, reader):
            done = list(break_it(world, rounds, say))
        return outcome(world, done, reader, addresses)


def make_topics(addresses: str) -> None:
    """The topics of the clients."""
    client = AdminClient(OPTIONS | {"bootstrap.servers": addresses})
    for each in client.create_topics([NewTopic(TRANSACTIONS, 2, 1), NewTopic(MESSAGES, 1, 1)]).values():
        each.result(60)


@contextlib.contextmanager
def all_writing(writers: Sequence[Writer], reader: Reader) -> Iterator[None]:
    """They write and read meanwhile; the reader is left to go on."""
    for writer in writers:
        writer.start()
    reader.start()
    try:
        yield
    except BaseException:
        reader.end()
        raise
    finally:
        for writer in writers:
            writer.ask_to_end()
        for writer in writers:
            writer.end()


def break_it(world: World, rounds: int, say: Callable[[str], None]) -> Iterator[Round]:
    """All faults, so many times."""
    until_healthy(world)
    for number in range(rounds):
        for name, fault in FAULTS.items():
            say(f"round {number + 1} of {rounds}: {name}")
            lives, began = world.lives, time.monotonic()
            fault(world)
            until_healthy(world)
            yield Round(name, began, time.monotonic(), world.lives - lives)
            time.sleep(HEALTHY_SECONDS)


def until_healthy(world: World) -> None:
    """Wait until the clients are served again, by themselves; then for a standby, and all of etcd."""
    since = time.monotonic()
    for writer in world.writers:
        eventually(partial(is_served, writer, since), BACK_SECONDS)
    for each in world.brokers:
        if each.has_ended:
            each.start()
    eventually(lambda: world.leader.is_ready and world.standby.waits, BACK_SECONDS)
    eventually(lambda: all(each.is_healthy() for each in world.etcd.members), BACK_SECONDS)


def is_served(writer: Writer, since: float) -> bool:
    """Whether some of its newest were acknowledged that began since then."""
    newest = writer.units[-2 * HEALTHY_ACKS :]
    return sum(each.outcome is Outcome.ACKED and each.began > since for each in newest) >= HEALTHY_ACKS


def outcome(world: World, rounds: list[Round], reader: Reader, addresses: str) -> Result:
    """Read all again, and compare."""
    second = Reader(addresses)
    second.start()
    units = list(world.units())
    try:
        until_read([reader, second], units)
    finally:
        reader.end()
        second.end()
    result = Result(rows_of(rounds, units), list(world.oddities))
    result.wrong += [writer.failure for writer in world.writers if writer.failure]
    result.wrong += wrong(units, reader.seen)
    if reader.seen != second.seen:
        result.wrong.append("who read all along has seen something else than who read in the end")
    result.epochs = [epoch for _, epoch in sorted(life for each in world.brokers for life in each.lives)]
    result.wrong += wrong_logs(world, result.epochs)
    for unit in units:
        if unit.outcome is Outcome.ACKED:
            result.acked[unit.kind] = result.acked.get(unit.kind, 0) + 1
        if not unit.wanted:
            result.reasons.append(f"{unit.kind} {unit.number} {unit.outcome.value}: {unit.why}")
    return result


def until_read(readers: Sequence[Reader], units: Sequence[Unit]) -> None:
    """Wait until both have read what was acknowledged, and nothing more comes."""
    acked = sum(each.outcome is Outcome.ACKED and each.kind == MESSAGES for each in units)
    with contextlib.suppress(AssertionError):  # then something is lost: the verdict says what
        eventually(lambda: readers[0].counts == readers[1].counts and readers[0].counts[MESSAGES, 0] >= acked)
    time.sleep(HEALTHY_SECONDS)


def wrong_logs(world: World, epochs: Sequence[int]) -> Iterator[str]:
    """What is wrong with what the brokers have logged."""
    for before, after in pairwise(epochs):
        if after <= before:
            yield f"epoch {after} began after epoch {before}"
    for each in world.brokers:
        if "Traceback" in each.log or "CRITICAL" in each.log:
            yield f"broker {each.number} has logged an error that it did not expect"
