"""One replica set: its members on the machines of a world, with one arbiter and one network."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Callable

from faircopy.arbiter.registration import RECORD
from faircopy.broker.leadership import Start
from faircopy.settings.table import Settings
from faircopy.wire.address import Address, parse_address
from tests.simulation.arbiter import SimulatedArbiter
from tests.simulation.coverage import Coverage
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.switch import Switch

LEADER = 0
PORT = 1
SECRET_FILE = __file__  # any file that all members can read


class ReplicaSet:
    """Members have the numbers of their machines, from 0; the first leads. Broker ids are one higher."""

    def __init__(self, loop: VirtualLoop, machines: int, chosen: random.Random, coverage: Coverage) -> None:
        self.switch = Switch(loop, machines, random.Random(chosen.getrandbits(64)), coverage)
        self.arbiter = SimulatedArbiter(loop, random.Random(chosen.getrandbits(64)), coverage, [LEADER + 1])
        self._machines = machines

    @property
    def is_made(self) -> bool:
        """Whether the arbiter has a record of the set."""
        return RECORD in self.arbiter.server.entries

    @property
    def start_of_leader(self) -> Start:
        """What is said to the member that makes the set."""
        return Start(makes_set=True, replicas=tuple(range(1, self._machines + 1)))

    def settings_of(self, member: int, settings: Settings) -> Settings:
        """The settings of a member."""
        return dataclasses.replace(
            settings,
            arbiter="etcd://10.0.0.9:2379",
            replica_set="orders",
            arbiter_lease_ms=round(self.arbiter.lease_seconds * 1000),
            node_id=member + 1,
            replication_listener=f"{host_of(member)}:{PORT}",
            replication_secret_file=SECRET_FILE,
        )

    def begin(self, member: int, life: Life) -> None:
        """A process begins on a member's machine."""
        self.switch.begin(member, life)

    async def connect(
        self, member: int, address: Address, protocol: asyncio.Protocol
    ) -> asyncio.BaseTransport:
        """Connect a member's process to another's. Raises OSError."""
        to = next(number for number in range(self._machines) if host_of(number) == address.host)
        return await self.switch.connect(member, to, protocol)

    def listen(
        self, member: int, address: Address, accept: Callable[[], asyncio.Protocol]
    ) -> tuple[Address, Callable[[], None]]:
        """Let others connect to a member's process. Returns the address, and what ends it."""
        assert address == parse_address(f"{host_of(member)}:{PORT}")
        self.switch.listen(member, accept)
        return address, lambda: self.switch.listen_no_more(member)

    def isolate(self, member: int) -> None:
        """Let nothing come from a member, or to it."""
        for way in self._ways_of(member):
            self.switch.fall_silent(*way)

    def join(self, member: int) -> None:
        """Let all come that was held."""
        for way in self._ways_of(member):
            self.switch.heal(*way)

    def _ways_of(self, member: int) -> list[tuple[int, int]]:
        return [way for way in self.switch.paths if member in way]


def host_of(member: int) -> str:
    """The name of a member's machine."""
    return f"machine-{member + 1}"
