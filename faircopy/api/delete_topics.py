"""DeleteTopics, by name, or by id from version 6 on (KIP-516)."""

from __future__ import annotations

from functools import partial

from faircopy.hosting.hosted_topic import HostedTopic
from faircopy.hosting.hosted_topics import HostedTopics
from faircopy.hosting.topic_changes import TopicChanges
from faircopy.serving.codes import code_of, message_of
from faircopy.serving.repeated import Named
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import UUID_ZERO, Schema

SCHEMA = Schema("""
api 20 DeleteTopics 1-6 flexible 4+
  request
    topics             []         6+
        name           string?           = null
        topic_id       uuid              = zero
    topic_names        []string   1-5
    timeout_ms         int32
  response
    throttle_time_ms   int32             = 0
    responses          []
        name           string?6+
        topic_id       uuid       6+     = zero
        error_code     int16
        error_message  string?    5+     = null
""")


async def delete_topics(request: Message, context: Context) -> Body:
    """DeleteTopics, by name, or by id from version 6 on."""
    asked = [(topic.name, topic.topic_id) for topic in request.topics or ()]
    asked += [(name, UUID_ZERO) for name in request.topic_names or ()]
    hosted_topics, pace = context.parts.hosted, context.pace
    named = Named(key_of(hosted_topics, *each) for each in asked)
    finds = {each: partial(find, hosted_topics, named, *each) for each in asked}
    changes = await context.parts.administration.delete(finds, pace)
    return {"responses": [answer_of(changes, each) async for each in pace.through(finds)]}


def key_of(hosted_topics: HostedTopics, name: str | None, topic_id: bytes) -> str | bytes:
    """The same for a topic's name and its id."""
    hosted = hosted_topics.topics.get(name) if name is not None else None
    return hosted.topic.id.bytes if hosted is not None else name or topic_id


def find(
    hosted_topics: HostedTopics, named: Named[str | bytes], name: str | None, topic_id: bytes
) -> HostedTopic:
    """The topic that a request names. Raises Refused, UnknownTopic."""
    named.ensure_once(key_of(hosted_topics, name, topic_id), f"topic {name or topic_id.hex()!r}")
    # An id is not turned into a name: it may be that of another topic by the time of the deletion.
    return hosted_topics.known_by_id(topic_id) if name is None else hosted_topics.known(name)


def answer_of(changes: TopicChanges, asked: tuple[str | None, bytes]) -> Body:
    """The answer for one topic."""
    error = changes.refused.get(asked)
    if error is not None:
        name, topic_id = asked
        told = {"name": name} if name is not None else {"name": None, "topic_id": topic_id}
        return told | {"error_code": code_of(error), "error_message": message_of(error)}
    topic = changes.topics[asked]
    return {"name": topic.name, "topic_id": topic.id.bytes, "error_code": ErrorCode.NONE}


ROUTE = Route(SCHEMA, delete_topics)
