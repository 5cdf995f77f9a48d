"""kcat, with the options that its README shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.ecosystem.kcat import kcat

LINES = [f"line {number}" for number in range(1000)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """With all defaults."""
    with BrokerProcess(tmp_path) as broker:
        yield broker
        broker.ensure_no_traceback()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_produced_is_consumed(broker: BrokerProcess, codec: str) -> None:
    """Lines that kcat writes, compressed, are those that it reads after kill -9 of the broker."""
    kcat("-b", broker.address, "-t", "lines", "-P", "-z", codec, given="\n".join(LINES))
    broker.restart()
    assert kcat("-b", broker.address, "-t", "lines", "-C", "-e", "-q").splitlines() == LINES


def test_a_group_goes_on_from_what_it_has_committed(broker: BrokerProcess) -> None:
    """Two runs of kcat as members of one group share the lines, one after the other."""
    for part in (LINES[:500], LINES[500:]):
        kcat(
            "-b",
            broker.address,
            "-t",
            "lines",
            "-P",
            "-K",
            ":",
            given="".join(f"k:{line}\n" for line in part),
        )
        options = ["-X", "auto.offset.reset=earliest", "-e", "-q", "-f", "%k %s\n"]
        read = kcat("-b", broker.address, "-G", "readers", *options, "lines")
        assert read.splitlines() == [f"k {line}" for line in part]


def test_metadata_and_offsets(broker: BrokerProcess) -> None:
    """It lists the topic in JSON, and asks for the offset of a time."""
    kcat("-b", broker.address, "-t", "lines", "-P", given="\n".join(LINES))
    listed = json.loads(kcat("-b", broker.address, "-L", "-J", "-t", "lines"))
    assert [(topic["topic"], len(topic["partitions"])) for topic in listed["topics"]] == [("lines", 1)]
    assert kcat("-b", broker.address, "-Q", "-t", "lines:0:-1") == f"lines [0] offset {len(LINES)}\n"
