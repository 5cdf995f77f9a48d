"""Mistakes that a broker could make, each injected into a clean history. The checker must find every one.

A mutation takes a history and a source of randomness, and returns another history, or None if this one has no
place for the mistake. Mutations change what was *read*, as a broker's mistake would, and leave what clients
did.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.checker.check import Anomaly
from tests.checker.history import Operation
from tests.checker.mistakes import (
    answers,
    consumers,
    keys,
    open_transactions,
    orders,
    places,
    tables,
    visibility,
)

Mutation = Callable[[list[Operation], random.Random], list[Operation] | None]

MUTATIONS: dict[Mutation, Anomaly] = {
    places.hold_two_values: Anomaly.INCONSISTENT_OFFSETS,
    places.duplicate: Anomaly.DUPLICATE,
    places.invent: Anomaly.PHANTOM,
    places.misplace: Anomaly.PHANTOM,
    visibility.show_aborted: Anomaly.ABORTED_READ,
    visibility.show_early: Anomaly.UNCOMMITTED_READ,
    visibility.tear: Anomaly.TORN_TRANSACTION,
    visibility.drop_with_its_place: Anomaly.LOST_WRITE,
    visibility.drop: Anomaly.UNSEEN,
    visibility.take_back: Anomaly.VANISHED,
    consumers.skip: Anomaly.POLL_SKIP,
    consumers.go_back: Anomaly.NON_MONOTONIC_POLL,
    orders.swap_in_group: Anomaly.GROUP_ORDER,
    orders.swap_across_groups: Anomaly.WRITE_CYCLE,
    orders.read_the_future: Anomaly.READ_CYCLE,
    places.turn: Anomaly.SEND_ORDER,
    places.leave_a_gap: Anomaly.OFFSET_GAP,
    tables.tear_a_snapshot: Anomaly.SNAPSHOT_TEAR,
    tables.show_a_row_twice: Anomaly.SNAPSHOT_GAP,
    tables.leave_out_the_first: Anomaly.SNAPSHOT_GAP,
    tables.leave_out_any: Anomaly.SNAPSHOT_GAP,
    answers.forget_a_commit: Anomaly.END_BEFORE_COMMIT,
    answers.forget_an_offset: Anomaly.OFFSET_LOST,
    answers.invent_an_offset: Anomaly.OFFSET_PHANTOM,
    keys.commit_a_key_twice: Anomaly.KEY_TWICE,
    keys.forget_a_key: Anomaly.KEY_LOST,
    open_transactions.give_up: Anomaly.GIVEN_UP,
}
