"""The settings with which the clients of three libraries reach a broker for tests."""

from __future__ import annotations

import uuid
from typing import Any, NamedTuple


class Names(NamedTuple):
    """What a library calls its settings."""

    servers: str
    transactional_id: str
    group: str
    isolation: str
    offset_reset: str


WITH_DOTS = Names("bootstrap.servers", "transactional.id", "group.id", "isolation.level", "auto.offset.reset")
WITH_UNDERSCORES = Names(*(name.replace(".", "_") for name in WITH_DOTS))


class ClientSettings:
    """The settings of one library's clients, as dicts."""

    def __init__(self, names: Names, bootstrap_servers: str) -> None:
        self._names = names
        self._servers = bootstrap_servers

    def client(self) -> dict[str, Any]:
        """For a client of any kind."""
        return {self._names.servers: self._servers}

    def producer(self, transactional_id: str | None = None) -> dict[str, Any]:
        """For a producer; with a transactional id, for one that writes in transactions."""
        mine = {} if transactional_id is None else {self._names.transactional_id: transactional_id}
        return self.client() | mine

    def consumer(self, group: str | None = None) -> dict[str, Any]:
        """For a consumer that reads what is committed, from the start; by default in a group of its own."""
        return self.client() | {
            self._names.group: group or f"group-{uuid.uuid4().hex[:12]}",
            self._names.isolation: "read_committed",
            self._names.offset_reset: "earliest",
        }
