"""Records of the state store have checksums, and each write leaves its number."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import ClassVar

import lmdb
import pytest

from faircopy.storage.data_directory import DataDirectory, DataDirectoryError
from faircopy.storage.sealed import CRC_BYTES, DamagedState, is_sound, seal
from faircopy.storage.state_store import TABLES, Delete, Put, StateStore, StateStoreFailure
from faircopy.storage.store_check import FILE, MAP_BYTES, check_store
from faircopy.storage.system import System, mount


def test_a_seal_holds_table_key_and_value() -> None:
    sealed = seal(b"table", b"key", b"value")
    assert is_sound(b"table", b"key", sealed) and sealed[CRC_BYTES:] == b"value"
    assert not is_sound(b"other", b"key", sealed)
    assert not is_sound(b"table", b"kex", sealed)
    assert not is_sound(b"table", b"keyv", sealed[:4] + b"alue")
    assert not any(is_sound(b"table", b"key", sealed[:size]) for size in range(len(sealed)))


def exchange_values(path: Path, table: bytes, first: bytes, second: bytes) -> None:
    """Let two records of a store have each other's values: no page is the worse for it."""
    environment = lmdb.open(str(path), map_size=MAP_BYTES, max_dbs=len(TABLES))
    with environment.begin(write=True, db=environment.open_db(table, create=False)) as transaction:
        of_first, of_second = transaction.get(first), transaction.get(second)
        assert of_first is not None and of_second is not None
        transaction.put(first, of_second)
        transaction.put(second, of_first)
    environment.close()


def test_damaged_records_are_told_by_all_that_reads(tmp_path: Path) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        store = StateStore(tmp_path, loop)
        await store.write([Put("spans", key, key * 3) for key in (b"a1", b"a2", b"b1")])
        store.close()
        stamped = check_store(tmp_path, TABLES)
        assert stamped == ([], [])
        exchange_values(tmp_path, b"spans", b"a2", b"b1")
        # What wrote that left no stamp: the head is one ahead of the tables.
        assert "head" in check_store(tmp_path, TABLES).flaws[0].what

    asyncio.run(scenario())


def test_reading_a_damaged_record(tmp_path: Path) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        store = StateStore(tmp_path, loop)
        await store.write([Put("spans", key, key * 3) for key in (b"a1", b"a2", b"b1")])
        await store.write([Delete("spans", b"none")])
        store.close()
        content = bytearray((tmp_path / FILE).read_bytes())
        # The newest page with the records is the one that LMDB reads; older ones may be there, too.
        at = content.rindex(b"a2a2a2")
        content[at] ^= 1
        (tmp_path / FILE).write_bytes(content)
        store = StateStore(tmp_path, loop)
        assert [(record.table, record.key) for record in store.damaged] == [(b"spans", b"a2")]
        assert store.get("spans", b"a1") == b"a1a1a1"
        for read in (
            lambda: store.get("spans", b"a2"),
            lambda: list(store.scan("spans", b"a")),
            lambda: store.floor("spans", b"a", b"a3"),
            lambda: store.ensure_sound(b"a"),
        ):
            with pytest.raises(DamagedState, match=f"{tmp_path / FILE} is damaged: in table spans.*6132"):
                read()
        store.ensure_sound(b"b")
        store.close()

    asyncio.run(scenario())


def test_a_store_with_bad_pages_is_not_opened(tmp_path: Path) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        StateStore(tmp_path, loop).close()
        content = bytearray((tmp_path / FILE).read_bytes())
        content[16] ^= 1
        (tmp_path / FILE).write_bytes(content)
        with pytest.raises(StateStoreFailure, match=r"data\.mdb is damaged at byte 0.*restore"):
            StateStore(tmp_path, loop)

    asyncio.run(scenario())


def test_a_directory_of_an_older_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "format.json").write_text(json.dumps({"format": 0, "cluster": "x"}))
    with pytest.raises(DataDirectoryError, match="has format 0, and this faircopy reads formats from 1 on"):
        DataDirectory(tmp_path)


def test_the_name_of_a_new_store_is_durable(tmp_path: Path) -> None:
    """LMDB fsyncs its file only; the file's name would go with the power, and with it all topics."""

    class Noting(System):
        synced: ClassVar[list[Path]] = []

        def sync_directory(self, path: Path) -> None:
            assert (path / FILE).exists()
            self.synced.append(path)

    async def scenario() -> None:
        with mount(Noting()):
            StateStore(tmp_path, asyncio.get_running_loop()).close()

    asyncio.run(scenario())
    assert Noting.synced == [tmp_path]
