"""faircopy's own client: joint transactions, many transactions at once, and cuts (docs/CLIENT.md).

`Client` is for asyncio, `BlockingClient` for everything else. For plain producing and consuming, any Kafka
client does.
"""

from faircopy.client.blocking import BlockingClient, BlockingMember, BlockingTransaction
from faircopy.client.client import Client
from faircopy.client.errors import (
    ConnectionFailed,
    Fenced,
    OutcomeUnknown,
    RequestFailed,
    TransactionAborted,
)
from faircopy.client.member import JointMember
from faircopy.client.transaction import OpenTransaction

__all__ = [
    "BlockingClient",
    "BlockingMember",
    "BlockingTransaction",
    "Client",
    "ConnectionFailed",
    "Fenced",
    "JointMember",
    "OpenTransaction",
    "OutcomeUnknown",
    "RequestFailed",
    "TransactionAborted",
]
