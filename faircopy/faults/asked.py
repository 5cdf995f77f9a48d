"""What a request is about, whatever its API: its transactional id, its topics, whether it commits. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from faircopy.faults.fault import Fault
from faircopy.wire.codec import Message

NameOf = Callable[[bytes], str | None]
"""The name of the topic with this id; None if there is none."""
NAMES = ("name", "topic")


def concerns(fault: Fault, request: Message, name_of: NameOf) -> bool:
    """Whether a fault of this API is for this request."""
    fields = request.as_dict()
    if fault.committed is not None and fields["committed"] != fault.committed:
        return False
    if fault.transactional_id is not None and fields["transactional_id"] != fault.transactional_id:
        return False
    return fault.topic is None or fault.topic in topics_of(request, name_of)


def transactional_id_of(request: Message) -> str | None:
    """The transactional id of a request; None if it has none."""
    found: str | None = request.as_dict().get("transactional_id")
    return found


def topics_of(request: Message, name_of: NameOf) -> set[str]:
    """The names of all topics that a request names, or gives the id of."""
    return {name for element in _elements(request) if (name := _name(element, name_of))}


def _elements(message: Message) -> Iterator[dict[str, Any]]:
    """The elements of all lists of structures in a message."""
    for value in message.as_dict().values():
        for each in value if isinstance(value, list) else ():
            if isinstance(each, tuple):
                yield each.as_dict()  # type: ignore[attr-defined]  # to type checkers, no message is a tuple
                yield from _elements(each)  # type: ignore[arg-type]


def _name(element: dict[str, Any], name_of: NameOf) -> str | None:
    for field in NAMES:
        if isinstance(element.get(field), str) and element[field]:
            return str(element[field])
    return name_of(element["topic_id"]) if "topic_id" in element else None
