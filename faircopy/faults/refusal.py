"""The answer that refuses a request of any API: the same error for all that it asks for. Pure.

The layouts of the messages say what such an answer looks like. A list in it whose elements have an error code
answers the list of the same name in the request, or else the first one answers the first: each element gets
its name, its number and the error. Without such a list, the answer as a whole has the error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from faircopy.wire.codec import Message
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import STRUCTURE, Field, Schema

OF_THE_WHOLE = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR, ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    }
)  # fmt: skip
"""Errors that an answer has as a whole if it can, even though its elements have errors of their own."""
OTHER_NAMES = {"partition_index": ("partition", "index")}
"""What a request calls a field of the answer."""


def refused(
    schema: Schema, version: int, request: Message, error_code: int, about_broker: Mapping[str, Any]
) -> dict[str, Any]:
    """The body of the answer. `about_broker` has values of fields that don't depend on the request."""
    body = _refused(
        _there(schema.response, version), _there(schema.request, version), request, error_code, version
    )
    return body | {name: value for name, value in about_broker.items() if name in body}


def _there(fields: Sequence[Field], version: int) -> list[Field]:
    """The fields that a version has."""
    return [field for field in fields if field.versions.has(version)]


def _refused(
    response: Sequence[Field], request: Sequence[Field], asked: Any, error_code: int, version: int
) -> dict[str, Any]:
    """One structure of the answer."""
    given = asked.as_dict()
    body = {field.name: _copied(field, given) for field in response}
    is_said = False
    for field, source in _pairs(response, request, version):
        elements = [_element(field, source, each, error_code, version) for each in given[source.name] or ()]
        body[field.name] = elements
        is_said = is_said or bool(elements)
    if "error_code" in body:
        body["error_code"] = error_code if not is_said or error_code in OF_THE_WHOLE else ErrorCode.NONE
    return body


def _element(field: Field, source: Field, asked: Any, error_code: int, version: int) -> dict[str, Any]:
    """One element of a list: of a structure, or of a primitive, which is the first field of its answer."""
    fields = _there(field.fields, version)
    if source.type == STRUCTURE:
        return _refused(fields, _there(source.fields, version), asked, error_code, version)
    body = {each.name: each.absent_value() for each in fields}
    return body | {fields[0].name: asked, "error_code": error_code}


def _copied(field: Field, given: Mapping[str, Any]) -> Any:
    """A field as the request has it, or else as it is by default."""
    if not field.array and field.type != STRUCTURE:
        for name in (field.name, *OTHER_NAMES.get(field.name, ())):
            if name in given:
                return given[name]
    value = field.absent_value()
    return [] if value is None and field.array and field.nullable is None else value


def _pairs(response: Sequence[Field], request: Sequence[Field], version: int) -> list[tuple[Field, Field]]:
    """Which list of the answer answers which list of the request."""
    answers = [field for field in response if field.array and _has_error(field, version)]
    lists = [field for field in request if field.array]
    by_name = {field.name: field for field in lists}
    same = [(field, by_name[field.name]) for field in answers if field.name in by_name]
    return same or list(zip(answers[:1], lists[:1], strict=False))


def _has_error(field: Field, version: int) -> bool:
    """Whether elements of a list have an error code, or lists of theirs have."""
    inner = _there(field.fields, version)
    return any(each.name == "error_code" or _has_error(each, version) for each in inner)
