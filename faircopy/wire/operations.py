"""Kafka's operations on each type of resource, as bit sets of their numbers (KIP-430).

There is no authorizer, so a client that asks is told that all of them are allowed.
"""

from __future__ import annotations

from enum import IntEnum


class Operation(IntEnum):
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


def bits(*operations: Operation) -> int:
    """The set of these operations."""
    return sum(1 << operation for operation in operations)


_CONFIGS = (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)

NOT_ASKED = -(2**31)
ON_TOPICS = bits(
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    *_CONFIGS,
)
ON_GROUPS = bits(Operation.READ, Operation.DELETE, Operation.DESCRIBE, *_CONFIGS)
ON_THE_CLUSTER = bits(
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.IDEMPOTENT_WRITE,
    *_CONFIGS,
)


def on_the_cluster(is_asked: bool) -> int:
    """The operations that a client may perform on the cluster, if it asks for them."""
    return ON_THE_CLUSTER if is_asked else NOT_ASKED
