"""The record of a replica set at the arbiter: who leads it, and who may lead next.

See docs/REPLICA_SETS.md, The record.

Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple

from faircopy.errors import FaircopyError

NOBODY = 0
"""In the place of a leader's incarnation: the leader has resigned. Incarnations begin with 1."""


class IllegalChange(FaircopyError):
    """The record, as it is, does not allow a change. Whoever wants it must read again, and decide again."""


class Grade(IntEnum):
    """How much of what a replica has acknowledged is surely still there."""

    UNKNOWN = 0  # nothing is sure: power was lost under durability os, or a journal is damaged
    DURABLE = 1  # what was fsynced: power was lost, or the disk is attached to another machine
    DRAFTS = 2  # that, and the acknowledged messages of open transactions


class HandedOver(NamedTuple):
    """How an epoch was made, if by a handover: the epoch of the former leader, and its token (A10)."""

    epoch: int
    token: str


@dataclass(frozen=True)
class SetRecord:
    """The record. Brokers are numbers.

    `set_id`: a UUID, made once. `replicas`: in the order of preference. `leader` leads, or was the last to
    lead, in its life of `leader_incarnation`; an epoch belongs to one life of one leader (A6). `in_sync`: who
    has all that is durable, with the incarnation of each (A8). `drafts`: who of them also has all
    acknowledged messages of open transactions. `left`: who took itself out since it may have lost something,
    and in which epoch. `unclean_epoch`: the last epoch that began with a loss; 0 if none did. `since_ms`:
    when the leader was elected, by the wall clock; for people.
    """

    set_id: str
    replicas: tuple[int, ...]
    leader: int
    leader_incarnation: int
    epoch: int
    in_sync: Mapping[int, int]
    drafts: frozenset[int] = frozenset()
    handed_over: HandedOver | None = None
    unclean_epoch: int = 0
    left: Mapping[int, int] = field(default_factory=dict)
    since_ms: int = 0

    # -- leaders ---------------------------------------------------------------------------------------------

    def elect(self, broker: int, now_ms: int = 0) -> SetRecord:
        """Another life leads. Raises IllegalChange unless it is in sync."""
        self._ensure(broker in self.in_sync, f"broker {broker} is not in sync")
        return self._led_by(broker, self.in_sync[broker], now_ms)

    def hand_over(self, successor: int, token: str, now_ms: int = 0) -> SetRecord:
        """The leader lets somebody else lead, who was told what it knows. Raises IllegalChange."""
        self._ensure(successor in self.in_sync, f"broker {successor} is not in sync")
        self._ensure(successor != self.leader, f"broker {successor} leads already")
        led = self._led_by(successor, self.in_sync[successor], now_ms)
        return replace(led, handed_over=HandedOver(self.epoch, token))

    def resign(self) -> SetRecord:
        """The leader leads no longer, and somebody has to be elected."""
        return replace(self, leader_incarnation=NOBODY)

    def recover(self, broker: int, incarnation: int, now_ms: int = 0) -> SetRecord:
        """All have lost something, and this one the least. Raises IllegalChange while anybody is in sync."""
        self._ensure(not self.in_sync, "there are replicas in sync")
        self._ensure(broker in self.left, f"broker {broker} was not in sync")
        return self.elect_unclean(broker, incarnation, now_ms)

    def elect_unclean(self, broker: int, incarnation: int, now_ms: int = 0) -> SetRecord:
        """This one leads, whatever it may lack: an operator wants it so. Raises IllegalChange."""
        self._ensure(broker in self.replicas, f"broker {broker} is no replica")
        sole = replace(self, in_sync={broker: incarnation}, drafts=frozenset(), left={})
        led = sole._led_by(broker, incarnation, now_ms)
        return replace(led, unclean_epoch=led.epoch)

    def _led_by(self, broker: int, incarnation: int, now_ms: int) -> SetRecord:
        return replace(
            self,
            leader=broker,
            leader_incarnation=incarnation,
            epoch=self.epoch + 1,
            handed_over=None,
            since_ms=now_ms,
        )

    # -- the in-sync set -------------------------------------------------------------------------------------

    def add(self, broker: int, incarnation: int) -> SetRecord:
        """A replica has all that is durable, and all drafts. Raises IllegalChange."""
        self._ensure(broker in self.replicas, f"broker {broker} is no replica")
        self._ensure(broker not in self.in_sync, f"broker {broker} is in sync already")
        left = {each: epoch for each, epoch in self._left_lately().items() if each != broker}
        return replace(
            self, in_sync={**self.in_sync, broker: incarnation}, drafts=self.drafts | {broker}, left=left
        )

    def remove(self, broker: int, min_in_sync: int) -> SetRecord:
        """A replica lags. Raises IllegalChange if too few would stay (A14)."""
        self._ensure(broker in self.in_sync, f"broker {broker} is not in sync")
        self._ensure(broker != self.leader, f"broker {broker} leads")
        self._ensure(len(self.in_sync) > min_in_sync, f"only {len(self.in_sync)} are in sync")
        return replace(self._without(broker), left=self._left_lately())

    def join(self, broker: int, incarnation: int, grade: Grade) -> SetRecord:
        """A replica has begun another life, which has this much of what it acknowledged before."""
        if broker not in self.in_sync:
            return self
        if grade is Grade.UNKNOWN:
            return self.take_out(broker)
        stayed = self.stay_in(broker, incarnation)
        return stayed if grade is Grade.DRAFTS else replace(stayed, drafts=self.drafts - {broker})

    def stay_in(self, broker: int, incarnation: int) -> SetRecord:
        """A replica has begun another life, and has lost nothing. Raises IllegalChange if it is not in sync,
        or is so with that life or a later one.
        """
        self._ensure(broker in self.in_sync, f"broker {broker} is not in sync")
        self._ensure(self.in_sync[broker] < incarnation, f"broker {broker} is in sync with a later life")
        return replace(self, in_sync={**self.in_sync, broker: incarnation})

    def take_out(self, broker: int) -> SetRecord:
        """A replica may have lost what it acknowledged (KIP-966). Raises IllegalChange."""
        self._ensure(broker in self.in_sync, f"broker {broker} is not in sync")
        return replace(self._without(broker), left={**self.left, broker: self.epoch})

    def settle(self) -> SetRecord:
        """The leader has settled what was open when it began to lead: from now on it has all drafts. Raises
        IllegalChange if it is not in sync.
        """
        self._ensure(self.leader in self.in_sync, f"broker {self.leader} is not in sync")
        return replace(self, drafts=self.drafts | {self.leader})

    def move(self, former: int, broker: int) -> SetRecord:
        """A replica's directory has another broker now, none of whose lives is in sync yet. Raises
        IllegalChange.
        """
        self._ensure(former in self.replicas, f"broker {former} is no replica")
        self._ensure(broker not in self.replicas, f"broker {broker} is a replica already")
        moved = {former: broker}
        return replace(
            self,
            replicas=tuple(moved.get(each, each) for each in self.replicas),
            in_sync={moved.get(each, each): NOBODY if each == former else life
                     for each, life in self.in_sync.items()},
            drafts=frozenset(moved.get(each, each) for each in self.drafts),
            left={moved.get(each, each): epoch for each, epoch in self.left.items()},
        )  # fmt: skip

    def _left_lately(self) -> dict[int, int]:
        """Who left in this epoch. Its leader has all that was durable: earlier ones need not be awaited."""
        return {broker: epoch for broker, epoch in self.left.items() if epoch == self.epoch}

    def _without(self, broker: int) -> SetRecord:
        in_sync = {each: life for each, life in self.in_sync.items() if each != broker}
        return replace(self, in_sync=in_sync, drafts=self.drafts - {broker})

    def _ensure(self, is_so: bool, otherwise: str) -> None:
        if not is_so:
            raise IllegalChange(f"{otherwise} (epoch {self.epoch})")

    # -- who should lead -------------------------------------------------------------------------------------

    def is_led(self, lives: Mapping[int, int]) -> bool:
        """Whether its leader lives. `lives`: the incarnations of the brokers that are registered."""
        return self.leader_incarnation != NOBODY and lives.get(self.leader) == self.leader_incarnation

    def next_leader(self, lives: Mapping[int, int]) -> int | None:
        """Who is to be elected; None if somebody leads, or nobody may. Whoever has all drafts comes first,
        and the others only if nobody has. The last leader comes last: if it was restarted, it may have lost
        what it does not know of (B10).
        """
        if self.is_led(lives):
            return None
        able = [
            each
            for each in self.replicas
            if each in lives
            and lives[each] == self.in_sync.get(each)
            and (each in self.drafts or not self.drafts)
        ]
        others = [each for each in able if each != self.leader]
        return next(iter(others or able), None)

    def grade(self) -> Grade:
        """What the leader surely has of all that was acknowledged before its epoch began."""
        if self.unclean_epoch == self.epoch:
            return Grade.UNKNOWN
        return Grade.DRAFTS if self.leader in self.drafts else Grade.DURABLE

    def waits_for(self, lives: Mapping[int, int]) -> set[int]:
        """Whom a recovery waits for, if nobody is in sync any more: all who might have lost the least."""
        return set(self.left) - set(lives) if not self.in_sync else set()


def encode(record: SetRecord) -> bytes:
    """The record as JSON."""
    return json.dumps(asdict(record) | {"drafts": sorted(record.drafts)}, sort_keys=True).encode()


def decode(value: bytes) -> SetRecord:
    """The record in this JSON. Raises ValueError, KeyError, TypeError."""
    stored = json.loads(value)
    handed_over = stored["handed_over"]
    return SetRecord(
        stored["set_id"],
        tuple(stored["replicas"]),
        stored["leader"],
        stored["leader_incarnation"],
        stored["epoch"],
        by_broker(stored["in_sync"]),
        frozenset(stored["drafts"]),
        HandedOver(*handed_over) if handed_over is not None else None,
        stored["unclean_epoch"],
        by_broker(stored["left"]),
        stored["since_ms"],
    )


def by_broker(stored: Mapping[str, int]) -> dict[int, int]:
    """Numbers by broker: JSON has no keys that are numbers."""
    return {int(broker): number for broker, number in stored.items()}
