"""A parser for pages of the state store's file, as LMDB 0.9 lays them out on 64 bits (format 1). No I/O.

Little-endian. A page:

     0  page number  u64
     8  pad          u16
    10  flags        u16  1 branch, 2 leaf, 4 overflow, 8 head
    12  lower        u16  end of the pointers; of an overflow page u32, the number of pages in its run
    14  upper        u16  start of the nodes, which reach to the page's end without a gap
    16  pointers     u16  to each node, in the order of their keys

A node begins at an even byte: size of its value u32, or in a branch the child's page number in 48 bits; flags
u16 (1 the value is on overflow pages, 2 it is a tree); size of its key u16; key; value. The key of a branch's
first node has no meaning.

The first two pages are heads. Transaction n writes the one on page n % 2. From byte 16: magic u32, version
u32, address u64, size of the map u64, two trees (of free pages, of tables), last page u64, number of the
transaction u64. A tree: pad u32 (in the first: the size of a page), flags u16, depth u16, numbers of branch,
leaf and overflow pages and of entries u64 each, root page u64.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

PAGE = struct.Struct("<QHHHH")
HEADER_BYTES = PAGE.size
NODE = struct.Struct("<HHHH")
NODE_BYTES = NODE.size
RUN = struct.Struct("<I")
NUMBER = struct.Struct("<Q")
TREE = struct.Struct("<IHHQQQQQ")
HEAD_BEGIN = struct.Struct("<IIQQ")
HEAD_END = struct.Struct("<QQ")
TREES_AT = HEADER_BYTES + HEAD_BEGIN.size
HEAD_BYTES = TREES_AT + 2 * TREE.size + HEAD_END.size
assert (HEADER_BYTES, NODE_BYTES, TREE.size, HEAD_BYTES) == (16, 8, 48, 152)

MAGIC, VERSION = 0xBEEFC0DE, 1
BRANCH, LEAF, OVERFLOW, HEAD = 1, 2, 4, 8
ON_OVERFLOW, IS_TREE = 1, 2
INTEGER_KEYS = 8
NO_PAGE = (1 << 64) - 1
HEADS = 2
PAGE_SIZES = tuple(1 << power for power in range(8, 16))


class BadPage(Exception):
    """A page is invalid at `byte`."""

    def __init__(self, byte: int, what: str) -> None:
        super().__init__(what)
        self.byte = byte


class Tree(NamedTuple):
    """The root of a B+tree, and what its head says about it."""

    pad: int
    flags: int
    depth: int
    branch_pages: int
    leaf_pages: int
    overflow_pages: int
    entries: int
    root: int


class Head(NamedTuple):
    """One of the first two pages."""

    number: int
    map_bytes: int
    free: Tree
    tables: Tree
    last_page: int
    transaction: int


class Node(NamedTuple):
    """A node of a leaf or a branch: `link` is the size of its value, or the child's page; `byte` and
    `value_at` are bytes of the page. If the value is on overflow pages, `value` is the number of the first
    one.
    """

    byte: int
    flags: int
    key: bytes
    link: int
    value: bytes
    value_at: int


def page_bytes_of(head: bytes) -> int:
    """The size of pages, from the first bytes of the file. Raises BadPage."""
    if len(head) < HEAD_BYTES:
        raise BadPage(len(head), "the file ends within its head")
    size: int = RUN.unpack_from(head, TREES_AT)[0]
    if size not in PAGE_SIZES:
        raise BadPage(TREES_AT, f"pages can't have {size} bytes")
    return size


def read_head(page: bytes, number: int, map_bytes_at_most: int) -> Head:
    """The head that is page `number`. Raises BadPage."""
    if len(page) < HEAD_BYTES:
        raise BadPage(len(page), "the file ends within its head")
    there, _, flags, _, _ = PAGE.unpack_from(page)
    magic, version, _, map_bytes = HEAD_BEGIN.unpack_from(page, HEADER_BYTES)
    free = Tree(*TREE.unpack_from(page, TREES_AT))
    tables = Tree(*TREE.unpack_from(page, TREES_AT + TREE.size))
    last_page, transaction = HEAD_END.unpack_from(page, TREES_AT + 2 * TREE.size)
    if (there, flags, magic, version) != (number, HEAD, MAGIC, VERSION):
        raise BadPage(0, "it does not start like a head")
    if (free.pad, free.flags, tables.pad, tables.flags) != (len(page), INTEGER_KEYS, 0, 0):
        raise BadPage(TREES_AT, "it has trees of other kinds")
    if not 0 < map_bytes <= map_bytes_at_most:
        raise BadPage(HEADER_BYTES + 16, f"a map can't have {map_bytes} bytes")
    if not HEADS - 1 <= last_page < map_bytes_at_most // len(page):
        raise BadPage(TREES_AT + 2 * TREE.size, f"the last page can't be {last_page}")
    return Head(number, map_bytes, free, tables, last_page, transaction)


def check_number(page: bytes, number: int) -> None:
    """Raise BadPage unless the page has this number."""
    there = PAGE.unpack_from(page)[0]
    if there != number:
        raise BadPage(0, f"it has the number {there}")


def read_nodes(page: bytes, kind: int) -> list[Node]:
    """The nodes of a leaf or branch, in order; they must fill the page. Raises BadPage."""
    _, _, flags, lower, upper = PAGE.unpack_from(page)
    if flags != kind:
        raise BadPage(10, f"it is of kind {flags}, not {kind}")
    if not HEADER_BYTES < lower <= upper < len(page) or (lower | upper) % 2:
        raise BadPage(12, "it has no room for its nodes")
    pointers = struct.unpack_from(f"<{(lower - HEADER_BYTES) // 2}H", page, HEADER_BYTES)
    nodes, filled = [], 0
    for pointer in pointers:
        if not upper <= pointer <= len(page) - NODE_BYTES or pointer % 2:
            raise BadPage(HEADER_BYTES, "it points to a node outside of it")
        node, size = read_node(page, pointer, kind)
        nodes.append(node)
        filled += size + size % 2
    if filled != len(page) - upper:
        raise BadPage(12, "its nodes do not fill it")
    return nodes


def read_node(page: bytes, at: int, kind: int) -> tuple[Node, int]:
    """The node at a byte, and its size. Raises BadPage."""
    low, high, flags, key_bytes = NODE.unpack_from(page, at)
    link, begin = low | high << 16, at + NODE_BYTES
    value_at = begin + key_bytes
    if kind == BRANCH:
        link, flags, end = link | flags << 32, 0, value_at
    else:
        end = value_at + (NUMBER.size if flags & ON_OVERFLOW else link)
    if end > len(page):
        raise BadPage(at, "a node reaches beyond it")
    return Node(at, flags, page[begin:value_at], link, page[value_at:end], value_at), end - at
