"""Disk errors while topics are made: told on the event loop, where all that ends the broker belongs (I10)."""

from __future__ import annotations

import asyncio
import errno
import threading
from pathlib import Path
from unittest import mock

from faircopy.broker.broker import Broker
from faircopy.hosting.topic_changes import NewTopic
from faircopy.settings.table import Settings
from faircopy.storage.data_directory import DataDirectory
from faircopy.storage.failures import WriteFailure
from faircopy.storage.system import System, mount


class Failing(System):
    """A disk on which no directory of a partition can be made."""

    def make_directory(self, path: Path) -> None:
        if path.parent.name.startswith("orders"):
            raise OSError(errno.EIO, "the device has an error")
        super().make_directory(path)


def test_a_topic_that_can_not_be_made_ends_the_broker_on_its_own_thread(tmp_path: Path) -> None:
    threads = []

    def mark_unclean(_directory: DataDirectory) -> None:
        threads.append(threading.current_thread())

    async def scenario() -> None:
        broker = Broker(Settings(data_dir=str(tmp_path / "data"), plain_enabled=False))
        await broker.open()
        with mount(Failing()), mock.patch.object(DataDirectory, "mark_unclean", mark_unclean):
            changes = await broker.administration.create({"orders": lambda: NewTopic(2, {})})
            assert isinstance(changes.refused["orders"], WriteFailure)
            assert isinstance(await broker.failed, WriteFailure)
        assert "orders" not in broker.hosted.topics
        broker.disk.close()
        broker.store.close()
        broker.directory.close()

    asyncio.run(scenario())
    assert set(threads) == {threading.main_thread()}
