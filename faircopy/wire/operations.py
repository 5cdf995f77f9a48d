"""Kafka's operations on each type of resource, as bit sets of their numbers (KIP-430).

There is no authorizer, so a client that asks is told that all of them are allowed.
"""

from __future__ import annotations

from enum import IntEnum


class AclOperation(IntEnum):
    """An operation on a resource, by Kafka's number."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


def bits(*operations: AclOperation) -> int:
    """The set of these operations."""
    return sum(1 << operation for operation in operations)


_CONFIGS = (AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)

NOT_ASKED = -(2**31)
ON_TOPICS = bits(
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.CREATE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    *_CONFIGS,
)
ON_GROUPS = bits(AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE, *_CONFIGS)
ON_THE_CLUSTER = bits(
    AclOperation.CREATE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.CLUSTER_ACTION,
    AclOperation.IDEMPOTENT_WRITE,
    *_CONFIGS,
)


def on_the_cluster(is_asked: bool) -> int:
    """The operations that a client may perform on the cluster, if it asks for them."""
    return ON_THE_CLUSTER if is_asked else NOT_ASKED
