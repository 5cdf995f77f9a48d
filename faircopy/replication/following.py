"""Which leader feeds the replica: of those that connect and prove who they are, the newest.

Until a peer has proven who it is, it may be anybody: there are few such connections, each for a while.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from faircopy.errors import FaircopyError
from faircopy.replication.errors import BadCopy, Refused
from faircopy.replication.feed import Feed
from faircopy.replication.frames import BadMessage
from faircopy.replication.life import Life
from faircopy.replication.link import Link
from faircopy.replication.messages import Hello, Marks
from faircopy.replication.replica import Replica
from faircopy.replication.timing import Timing

UNPROVEN_LINKS_MAX = 8
NOBODY = (-1, -1)

log = logging.getLogger(__name__)


class Needs(NamedTuple):
    """What following needs of the rest of the broker.

    `prove` takes a new link through the handshake and returns the HELLO of a leader; it raises FaircopyError.
    `is_short`: whether the disk is nearly full. `on_marks` is called with each MARK.
    `wall_ms`: the wall clock.
    """

    prove: Callable[[Link], Awaitable[Hello]]
    is_short: Callable[[], bool]
    on_marks: Callable[[Marks], None]
    wall_ms: Callable[[], int]


class Followed(NamedTuple):
    """Whom this broker follows, for people. `since_ms`: by the wall clock."""

    leader: Life
    epoch: int
    since_ms: int
    bytes_taken: int


class Present(NamedTuple):
    """The link that feeds the replica, or is about to."""

    feed: Feed
    task: asyncio.Task[None]
    since_ms: int


class Following:
    """All links of one follower. Belongs to the event loop."""

    def __init__(self, replica: Replica, needs: Needs, timing: Timing) -> None:
        self._replica = replica
        self._needs = needs
        self._timing = timing
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._unproven: set[Link] = set()
        self._present: Present | None = None
        self._newest = NOBODY
        self._feeding = asyncio.Lock()
        self._told = ""
        self._is_closed = False

    def accept(self, link: Link) -> None:
        """Serve a new connection, whoever it is from; close it if too many are not proven yet."""
        if self._is_closed or len(self._unproven) >= UNPROVEN_LINKS_MAX:
            link.abort()
            return
        self._unproven.add(link)
        task = self._loop.create_task(self._serve(link))
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._ended(link, task))

    def _ended(self, link: Link, task: asyncio.Task[None]) -> None:
        link.abort()
        self._unproven.discard(link)
        self._tasks.discard(task)

    def journals_moved(self) -> None:
        """For the replica: there is something to ack."""
        if self._present is not None:
            self._present.feed.send_ack()

    def shortage_changed(self) -> None:
        """`is_short` says something else now."""
        self.journals_moved()

    def about(self) -> Followed | None:
        """Whom this broker follows, if anybody."""
        if self._present is None:
            return None
        feed, _, since_ms = self._present
        return Followed(feed.leader, feed.epoch, since_ms, feed.bytes_taken)

    async def close(self) -> None:
        """End all links, and take no more."""
        self._is_closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel("this broker stops")
        if tasks:
            await asyncio.wait(tasks)

    # -- one link --------------------------------------------------------------------------------------------

    async def _serve(self, link: Link) -> None:
        hello = await self._proven(link)
        if hello is not None:
            needs = self._needs
            feed = Feed(link, hello, self._replica, needs.is_short, needs.on_marks, self._timing)
            await self._follow(link, feed)

    async def _proven(self, link: Link) -> Hello | None:
        """The HELLO of a leader. None for strangers; what they do wrong is logged when it is another thing
        than the last time, since they may come often.
        """
        try:
            async with asyncio.timeout(self._timing.handshake_seconds):
                return await self._needs.prove(link)
        except TimeoutError:
            why = f"it has proven nothing within {self._timing.handshake_seconds:g} s"
        except Refused as error:
            link.refuse(error)
            why = str(error)
        except FaircopyError as error:
            why = str(error)
        if why != self._told:
            log.warning("a link to this follower was closed before it was proven: %s", why)
        self._told = why
        return None

    async def _follow(self, link: Link, feed: Feed) -> None:
        """Let a leader feed the replica until the link ends, and log why it does."""
        try:
            await self._feed(link, feed)
        except asyncio.CancelledError as cancelled:
            log.info("no longer following %s: %s", feed, cancelled)
            raise
        except (BadMessage, BadCopy, Refused) as error:
            log.error("not following %s: %s", feed, error)
            link.refuse(error)
        except FaircopyError as error:
            log.warning("no longer following %s: %s", feed, error)
        except Exception as error:
            log.exception("no longer following %s: a bug", feed)
            link.refuse(error)
        finally:
            if self._present is not None and self._present.feed is feed:
                self._present = None

    async def _feed(self, link: Link, feed: Feed) -> None:
        """Take the place of the present link, and begin once that has ended."""
        if feed.rank < self._newest:
            raise Refused(f"a leader of epoch {self._newest[0]} was followed here: this one is deposed")
        task = asyncio.current_task()
        assert task is not None
        former, self._newest = self._present, feed.rank
        self._present = Present(feed, task, self._needs.wall_ms())
        if former is not None:
            former.task.cancel(f"{feed} has taken its place")
        async with self._feeding:
            self._unproven.discard(link)
            self._replica.begin_link()
            log.info("following %s", feed)
            await feed.run()
