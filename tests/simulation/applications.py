"""Transactional applications of a simulation: instance after instance, with crashes and zombies."""

from __future__ import annotations

import asyncio
import random

from faircopy.wire.error_codes import ErrorCode
from tests.checker.history import Committed, End, Offset, Result, Send
from tests.simulation.administrator import FOREIGN, PARTITION
from tests.simulation.consumer import LATEST, SimulatedConsumer
from tests.simulation.loop import Life
from tests.simulation.network import Remote
from tests.simulation.producer import GaveUp, Refused, SimulatedProducer
from tests.simulation.record import Attempt
from tests.simulation.scene import CRASH_CHANCE, PARTITIONS, Scene

ABORT_CHANCE = 0.1
HANG_CHANCE = 0.03
OFFSETS_CHANCE = 0.3
SHORT_CHANCE = 0.1
ZOMBIE_CHANCE = 0.3
ASK_CHANCE = 0.5
MET = ZOMBIE, CRASHED, HUNG, IN_A_TOPIC_THAT_GOES = (
    "client: a zombie goes on",
    "client: crashed",
    "client: hung past its timeout",
    "producer: in a topic that may go at any time",
)


class Applications:
    """Each has a transactional id, and runs until the scene stops."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._record = scene.record
        self._keep: list[object] = []
        scene.coverage.announce(*MET)

    async def run(self, transactional_id: str) -> None:
        """Run instance after instance of one application. Each ends by a crash, or because it is fenced."""
        chosen = self._scene.chance()
        while not self._scene.is_stopping:
            name = f"{transactional_id}#{next(self._scene.names)}"
            life = Life(name)
            instance = self._scene.loop.create_task(
                self._instance(name, transactional_id, life, self._scene.chance()), context=life.context
            )
            self._keep.append(instance)
            crash_at = self._scene.now + chosen.expovariate(CRASH_CHANCE)
            while not instance.done() and not self._scene.is_stopping and self._scene.now < crash_at:
                await asyncio.sleep(0.1)
            if self._scene.is_stopping:
                await instance
            elif not instance.done():
                self._end_instance(life, chosen)

    def _end_instance(self, life: Life, chosen: random.Random) -> None:
        """Crash the application, or let it only seem to crash and go on beside its successor."""
        if chosen.random() < ZOMBIE_CHANCE:
            self._scene.coverage.hit(ZOMBIE)
        else:
            self._scene.coverage.hit(CRASHED)
            life.end()

    async def _instance(self, name: str, transactional_id: str, life: Life, chosen: random.Random) -> None:
        remote = self._scene.remote(life)
        producer = SimulatedProducer(remote, transactional_id, chosen, self._scene.identities)
        try:
            await producer.begin_life()
            while not self._scene.is_stopping:
                await self._scene.think(chosen)
                await producer.prepare_next()
                await self.transaction(name, transactional_id, producer, remote, chosen)
        except Refused as error:
            self._scene.coverage.hit(f"producer: ended by {error.code.name}")
        except GaveUp:
            self._scene.coverage.hit("producer: gave up")

    async def transaction(
        self,
        name: str,
        transactional_id: str,
        producer: SimulatedProducer,
        remote: Remote,
        chosen: random.Random,
    ) -> None:
        """Run one transaction. Raises Refused, GaveUp if this instance can't go on."""
        forgotten_after = self._scene.machine.forgets_ids_after
        group = transactional_id.split("/")[0]
        attempt = Attempt(name, group, self._scene.now, forgotten_after=forgotten_after)
        self._record.attempts.append(attempt)
        if not await self._write(attempt, producer, chosen):
            attempt.finish(Result.FAILED, self._scene.now)
            await producer.end(committed=False)
            return
        if chosen.random() < HANG_CHANCE:
            self._scene.coverage.hit(HUNG)
            await asyncio.sleep(12)
        attempt.commit_asked = self._scene.now
        try:
            await producer.end(committed=True)
        except Refused as error:
            attempt.refused(error, self._scene.now)
            if error.is_certain:
                attempt.finish(Result.FAILED, self._scene.now)
            raise
        attempt.finish(Result.OK, self._scene.now)
        if chosen.random() < ASK_CHANCE:
            await self._ask(attempt, remote, chosen)

    async def _ask(self, attempt: Attempt, remote: Remote, chosen: random.Random) -> None:
        """Ask, right after the ack, for the end of a partition and the group's committed offsets (P8)."""
        consumer = SimulatedConsumer(remote, PARTITIONS, is_committed=chosen.random() < 0.5)
        name = chosen.choice(attempt.sends).partition
        asked = self._scene.now
        self._record.told.append(End(name, asked, await consumer.bound(name, LATEST)))
        for group, partition, _ in attempt.offsets:
            asked = self._scene.now
            offset = await consumer.committed(group, partition)
            self._record.told.append(Committed(group, partition, asked, self._scene.now, offset))

    async def _write(self, attempt: Attempt, producer: SimulatedProducer, chosen: random.Random) -> bool:
        """Do everything but the end. False if the transaction has to be aborted."""
        partitions = chosen.sample(PARTITIONS, chosen.randint(1, len(PARTITIONS)))
        try:
            await producer.add_partitions(partitions)
            for _ in range(chosen.randint(1, 2)):
                sends = [
                    (chosen.choice(partitions), self._scene.new_values(chosen))
                    for _ in range(chosen.randint(1, 6))
                ]
                attempt.sends += [Send(name, value) for name, values in sends for value in values]
                for batch in await producer.send_all(sends, self._scene.machine.clock.wall_ms()):
                    batch.offset()
            if chosen.random() < SHORT_CHANCE:
                self._scene.coverage.hit(IN_A_TOPIC_THAT_GOES)
                await self._write_to_a_topic_that_goes(producer)
            if chosen.random() < OFFSETS_CHANCE:
                name, group = chosen.choice(PARTITIONS), group_of(attempt.process)
                attempt.offsets = [Offset(group, name, next(self._scene.values))]
                await producer.send_offsets(group, {name: attempt.offsets[0].offset})
        except (Refused, GaveUp) as error:
            if isinstance(error, Refused):
                attempt.refused(error, self._scene.now)
            self._scene.coverage.hit(f"producer: aborts after {error}")
            return False
        return chosen.random() >= ABORT_CHANCE

    async def _write_to_a_topic_that_goes(self, producer: SimulatedProducer) -> None:
        """If the topic is made again before the message arrives, no transaction is open in the new one: the
        broker has not given up anything. Raises Refused, GaveUp.
        """
        await producer.add_partitions([PARTITION])
        try:
            await producer.send(PARTITION, [FOREIGN], self._scene.machine.clock.wall_ms())
        except Refused as error:
            error.gives_up &= error.code is not ErrorCode.INVALID_TXN_STATE
            raise


def group_of(process: str) -> str:
    """The consumer group whose offsets an application commits, the same for all its instances."""
    return f"readers of {process.split('#')[0]}"
