"""The seam between the broker and its commit protocol, so that a benchmark can put another in its place."""

from __future__ import annotations

import importlib
from typing import NamedTuple

from faircopy.hosting.catalog import HostedPartition
from faircopy.settings.table import BadSetting
from faircopy.transactions.coordinator import TransactionCoordinator

LOCAL_COPY = "local-copy"


class CommitProtocol(NamedTuple):
    """What decides how a transaction becomes visible.

    The partitions: their fold, and what a reader may see. The coordinator: what it waits for, and whom it tells what.
    """

    partition: type[HostedPartition]
    coordinator: type[TransactionCoordinator]


def find_protocol(name: str) -> CommitProtocol:
    """The protocol of the setting commit.protocol: faircopy's own, or `module:name` of another. Raises BadSetting."""
    if name == LOCAL_COPY:
        return CommitProtocol(HostedPartition, TransactionCoordinator)
    module, _, attribute = name.partition(":")
    try:
        protocol = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadSetting(
            f"commit.protocol is {name!r}, and can't be loaded ({error}): leave it at {LOCAL_COPY}"
        ) from error
    if not isinstance(protocol, CommitProtocol):
        raise BadSetting(f"commit.protocol is {name!r}, which is no CommitProtocol: leave it at {LOCAL_COPY}")
    return protocol
