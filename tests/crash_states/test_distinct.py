"""Which crash states have been met already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.checker.history import Result, Send, Transaction
from tests.crash_states.distinct import Met
from tests.crash_states.stage import Moment, Survivor
from tests.crash_states.topics import KnownTopic, TopicState
from tests.simulation.disk_nodes import DirectoryNode, FileNode
from tests.simulation.lying_disk import LyingDisk
from tests.simulation.lying_disk import Operation as DiskOperation
from tests.simulation.producer import Snapshot
from tests.simulation.record import Attempt
from tests.simulation.store import Contents


def moment(time: float = 0.0) -> Moment:
    """A crash while a request is not answered yet."""
    file = FileNode(bytearray(b"data"), 8, bytearray(b"da"), 2)
    disk = LyingDisk(lambda: 0, DirectoryNode({"file": file}, {"file": file}))
    contents = Contents()
    contents.tables["catalogue"].put(b"key", b"value")
    asked = Transaction("red/1", "red", 0.0, 0.0, time, Result.UNKNOWN)
    rest = [Send("b-0", round(time))]
    survivor = Survivor(Snapshot("blue/1", (1, 0), {"a-0": 1}), Attempt("blue/1", "blue", 0.0), rest)
    return Moment(DiskOperation(1, "write", Path("/file")), time, disk, contents, [asked], 0, (survivor,))


def write(changed: Moment) -> Moment:
    changed.disk.root.names["file"].write(3, b"e")  # type: ignore[union-attr]
    return changed


def resize(changed: Moment) -> Moment:
    changed.disk.root.names["file"].resize(9)  # type: ignore[union-attr]
    return changed


def touch(changed: Moment) -> Moment:
    changed.disk.root.names["file"].modified_ns = 1  # type: ignore[union-attr]
    return changed


def rename(changed: Moment) -> Moment:
    changed.disk.root.change({"file": None, "renamed": changed.disk.root.names["file"]})
    return changed


def store(changed: Moment) -> Moment:
    changed.contents.tables["catalogue"].put(b"key", b"other")
    return changed


def answer(changed: Moment) -> Moment:
    (asked,) = changed.history
    assert isinstance(asked, Transaction)
    return replace(changed, history=[replace(asked, result=Result.OK)])


def leave_nobody(changed: Moment) -> Moment:
    return replace(changed, survivors=())


def ask_for_a_topic(changed: Moment) -> Moment:
    return replace(changed, topics=(KnownTopic("c", (None, TopicState(None, {}, ((),)))),))


CHANGES = [write, resize, touch, rename, store, answer, leave_nobody, ask_for_a_topic]


def is_new(met: Met, crash: str, at: Moment) -> bool:
    return any(met.new(crash, at, [at.disk]))


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_whatever_recovery_or_clients_can_see_makes_a_new_state(change: Callable[[Moment], Moment]) -> None:
    met = Met()
    assert is_new(met, "kill", moment())
    assert is_new(met, "kill", change(moment()))


def test_the_same_bytes_a_moment_later_are_no_new_state() -> None:
    met = Met()
    assert is_new(met, "kill", moment(1.0))
    assert not is_new(met, "kill", moment(2.0))


def test_a_loss_of_power_is_no_kill() -> None:
    met = Met()
    assert is_new(met, "kill", moment())
    assert is_new(met, "loss of power", moment())
