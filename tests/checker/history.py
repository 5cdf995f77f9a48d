"""What clients did, with the results: the input of the checker.

A history is a list of operations. In a file, each is one line of JSON: an object with `kind` and the fields
of the class of that name. Times are in seconds of one clock. Values are unique: no two sends of a history
have the same value.

    transaction  a producer's sends, reads and offsets, and how it ended; a plain send counts as one
    poll         what a consumer was given, one batch after the other
    final        one partition, read from its start to its end by a fresh client after all faults were healed
    snapshot     what a plain table held at one moment
    end          where a partition ended, as somebody was told who asked at `asked`
    committed    the offset that a consumer group had committed, as somebody was told
    key          a key of a joint group that is committed, as somebody was told
    loss         what was written, and not synced, may be lost: power was cut, or a disk failed
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import NamedTuple, TextIO

Value = int | str


class Result(Enum):
    """How an operation ended. `FAILED` means that it certainly had no effect."""

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Send(NamedTuple):
    """One message. `offset` is the one that the broker returned, None if it did not."""

    partition: str
    value: Value
    offset: int | None = None


class Read(NamedTuple):
    """One message that a consumer was given."""

    partition: str
    offset: int
    value: Value


class Offset(NamedTuple):
    """An offset of a consumer group. Those of one group and partition only grow, whoever commits them."""

    group: str
    partition: str
    offset: int


@dataclass(frozen=True)
class Transaction:
    """`group` orders transactions (P5); it is None for plain sends. `commit_asked` is None if there was no
    request to commit. `key` is that of a joint group: at most one transaction for each takes effect.
    `given_up`: when the broker said that it has aborted it; its client had not asked for that, nor been slow.
    """

    process: str
    group: str | None
    begun: float
    commit_asked: float | None
    ended: float
    result: Result
    sends: list[Send] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    offsets: list[Offset] = field(default_factory=list)
    key: int | None = None
    given_up: float | None = None


@dataclass(frozen=True)
class Poll:
    """`assignment` changes whenever the consumer gets partitions or seeks: then positions may jump."""

    process: str
    assignment: int
    time: float
    reads: list[Read]


@dataclass(frozen=True)
class Final:
    """The whole partition, from `start_offset` up to `end_offset` (exclusive), according to the broker."""

    partition: str
    start_offset: int
    end_offset: int
    reads: list[Read]


@dataclass(frozen=True)
class Snapshot:
    """A plain table, or what a reader has who reads cut by cut. With `divides_plain`, cuts were limited by
    rows: of a plain send, only the first messages may be there.
    """

    table: str
    time: float
    reads: list[Read]
    divides_plain: bool = False


@dataclass(frozen=True)
class End:
    """`end_offset` is the offset after the last message. It was requested at `asked`."""

    partition: str
    asked: float
    end_offset: int
    reads: list[Read] = field(default_factory=list)


@dataclass(frozen=True)
class Committed:
    """`offset` is -1 if the group had none. It was requested at `asked` and returned at `time`."""

    group: str
    partition: str
    asked: float
    time: float
    offset: int
    reads: list[Read] = field(default_factory=list)


@dataclass(frozen=True)
class KeyCommitted:
    """A key of a joint group is committed, as somebody was told at `time`."""

    group: str
    key: int
    time: float
    reads: list[Read] = field(default_factory=list)


@dataclass(frozen=True)
class Loss:
    """What was written, and not synced, may be lost at this moment."""

    time: float
    reads: list[Read] = field(default_factory=list)


Operation = Transaction | Poll | Final | Snapshot | End | Committed | KeyCommitted | Loss
_KINDS: dict[str, type[Operation]] = {
    "transaction": Transaction,
    "poll": Poll,
    "final": Final,
    "snapshot": Snapshot,
    "end": End,
    "committed": Committed,
    "key": KeyCommitted,
    "loss": Loss,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def write_history(operations: Iterable[Operation], file: TextIO) -> None:
    """Write one line for each operation."""
    for operation in operations:
        file.write(json.dumps({"kind": _NAMES[type(operation)]} | asdict(operation), default=_plain) + "\n")


def _plain(result: Result) -> str:
    return result.value


def read_history(file: TextIO) -> Iterator[Operation]:
    """The operations of a file that `write_history` wrote."""
    for line in file:
        fields = json.loads(line)
        kind = _KINDS[fields.pop("kind")]
        fields["reads"] = [Read(*read) for read in fields["reads"]]
        if kind is Transaction:
            fields["sends"] = [Send(*send) for send in fields["sends"]]
            fields["result"] = Result(fields["result"])
            fields["offsets"] = [Offset(*offset) for offset in fields["offsets"]]
        yield kind(**fields)
