"""Entries of the catalogue's journal, to the map that is their fold.

An entry folds or is refused as damage: the map is always the fold of the first entries, whole ones only. And
what folds can be checkpointed: its keys fit LMDB.
"""

from __future__ import annotations

import json
from typing import Any, cast

from faircopy.catalogue.journal import CATALOGUE_IDENTITY, CatalogueJournal
from faircopy.journal.entry import HEADER_BYTES, Kind
from faircopy.storage.state_store import KEY_BYTES_MAX
from faircopy.storage.system import mount
from faircopy.storage.versioned_map import ABSENT
from tests.fuzz.choices import Choices
from tests.fuzz.journals import Written, new_journal, new_store, segment_files
from tests.fuzz.memory import MemoryDisk
from tests.fuzz.odd_entries import NAMES, NUMBERS, odd_entries, refusals

KEYS = ["topics/orders", "topics/audit", "shape", "", "x" * KEY_BYTES_MAX, "é" * 256, "\ud800"]
SOUND_KEYS = 3
VALUES: list[Any] = ['{"partitions": 1}', "1000", "", "é", "\ud800", None, 1, []]
HAS_ODD_VERSION, DELETES, HAS_ODD_PART = 2, 4, 8
Content = dict[str, tuple[bytes, int]]


class Changes:
    """Payloads of one journal after another: most rest on the versions that are there."""

    def __init__(self) -> None:
        self._position = 0
        self._versions: dict[str, int] = {}

    def payload(self, choices: Choices, _kind: int) -> bytes:
        """A payload for the next entry."""
        made = choices.some() if choices.number() % 16 == 0 else self._change(choices)
        self._position += HEADER_BYTES + len(made)
        return made

    def _change(self, choices: Choices) -> bytes:
        shape = choices.number()
        keys = [choices.one_of(KEYS) for _ in range(1 + shape % 2)]
        versions: dict[str, Any] = {key: self._versions.get(key, ABSENT) for key in keys}
        if shape & HAS_ODD_VERSION:
            versions[keys[0]] = choices.one_of(NUMBERS)
        values = {} if shape & DELETES else {key: choices.one_of(VALUES) for key in keys}
        for key in keys:
            self._versions[key] = ABSENT if shape & DELETES else self._position
        parts: dict[str, Any] = {"rests_on": versions, "set": values, "deleted": keys if not values else []}
        if shape & HAS_ODD_PART:
            parts[choices.one_of(list(parts))] = choices.one_of(NAMES)
        return json.dumps(parts).encode()


def feed_catalogue(data: bytes) -> bool:
    """The catalogue's journal, recovered."""
    written = odd_entries(Choices(data), [Kind.CHANGE], Changes().payload)
    with mount(MemoryDisk(segment_files(written, CATALOGUE_IDENTITY))), refusals() as refused:
        catalogue = CatalogueJournal(new_journal(CATALOGUE_IDENTITY), new_store(), cast(Any, None))
        try:
            catalogue.open()
        finally:
            check(catalogue, written, is_whole=False)
        check(catalogue, written, is_whole=True)
    return not refused


def check(catalogue: CatalogueJournal, written: list[Written], *, is_whole: bool) -> None:
    """The map is that of some first entries; if `is_whole`, of all up to the journal's end."""
    found = {key: tuple(value) for key in catalogue._appended if (value := catalogue._appended.get(key))}
    ends = [catalogue.journal.watermarks.appended] if is_whole else [0, *(each.entry.end for each in written)]
    if found not in [content_at(end, written) for end in ends]:
        raise RuntimeError(f"the map is not the fold of whole entries: {sorted(found)}")
    if not all(1 <= len(key.encode()) <= KEY_BYTES_MAX for key in found):
        raise RuntimeError(f"a key can't be checkpointed: {sorted(found)}")


def content_at(end: int, written: list[Written]) -> Content:
    """What a map holds after the entries up to a position, as far as they say so."""
    content: Content = {}
    for each in written:
        if each.entry.end > end:
            break
        try:
            stored = json.loads(each.payload)
            values = {
                key: (value.encode(), each.entry.position) for key, value in stored.get("set", {}).items()
            }
            gone = [key for key in stored.get("deleted", []) if key in content or key in values]
        except (ValueError, TypeError, AttributeError, RecursionError):
            break
        content = {key: value for key, value in (content | values).items() if key not in gone}
    return content
