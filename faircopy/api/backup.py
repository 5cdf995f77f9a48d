"""faircopy's own API Backup: a snapshot is made for `faircopy backup`, and removed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from faircopy.api.context import Body, Context, Message, message_of
from faircopy.errors import FaircopyError
from faircopy.hosting.snapshots import Snapshots
from faircopy.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from faircopy.broker.broker import Broker


class BackupHandler:
    """Answers to backups."""

    def __init__(self, broker: Broker) -> None:
        self.snapshots = Snapshots(broker)

    async def backup(self, request: Message, context: Context) -> Body:
        """Backup: `begin` answers with the snapshot's directory, `end` removes it."""
        try:
            if request.step == "begin":
                document = {"directory": str(await self.snapshots.make())}
            elif request.step == "end":
                await self.snapshots.remove()
                document = {}
            else:
                return {"error_code": ErrorCode.INVALID_REQUEST, "error_message": "begin or end", "document": ""}
        except FaircopyError as error:
            return {
                "error_code": ErrorCode.KAFKA_STORAGE_ERROR, "error_message": message_of(error), "document": ""
            }  # fmt: skip
        return {"error_code": ErrorCode.NONE, "error_message": None, "document": json.dumps(document)}
