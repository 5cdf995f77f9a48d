"""Jobs of a simulation that write by joint transactions, as a Spark query does: drivers one after the other,
each with tasks, attempts that fail, and a commit for each key. Drivers crash, or seem to and go on.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from faircopy.wire.error_codes import ErrorCode
from tests.checker.history import KeyCommitted, Result, Send
from tests.simulation.loop import Life
from tests.simulation.network import Remote
from tests.simulation.producer import GaveUp, Refused, SimulatedProducer
from tests.simulation.record import Attempt
from tests.simulation.scene import CRASH_CHANCE, PARTITIONS, Scene

TASKS_MAX = 3
FAIL_CHANCE = 0.2
ABORT_CHANCE = 0.1
FORGET_CHANCE = 0.1
HANG_CHANCE = 0.03
ZOMBIE_CHANCE = 0.3
ALONE_CHANCE = 0.3
NO_KEY = -1
MET = ATTEMPT, ABORTED, TOLD, REPEATED, ZOMBIE, CRASHED, HUNG, ALONE = (
    "job: an attempt that is not named",
    "job: a key aborted",
    "job: told that a key is committed",
    "job: a key written again, although it is committed",
    "job: a zombie goes on",
    "job: crashed",
    "job: hung past its timeout",
    "job: several transactions open at once",
)


@dataclass
class Job:
    """What outlives the drivers of a job. `asked` has the keys whose commit was ever asked for."""

    name: str
    next_key: int = 0
    asked: set[int] = field(default_factory=set)


@dataclass
class Written:
    """A member, and what it has written."""

    member: SimulatedProducer
    sends: list[Send] = field(default_factory=list)


class Driver:
    """One run of a job."""

    def __init__(self, scene: Scene, job: Job, run: str, life: Life, chosen: random.Random) -> None:
        self._scene = scene
        self._job = job
        self._run = run
        self._chosen = chosen
        self._remotes = [scene.remote(life) for _ in range(TASKS_MAX)]

    async def drive(self) -> None:
        """Commit key after key. Ends when it is fenced, or gives up."""
        try:
            while not self._scene.is_stopping:
                await self._scene.think(self._chosen)
                if self._chosen.random() < ALONE_CHANCE:
                    await self._write_alone()
                await self._write_key(self._job.next_key)
        except Refused as error:
            self._scene.coverage.hit(f"job: ended by {error.code.name}")
        except GaveUp:
            self._scene.coverage.hit("job: gave up")

    # -- a key -----------------------------------------------------------------------------------------------

    async def _write_key(self, key: int) -> None:
        tasks = await asyncio.gather(
            *(self._task(key, remote) for remote in self._remotes[: self._chosen.randint(1, TASKS_MAX)])
        )
        if "committed" in tasks:
            self._told(key)
            return
        written = [each for each in tasks if isinstance(each, Written)]
        if len(written) < len(tasks) or self._chosen.random() < ABORT_CHANCE:
            self._scene.coverage.hit(ABORTED)
            for each in written:
                self._note(each.sends, key).finish(Result.FAILED, self._scene.now)
            await self._end(key, [], committed=False)
            return
        if self._chosen.random() < HANG_CHANCE:
            self._scene.coverage.hit(HUNG)
            await asyncio.sleep(12)
        await self._commit(key, written)

    async def _commit(self, key: int, written: list[Written]) -> None:
        attempt = self._note([send for each in written for send in each.sends], key)
        attempt.commit_asked = self._scene.now
        # If another attempt has asked, the answer may be about that one.
        is_only = key not in self._job.asked
        self._job.asked.add(key)
        try:
            await self._end(key, [each.member for each in written], committed=True)
        except Refused as error:
            # A member that was too slow, or that a repeated abort has ended, is refused otherwise.
            if error.code is ErrorCode.TRANSACTION_ABORTABLE:
                attempt.refused(error, self._scene.now)
            if error.is_certain:
                attempt.finish(Result.FAILED, self._scene.now)
            raise
        attempt.finish(Result.OK if is_only else Result.UNKNOWN, self._scene.now)
        self._record_told(key)
        if self._chosen.random() >= FORGET_CHANCE:
            self._job.next_key = max(self._job.next_key, key + 1)
        else:
            self._scene.coverage.hit(REPEATED)

    async def _task(self, key: int, remote: Remote) -> Written | str:
        """The attempts of one task, until one succeeds: what it has written, "committed" or "failed"."""
        for _ in range(3):
            try:
                member = await SimulatedProducer.join(
                    remote, self._chosen, self._job.name, self._run, key, "task"
                )
                if member is None:
                    return "committed"
                written = Written(member)
                await self._write(written)
            except (Refused, GaveUp) as error:
                self._scene.coverage.hit(f"task: failed by {error}")
                if isinstance(error, Refused) and error.code.name in ("PRODUCER_FENCED", "INVALID_REQUEST"):
                    raise
                continue
            if self._chosen.random() >= FAIL_CHANCE:
                return written
            self._scene.coverage.hit(ATTEMPT)
            self._note(written.sends, key).finish(Result.FAILED, self._scene.now)
        return "failed"

    async def _write(self, written: Written) -> None:
        """Send some batches. Raises Refused, GaveUp."""
        partitions = self._chosen.sample(PARTITIONS, self._chosen.randint(1, 2))
        await written.member.add_partitions(partitions)
        sends = [
            (self._chosen.choice(partitions), self._scene.new_values(self._chosen))
            for _ in range(self._chosen.randint(1, 3))
        ]
        written.sends += [Send(name, value) for name, values in sends for value in values]
        for batch in await written.member.send_all(sends, self._scene.machine.clock.wall_ms()):
            batch.offset()

    # -- without a key ---------------------------------------------------------------------------------------

    async def _write_alone(self) -> None:
        """Two transactions of one process, open at once, each committed on its own."""
        self._scene.coverage.hit(ALONE)
        remote = self._remotes[0]
        opened = []
        for _ in range(2):
            member = await SimulatedProducer.join(
                remote, self._chosen, self._job.name, self._run, NO_KEY, "alone"
            )
            assert member is not None
            written = Written(member)
            await self._write(written)
            opened.append(written)
        for written in opened:
            attempt = self._note(written.sends, None)
            attempt.commit_asked = self._scene.now
            try:
                await written.member.end(committed=True)
            except Refused as error:
                attempt.refused(error, self._scene.now)
                if error.is_certain:
                    attempt.finish(Result.FAILED, self._scene.now)
                raise
            attempt.finish(Result.OK, self._scene.now)

    # -- what is noted ---------------------------------------------------------------------------------------

    def _note(self, sends: list[Send], key: int | None) -> Attempt:
        attempt = Attempt(f"{self._job.name}#{self._run}", self._job.name, self._scene.now)
        attempt.sends, attempt.key = sends, key
        self._scene.record.attempts.append(attempt)
        return attempt

    def _told(self, key: int) -> None:
        self._scene.coverage.hit(TOLD)
        self._record_told(key)
        self._job.next_key = max(self._job.next_key, key + 1)

    def _record_told(self, key: int) -> None:
        self._scene.record.told.append(KeyCommitted(self._job.name, key, self._scene.now))

    async def _end(self, key: int, members: list[SimulatedProducer], *, committed: bool) -> None:
        await SimulatedProducer.end_joint(
            self._remotes[0], self._chosen, self._job.name, self._run, key, members, committed=committed
        )


class JointJobs:
    """Each job runs until the scene stops."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._keep: list[object] = []
        scene.coverage.announce(*MET)

    async def run(self, name: str) -> None:
        """Run driver after driver of one job. Each ends by a crash, or because it is fenced."""
        chosen, job = self._scene.chance(), Job(name)
        while not self._scene.is_stopping:
            run = str(next(self._scene.names))
            life = Life(f"{name}#{run}")
            driver = Driver(self._scene, job, run, life, self._scene.chance())
            driving = self._scene.loop.create_task(driver.drive(), context=life.context)
            self._keep.append(driving)
            crash_at = self._scene.now + chosen.expovariate(CRASH_CHANCE)
            while not driving.done() and not self._scene.is_stopping and self._scene.now < crash_at:
                await asyncio.sleep(0.1)
            if self._scene.is_stopping:
                await driving
            elif not driving.done():
                self._end_driver(life, chosen)

    def _end_driver(self, life: Life, chosen: random.Random) -> None:
        if chosen.random() < ZOMBIE_CHANCE:
            self._scene.coverage.hit(ZOMBIE)
        else:
            self._scene.coverage.hit(CRASHED)
            life.end()
