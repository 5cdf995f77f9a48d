"""A table whose rows are inserted, updated and deleted, and the messages that Debezium must make of that."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from confluent_kafka import Message

from tests.ecosystem.postgres.session import SqlSession

TABLE = "customers"
ROWS_AT_ONCE = 500
ROWS_BEFORE = 10
UPDATED_EVERY = 3
DELETED_EVERY = 5


class Change(NamedTuple):
    """A message of Debezium's: c for create, u for update, d for delete, r for a row that was there."""

    kind: str
    row: int
    name: str | None


class ChangingTable:
    """Each change is known as it is made. `written` counts them."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._rows = 0
        self.changes = list[Change]()
        session.execute(f"CREATE TABLE {TABLE} (id integer PRIMARY KEY, name text)")
        session.execute(*(self._insert("r") for _ in range(ROWS_BEFORE)))

    @property
    def written(self) -> int:
        """So many messages there must be."""
        return len(self.changes)

    def write(self) -> None:
        """Insert some rows, and change and delete some of them, in one transaction."""
        statements = list[str]()
        for _ in range(ROWS_AT_ONCE):
            statements += self._life_of_a_row()
        self._session.execute(*statements)

    def _life_of_a_row(self) -> list[str]:
        row = self._rows
        statements = [self._insert("c")]
        if row % UPDATED_EVERY == 0:
            self.changes.append(Change("u", row, "updated"))
            statements.append(f"UPDATE {TABLE} SET name = 'updated' WHERE id = {row}")
        if row % DELETED_EVERY == 0:
            self.changes.append(Change("d", row, None))
            statements.append(f"DELETE FROM {TABLE} WHERE id = {row}")
        return statements

    def _insert(self, kind: str) -> str:
        row, self._rows = self._rows, self._rows + 1
        self.changes.append(Change(kind, row, f"name {row}"))
        return f"INSERT INTO {TABLE} VALUES ({row}, 'name {row}')"


def change_of(message: Message) -> Change:
    """What a message tells, with Connect's converter to JSON."""
    key, value = message.key(), message.value()
    assert key is not None and value is not None
    told = payload(value)
    after = told["after"]
    return Change(str(told["op"]), int(payload(key)["id"]), None if after is None else str(after["name"]))


def payload(json_text: str | bytes) -> dict[str, Any]:
    """Without its schema."""
    found: dict[str, Any] = json.loads(json_text)["payload"]
    return found
