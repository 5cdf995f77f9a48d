"""The payload of an entry of the catalogue's journal: one write, as JSON, so that a person can read a dump.

    CHANGE  {"rests_on": {key: version, ...}, "set": {key: value, ...}, "deleted": [key, ...]}

"rests_on" has the versions that the writer has seen; -1: the key had no value. A version is the position of
the entry that wrote the key. Keys and values are text. Parts that are empty are left out.

Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from faircopy.storage.versioned_map import ABSENT

KEY_BYTES_MAX = 511  # LMDB's limit: the checkpoint is one of its tables
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


class CatalogueChange(NamedTuple):
    """One write: `changes` (None deletes), and the versions that it rests on."""

    rests_on: Mapping[str, int]
    changes: Mapping[str, bytes | None]


def encode_change(change: CatalogueChange) -> bytes:
    """The bytes of a payload. Raises ValueError if a key can't be one, or if a value is not text."""
    ensure_keys(change)
    stored: dict[str, Any] = {
        "rests_on": dict(change.rests_on),
        "set": {key: value.decode() for key, value in change.changes.items() if value is not None},
        "deleted": [key for key, value in change.changes.items() if value is None],
    }
    return _ENCODER.encode({name: part for name, part in stored.items() if part}).encode()


def decode_change(payload: bytes | memoryview) -> CatalogueChange:
    """The write in a payload. Raises ValueError, TypeError, AttributeError, OverflowError, RecursionError if
    it is none.
    """
    stored = json.loads(bytes(payload))
    changes: dict[str, bytes | None] = {key: value.encode() for key, value in stored.get("set", {}).items()}
    deleted = stored.get("deleted", [])
    if not isinstance(deleted, list):
        raise TypeError(f"deleted is {deleted!r:.100}, and no list")
    changes |= dict.fromkeys(deleted)
    rests_on = {key: int(version) for key, version in stored.get("rests_on", {}).items()}
    change = CatalogueChange(rests_on, changes)
    ensure_keys(change)
    return change


def ensure_keys(change: CatalogueChange) -> None:
    """Raise ValueError, AttributeError unless all keys are text that the checkpoint can have as keys."""
    for key in (*change.rests_on, *change.changes):
        if not 1 <= len(key.encode()) <= KEY_BYTES_MAX:
            raise ValueError(f"key {key!r:.100} has {len(key.encode())} bytes: 1 to {KEY_BYTES_MAX} can be")


# -- for people ----------------------------------------------------------------------------------------------


def show_change(payload: bytes | memoryview) -> dict[str, Any]:
    """The write in a payload, with what values say that are objects of JSON. Raises as `decode_change`."""
    decode_change(payload)
    stored: dict[str, Any] = json.loads(bytes(payload))
    if "set" in stored:
        stored["set"] = {key: shown(value) for key, value in stored["set"].items()}
    return stored


def shown(value: str) -> Any:
    """What a value says."""
    if not value.startswith("{"):
        return value  # a number, an id or a word, which JSON might take for something else
    try:
        return json.loads(value)
    except ValueError:
        return value


def part_of_change(says: Mapping[str, Any], key: str) -> dict[str, Any]:
    """What a write that is shown says of one key; empty if it says nothing."""
    found: dict[str, Any] = {
        name: {key: says[name][key]} for name in ("rests_on", "set") if key in says.get(name, {})
    }
    return found | ({"deleted": [key]} if key in says.get("deleted", ()) else {})


def sentence_of_change(says: Mapping[str, Any]) -> str:
    """A write that is shown, as text: what each key was, and what it is now."""
    rests_on: dict[str, int] = says.get("rests_on", {})
    outcomes = {key: f"= {text_of(value)}" for key, value in says.get("set", {}).items()}
    outcomes |= dict.fromkeys(says.get("deleted", ()), "deleted")
    outcomes |= {key: "unchanged" for key in rests_on if key not in outcomes}
    return "; ".join(f"{key}{before(rests_on.get(key))} {text}" for key, text in outcomes.items())


def before(version: int | None) -> str:
    """What a key was before a write, as far as the write says so."""
    if version is None:
        return ""
    return " (new)" if version == ABSENT else f" (was {version})"


def text_of(value: Any) -> str:
    """A value that is shown, as text."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value or '""'
