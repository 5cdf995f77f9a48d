"""The states of a group, and the transitions between them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from faircopy.errors import invariant


class GroupState(Enum):
    """The states of a group. The values are as Kafka's tools show them."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Event(Enum):
    """The events that move a group from state to state."""

    REBALANCE = auto()
    EMPTIED = auto()
    JOINED = auto()
    ASSIGNED = auto()
    DELETED = auto()


TRANSITIONS: Mapping[tuple[GroupState, Event], GroupState] = {
    (GroupState.EMPTY, Event.REBALANCE): GroupState.PREPARING,
    (GroupState.STABLE, Event.REBALANCE): GroupState.PREPARING,
    (GroupState.COMPLETING, Event.REBALANCE): GroupState.PREPARING,
    (GroupState.PREPARING, Event.EMPTIED): GroupState.EMPTY,
    (GroupState.PREPARING, Event.JOINED): GroupState.COMPLETING,
    (GroupState.COMPLETING, Event.ASSIGNED): GroupState.STABLE,
    (GroupState.EMPTY, Event.DELETED): GroupState.DEAD,
}


def state_after(state: GroupState, event: Event) -> GroupState:
    """The state that an event leads to."""
    following = TRANSITIONS.get((state, event))
    invariant(following is not None, f"no transition of a group from {state} by {event}")
    assert following is not None
    return following
