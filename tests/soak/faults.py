"""What goes wrong with the processes of a soak, and when, chosen by one seed."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable

from tests.simulation.coverage import Coverage
from tests.soak.processes import BrokerProcess, ClientProcess
from tests.soak.proxy import Proxy
from tests.soak.stage import TRANSACTION_TIMEOUT_SECONDS

UP_SECONDS = 0.4  # between faults, on average
UP_SECONDS_MAX = 4.0
RECOVERY_SECONDS_MAX = 0.08  # of a small data directory
STOPPED_SECONDS_MAX = 2.0
CLIENT_STOPPED_SECONDS_MAX = TRANSACTION_TIMEOUT_SECONDS + 2
FULL_SECONDS_MAX = 2.0
RESTART_SECONDS = 0.2
KILL = "kill -9 of the broker"


class BrokerFailed(Exception):
    """The broker ended by itself, or did not come back, and no fault explains that."""


class Faults:
    """Causes fault after fault: first each kind once, then each kind as often as its weight says."""

    def __init__(
        self,
        broker: BrokerProcess,
        clients: list[ClientProcess],
        proxy: Proxy,
        chosen: random.Random,
        coverage: Coverage,
    ) -> None:
        self._broker = broker
        self._clients = clients
        self._proxy = proxy
        self._chosen = chosen
        self._coverage = coverage
        self._is_stopping = False
        self.caused = 0
        self._kinds: dict[str, tuple[float, Callable[[], Awaitable[None]]]] = {
            KILL: (12, self.kill_broker),
            "kill -9 of the broker in recovery": (4, self._kill_in_recovery),
            "SIGTERM of the broker": (1, self._stop),
            "SIGSTOP of the broker": (1, self._pause),
            "full disk": (1, self._fill_disk),
            "kill -9 in a full disk": (0.5, self._kill_in_full_disk),
            "kill -9 of a client": (1, self._kill_client),
            "SIGSTOP of a client": (0.5, self._pause_client),
        }
        self._due = chosen.sample(list(self._kinds), len(self._kinds))
        coverage.announce(*self._kinds)
        self._kinds["nothing, past the transaction timeout"] = (0.2, self._rest)

    @property
    def has_met_all(self) -> bool:
        """Whether each kind of fault has been caused."""
        return not self._due

    async def run(self) -> None:
        """Let things go wrong until `stop`, and each kind at least once. Raises BrokerFailed."""
        while self._due or not self._is_stopping:
            self.caused += 1
            await asyncio.sleep(min(self._chosen.expovariate(1 / UP_SECONDS), UP_SECONDS_MAX))
            await self._see_to_all()
            name = self._due.pop() if self._due else self._draw()
            await self._kinds[name][1]()
            self._coverage.hit(name)

    def stop(self) -> None:
        """Cause no more faults after the present one."""
        self._is_stopping = True

    def _draw(self) -> str:
        weights = [weight for weight, _ in self._kinds.values()]
        return self._chosen.choices(list(self._kinds), weights)[0]

    async def _see_to_all(self) -> None:
        """Raise BrokerFailed if a process ended by itself."""
        for each in (self._broker, *self._clients):
            if not each.is_running:
                raise BrokerFailed(
                    f"{each.name} ended by itself, with exit code {each.exit_code}: see its log"
                )

    async def heal(self) -> None:
        """Have all processes run, with all that they need."""
        self._proxy.weather.is_calm = True
        self._broker.full.unlink(missing_ok=True)
        for each in (self._broker, *self._clients):
            each.send_signal(signal.SIGCONT)
        if not self._broker.is_running:
            await self.start_broker()

    # -- the broker ------------------------------------------------------------------------------------------

    async def start_broker(self) -> None:
        """Start the broker. On a full disk it may refuse, and is started again."""
        is_full = True
        while is_full:
            is_full = self._broker.full.exists()
            if await (await self._broker.begin_start()):
                self._proxy.target = self._broker.port
                return
            if is_full:
                self._coverage.hit("start refused by a full disk")
                await asyncio.sleep(RESTART_SECONDS)
        raise BrokerFailed(f"the broker does not start, with exit code {self._broker.exit_code}: see its log")

    async def kill_broker(self) -> None:
        """Kill the broker with kill -9, and start it again."""
        await self._broker.end()
        await self.start_broker()

    async def _kill_in_recovery(self) -> None:
        """Kill the broker before it is ready, once or twice."""
        await self._broker.end()
        for _ in range(self._chosen.randint(1, 2)):
            ready = await self._broker.begin_start()
            await asyncio.wait([ready], timeout=self._chosen.random() * RECOVERY_SECONDS_MAX)
            if not ready.done():
                self._coverage.hit("killed before it was ready")
            self._coverage.hit(KILL)
            await self._broker.end()
            await ready
        await self.start_broker()

    async def _stop(self) -> None:
        if await self._broker.end(signal.SIGTERM) != 0:
            raise BrokerFailed("the broker did not stop in order after SIGTERM: see its log")
        await self.start_broker()

    async def _pause(self) -> None:
        self._broker.send_signal(signal.SIGSTOP)
        await asyncio.sleep(self._chosen.random() * STOPPED_SECONDS_MAX)
        self._broker.send_signal(signal.SIGCONT)

    # -- the disk --------------------------------------------------------------------------------------------

    async def _fill_disk(self) -> None:
        self._broker.full.touch()
        await asyncio.sleep(self._chosen.random() * FULL_SECONDS_MAX)
        self._broker.full.unlink()

    async def _kill_in_full_disk(self) -> None:
        self._broker.full.touch()
        await asyncio.sleep(self._chosen.random() * FULL_SECONDS_MAX)
        self._coverage.hit(KILL)
        await self._broker.end()
        freed = asyncio.get_running_loop().call_later(
            self._chosen.random() * FULL_SECONDS_MAX, self._broker.full.unlink, True
        )
        try:
            await self.start_broker()
        finally:
            freed.cancel()
            self._broker.full.unlink(missing_ok=True)

    # -- clients ---------------------------------------------------------------------------------------------

    async def _kill_client(self) -> None:
        client = self._chosen.choice(self._clients)
        await client.end()
        await client.start(self._chosen.getrandbits(48))

    async def _pause_client(self) -> None:
        """Stop a client for so long that others may think it is dead; meanwhile everything else goes on."""
        client = self._chosen.choice(self._clients)
        client.send_signal(signal.SIGSTOP)
        seconds = self._chosen.random() * CLIENT_STOPPED_SECONDS_MAX
        asyncio.get_running_loop().call_later(seconds, client.send_signal, signal.SIGCONT)

    async def _rest(self) -> None:
        """Let hanging transactions time out: while the broker is killed again and again, none does."""
        await asyncio.sleep(TRANSACTION_TIMEOUT_SECONDS + 2)
