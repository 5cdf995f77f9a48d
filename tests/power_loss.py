"""A loss of power, as a real broker sees it: the machine was started again, and it had not ended in order."""

from __future__ import annotations

import asyncio
from pathlib import Path

from faircopy.storage.last_end import BOOT_NAME
from faircopy.storage.local_notes import LocalNotes
from faircopy.storage.state_store import StateStore
from tests.broker_process import BrokerProcess


def lose_power(broker: BrokerProcess) -> None:
    """Restart a broker that is to believe that power was lost meanwhile. Nothing of its files is."""
    broker.kill()
    note_loss_of_power(broker)
    broker.start()


def note_loss_of_power(broker: BrokerProcess) -> None:
    """Let the next start of a broker that was killed believe that power was lost."""
    asyncio.run(note_another_boot(broker.data_directory / "state.lmdb"))


async def note_another_boot(path: Path) -> None:
    """Let the next start find that the last one was on another start of the machine."""
    store = StateStore(path, asyncio.get_running_loop())
    await LocalNotes(store).write({BOOT_NAME: b"another"})
    store.close()
