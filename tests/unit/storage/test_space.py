"""The reserve, and when new data is refused."""

from __future__ import annotations

import errno
import logging
from pathlib import Path

import pytest

from faircopy.storage.failures import NoSpace
from faircopy.storage.reserve import FILE, Reserve
from faircopy.storage.space_watch import Look, SpaceWatch
from faircopy.storage.system import Space, System, mount

MIB = 1 << 20
RESERVE = 4 * MIB
FULL = NoSpace("full")


class Measured(System):
    """A disk of 1 GiB, of which as much is free as one says."""

    usable_bytes = 100 * MIB

    def space(self, path: Path) -> Space:
        return Space(1 << 30, self.usable_bytes)

    def allocate(self, descriptor: int, end: int) -> None:
        if end > self.usable_bytes:
            raise OSError(errno.ENOSPC, "full")
        super().allocate(descriptor, end)


def test_the_reserve_is_made_given_up_and_made_again(tmp_path: Path) -> None:
    with mount(Measured()):
        reserve = Reserve(tmp_path, RESERVE)
        assert not reserve.is_there
        assert reserve.make()
        assert (tmp_path / FILE).stat().st_size == RESERVE
        assert Reserve(tmp_path, RESERVE).is_there, "it outlives the process"
        reserve.give_up()
        assert not (tmp_path / FILE).exists()
        assert reserve.make()


def test_the_reserve_is_a_small_part_of_the_disk(tmp_path: Path) -> None:
    with mount(Measured()):
        assert Reserve(tmp_path, 1 << 40).size_bytes == (1 << 30) // 16


@pytest.mark.parametrize("usable_bytes", [0, RESERVE, 3 * RESERVE - 1])
def test_no_reserve_is_made_where_nothing_would_be_left(tmp_path: Path, usable_bytes: int) -> None:
    disk = Measured()
    disk.usable_bytes = usable_bytes
    with mount(disk):
        assert not Reserve(tmp_path, RESERVE).make()
    assert not (tmp_path / FILE).exists()


def test_a_quota_that_is_less_than_the_disk(tmp_path: Path) -> None:
    class Quota(Measured):
        def allocate(self, descriptor: int, end: int) -> None:
            raise OSError(errno.EDQUOT, "no more for you")

    with mount(Quota()):
        assert not Reserve(tmp_path, RESERVE).make()
    assert not (tmp_path / FILE).exists()


@pytest.fixture
def watch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> SpaceWatch:
    caplog.set_level(logging.INFO)
    with mount(Measured()):
        reserve = Reserve(tmp_path, RESERVE)
        reserve.make()
        return SpaceWatch(reserve)


def test_a_write_without_space_has_the_reserve_given_up(
    watch: SpaceWatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert watch.shortage is None
    assert watch.note_waiting(1, FULL), "there is some space now"
    assert watch.shortage is FULL
    assert not watch.note_waiting(2, FULL), "that was all"
    watch.resumed(1)
    watch.looked(Look(has_reserve=True, usable_bytes=100 * MIB))
    assert watch.shortage is not None, "somebody waits"
    watch.resumed(2)
    watch.looked(Look(has_reserve=False, usable_bytes=100 * MIB))
    assert watch.shortage is not None, "there is no reserve for the next time"
    watch.looked(Look(has_reserve=True, usable_bytes=100 * MIB))
    assert watch.shortage is None
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]


def test_nothing_new_is_taken_when_little_is_left(
    watch: SpaceWatch, caplog: pytest.LogCaptureFixture
) -> None:
    watch.looked(Look(has_reserve=True, usable_bytes=RESERVE - 1))
    watch.looked(Look(has_reserve=True, usable_bytes=2 * RESERVE - 1))
    assert watch.shortage is not None
    watch.looked(Look(has_reserve=True, usable_bytes=2 * RESERVE))
    assert watch.shortage is None
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]


def test_what_is_taken_between_two_looks_fits(watch: SpaceWatch, caplog: pytest.LogCaptureFixture) -> None:
    look = Look(has_reserve=True, usable_bytes=RESERVE + 8 * MIB)
    watch.looked(look)
    watch.spend(MIB)
    assert watch.shortage is None
    watch.spend(1)
    assert watch.shortage is not None
    watch.looked(look)
    assert watch.shortage is None
    assert not caplog.records


def test_without_a_reserve_writes_wait_as_they_do(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    watch = SpaceWatch()
    assert not watch.note_waiting(1, FULL)
    assert watch.shortage is FULL
    watch.resumed(1)
    assert watch.shortage is None
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
