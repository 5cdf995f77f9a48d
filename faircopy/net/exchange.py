"""One request and its response, between a connection and whoever answers it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from faircopy.storage.file import FileRange
from faircopy.storage.system import Buffer
from faircopy.wire.address import Address

FromFiles = Sequence[Buffer | FileRange]
Response = Buffer | Sequence[Buffer] | FromFiles | None


class ClientConnection(Protocol):
    """The connection that a request came by, as those see it who answer.

    `peer` is the address of the client, `advertised` the one that it is told to find this broker at.
    """

    peer: str
    number: int
    advertised: Address

    @property
    def is_open(self) -> bool:
        """Whether the client is still there."""

    def answered(self, exchange: Exchange) -> None:
        """A response is there."""

    def proceed(self) -> None:
        """Handle the requests that are here, as far as the rules allow."""

    def complain(self, error: Exception) -> None:
        """Log what is wrong with this client."""

    def close(self) -> None:
        """Close the connection once what was written is sent."""


class Exchange:
    """One request and its response. `answer` may be called at any later time; None answers nothing (acks=0).

    A Produce request that `holds_back` others lets them on with `let_on`, or when it is answered. Until then
    the connection's next one waits: so batches are taken in the order in which they came, though some take
    longer to check.

    `when_lost` is called if the client goes before it has its answer; it may still be answered.
    """

    __slots__ = (
        "connection", "holds_back", "is_answered", "is_from_files", "is_produce", "response", "size", "when_lost",
    )  # fmt: skip

    def __init__(self, connection: ClientConnection, size: int, is_produce: bool) -> None:
        """`size` are the bytes of the request."""
        self.connection = connection
        self.size = size
        self.is_produce = is_produce
        self.is_answered = False
        self.is_from_files = False
        self.holds_back = False
        self.response: Response = None
        self.when_lost: Callable[[], None] | None = None

    def answer(self, response: Response) -> None:
        """Send the response, once those before it are sent. Only the first answer counts."""
        if self.is_answered:
            return
        self.response = response
        self.is_answered = True
        self.connection.answered(self)

    def let_on(self) -> None:
        """The connection's next request may be taken."""
        self.holds_back = False
        self.connection.proceed()

    def answer_from_files(self, response: FromFiles) -> None:
        """Send a response of which parts lie in files."""
        self.is_from_files = True
        self.answer(response)
