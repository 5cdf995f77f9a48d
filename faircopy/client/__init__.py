"""faircopy's own client: joint transactions, many transactions at once, and cuts (docs/CLIENT.md).

`Client` is for asyncio, `BlockingClient` for everything else. For plain producing and consuming, any Kafka
client does.
"""

from faircopy.client.blocking import BlockingClient, BlockingMember, BlockingTransaction
from faircopy.client.client import Client
from faircopy.client.errors import (
    ConnectionFailed,
    DataLost,
    Fenced,
    OutcomeUnknown,
    RequestFailed,
    TransactionAborted,
)
from faircopy.client.member import JointMember
from faircopy.client.reading import EARLIEST, LATEST, OffsetRange, Piece, TransactionSpan
from faircopy.client.transaction import OpenTransaction

__all__ = [
    "EARLIEST",
    "LATEST",
    "BlockingClient",
    "BlockingMember",
    "BlockingTransaction",
    "Client",
    "ConnectionFailed",
    "DataLost",
    "Fenced",
    "JointMember",
    "OffsetRange",
    "OpenTransaction",
    "OutcomeUnknown",
    "Piece",
    "RequestFailed",
    "TransactionAborted",
    "TransactionSpan",
]
