"""Every rival does what it claims, or its times mean nothing; and the check sees when one does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.protocols.correctness import Incorrect, Sent, check, compare
from bench.systems.faircopy import Faircopy
from tests.seeds import seed_for

RIVALS = ["local-copy", "remote-copy", "markers", "parallel-prepare"]


@pytest.mark.parametrize("durability", ["fsync", "os"])
@pytest.mark.parametrize("protocol", RIVALS)
def test_a_protocol_shows_what_was_committed(tmp_path: Path, protocol: str, durability: str) -> None:
    seed = seed_for("protocols")
    system = Faircopy(tmp_path, protocol, durability)
    system.start()
    try:
        assert check(system.address, seed) > 0, f"seed {seed}"
    finally:
        system.stop()
    assert "Traceback" not in system.log


def test_the_floor_commits(tmp_path: Path) -> None:
    system = Faircopy(tmp_path, "none")
    system.start()
    try:
        assert check(system.address, 1, may_abort=False) > 0
        with pytest.raises(Incorrect, match="aborted"):
            check(system.address, 2)
    finally:
        system.stop()


def drop(values: list[bytes]) -> None:
    values.pop()


def repeat(values: list[bytes]) -> None:
    values.append(values[-1])


def swap(values: list[bytes]) -> None:
    values[0], values[1] = values[1], values[0]


def show_aborted(values: list[bytes]) -> None:
    values.append(b"aborted")


def invent(values: list[bytes]) -> None:
    values.append(b"invented")


@pytest.mark.parametrize("spoil", [drop, repeat, swap, show_aborted, invent])
def test_the_check_sees_what_is_wrong(spoil: Callable[[list[bytes]], None]) -> None:
    sent = Sent({(p, n): [b"%d-%d-%d" % (p, n, m) for m in range(3)] for p in range(4) for n in range(4)}, {b"aborted"})
    read = {p: [value for n in range(4) for value in sent.committed[p, n]] for p in range(4)}
    compare(sent, read)
    spoil(read[2])
    with pytest.raises(Incorrect, match="partition 2"):
        compare(sent, read)
