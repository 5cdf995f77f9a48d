"""Why a link ends. The text of each says what happened, for the log. Pure."""

from __future__ import annotations

from faircopy.errors import FaircopyError
from faircopy.replication.messages import Refusal
from faircopy.replication.soundness import REASON_BYTES_MAX


class LinkLost(FaircopyError):
    """The connection is closed, or nothing has come over it for too long."""


class Stranger(FaircopyError):
    """Whoever is at the other end has not proven to be a broker of this set. It is told nothing."""


class Refused(FaircopyError):
    """A broker of this set can't be led, or followed, as it is. It is told why."""


class RefusedByPeer(FaircopyError):
    """The other side has refused, and said why."""


class BadCopy(FaircopyError):
    """What the leader has sent are not the entries that come next in its journal."""


def refusal_of(error: Exception) -> Refusal:
    """What the other side is told of an error, as far as a message holds it."""
    text = str(error) or type(error).__name__
    return Refusal(text.encode(errors="backslashreplace")[:REASON_BYTES_MAX].decode(errors="ignore"))
