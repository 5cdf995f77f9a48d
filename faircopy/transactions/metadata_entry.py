"""Payloads of a metadata journal's entries: JSON objects, so that a person can read a dump.

    BEGIN           {"id": transactional id, "timeout_ms": n, "at_ms": steady clock}
    ADD             {"partitions": [[topic id, partition, leader epoch], ...]}; where drafts are acked once
                    they are fsynced, a row has a fourth element, true
    PREPARE_COMMIT  {"partitions": [[topic id, partition], ...]}
                    of a joint commit also {"group": joint group, "run": run, "key": key,
                     "members": [producer id of each member that the commit named, ...],
                     "joined": [[[producer id, epoch, number], [[topic id, partition], ...]], ...]};
                    the entry's TxId is that of the lead, and NO_TRANSACTION if nothing was written
    PREPARE_ABORT   {"partitions": [[topic id, partition], ...], "fence": epoch,
                     "untold": the producer does not know}
    COMMITTED, ABORTED   {}
    FENCE           {"id": transactional id, "timeout_ms": n, "pardoned": previous epoch or -1,
                     "at_ms": steady clock,
                     "told": the instance stays, and knows that its last transaction is aborted,
                     "durable": its transactions are fsynced before it is told that they have begun}
                    The entry's TxId holds the new producer id and epoch. The entry also aborts what the
                    previous instance has open.
    FORGET          {"id": transactional id}, or {"group": joint group}
    JOIN            {"id": transactional id, "timeout_ms": n, "at_ms": steady clock,
                     "group": joint group, "run": run, "key": key or -1, "member": its name,
                     "durable": as in FENCE}
                    The entry's TxId holds the producer id and epoch. If the run is new in the group, the
                    entry also fences the former one.
    UNCLEAN         {"all": whether also what was fsynced may be lost}
                    transactions of producers may have been lost in a power failure

Topic ids are bytes, hexadecimal in JSON. Every entry's header has the TxId; in FENCE, FORGET and JOIN its
number is -1, and UNCLEAN has none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Payload = dict[str, Any]


_ENCODER = json.JSONEncoder(separators=(",", ":"), default=bytes.hex)


def encode(payload: Mapping[str, Any]) -> bytes:
    """The bytes of a payload."""
    return _ENCODER.encode(payload).encode()


def decode(data: bytes | memoryview) -> Payload:
    """The payload in these bytes."""
    payload = read_json(data)
    listed = [payload.get("partitions", ()), *(partitions for _, partitions in payload.get("joined", ()))]
    for row in (row for rows in listed for row in rows):
        row[0] = bytes.fromhex(row[0])
    return payload


def read_json(data: bytes | memoryview) -> Payload:
    """The JSON in these bytes, for people to read."""
    stored: Payload = json.loads(bytes(data))
    return stored
