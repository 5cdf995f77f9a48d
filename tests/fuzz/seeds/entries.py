"""Seeds of sound journal entries, as choices."""

from __future__ import annotations

from tests.fuzz.seeds.seed import Seeds


def entry(kind: int, payload: bytes, transaction: int = 1) -> bytes:
    """An entry as the targets of sound entries choose it: its parts fit; it is durable when it says so."""
    return bytes([kind, transaction, 0x7F]) + payload


def journal_entries() -> Seeds:
    plain, draft, prepared, apply, discard, trim = range(6)
    batch = b"\1\0"
    yield "plain", entry(plain, batch) * 2 + entry(trim, b"\1\1\1")
    yield "applied", entry(draft, batch) * 2 + entry(prepared, b"\1\2\xff") + entry(apply, b"\1\1\xff")
    yield "discarded", entry(draft, batch) + entry(discard, b"\1\1\xff")
    yield "open", entry(draft, batch, 1) + entry(draft, batch, 3) + entry(draft, batch, 1)


def metadata_entries() -> Seeds:
    fence, begin, add, prepare_commit, prepare_abort, committed, aborted, forget, doubt, join = range(10)
    places = b"\1" + b"\0\0\1" + b"\0\1\1"
    plain = places + b"\0" + bytes(7)
    with_leaders = places + b"\1" + bytes(7)
    begun = entry(fence, plain) + entry(begin, plain) + entry(add, with_leaders)
    yield "commit", begun + entry(prepare_commit, plain) + entry(committed, plain)
    yield "abort", begun + entry(prepare_abort, plain) + entry(aborted, plain) + entry(forget, plain)
    yield "doubt", entry(fence, plain) + entry(doubt, plain)
    first, second = 1, 5  # transactions of two producers
    joint = places + b"\2"
    written = b""
    for transaction, name in ((first, b"\0"), (second, b"\1")):
        written += entry(join, joint + name + bytes(6) + b"\0" + b"\1\1\0\0", transaction)
        written += entry(begin, places + b"\0" + name + bytes(6), transaction)
        written += entry(add, places + b"\1" + name + bytes(6), transaction)
    decided = entry(prepare_commit, joint + bytes(7) + b"\1\5" + b"\1\1\0\0", first)
    yield "joint-commit", written + decided + entry(committed, plain, first)
    yield "joint-lost", written + decided + entry(prepare_abort, plain, first) + entry(aborted, plain, second)
    another_run = entry(join, joint + b"\4" + bytes(6) + b"\0" + b"\1\0\0\0", 2)
    left = entry(aborted, plain, first) + entry(aborted, plain, second)
    yield "joint-runs", written + another_run + left + entry(forget, joint + bytes(7) + b"\0" + b"\1\1\0\0")


def offsets_entries() -> Seeds:
    plain, draft, _, apply, discard, _ = range(6)
    row = b"\1" + b"\1" + b"\0\0\1\1" + b"\1" + b"\1" + b"\4"  # place, offset, epoch, text, group
    members = b"\1" + b"\0" + b"\1" + b"\4said" + b"\0"
    yield "plain", entry(plain, row) * 2
    yield "members", entry(plain, members) + entry(plain, row)
    yield "applied", entry(draft, row) + entry(apply, b"\1\1\xff")
    yield "discarded", entry(draft, row) + entry(discard, b"\1\1\xff") + entry(draft, row, 3)


def catalogue_entries() -> Seeds:
    orders, audit, shape = range(3)
    one, both, deletes = 0, 1, 4
    made = entry(0, bytes([1, one, orders, 0]))
    yield "made", made + entry(0, bytes([1, both, audit, shape, 0, 1]))
    yield "changed", made + entry(0, bytes([1, one, orders, 1])) * 2
    yield "deleted", made + entry(0, bytes([1, deletes, orders])) + made
    yield "conflict", made + entry(0, bytes([1, 2, orders, 2, 0]))
    yield "long-key", made + entry(0, bytes([1, one, 5, 0]))
