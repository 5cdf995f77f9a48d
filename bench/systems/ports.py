"""Ports of loopback that are held for servers, before, between and after their lives."""

from __future__ import annotations

import os
import socket
import weakref

HOST = "127.0.0.1"


class HeldPorts:
    """So many ports, which nobody else gets until they are released, or this object is gone.

    A socket that is bound and does not listen holds each. Linux lets a server listen there all the same, if
    both have set SO_REUSEADDR, as etcd and Kafka do; but neither does it give the port to a client or to
    whoever asks for a free one, nor to a server that has not set that option.
    """

    def __init__(self, count: int) -> None:
        holders = [bound() for _ in range(count)]
        self.numbers: list[int] = [holder.getsockname()[1] for holder in holders]
        self.release = weakref.finalize(self, close, [holder.detach() for holder in holders])


def bound() -> socket.socket:
    """A socket on a port that was free."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((HOST, 0))
    return holder


def close(descriptors: list[int]) -> None:
    """Close what holds ports."""
    for descriptor in descriptors:
        os.close(descriptor)
