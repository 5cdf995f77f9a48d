"""Requests, as the choices that make them."""

from __future__ import annotations

from typing import Any

from faircopy.api.routes import schema_of
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.schema import STRUCTURE, Field
from tests.fuzz import broker
from tests.fuzz.seeds.bodies import plain_value


class Chosen:
    """The choices that make a client of `tests.fuzz.broker` send certain requests."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self._learned: set[str] = set()

    def request(self, api_key: ApiKey, version: int, body: dict[str, Any], *learned: str) -> Chosen:
        """Add a request, whose answer tells the fields `learned`.

        A value of None stands for one that an earlier answer told.
        """
        number = next(number for number, row in enumerate(broker.VERSIONS) if row[0] == api_key)
        self.bytes += bytes([number, version - broker.VERSIONS[number][1]])
        self._structure(schema_of(api_key).request, version, body)
        self._learned |= set(learned)
        return self

    def _structure(self, fields: tuple[Field, ...], version: int, body: dict[str, Any]) -> None:
        for field in fields:
            if field.versions.has(version):
                self._field(field, version, body.get(field.name, plain_value(field, version)))

    def _field(self, field: Field, version: int, value: Any) -> None:
        if field.tag is not None:
            self.bytes.append(0)
        elif value is None and field.name not in self._learned:
            self.bytes.append(0xFF)
        elif field.array:
            self.bytes.append(0x40 + len(value))
            for element in value:
                self._value(field, version, element)
        else:
            self.bytes.append(0x40)
            self._value(field, version, value)

    def _value(self, field: Field, version: int, value: Any) -> None:
        if field.type == STRUCTURE:
            self._structure(field.fields, version, value)
            return
        if field.name in self._learned:
            self.bytes.append(0 if value is None else 0xFF)
            if value is None:
                return
        getattr(self, f"_{field.type if field.type not in broker.BITS else 'integer'}")(value)

    def _integer(self, value: int) -> None:
        self.bytes.append(broker.NUMBERS.index(value))

    def _bool(self, value: bool) -> None:
        self.bytes.append(value)

    def _string(self, value: str) -> None:
        self.bytes.append(broker.NAMES.index(value))

    def _bytes(self, _value: bytes) -> None:
        self.bytes.append(1)

    def _records(self, value: int) -> None:
        self.bytes += bytes([value if isinstance(value, int) else 1, 0])

    def _uuid(self, value: bytes) -> None:
        self.bytes += value
