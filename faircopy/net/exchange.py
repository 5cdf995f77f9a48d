"""One request and its response, between a connection and the handler that answers it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from faircopy.storage.file import FileRange
from faircopy.storage.system import Buffer
from faircopy.wire.address import Address

FromFiles = Sequence[Buffer | FileRange]
Response = Buffer | Sequence[Buffer] | FromFiles | None


class ClientConnection(Protocol):
    """The connection that a request came by, as its handler sees it.

    `peer` is the address of the client; `advertised` is the address of this broker that the client is told.
    """

    peer: str
    number: int
    advertised: Address

    @property
    def is_open(self) -> bool:
        """Whether the client is still connected."""

    def answered(self, exchange: Exchange) -> None:
        """A response is ready."""

    def proceed(self) -> None:
        """Handle the received requests, as far as the rules allow."""

    def complain(self, error: Exception) -> None:
        """Log a fault of this client."""

    def close(self) -> None:
        """Close the connection after sending what was written."""


class Exchange:
    """One request and its response. `answer` may be called at any later time; None answers nothing (acks=0).

    A Produce request with `blocks_next` set makes the connection's next request wait until `release_next` is
    called or this one is answered. So batches are accepted in the order of their arrival, though some take
    longer to check.

    `is_gated`: the answer has to pass the broker's gate, if it has one (`net/gate.py`).

    `when_lost` is called if the client disconnects before it has its answer; `answer` may still be called.
    """

    __slots__ = (
        "blocks_next",
        "connection",
        "is_answered",
        "is_from_files",
        "is_gated",
        "is_produce",
        "response",
        "size",
        "when_lost",
    )  # fmt: skip

    def __init__(self, connection: ClientConnection, size: int, is_produce: bool) -> None:
        """`size` is the size of the request in bytes."""
        self.connection = connection
        self.size = size
        self.is_produce = is_produce
        self.is_gated = False
        self.is_answered = False
        self.is_from_files = False
        self.blocks_next = False
        self.response: Response = None
        self.when_lost: Callable[[], None] | None = None

    def answer(self, response: Response) -> None:
        """Send the response after those of earlier requests. Only the first answer counts."""
        if self.is_answered:
            return
        self.response = response
        self.is_answered = True
        self.connection.answered(self)

    def release_next(self) -> None:
        """Let the connection handle its next request."""
        self.blocks_next = False
        self.connection.proceed()

    def answer_from_files(self, response: FromFiles) -> None:
        """Send a response that lies partly in files."""
        self.is_from_files = True
        self.answer(response)
