"""The assignment of a topic's partitions to brokers, as administrators request it."""

from __future__ import annotations

from faircopy.serving.codes import Refused
from faircopy.wire.error_codes import ErrorCode


def ensure_alone(assignments: list[list[int]], node_id: int) -> None:
    """Raise Refused unless every partition is assigned to the only broker."""
    for brokers in assignments:
        if list(brokers) != [node_id]:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"replicas {list(brokers)}: the only broker is {node_id}",
            )
