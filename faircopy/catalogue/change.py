"""The payload of an entry of the catalogue's journal: one write, as JSON, so that a person can read a dump.

    CHANGE  {"rests_on": {key: version, ...}, "set": {key: value, ...}, "deleted": [key, ...]}

"rests_on" has the versions that the writer has seen; -1: the key had no value. A version is the position of
the entry that wrote the key. Values are text. Parts that are empty are left out.

Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


class CatalogueChange(NamedTuple):
    """One write: `changes` (None deletes), and the versions that it rests on."""

    rests_on: Mapping[str, int]
    changes: Mapping[str, bytes | None]


def encode_change(change: CatalogueChange) -> bytes:
    """The bytes of a payload. Raises UnicodeDecodeError if a value is not text."""
    stored: dict[str, Any] = {
        "rests_on": dict(change.rests_on),
        "set": {key: value.decode() for key, value in change.changes.items() if value is not None},
        "deleted": [key for key, value in change.changes.items() if value is None],
    }
    return _ENCODER.encode({name: part for name, part in stored.items() if part}).encode()


def decode_change(payload: bytes | memoryview) -> CatalogueChange:
    """The write in a payload. Raises ValueError, TypeError, AttributeError if it is none."""
    stored = json.loads(bytes(payload))
    changes: dict[str, bytes | None] = {key: value.encode() for key, value in stored.get("set", {}).items()}
    changes |= dict.fromkeys(stored.get("deleted", ()))
    rests_on = {str(key): int(version) for key, version in stored.get("rests_on", {}).items()}
    return CatalogueChange(rests_on, changes)


def show_change(payload: bytes | memoryview) -> dict[str, Any]:
    """The write in a payload, for people: values that are JSON as what they say."""
    stored: dict[str, Any] = json.loads(bytes(payload))
    if "set" in stored:
        stored["set"] = {key: shown(value) for key, value in stored["set"].items()}
    return stored


def shown(value: str) -> Any:
    """What a value says."""
    try:
        return json.loads(value)
    except ValueError:
        return value
