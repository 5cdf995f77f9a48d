"""One fault: to which requests it happens, what happens, and how often. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from faircopy.errors import FaircopyError
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Field, Schema

ALWAYS = -1
"""The `times` of a fault that goes on until faults are cleared."""
INT16 = range(-(1 << 15), 1 << 15)


class BadFault(FaircopyError):
    """Such a fault can't be made. Nothing was changed."""


class Effect(StrEnum):
    """What happens to a request, or to its answer, which is sent once the request has taken effect."""

    REFUSE = "refuse"  # it is answered with an error, and has no effect
    DELAY = "delay"  # it is handled later
    DELAY_ACK = "delay_ack"  # it takes effect now, and is answered later
    DROP = "drop"  # its connection is closed, and it has no effect
    DROP_ACK = "drop_ack"  # it takes effect, and its connection is closed in place of an answer
    WITHHOLD = "withhold"  # it has no effect and no answer, and the connection stays
    WITHHOLD_ACK = "withhold_ack"  # it takes effect and has no answer, and the connection stays
    KILL = "kill"  # the broker is killed, and the request has no effect
    KILL_BEFORE_ACK = "kill_before_ack"  # it takes effect, and the broker is killed in place of an answer
    KILL_AFTER_ACK = "kill_after_ack"  # it is answered, and then the broker is killed
    FENCE = "fence"  # another instance of its producer comes before it
    EXPIRE = "expire"  # the transaction of its producer times out before it


DELAYS = frozenset({Effect.DELAY, Effect.DELAY_ACK})
OF_TRANSACTIONS = frozenset({Effect.FENCE, Effect.EXPIRE})


@dataclass(frozen=True)
class Fault:
    """A fault of the requests of one API. Of those, `committed`, `transactional_id` and `topic` each leave
    only some, unless they are None. The first `skip` of them pass, then it happens `times` times, or ALWAYS.
    `error_code` is for REFUSE, `delay_ms` for delays.
    """

    api_key: int
    effect: Effect
    committed: bool | None = None
    transactional_id: str | None = None
    topic: str | None = None
    skip: int = 0
    times: int = 1
    error_code: int = ErrorCode.NONE
    delay_ms: float = 0

    def once_less(self) -> Fault | None:
        """What is left of it after a request that it concerns. None if nothing is."""
        if self.skip:
            return dataclasses.replace(self, skip=self.skip - 1)
        if self.times == ALWAYS:
            return self
        return dataclasses.replace(self, times=self.times - 1) if self.times > 1 else None


KINDS: dict[str, tuple[type, ...]] = {
    "committed": (bool,),
    "transactional_id": (str,),
    "topic": (str,),
    "skip": (int,),
    "times": (int,),
    "delay_ms": (int, float),
}
TOPIC_FIELDS = frozenset({"name", "topic", "topic_id"})
"""What names a topic, in the elements of a request's lists."""


def parse_fault(document: Mapping[str, Any], schemas: Mapping[int, Schema]) -> Fault:
    """The fault that a document asks for: the fields of `Fault`, but `api` is the name of one in `schemas`,
    and `error` the name or the number of an error. Raises BadFault.
    """
    given = {name: value for name, value in document.items() if value is not None}
    schema = _api(given.pop("api", None), schemas.values())
    error_code = error_of(given.pop("error", None))
    effect = _effect(given.pop("effect", None))
    for name, value in given.items():
        if name not in KINDS:
            raise BadFault(f"a fault has no {name!r}: give some of {', '.join(KINDS)}")
        if type(value) not in KINDS[name]:
            raise BadFault(f"{name} of a fault can't be {value!r}")
    fault = Fault(schema.api_key, effect, error_code=error_code, **given)
    _check(fault, schema)
    return fault


def _api(name: Any, schemas: Collection[Schema]) -> Schema:
    found = [schema for schema in schemas if schema.name == name]
    if not found:
        names = ", ".join(sorted(schema.name for schema in schemas))
        raise BadFault(f"this broker has no API {name!r}: give one of {names}")
    return found[0]


def _effect(name: Any) -> Effect:
    if name not in list(Effect):
        raise BadFault(f"there is no effect {name!r}: give one of {', '.join(Effect)}")
    return Effect(name)


def error_of(given: Any) -> int:
    """The number of an error, given by its name or number. Raises BadFault."""
    if given is None:
        return ErrorCode.NONE
    if isinstance(given, str) and given in ErrorCode.__members__:
        return ErrorCode[given]
    if isinstance(given, int) and given in INT16:
        return given
    raise BadFault(f"Kafka has no error {given!r}: give its name as in Kafka's protocol, or its number")


def _check(fault: Fault, schema: Schema) -> None:
    """Raise BadFault for one that could not happen."""
    fields = {field.name for field in schema.request}
    if fault.effect is Effect.REFUSE and not fault.error_code:
        raise BadFault("a request can't be refused without an error: name one")
    if fault.effect in DELAYS and not fault.delay_ms > 0:
        raise BadFault(f"a delay of {fault.delay_ms} ms is none")
    if fault.times < 1 and fault.times != ALWAYS:
        raise BadFault(f"a fault can't happen {fault.times} times: give 1 or more, or -1 for always")
    if fault.skip < 0:
        raise BadFault(f"a fault can't skip {fault.skip} requests")
    of_a_transaction = fault.transactional_id is not None or fault.effect in OF_TRANSACTIONS
    if of_a_transaction and "transactional_id" not in fields:
        raise BadFault(f"requests of {schema.name} have no transactional id")
    if fault.topic is not None and not _names_topics(schema.request):
        raise BadFault(f"requests of {schema.name} name no topics")
    if fault.committed is not None and "committed" not in fields:
        raise BadFault(f"requests of {schema.name} are no commits and no aborts")


def _names_topics(fields: Sequence[Field]) -> bool:
    """Whether elements of lists among these fields may name a topic."""
    lists = [field for field in fields if field.array]
    return any({each.name for each in field.fields} & TOPIC_FIELDS for field in lists)
