"""The check of protocols sees when one does not do what it claims; and who is measured is a broker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench import profile
from bench.protocols.correctness import Incorrect, Sent, compare
from bench.rival import BROKERS
from bench.systems.faircopy import LOCAL_COPY
from tests.bench.test_bench_protocols import PROTOCOLS


def test_every_rival_that_is_measured_is_a_broker() -> None:
    measured = {name.rsplit(" ", 1)[0] for name in [*profile.RIVALS, profile.FLOOR_OS]}
    assert measured == BROKERS.keys()
    assert set(PROTOCOLS) - {LOCAL_COPY} < BROKERS.keys()


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
    sent = Sent(
        {(p, n): [b"%d-%d-%d" % (p, n, m) for m in range(3)] for p in range(4) for n in range(4)},
        {b"aborted"},
    )
    read = {p: [value for n in range(4) for value in sent.committed[p, n]] for p in range(4)}
    compare(sent, read)
    spoil(read[2])
    with pytest.raises(Incorrect, match="partition 2"):
        compare(sent, read)
