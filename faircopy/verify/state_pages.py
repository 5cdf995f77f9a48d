"""A walk through the file of the state store, without LMDB: it checks every page that is used or listed as
free.

LMDB trusts its file: a changed byte can make it crash the process, miss existing data, or overwrite pages
that are in use. Each page is either used exactly once or free, so a wrong link always leads to a page that
something else uses, or that is free.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from faircopy.storage.file import File
from faircopy.verify.state_page import (
    BRANCH,
    HEADER_BYTES,
    HEADS,
    IS_TREE,
    LEAF,
    NO_PAGE,
    NUMBER,
    ON_OVERFLOW,
    OVERFLOW,
    PAGE,
    RUN,
    TREE,
    TREES_AT,
    BadPage,
    Head,
    Node,
    Tree,
    check_number,
    page_bytes_of,
    read_head,
    read_nodes,
)

BIG_ENDIAN = struct.Struct(">Q")
ROOT_AT = TREE.size - NUMBER.size


class Flaw(NamedTuple):
    """A fault in the file, and its byte."""

    byte: int
    what: str


class StoredRecord(NamedTuple):
    """A key and its stored value in a table, or beside the tables if `table` is b""; and its byte."""

    table: bytes
    key: bytes
    value: bytes
    byte: int


class BadLink(BadPage):
    """A link leads to a page that it must not lead to."""


class StorePages:
    """One walk. Exhaust `records`; then `flaws` has all faults that were found, and `tables` all tables: the
    tree of each, and the byte that names its root.
    """

    def __init__(
        self, path: Path, stamp: bytes, map_bytes: int, advance: Callable[[int], None] = lambda _bytes: None
    ) -> None:
        """`stamp` is the key beside the tables whose value ends with the number of the last transaction.

        `advance(bytes)` reports progress. Raises StorageFailure, here and in `records`.
        """
        self.flaws: list[Flaw] = []
        self.tables: dict[bytes, tuple[Tree, int]] = {}
        self._file = File(path, read_only=True)
        self._stamp = stamp
        self._map_bytes = map_bytes
        self._advance = advance
        self._page_bytes = 0
        self._taken = bytearray()

    def records(self) -> Iterator[StoredRecord]:
        """All records, those beside the tables first."""
        try:
            older, newest = self._heads()
        except BadPage as bad:
            self.flaws.append(Flaw(bad.byte, f"the state store's head is damaged: {bad}"))
            return
        self._taken = bytearray(newest.last_page + 1)
        self._taken[:HEADS] = b"\1" * HEADS
        free = list(FreePages(self, newest.free, self.root_at(newest, is_free=True)).records())
        beside = list(self._find_tables(newest))
        self._check_stamp(newest, beside)
        yield from beside
        for name, (tree, root_at) in sorted(self.tables.items()):
            yield from TreeWalk(self, name, tree, root_at).records()
        for record in free:
            self._check_free(record, newest)
        self._check_older(older)

    # -- heads -----------------------------------------------------------------------------------------------

    def _heads(self) -> tuple[Head, Head]:
        """The older and the newer head."""
        self._page_bytes = page_bytes_of(self._file.read(4096, 0))
        older, newest = sorted(
            (self._head(number) for number in range(HEADS)), key=lambda head: head.transaction
        )
        is_new = newest.transaction == 0
        follows = newest.transaction == older.transaction + 1 and newest.transaction % HEADS == newest.number
        if not (is_new or follows):
            raise BadPage(
                newest.number * self._page_bytes,
                f"the two are of transactions {older.transaction} and {newest.transaction}",
            )
        return older, newest

    def _head(self, number: int) -> Head:
        at = number * self._page_bytes
        self._advance(self._page_bytes)
        try:
            return read_head(self._file.read(self._page_bytes, at), number, self._map_bytes)
        except BadPage as bad:
            raise BadPage(at + bad.byte, str(bad)) from None

    def _check_stamp(self, head: Head, beside: list[StoredRecord]) -> None:
        """Check the stamp: a head with too low a number would make the older state the valid one."""
        stamps = [
            NUMBER.unpack(record.value[-NUMBER.size :])[0] for record in beside if record.key == self._stamp
        ]
        if head.transaction and stamps != [head.transaction]:
            self.flaws.append(
                Flaw(
                    head.number * self._page_bytes,
                    f"the state store's head is damaged: it names transaction {head.transaction}, and its "
                    f"tables were written by {', '.join(map(str, stamps)) or 'none'}",
                )
            )

    def _check_older(self, older: Head) -> None:
        """Check the state before the newest, which must still be there: otherwise its head may be newer."""
        if older.transaction:
            beside = list(self._find_tables(older, is_current=False))
            self._check_stamp(older, beside)

    # -- tables and free pages -------------------------------------------------------------------------------

    def _find_tables(self, head: Head, *, is_current: bool = True) -> Iterator[StoredRecord]:
        """Note the tables, and yield the other records beside them."""
        root_at = self.root_at(head, is_free=False)
        for node, record in TreeWalk(self, b"", head.tables, root_at, is_current=is_current).nodes():
            is_tree = node.flags == IS_TREE and len(record.value) == TREE.size
            if node.key == self._stamp and not node.flags:
                yield record
            elif not is_tree or (tree := Tree(*TREE.unpack(record.value))).flags or tree.pad:
                self.flaws.append(Flaw(record.byte, f"there is no such table as {node.key!r}"))
            elif is_current:
                self.tables[node.key] = (tree, record.byte + ROOT_AT)

    def _check_free(self, record: StoredRecord, head: Head) -> None:
        """Check a list of free pages: their count, then their numbers in descending order. A list that was
        reserved but not needed has only zeros.
        """
        numbers = [number for (number,) in NUMBER.iter_unpack(record.value[: len(record.value) & ~7])]
        is_new = BIG_ENDIAN.unpack(record.key)[0] > head.transaction
        if is_new or not numbers or (numbers[0] != len(numbers) - 1 and any(numbers)):
            self.flaws.append(
                Flaw(record.byte, "a list of free pages is longer, shorter, or newer than can be")
            )
            return
        listed = numbers[1:] if numbers[0] else []
        if sorted(listed, reverse=True) != listed:
            self.flaws.append(Flaw(record.byte, "a list of free pages is out of order"))
        for number in listed:
            if number < len(self._taken) and not self._taken[number]:
                self._taken[number] = 1
            else:
                self.flaws.append(Flaw(record.byte, f"page {number} is listed as free, and can't be"))

    # -- pages -----------------------------------------------------------------------------------------------

    def page(self, number: int, *, is_current: bool = True) -> bytes:
        """A page that no other link has led to. Raises BadLink, BadPage."""
        if number >= len(self._taken):
            raise BadLink(0, f"a link leads to page {number}, beyond the last one")
        if is_current and self._taken[number]:
            raise BadLink(0, f"a second link leads to page {number}")
        self._taken[number] |= is_current
        page = self._file.read(self._page_bytes, number * self._page_bytes)
        self._advance(len(page))
        if len(page) < self._page_bytes:
            raise BadPage(0, "the file ends before it")
        check_number(page, number)
        return page

    def value_of_run(self, number: int, size: int) -> tuple[bytes, int]:
        """The value of `size` bytes from overflow page `number` on, and its page count. Raises BadPage."""
        page = self.page(number)
        pages: int = RUN.unpack_from(page, 12)[0]
        # A value that was written over a larger one keeps the pages of the larger one.
        if PAGE.unpack_from(page)[2] != OVERFLOW or pages * self._page_bytes < HEADER_BYTES + size:
            raise BadPage(10, f"it does not begin a run of pages for {size} bytes")
        if number + pages > len(self._taken) or any(self._taken[number + 1 : number + pages]):
            raise BadPage(12, f"others stand in its run of {pages} pages")
        self._taken[number + 1 : number + pages] = b"\1" * (pages - 1)
        self._advance((pages - 1) * self._page_bytes)
        return self._file.read(size, self.byte_of(number, HEADER_BYTES)), pages

    def root_at(self, head: Head, *, is_free: bool) -> int:
        """The byte at which a head names the root of one of its trees."""
        return self.byte_of(head.number, TREES_AT + (0 if is_free else TREE.size) + ROOT_AT)

    def byte_of(self, number: int, byte: int) -> int:
        """The byte of the file for a byte of a page."""
        return number * self._page_bytes + byte

    def note(self, number: int, link_at: int, bad: BadPage) -> None:
        """Page `number`, or the link to it at byte `link_at`, is damaged."""
        is_link = isinstance(bad, BadLink)
        number, at = (
            (link_at // self._page_bytes, link_at) if is_link else (number, self.byte_of(number, bad.byte))
        )
        self.flaws.append(
            Flaw(min(at, self._file.size()), f"page {number} of the state store is damaged: {bad}")
        )


class TreeWalk:
    """A walk through one tree, left to right. Faults go to the flaws; the pages below them are skipped."""

    def __init__(
        self, pages: StorePages, table: bytes, tree: Tree, root_at: int, *, is_current: bool = True
    ) -> None:
        """`root_at` is the byte of the file that names the tree's root."""
        self._pages = pages
        self._root_at = root_at
        self._table = table
        self._tree = tree
        self._is_current = is_current
        self._branches = self._leaves = self._overflows = self._entries = 0

    def records(self) -> Iterator[StoredRecord]:
        """The records in the order of their keys."""
        for node, record in self.nodes():
            if node.flags & ~ON_OVERFLOW:
                self._pages.flaws.append(Flaw(record.byte, f"a record of {self._table!r} is of another kind"))
            else:
                yield record

    def nodes(self) -> Iterator[tuple[Node, StoredRecord]]:
        """The records with their nodes."""
        flaws, is_empty = len(self._pages.flaws), self._tree.root == NO_PAGE
        if not is_empty:
            yield from self._below(self._tree.root, self._root_at, self._tree.depth, b"", None)
        told = (*self._tree[3:7], not self._tree.depth)
        found = (self._branches, self._leaves, self._overflows, self._entries, is_empty)
        if told != found and len(self._pages.flaws) == flaws:
            bad = BadLink(
                0, f"{self._table!r} has {found} branches, leaves, runs and entries, and should have {told}"
            )
            self._pages.note(self._tree.root, self._root_at, bad)

    def order(self, node: Node) -> Node:
        """The node with a key that compares as LMDB compares it."""
        return node

    def _below(
        self, number: int, link_at: int, depth: int, low: bytes, high: bytes | None
    ) -> Iterator[tuple[Node, StoredRecord]]:
        """The nodes below a page, whose keys are at least `low` and less than `high`."""
        try:
            page = self._pages.page(number, is_current=self._is_current)
            nodes = read_nodes(page, BRANCH if depth > 1 else LEAF)
            # The key of a branch's first node is not used, and may be anything.
            unused, used = (nodes[:1], nodes[1:]) if depth > 1 else ([], nodes)
            nodes = unused + [self.order(node) for node in used]
            self._check_order(nodes[len(unused) :], low, high)
        except BadPage as bad:
            self._pages.note(number, link_at, bad)
            return
        if depth > 1:
            self._branches += 1
            bounds = [low, *(node.key for node in nodes[1:]), high]
            for node, first, end in zip(nodes, bounds, bounds[1:], strict=False):
                assert first is not None
                yield from self._below(
                    node.link, self._pages.byte_of(number, node.byte), depth - 1, first, end
                )
            return
        self._leaves += 1
        for node in nodes:
            self._entries += 1
            if (record := self._record(number, node)) is not None:
                yield node, record

    def _check_order(self, nodes: list[Node], low: bytes, high: bytes | None) -> None:
        for number, node in enumerate(nodes):
            if node.key < low or (number and node.key == low) or (high is not None and node.key >= high):
                raise BadPage(node.byte, "a key is in the wrong place")
            low = node.key

    def _record(self, number: int, node: Node) -> StoredRecord | None:
        if not node.flags & ON_OVERFLOW:
            return StoredRecord(self._table, node.key, node.value, self._pages.byte_of(number, node.value_at))
        (run,) = NUMBER.unpack(node.value)
        try:
            value, pages = self._pages.value_of_run(run, node.link)
        except BadPage as bad:
            self._pages.note(run, self._pages.byte_of(number, node.byte), bad)
            return None
        self._overflows += pages
        return StoredRecord(self._table, node.key, value, self._pages.byte_of(run, HEADER_BYTES))


class FreePages(TreeWalk):
    """The tree of free pages, whose keys are numbers of transactions; its records have them big-endian."""

    def __init__(self, pages: StorePages, tree: Tree, root_at: int) -> None:
        super().__init__(pages, b"free pages", tree, root_at)

    def order(self, node: Node) -> Node:
        if len(node.key) != NUMBER.size:
            raise BadPage(node.byte, "a key is not the number of a transaction")
        return node._replace(key=node.key[::-1])
