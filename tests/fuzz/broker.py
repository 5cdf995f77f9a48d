"""Bytes and requests of clients, to a broker that lives on."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

from faircopy.api.routes import advertised, schema_of
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.codec import Message
from faircopy.wire.messages import decode_response, encode_request
from faircopy.wire.records import NewRecord, build_batch
from faircopy.wire.schema import REQUIRED, STRUCTURE, Field
from tests.fuzz.batches import odd_batch, signed
from tests.fuzz.choices import Choices
from tests.fuzz.memory import edited
from tests.fuzz.pipe import Pipe
from tests.fuzz.world import TOPIC, World, quiet

NEXT_CONNECTION = b"\xff\xff\xff\xfenext"
"""No frame, so it ends its connection. Inputs that are joined with it are fed one by one."""

REQUESTS_MAX = 12
ELEMENTS_MAX = 4


@cache
def world() -> World:
    """The one of this process."""
    return World()


def joined(inputs: list[bytes]) -> bytes:
    """Several inputs as one."""
    return NEXT_CONNECTION.join(inputs)


def history() -> bytes:
    """All inputs of the present broker as one, which repeats what became of it."""
    return joined(world().inputs_to_repeat)


# -- bytes ---------------------------------------------------------------------------------------------------


def feed_frames(data: bytes) -> bool:
    """The bytes of one connection after the other, each in as many pieces as its first byte says."""
    for part in data.split(NEXT_CONNECTION):
        world().feed(part, send_bytes(world(), part))
    return True


async def send_bytes(world: World, data: bytes) -> None:
    choices = Choices(data)
    pieces, rest = 1 + choices.number() % 4, choices.rest()
    pipe = world.connect()
    size = max(-(-len(rest) // pieces), 1)
    for begin in range(0, len(rest), size):
        pipe.send(rest[begin : begin + size])
        await asyncio.sleep(0)
    await quiet(pipe)
    pipe.hang_up()


# -- requests ------------------------------------------------------------------------------------------------

VERSIONS = [(api_key, versions[0], versions[-1]) for api_key, versions in advertised().items()] + [
    (ApiKey.INSPECT, 0, 0)
]
NAMES = [
    TOPIC, "", "other", "group", "\0", "ä/ö", ".", "x" * 300, "consumer", "range", "broker",
    "retention.ms", "1000",
]  # fmt: skip
NUMBERS: list[int] = [0, 1, -1, 2, 3, 4, 100, 1_000, 60_000, -2, -3, -4, 2**31 - 1]
BATCH = build_batch([NewRecord(b"value", b"key", 1_000), NewRecord(None, headers=(("h", None),))])
ASSIGNMENT = b"\0\0\0\0\0\1\0\6orders\0\0\0\1\0\0\0\0\xff\xff\xff\xff"
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
LEARNED = {"producer_id", "producer_epoch", "member_id", "generation_id", "leader_epoch"}


def feed_requests(data: bytes) -> bool:
    """One client after the other makes up some requests, which build on the answers that it got."""
    for part in data.split(NEXT_CONNECTION):
        world().feed(part, Client(world(), Choices(part)).talk())
    return True


class Client:
    """Makes requests out of an input: all of the right layout, with values that are mostly plausible."""

    def __init__(self, world: World, choices: Choices) -> None:
        self._world = world
        self._choices = choices
        self._learned: dict[str, Any] = {}

    async def talk(self) -> None:
        """Make requests, one after the other, and read the answers."""
        pipe = self._world.connect()
        number = 0
        while not self._choices.is_over and pipe.is_open and number < REQUESTS_MAX:
            number += 1
            await self._ask(pipe, number)
        await quiet(pipe)
        pipe.hang_up()

    async def _ask(self, pipe: Pipe, number: int) -> None:
        """Each answer must be of the layout; a closed connection is an answer, too."""
        api_key, first, last = self._choices.one_of(VERSIONS)
        version = first + self._choices.number() % (last - first + 1)
        if not schema_of(api_key).versions.has(version):
            return
        body = self._structure(schema_of(api_key).request, version)
        pipe.send(encode_request(schema_of(api_key), version, number, "odd", body))
        await quiet(pipe)
        if number in pipe.responses:
            self._learn(decode_response(schema_of(api_key), version, memoryview(pipe.responses[number]))[1])

    def _learn(self, message: Message) -> None:
        for name, value in message.as_dict().items():
            if name in LEARNED and value not in (-1, "", None):
                self._learned[name] = value

    # -- values ----------------------------------------------------------------------------------------------

    def _structure(self, fields: tuple[Field, ...], version: int) -> dict[str, Any]:
        present = [field for field in fields if field.versions.has(version)]
        return {field.name: self._field(field, version) for field in present}

    def _field(self, field: Field, version: int) -> Any:
        kind = self._choices.number()
        if kind < 0x40 and field.default is not REQUIRED:
            return field.default
        is_tagged_structure = field.tag is not None and field.type == STRUCTURE and not field.array
        is_nullable = field.nullable is not None and field.nullable.has(version)
        if kind > 0xF0 and (is_nullable or is_tagged_structure):
            return None
        if field.array:
            return [self._value(field, version) for _ in range(kind % ELEMENTS_MAX)]
        return self._value(field, version)

    def _value(self, field: Field, version: int) -> Any:
        if field.type == STRUCTURE:
            return self._structure(field.fields, version)
        if field.name in self._learned and self._choices.number() < 0xC0:
            return self._learned[field.name]
        if field.type in BITS:
            return self._integer(BITS[field.type])
        return getattr(self, f"_{field.type}")()

    def _integer(self, bits: int) -> int:
        kind = self._choices.number()
        value: int = NUMBERS[kind] if kind < len(NUMBERS) else self._choices.signed(bits // 8)
        least, most = -(1 << bits - 1), (1 << bits - 1) - 1
        return min(max(value, least), most)

    def _bool(self) -> bool:
        return bool(self._choices.number() & 1)

    def _uuid(self) -> bytes:
        return self._choices.take(16).ljust(16, b"\0")

    def _string(self) -> str:
        kind = self._choices.number()
        return NAMES[kind] if kind < len(NAMES) else self._choices.take(kind % 32).decode("utf-8", "replace")

    def _bytes(self) -> bytes:
        return ASSIGNMENT if self._bool() else self._choices.take(self._choices.number())

    def _records(self) -> bytes:
        """A batch, perhaps of the client's own producer, with a few edits that are signed or not."""
        kind = self._choices.number()
        if kind & 0x88 == 0x88:
            return signed(odd_batch(self._choices))
        if kind & 1:
            batch = BATCH
        else:
            batch = build_batch(
                [NewRecord(b"value")],
                producer_id=self._learned.get("producer_id", 1),
                producer_epoch=self._learned.get("producer_epoch", 0),
                base_sequence=kind >> 4,
                transactional=bool(kind & 2),
            )
        changed = edited(batch, Choices(self._choices.take(self._choices.number() % 24)))
        return changed if kind & 4 else signed(changed)
