"""Stops what is damaged: one partition (I9), or, after a failed write, the whole broker (I10)."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Callable

from faircopy.errors import FaircopyError
from faircopy.partition.hosted import HostedPartition
from faircopy.partition.participant import NotLed
from faircopy.storage.failures import WriteFailure

log = logging.getLogger(__name__)


class Stopping:
    """Stops partitions, and says why.

    `end_broker` is called with an error that leaves the contents of the disk unknown.
    """

    def __init__(self, end_broker: Callable[[BaseException], None]) -> None:
        self._end_broker = end_broker

    def stop(self, partition: HostedPartition, error: FaircopyError) -> None:
        """Stop a damaged partition, and log why (I9). This includes a partition whose shard is being closed:
        otherwise its last checkpoint would wait forever for a copy that has failed.
        """
        if partition.failure is None or isinstance(partition.failure, NotLed):
            partition.fail(error)
            log.error("partition %s is stopped: %s", partition.name, error)
        self._end_if_of_disk(error)

    def tell_of_failure(self, partition: HostedPartition) -> None:
        """Log why a partition that was just opened is stopped. Does nothing for a sound one."""
        if partition.failure is not None:
            log.error("partition %s is stopped: %s", partition.name, partition.failure)
            self._end_if_of_disk(partition.failure)

    def _end_if_of_disk(self, error: FaircopyError) -> None:
        """I10: after a failed write the disk's contents are unknown, so the broker stops."""
        if isinstance(error, WriteFailure):
            self._end_broker(error)

    @contextlib.asynccontextmanager
    async def if_write_fails(self) -> AsyncIterator[None]:
        """I10: if files can't be created or deleted, their state is unknown: stop, and restart from disk."""
        try:
            yield
        except WriteFailure as error:
            self._end_broker(error)
            raise
