"""What is logged, and what is not said twice."""

from __future__ import annotations

import asyncio
import logging
import sys

import pytest

from faircopy.cli.logs import FORM, OneLine
from faircopy.errors import FaircopyError
from faircopy.loop.background import repeat
from faircopy.storage.failures import NoSpace
from faircopy.storage.space_watch import SpaceWatch

EVIL = "x\x1b[31m\n2026-01-01 00:00:00,000 INFO forged"


def test_what_clients_named_is_escaped_also_in_traces() -> None:
    try:
        raise ValueError(EVIL)
    except ValueError:
        record = logging.LogRecord(
            "n", logging.ERROR, "p", 1, "a request of %s failed", (EVIL,), sys.exc_info()
        )
    text = OneLine(FORM).format(record)
    assert "\x1b" not in text
    assert text.splitlines()[0].endswith(
        "a request of x\\x1b[31m\\n2026-01-01 00:00:00,000 INFO forged failed"
    )
    assert text.splitlines()[1] == "Traceback (most recent call last):"


def test_a_full_disk_is_told_once_and_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    watch, one, other = SpaceWatch(), object(), object()
    watch.resumed(one)
    for who in (one, other, one):
        watch.note_waiting(who, NoSpace("writing to f at 0: no space is left: free some"))
    watch.resumed(one)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "no space is left" in caplog.text
    watch.resumed(other)
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
    watch.note_waiting(one, NoSpace("again"))
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO", "ERROR"]


def test_background_work_that_fails_is_told_once_and_when_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    outcomes = iter(["full", "full", "other", "", "", "full"])

    async def work() -> None:
        outcome = next(outcomes, "end")
        if outcome == "end":
            raise asyncio.CancelledError
        if outcome:
            raise FaircopyError(outcome)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(repeat(0, work, lambda error: None))
    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert told == [("ERROR", "full"), ("ERROR", "other"), ("INFO", "it is over: other"), ("ERROR", "full")]
