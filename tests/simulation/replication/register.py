"""What an arbiter would tell the brokers of a world, and the secret that they share."""

from __future__ import annotations

import random

from faircopy.arbiter.record import SetRecord
from faircopy.replication.handshake import Own
from faircopy.replication.life import Life
from faircopy.replication.timing import Timing

SET_ID = bytes(range(16))
SECRET = b"nobody knows this secret"
FORMAT_LEVEL = 3


class Register:
    """`lives`: the followers that can be reached. `epoch`: under which somebody has led last."""

    def __init__(self, machines: int) -> None:
        self.timing = Timing()
        self.lives: dict[int, Life] = {}
        self.epoch = 0
        self._brokers = tuple(range(1, machines + 1))
        self._heard = [0] * machines

    def own(self, life: Life, chosen: random.Random) -> Own:
        """Who a broker is."""
        return Own(SET_ID, life, FORMAT_LEVEL, SECRET, lambda: chosen.randbytes(32))

    def elect(self, leader: Life) -> SetRecord:
        """The record, once the first of all brokers leads in another life."""
        self.epoch += 1
        return SetRecord(
            SET_ID.hex(), self._brokers, *leader, self.epoch, {leader.broker: leader.incarnation}
        )

    @property
    def followers(self) -> tuple[int, ...]:
        """All brokers but the leader."""
        return self._brokers[1:]

    def hear(self, machine: int, epoch: int) -> None:
        """A machine notes that somebody leads in this epoch."""
        self._heard[machine] = max(self._heard[machine], epoch)

    def epoch_heard_by(self, machine: int) -> int:
        """The newest epoch that a machine has heard of."""
        return self._heard[machine]
