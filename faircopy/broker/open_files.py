"""The descriptors of this process, divided among connections and files."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

from faircopy.catalogue.dynamic_settings import DynamicSettings
from faircopy.storage.descriptors import DESCRIPTORS, share_out
from faircopy.storage.disk_pool import DiskPool

log = logging.getLogger(__name__)


def limit_open_files(
    limit: int,
    connections: int,
    dynamic_settings: DynamicSettings,
    loop: asyncio.AbstractEventLoop,
    disk: DiskPool,
    on_failure: Callable[[BaseException], None],
) -> None:
    """Divide `limit` descriptors, if possible with enough for `connections`. `on_failure` is called on the
    event loop when a file that is closed to make room could not be synced (I10).
    """
    shares = share_out(limit, connections)
    if shares.connections < connections:
        log.warning(
            "the limit of %d open files (ulimit -n) is enough for %d connections and %d files at a time; "
            "connections.max is %d",
            limit, shares.connections, shares.files, connections,
        )  # fmt: skip
        dynamic_settings.limit("connections.max", shares.connections)

    def from_any_thread(call: Callable[..., object], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits for this any longer
            loop.call_soon_threadsafe(call, *arguments)

    DESCRIPTORS.limit(
        shares.files,
        lambda work: from_any_thread(disk.submit, work, (), lambda _result, _error: None),
        lambda error: from_any_thread(on_failure, error),
    )
