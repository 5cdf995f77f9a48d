"""faircopy's own API Backup: makes a snapshot for `faircopy backup`, and removes it.

It is not advertised, since it is not part of Kafka's protocol.
"""

from __future__ import annotations

import json

from faircopy.errors import FaircopyError
from faircopy.serving.codes import message_of
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 20001 Backup 1 flexible 0+
  request
    step           string
    snapshot       string?  = null
  response
    error_code     int16
    error_message  string?  = null
    document       string
""")


async def backup(request: Message, context: Context) -> Body:
    """Backup: `begin` answers with the snapshot's id and directory, `end` removes the one with that id."""
    try:
        if request.step == "begin":
            made = await context.parts.snapshots.make()
            document = {"snapshot": made.id, "directory": str(made.directory)}
        elif request.step == "end":
            await context.parts.snapshots.remove(request.snapshot)
            document = {}
        else:
            return {"error_code": ErrorCode.INVALID_REQUEST, "error_message": "begin or end", "document": ""}
    except FaircopyError as error:
        return {
            "error_code": ErrorCode.KAFKA_STORAGE_ERROR, "error_message": message_of(error), "document": ""
        }  # fmt: skip
    return {"error_code": ErrorCode.NONE, "error_message": None, "document": json.dumps(document)}


ROUTE = Route(SCHEMA, backup, is_advertised=False)
