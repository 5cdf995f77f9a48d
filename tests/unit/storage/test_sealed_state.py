"""Records of the state store have checksums, and each write leaves its number."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import ClassVar

import lmdb
import pytest

from faircopy.storage.data_directory import DataDirectory, DataDirectoryError
from faircopy.storage.sealed import CRC_BYTES, DamagedState, is_sound, seal
from faircopy.storage.state_store import TABLES, Delete, Put, StateStore
from faircopy.storage.store_check import FILE, HEAD_NUMBER_AT, HEADS, MAP_BYTES, NUMBER, STAMP
from faircopy.storage.system import System, mount
from faircopy.verify.state import check_store
from faircopy.verify.state_page import BRANCH, HEADER_BYTES, LEAF, OVERFLOW, read_head, read_nodes
from faircopy.verify.state_pages import StorePages

PAGE_BYTES = 4096
FLAGS_AT = 10


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
        stamped = check_store(tmp_path)
        assert stamped == ([], [])
        exchange_values(tmp_path, b"spans", b"a2", b"b1")
        # What wrote that left no stamp: the head is one ahead of the tables.
        assert "head" in check_store(tmp_path).flaws[0].what
        with pytest.raises(
            DamagedState, match=f"{tmp_path / FILE} is damaged: .* its head is of tran.*verify"
        ):
            StateStore(tmp_path, loop)

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
        assert store.damaged == [("spans", b"a2")]
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


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """The file of a store with a table of several pages."""

    async def scenario() -> None:
        store = StateStore(tmp_path, asyncio.get_running_loop())
        for number in range(5):
            await store.write([Put("spans", b"%d %03d" % (number, row), bytes(40)) for row in range(100)])
        store.close()

    asyncio.run(scenario())
    return tmp_path / FILE


def refusal(path: Path) -> str:
    """What a start says of a file."""

    async def scenario() -> str:
        with pytest.raises(DamagedState) as raised:
            StateStore(path.parent, asyncio.get_running_loop())
        return str(raised.value)

    return asyncio.run(scenario())


def overwrite(path: Path, byte: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(byte)
        file.write(data)


def test_what_lmdb_refuses(stored: Path) -> None:
    overwrite(stored, HEADER_BYTES, b"x")
    message = refusal(stored)
    assert message.startswith(f"{stored} is damaged: opening it: ") and "MDB_INVALID" in message
    assert message.endswith(
        "See all that is damaged with faircopy verify, and restore the data directory from a backup"
    )


@pytest.mark.parametrize("head", range(HEADS))
def test_an_older_state_is_not_taken_for_the_newest(stored: Path, head: int) -> None:
    """But for one bit: the newest head seems to come right before the other, whose own stamp is sound. Only
    `faircopy verify` sees that.
    """
    at = head * PAGE_BYTES + HEAD_NUMBER_AT
    (number,) = NUMBER.unpack_from(stored.read_bytes(), at)
    assert number == 6 - head
    for changed in (number ^ 1 << bit for bit in range(64)):
        overwrite(stored, at, NUMBER.pack(changed))
        assert check_store(stored.parent).flaws
        if (number, changed) == (6, 4):
            asyncio.run(open_and_close(stored.parent))
        else:
            assert re.search("its two heads are of|its head is of transaction", refusal(stored))


async def open_and_close(path: Path) -> None:
    StateStore(path, asyncio.get_running_loop()).close()


def test_a_table_without_all_of_its_records(stored: Path) -> None:
    pages = StorePages(stored, STAMP, MAP_BYTES)
    assert list(pages.records()) and not pages.flaws
    _, root_at = pages.tables[b"spans"]
    overwrite(stored, root_at - NUMBER.size, NUMBER.pack(501))
    assert "table spans should have 501 records, and has 500" in refusal(stored)


def test_a_page_that_stands_for_two(stored: Path) -> None:
    pages = StorePages(stored, STAMP, MAP_BYTES)
    assert list(pages.records())
    root = pages.tables[b"spans"][0].root * PAGE_BYTES
    first, second = read_nodes(stored.read_bytes()[root : root + PAGE_BYTES], BRANCH)[1:3]
    overwrite(stored, root + first.byte, second.link.to_bytes(4, "little"))
    assert "the keys of table spans are out of order" in refusal(stored)


def test_a_table_that_is_gone(stored: Path) -> None:
    content = stored.read_bytes()
    pages = StorePages(stored, STAMP, MAP_BYTES)
    assert list(pages.records())
    _, root_at = pages.tables[b"spans"]
    at = content.rindex(b"spans", 0, root_at)
    overwrite(stored, at, b"spanz")
    assert "MDB_NOTFOUND" in refusal(stored)


def test_a_start_does_not_look_at_free_pages(stored: Path) -> None:
    """A page that is in use is listed as free: LMDB would write over it. `faircopy verify` finds it."""
    content = stored.read_bytes()
    pages = StorePages(stored, STAMP, MAP_BYTES)
    assert list(pages.records())
    free = read_head(content[:PAGE_BYTES], 0, MAP_BYTES).free.root * PAGE_BYTES
    listed = read_nodes(content[free : free + PAGE_BYTES], LEAF)[-1]
    count = NUMBER.unpack_from(listed.value)[0]
    used = pages.tables[b"spans"][0].root
    overwrite(stored, free + listed.value_at + NUMBER.size * count, NUMBER.pack(used))
    asyncio.run(open_and_close(stored.parent))
    assert f"page {used} is listed as free, and can't be" in {
        flaw.what for flaw in check_store(stored.parent).flaws
    }


def test_what_lmdb_finds_while_it_reads(stored: Path) -> None:
    async def scenario() -> None:
        store = StateStore(stored.parent, asyncio.get_running_loop())
        pages = StorePages(stored, STAMP, MAP_BYTES)
        assert list(pages.records())
        # It rots under the broker's hands. The map shows what is in the file.
        overwrite(stored, pages.tables[b"spans"][0].root * PAGE_BYTES + FLAGS_AT, bytes([OVERFLOW]))
        for read in (
            lambda: store.get("spans", b"0 000"),
            lambda: list(store.scan("spans", b"")),
            lambda: store.floor("spans", b"", b"9"),
        ):
            with pytest.raises(DamagedState, match=r"data\.mdb is damaged: reading table spans: .*verify"):
                read()
        store.close()

    asyncio.run(scenario())


def test_a_directory_of_an_older_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "format.json").write_text(json.dumps({"format": 0, "cluster": "x"}))
    with pytest.raises(DataDirectoryError, match=r"has format 0, .* reads formats from 2 on"):
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
