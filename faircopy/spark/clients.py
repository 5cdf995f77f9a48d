"""One client for all tasks that a Python worker runs, one after the other."""

from __future__ import annotations

import os

from faircopy.client import BlockingClient

_clients: dict[tuple[int, str, str], BlockingClient] = {}


def client_of(servers: str, client_id: str) -> BlockingClient:
    """A client of this process; its connections are kept. A forked worker has one of its own."""
    key = os.getpid(), servers, client_id
    if key not in _clients:
        _clients[key] = BlockingClient(servers, client_id=client_id)
    return _clients[key]
