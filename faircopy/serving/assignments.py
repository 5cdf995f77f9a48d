"""Which brokers the partitions of a topic are to be on, as administrators ask for it."""

from __future__ import annotations

from faircopy.serving.codes import Refused
from faircopy.wire.error_codes import ErrorCode


def ensure_alone(assignments: list[list[int]], node_id: int) -> None:
    """Raise unless every partition is assigned to the one broker there is."""
    for brokers in assignments:
        if list(brokers) != [node_id]:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"replicas {list(brokers)}: the only broker is {node_id}",
            )
