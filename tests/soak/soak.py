"""One soak: start the processes, let things go wrong, heal everything, and check what the clients saw."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.checker.check import Checked, check
from tests.checker.history import Final, write_history
from tests.clients.talk import create_topic
from tests.simulation.coverage import Coverage
from tests.soak.client import EX_SOFTWARE
from tests.soak.ending import TableBehind, look_at_table, read_all, whole_table
from tests.soak.faults import BrokerFailed, Faults
from tests.soak.processes import BrokerProcess, ClientProcess, SoakProcess
from tests.soak.proxy import Proxy
from tests.soak.record import Recorder, read_recorded
from tests.soak.stage import LIBRARIES, TABLE, TABLE_TOPICS, TOPICS, TRANSACTION_TIMEOUT_SECONDS
from tests.soak.weather import Weather

SETTINGS = (
    "durability=fsync",
    "journal.segment.bytes=1048576",
    "topic.segment.bytes=65536",
    "checkpoint.bytes=65536",
    "checkpoint.interval.ms=2000",
    "recent.drafts.max.bytes=16384",
    "transaction.abort.interval.ms=200",
    "group.min.session.timeout.ms=500",
    "auto.create.topics=false",
    "plain.interval.ms=500",
)
SHARDS = (1, 3)
CALM_SECONDS = 1.0
LOOKS = 8  # at the plain table, during the storm
LOOK_SECONDS_MIN = 1.0
COMMITS_MIN = 20  # however short a soak is
FAULTS_MAX = 200  # beyond the time of a soak that does not meet every fault
COMPLAINTS = ("Traceback", "is stopped", "invariant")
COMPLAINTS_SHOWN = 5


@dataclass
class Outcome:
    """The outcome of a soak. `failures` are bugs that showed without the checker."""

    seed: int
    directory: Path
    coverage: Coverage = field(default_factory=Coverage)
    phase: str = "starting"
    seconds: float = 0.0
    ended: Counter[str] = field(default_factory=Counter)
    messages: int = 0
    failures: list[str] = field(default_factory=list)
    checked: Checked | None = None

    @property
    def is_good(self) -> bool:
        return not self.failures and self.checked is not None and self.checked.verdict.value == "valid"


class Soak:
    """One soak. `outcome` may be read while it runs."""

    def __init__(self, directory: Path, seed: int, mutant: str | None = None) -> None:
        chosen = random.Random(seed)
        self.outcome = Outcome(seed, directory)
        self._weather = Weather(random.Random(chosen.getrandbits(48)), self.outcome.coverage)
        self._proxy = Proxy(self._weather)
        self._fault_seed = chosen.getrandbits(48)
        self._shards = chosen.choice(SHARDS)
        self._chosen = chosen
        self._mutant = mutant
        self._recorder = Recorder(directory / "soak.history")

    async def run(self, seconds: float) -> Outcome:
        """Let things go wrong for `seconds`, and until each has; then heal, read everything, and check."""
        outcome, directory = self.outcome, self.outcome.directory
        async with self._proxy as proxy:
            broker = BrokerProcess(directory, proxy.port, self._mutant, *SETTINGS, f"shards={self._shards}")
            clients = [ClientProcess(directory, library, proxy.port) for library in LIBRARIES]
            faults = Faults(broker, clients, proxy, random.Random(self._fault_seed), outcome.coverage)
            async with all_ended([broker, *clients]):
                try:
                    await self._start(faults, clients)
                    await self._storm(seconds, faults, broker, clients)
                    await self._finish(faults, clients)
                    await self._read_all(broker, faults)
                except (BrokerFailed, TableBehind) as error:
                    outcome.failures.append(str(error))
        outcome.failures += complaints_in(directory / "broker.log")
        outcome.phase = "checking"
        self._recorder.close()
        await asyncio.to_thread(self._check)
        return outcome

    @property
    def _address(self) -> str:
        return f"127.0.0.1:{self._proxy.port}"

    async def _start(self, faults: Faults, clients: list[ClientProcess]) -> None:
        await faults.start_broker()
        for topic, partitions in TOPICS.items():
            # These topics share one table, which must show transactions whole.
            plain = {"plain_table": TABLE} if topic in TABLE_TOPICS else {"plain_enabled": "false"}
            await asyncio.to_thread(create_topic, self._address, topic, partitions, **plain)
        for client in clients:
            await client.start(self._chosen.getrandbits(48))

    async def _storm(
        self, seconds: float, faults: Faults, broker: BrokerProcess, clients: list[ClientProcess]
    ) -> None:
        """Let things go wrong for `seconds`, and until each has; then heal them."""
        self.outcome.phase = "storm"
        self._weather.is_calm = False
        began = time.monotonic()
        storm = asyncio.create_task(faults.run())
        looking = asyncio.create_task(self._look(max(seconds / LOOKS, LOOK_SECONDS_MIN), broker))
        try:
            while not storm.done():
                self.outcome.seconds = time.monotonic() - began
                self.outcome.ended = sum((client.ended for client in clients), Counter[str]())
                if self.outcome.seconds > seconds and self._is_enough(faults):
                    faults.stop()
                await asyncio.wait([storm], timeout=0.2)
            await storm
        finally:
            storm.cancel()
            looking.cancel()
            await asyncio.gather(storm, looking, return_exceptions=True)
        await faults.heal()

    def _is_enough(self, faults: Faults) -> bool:
        """Whether clients have met all that they should, or meet so much that they never will."""
        has_met_all = faults.has_met_all and self._weather.has_met_all
        return (has_met_all and self.outcome.ended["ok"] >= COMMITS_MIN) or faults.caused > FAULTS_MAX

    async def _look(self, interval_seconds: float, broker: BrokerProcess) -> None:
        """Read the plain table now and then."""
        while True:
            await asyncio.sleep(interval_seconds)
            self._recorder.write(await asyncio.to_thread(look_at_table, broker.data_directory))

    async def _finish(self, faults: Faults, clients: list[ClientProcess]) -> None:
        """Let clients go on undisturbed for a while, and finish; the timeout aborts what hangs then."""
        self.outcome.phase = "healed"
        timed_out = asyncio.create_task(asyncio.sleep(TRANSACTION_TIMEOUT_SECONDS + CALM_SECONDS))
        await asyncio.sleep(CALM_SECONDS)
        for client, code in zip(
            clients, await asyncio.gather(*(client.end(signal.SIGTERM) for client in clients)), strict=True
        ):
            if code == EX_SOFTWARE:
                self.outcome.failures.append(f"{client.name} failed: see {client.log}")
            elif code != 0:
                # A library that hangs is not the broker's fault, and its history is known as far as it got.
                self.outcome.coverage.hit("client did not finish in time")
        self.outcome.ended = sum((client.ended for client in clients), Counter[str]())
        await timed_out

    async def _read_all(self, broker: BrokerProcess, faults: Faults) -> None:
        """Have every library read everything, at either isolation level; and once more after a last crash
        (P7).
        """
        self.outcome.phase = "reading all"
        finals: list[Final] = []
        libraries = list(LIBRARIES.values())
        for number, library in enumerate([*libraries, libraries[0]]):
            if number == len(libraries):
                await faults.kill_broker()
            isolation = ("read_committed", "read_uncommitted")[number % 2]
            for operation in await asyncio.to_thread(
                lambda *asked: list(read_all(*asked)), library, self._address, isolation
            ):
                self._recorder.write(operation)
                if isinstance(operation, Final) and not number:
                    finals.append(operation)
        self.outcome.messages = sum(len(final.reads) for final in finals)
        self._recorder.write(await asyncio.to_thread(whole_table, broker.data_directory, finals))

    def _check(self) -> None:
        operations = read_recorded(sorted(self.outcome.directory.glob("*.history")))
        with (self.outcome.directory / "history.jsonl").open("w") as file:
            write_history(operations, file)
        self.outcome.checked = check(operations)


@contextlib.asynccontextmanager
async def all_ended(processes: Iterable[SoakProcess]) -> AsyncIterator[None]:
    """Finally end all processes, whatever happens."""
    try:
        yield
    finally:
        await asyncio.gather(*(process.close() for process in processes))


def complaints_in(log: Path) -> list[str]:
    """What a process logged that no injected fault explains."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    found = [
        number for number, line in enumerate(lines) if any(complaint in line for complaint in COMPLAINTS)
    ]
    return [f"{log.name}:{number + 1}: {lines[number]}" for number in found[:COMPLAINTS_SHOWN]]
