"""`faircopy verify` finds every flip in the state store's file, or LMDB shows in a child process that it does
not matter. A start finds most of them.

Most bytes of the file mean nothing: pages that are free, the space between pointers and nodes, the previous
head. No list of those is kept here: whatever the check lets pass, LMDB must read as before, and write on it
as on the original.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import lmdb
import pytest

from faircopy.errors import FaircopyError
from faircopy.storage.state_store import TABLES, Change, DeletePrefix, Put, StateStore
from faircopy.storage.store_check import FILE, MAP_BYTES, STAMP
from faircopy.verify.state import check_store
from faircopy.verify.state_pages import Flaw, StoredRecord, StorePages
from tests.rot.flips import Flip, flip_for_good, flipped, flips_of
from tests.rot.made import Made

PAGE_BYTES = 4096
PAGE_HEADER_BYTES = 16
HEAD_BYTES = 152
FREE_ROOT_AT = 80
TABLES_ROOT_AT = 128
DEPTH_AT = 6  # in what a table's record says of its tree
TRANSACTION_AT = 144
BRANCH = b"\x01\x00"
SAMPLES = 1_200
SAMPLED_TRIALS = 200
WRITES = 8

Contents = dict[str, list[tuple[bytes, bytes]]]


@pytest.fixture
def made_by_broker(stopped: Made, tmp_path: Path) -> Path:
    """A copy of a broker's state store."""
    copied = tmp_path / "state"
    copied.mkdir()
    shutil.copy(stopped.data / "state.lmdb" / FILE, copied / FILE)
    return copied


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    """A state store with branches, values on pages of their own, and lists of free pages."""
    path = tmp_path / "state"
    path.mkdir()
    asyncio.run(grow(path))
    return path


async def grow(path: Path) -> None:
    store = StateStore(path, asyncio.get_running_loop())
    chance = random.Random(5)
    for _ in range(12):
        changes: list[Change] = [
            Put(chance.choice(TABLES[:3]), chance.randbytes(chance.choice((9, 28))), chance.randbytes(size))
            for size in chance.choices((8, 60, 400, 5_000), (20, 20, 10, 1), k=40)
        ]
        changes += [
            DeletePrefix(chance.choice(TABLES[:3]), bytes([chance.randrange(256)])) for _ in range(25)
        ]
        await store.write(changes)
    store.close()


