"""Entries of the leader's files, cut out of the bytes of DATA.

At most one entry of a link is incomplete at a time. Its header is checked before anything of its payload is
kept, and its buffer grows with what has arrived, whatever the header announces.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from faircopy.journal.entry import HEADER_BYTES, BadEntry, Entry, Kind
from faircopy.journal.entry_format import FLAGS_AT, PAYLOAD_CRC_AT, decode_header
from faircopy.replication.errors import BadCopy, Refused
from faircopy.replication.frames import BadMessage
from faircopy.replication.messages import Data

KINDS = frozenset(map(int, Kind))
_CRC = Struct("<I")


class LeadersEntry(NamedTuple):
    """A whole entry whose CRCs match. `payload` never changes."""

    entry: Entry
    payload: memoryview
    payload_crc: int


class Source(NamedTuple):
    """The journal that bytes belong to, and the seed of their segment."""

    journal: bytes
    seed: int


NOTHING = Source(b"", 0)


class EntryReader:
    """What has arrived of an entry that is not whole yet."""

    __slots__ = ("_entry", "_partial", "_position", "_source")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Drop what has arrived: the next entry begins with the next bytes."""
        self._source = NOTHING
        self._position = 0
        self._entry: Entry | None = None
        self._partial = bytearray()

    def partial_bytes(self, journal: bytes) -> int:
        """How many bytes of an incomplete entry of this journal have arrived."""
        return len(self._partial) if self._source.journal == journal else 0

    def take(self, data: Data) -> Iterator[LeadersEntry]:
        """The entries that end in these bytes, which follow those that arrived last. Take all of them before
        the next call.

        Raises BadMessage, BadCopy, and Refused if an entry is of a newer version. Then only `forget` helps.
        """
        source = Source(data.identity, data.seed)
        if self._partial and source != self._source:
            raise BadMessage(
                f"data of journal {data.identity.hex()} came within an entry of journal "
                f"{self._source.journal.hex()}, or with another seed"
            )
        self._source, self._position = source, data.position - len(self._partial)
        rest = memoryview(data.content).toreadonly()
        while len(rest):
            whole, rest = self._next(rest)
            if self._entry is None or whole is None:
                return
            yield self._checked(self._entry, whole)
            self._position, self._entry = self._entry.end, None

    def _next(self, rest: memoryview) -> tuple[memoryview | None, memoryview]:
        """The next entry, not copied if it lies in these bytes, or None; and what follows it."""
        if not self._partial and len(rest) >= HEADER_BYTES:
            self._entry = self._decoded(rest)
            if len(rest) >= self._entry.length:
                return rest[: self._entry.length], rest[self._entry.length :]
        rest = self._keep(HEADER_BYTES, rest)
        if len(self._partial) < HEADER_BYTES:
            return None, rest
        entry = self._entry = self._entry or self._decoded(self._partial)
        rest = self._keep(entry.length, rest)
        if len(self._partial) < entry.length:
            return None, rest
        whole, self._partial = memoryview(self._partial).toreadonly(), bytearray()
        return whole, rest

    def _keep(self, size: int, rest: memoryview) -> memoryview:
        """Let `size` bytes of the entry be kept, as far as they are there; return what follows."""
        lacks = max(size - len(self._partial), 0)
        self._partial += rest[:lacks]
        return rest[lacks:]

    def _decoded(self, header: memoryview | bytearray) -> Entry:
        try:
            entry = decode_header(memoryview(header), 0, self._position, self._source.seed)
        except BadEntry as error:
            raise self._bad_copy(str(error)) from error
        if entry.kind not in KINDS or header[FLAGS_AT]:
            raise Refused(
                f"this version of faircopy does not know the entry at position {self._position} of journal "
                f"{self._source.journal.hex()} (kind {entry.kind}, flags {header[FLAGS_AT]:#x}): a newer "
                f"version leads. Upgrade this broker"
            )
        return entry

    def _checked(self, entry: Entry, whole: memoryview) -> LeadersEntry:
        payload = whole[HEADER_BYTES:]
        (payload_crc,) = _CRC.unpack_from(whole, PAYLOAD_CRC_AT)
        if crc32c(payload) != payload_crc:
            raise self._bad_copy("the payload's CRC does not match")
        return LeadersEntry(entry, payload, payload_crc)

    def _bad_copy(self, why: str) -> BadCopy:
        return BadCopy(
            f"what came for position {self._position} of journal {self._source.journal.hex()} is no sound "
            f"entry: {why}"
        )