@pytest.fixture(params=["made_by_broker", "grown"])
def state(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


def root_page(data: bytes, head: int, root_at: int) -> int:
    """The byte where the page begins that a head names at `root_at`."""
    return PAGE_BYTES * int.from_bytes(data[head + root_at : head + root_at + 8], "little")


def newest_head(data: bytes) -> int:
    return max((0, PAGE_BYTES), key=lambda head: data[head + TRANSACTION_AT : head + HEAD_BYTES][::-1])


def depths(data: bytes) -> list[int]:
    """The bytes where it is told how deep the tables' trees are."""
    page = root_page(data, newest_head(data), TABLES_ROOT_AT)
    found = (data.index(name.encode() + bytes(4), page, page + PAGE_BYTES) + len(name) for name in TABLES)
    return [at + DEPTH_AT for at in found]


def free_list(data: bytes) -> range:
    """The bytes where LMDB lists the pages that it may write to."""
    page = root_page(data, newest_head(data), FREE_ROOT_AT)
    return range(page + int.from_bytes(data[page + 14 : page + 16], "little"), page + PAGE_BYTES)


def pointed_flips(data: bytes, chance: random.Random) -> list[Flip]:
    """Flips of what holds the file together: heads, headers of pages, branches, the list of free pages."""
    pages = range(len(data) // PAGE_BYTES)
    branches = [page for page in pages if data[page * PAGE_BYTES + 10 : page * PAGE_BYTES + 12] == BRANCH]
    every = [head + byte for head in (0, PAGE_BYTES) for byte in range(HEAD_BYTES)]
    every += [page * PAGE_BYTES + byte for page in pages for byte in range(PAGE_HEADER_BYTES)]
    every += [*free_list(data), *depths(data)]
    inside = [page * PAGE_BYTES + byte for page in branches for byte in range(PAGE_BYTES)]
    every += chance.sample(inside, min(400, len(inside)))
    counts = [Flip(head + TRANSACTION_AT, 1 << bit) for head in (0, PAGE_BYTES) for bit in range(8)]
    return counts + [Flip(byte, 1 << chance.randrange(8)) for byte in every]


def test_flips_in_the_state_store(state: Path, tmp_path: Path, chance: random.Random) -> None:
    path = state / FILE
    before = path.read_bytes()
    assert check_store(state) == ([], [])
    pointed = passed(path, before, pointed_flips(before, chance))
    others = passed(path, before, flips_of(chance, (), range(len(before)), SAMPLES))
    expected = in_child(lambda: used(state, tmp_path / "sound", None))
    assert expected.startswith("({"), expected
    chosen = chance.sample(pointed, SAMPLED_TRIALS * 3 // 4) + chance.sample(others, SAMPLED_TRIALS // 4)
    vital = [each for each in pointed if is_count(each) or each.byte in free_list(before)]
    for flip in vital + chosen:
        found = in_child(partial(used, state, tmp_path / "changed", flip))
        assert found == expected, (path, flip, found[:200])


def test_what_a_start_finds(state: Path, tmp_path: Path, chance: random.Random) -> None:
    """It refuses, names the damaged records, or is ended by LMDB; or it has all records as they were stored.

    Only if a link leads elsewhere, it may take an older copy of a page for the page.
    """
    path = state / FILE
    before = path.read_bytes()
    expected = in_child(lambda: started(state, tmp_path / "sound", None))
    assert expected.startswith("([], {"), expected
    everywhere = pointed_flips(before, chance) + flips_of(chance, (), range(len(before)), SAMPLES)
    flips = chance.sample(everywhere, min(2 * SAMPLED_TRIALS, len(everywhere)))
    outcomes = Counter[str]()
    for flip in flips + flips_in_records(path, chance):
        with flipped(path, flip):
            check = check_store(path.parent)
        if check != ([], []):
            found = in_child(partial(started, state, tmp_path / "changed", flip))
            outcome = outcome_of(found, expected)
            outcomes[outcome] += 1
            assert outcome == "named" or check.flaws, (path, flip, found[:200])
            assert outcome != "differs" or has_links(before, flip), (path, flip, found[:200])
    assert outcomes["refused"] and outcomes["named"] and outcomes["as before"], outcomes


def flips_in_records(path: Path, chance: random.Random) -> list[Flip]:
    """Flips in the values of some records."""
    records = [each for each in StorePages(path, STAMP, MAP_BYTES).records() if each.table]
    return [
        Flip(each.byte + chance.randrange(len(each.value)), 1 << chance.randrange(8))
        for each in chance.sample(records, 30)
    ]


def outcome_of(found: str, expected: str) -> str:
    """What a start does, as a word."""
    if found.startswith("the process ended"):
        return "ended"
    if found.startswith("refused"):
        return "refused"
    if not found.startswith("([], {"):
        return "named"
    return "as before" if found == expected else "differs"


def has_links(before: bytes, flip: Flip) -> bool:
    """Whether the page leads to others: a head, the page of the tables, a branch."""
    page = flip.byte // PAGE_BYTES * PAGE_BYTES
    of_tables = root_page(before, newest_head(before), TABLES_ROOT_AT)
    return page <= PAGE_BYTES or page == of_tables or before[page + 10 : page + 12] == BRANCH


def is_count(flip: Flip) -> bool:
    """Whether the number of the last transaction changes."""
    return TRANSACTION_AT <= flip.byte % PAGE_BYTES < HEAD_BYTES and flip.byte < 2 * PAGE_BYTES


def passed(path: Path, before: bytes, flips: list[Flip]) -> list[Flip]:
    """The flips that the check lets pass; what it finds, it finds where the change is."""
    let_pass = []
    for flip in flips:
        with flipped(path, flip):
            check = check_store(path.parent)
        found: list[Flaw | StoredRecord] = [*check.flaws, *check.damaged]
        if not found:
            let_pass.append(flip)
        else:
            assert any(is_near(before, flip, each) for each in found), (path, flip, check)
    return let_pass


def is_near(before: bytes, flip: Flip, found: Flaw | StoredRecord) -> bool:
    """Whether what is found is in the page that changed, or in one that it links to, or linked to before.

    A value may have more than one page. Where two places claim the same page, either may be the one that
    changed. Where it is told how deep a tree is, a change is found where the tree ends.
    """
    if isinstance(found, StoredRecord) and found.byte <= flip.byte < found.byte + len(found.value):
        return True
    changed, named = flip.byte // PAGE_BYTES, (found.byte // PAGE_BYTES).to_bytes(6, "little")
    page = bytearray(before[changed * PAGE_BYTES : (changed + 1) * PAGE_BYTES])
    linked = named in page
    page[flip.byte % PAGE_BYTES] ^= flip.bits
    is_contradiction = isinstance(found, Flaw) and bool(
        re.search("listed as free|second link|others stand", found.what)
    )
    tells_depths = changed * PAGE_BYTES in {
        root_page(before, head, TABLES_ROOT_AT) for head in (0, PAGE_BYTES)
    }
    is_depth = tells_depths and isinstance(found, Flaw) and "it is of kind" in found.what
    return linked or named in page or changed == found.byte // PAGE_BYTES or is_contradiction or is_depth


def used(state: Path, copied: Path, flip: Flip | None) -> str:
    """What LMDB reads from a copy with this change, and what becomes of it when it is written to."""
    copy_with(state, copied, flip)
    environment = lmdb.open(str(copied), map_size=MAP_BYTES, max_dbs=len(TABLES), sync=False)
    before = contents(environment)
    write_much(environment, before)
    return repr((before, contents(environment)))


def copy_with(state: Path, copied: Path, flip: Flip | None) -> None:
    """Make a copy with this change."""
    shutil.rmtree(copied, ignore_errors=True)
    shutil.copytree(state, copied)
    if flip is not None:
        flip_for_good(copied / FILE, flip)


def started(state: Path, copied: Path, flip: Flip | None) -> str:
    """What a start has found in a copy with this change: the damaged records, and all others."""
    copy_with(state, copied, flip)
    try:
        return asyncio.run(read_all(copied))
    except FaircopyError as error:
        return f"refused: {error}"


async def read_all(path: Path) -> str:
    store = StateStore(path, asyncio.get_running_loop())
    damaged = set(store.damaged)
    found = {name: [] if damaged else list(store.scan(name, b"")) for name in TABLES}
    return repr((sorted(damaged), found))


def contents(environment: lmdb.Environment) -> Contents:
    """All that is in the tables, each record also asked for by its key."""
    found = {}
    for name in TABLES:
        table = environment.open_db(name.encode(), create=False)
        with environment.begin(db=table) as transaction:
            found[name] = list(transaction.cursor())
            assert all(transaction.get(key) == value for key, value in found[name])
    return found


def write_much(environment: lmdb.Environment, before: Contents) -> None:
    """Transactions that change, add and delete, always the same ones."""
    chance = random.Random(7)
    for _ in range(WRITES):
        with environment.begin(write=True) as transaction:
            for name in TABLES:
                table = environment.open_db(name.encode(), txn=transaction, create=False)
                for key, value in before[name][:: chance.randrange(1, 4)]:
                    transaction.put(key, value[::-1] * chance.randrange(1, 4), db=table)
                for _ in range(5):
                    transaction.put(
                        chance.randbytes(20), chance.randbytes(chance.choice((9, 3_000))), db=table
                    )
                for key, _ in before[name][:: chance.randrange(2, 5)]:
                    transaction.delete(key, db=table)


def in_child(work: Callable[[], str]) -> str:
    """What `work` returns in a process of its own, or how that ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            faulthandler.disable()  # that LMDB ends the process is an outcome like others
            os.close(reader)
            with os.fdopen(writer, "w") as told:
                told.write(work())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as told:
        text = told.read()
    _, status = os.waitpid(child, 0)
    return text if not status else f"the process ended with status {status}"


@pytest.mark.parametrize("keep", [0, 100, 8_192, 20_000])
def test_a_state_store_that_is_cut(made_by_broker: Path, keep: int) -> None:
    path = made_by_broker / FILE
    path.write_bytes(path.read_bytes()[:keep])
    check = check_store(made_by_broker)
    # An empty one is as good as none: the broker finds that it is not as new as its directory.
    assert bool(check.flaws) == bool(keep)
