"""Scripts of a coordinator: what clients ask, and what happens to the broker.

    CLIENT init ID                     InitProducerId
    CLIENT add PARTITION ...           AddPartitionsToTxn
    CLIENT send PARTITION [records=]   Produce, in the open transaction; [sequence=], by default the next one;
                                       [value=] of all records
    CLIENT commit, CLIENT abort        EndTxn
                                       [over=] to these: the connection that carries it; 1 by default
    produce PARTITION [records=]       Produce of somebody without transactions
    fsync [JOURNAL ...]                what was written there, or anywhere, is durable now
    hold JOURNAL ...                   what is appended there from now on is not written
    write JOURNAL ...                  it is written now, and later entries at once
    kill                               the process is killed, and another one starts; what was not written is
                                       lost
    lose power                         likewise, and what was not durable is lost, too
    stop                               an orderly stop, and a start
    pass SECONDS                       time passes: transactions time out, idle ids are forgotten
    ack durable [PARTITION ...]        an orderly stop, and a start with transactional.ack=durable for these
                                       topics, or for the broker
    fail PARTITION                     it turns out to be damaged
    unlead PARTITION                   nobody leads it any more
    delete PARTITION                   its topic is deleted

Below each command is what is appended, what becomes visible, and what clients are answered. The coordinator,
the partitions and their folds are the broker's own. Only the journals (J is the metadata journal, t-0 to t-2
are those of partitions), the log and the clock are in the hands of the script.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial

from faircopy.errors import FaircopyError
from faircopy.journal.entry import Entry
from faircopy.transactions.connections import Sent
from faircopy.transactions.decisions import TransactionRefused
from faircopy.transactions.survival import Survival
from faircopy.wire.records import NewRecord, build_batch
from tests.scenarios.client import Client
from tests.scenarios.labels import Labels
from tests.scenarios.scripted_broker import METADATA, PARTITIONS, ScriptedBroker, ScriptedClock, ScriptedLog
from tests.scenarios.scripted_journal import ScriptedJournal
from tests.scenarios.words import NOTHING, options_of

TICKS = 20  # no chain of callbacks is longer


class CoordinatorScript:
    """A broker that starts on an empty disk, and its clients."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._told: list[str] = []
        self._labels = Labels()
        self._clock = ScriptedClock()
        self._clients: dict[str, Client] = {}
        self._requests: dict[asyncio.Task[None], str] = {}
        self._upkeep: list[asyncio.Task[None]] = []
        self._last_producer_id = self._last_correlation_id = 0
        self._journals = {
            name: ScriptedJournal(partial(self._appended, name)) for name in (METADATA, *PARTITIONS)
        }
        self._logs = {name: ScriptedLog(partial(self._tell, name), self._labels) for name in PARTITIONS}
        self._acks_durably: tuple[str, ...] = ()
        self._broker = self._loop.run_until_complete(self._started())

    def close(self) -> None:
        """End what is under way."""
        self._loop.run_until_complete(self._end_process())
        self._loop.close()

    def perform(self, command: str) -> list[str]:
        """Do something, and wait until nothing more comes of it."""
        self._told.clear()
        self._loop.run_until_complete(self._perform(*options_of(command.split())))
        return list(self._told) or [NOTHING]

    async def _perform(self, words: list[str], given: dict[str, int]) -> None:
        match words:
            case ["fsync", *names]:
                for name in names or self._journals:
                    self._journals[name].sync()
            case ["hold", *names]:
                for name in names:
                    self._journals[name].hold()
            case ["write", *names]:
                for name in names:
                    self._journals[name].write()
            case ["kill"]:
                await self._start_anew(Survival.WRITTEN)
            case ["lose", "power"]:
                await self._start_anew(Survival.SYNCED)
            case ["stop"]:
                await self._stop()
            case ["ack", "durable", *names]:
                self._acks_durably = tuple(names) or PARTITIONS
                await self._stop()
            case ["pass", seconds]:
                self._clock.now_ms += int(seconds) * 1000
                self._upkeep.append(asyncio.ensure_future(self._broker.look_at_time()))
            case ["fail", word]:
                self._broker.partition(word).fail(FaircopyError("its journal is damaged"))
            case ["unlead", word]:
                self._broker.partition(word).stop_serving()
            case ["delete", word]:
                self._broker.delete(word)
            case ["produce", word]:
                self._produce(word, given.get("records", 1))
            case [client, request, *arguments]:
                self._ask(client, self._request(client, request, arguments, given))
        await self._come_to_rest()

    async def _come_to_rest(self) -> None:
        for _ in range(TICKS):
            await asyncio.sleep(0)
        for request in [each for each in self._requests if each.done()]:
            del self._requests[request]
            request.result()

    # -- what comes of it ------------------------------------------------------------------------------------

    def _tell(self, who: str, what: str) -> None:
        self._told.append(f"{who:4} {self._labels.shorten(what)}")

    def _appended(self, name: str, entry: Entry, payload: bytes) -> None:
        written = self._labels.of_metadata if name == METADATA else self._labels.of_data
        self._tell(name, written(entry, payload))

    # -- requests --------------------------------------------------------------------------------------------

    def _ask(self, client: str, request: Coroutine[None, None, str]) -> None:
        self._requests[asyncio.ensure_future(self._answered(client, request))] = client

    async def _answered(self, client: str, request: Coroutine[None, None, str]) -> None:
        try:
            answer = await request
        except TransactionRefused as error:
            answer = f"{error.code.name}: {error}"
        except FaircopyError as error:
            answer = f"refused: {error}"
        self._tell(client, f"<- {answer}")

    async def _request(self, name: str, request: str, arguments: list[str], given: dict[str, int]) -> str:
        client = self._clients.setdefault(name, Client())
        self._last_correlation_id += 1
        sent = Sent(given.get("over", 1), self._last_correlation_id, " ".join((request, *arguments)))
        match request:
            case "init":
                return await client.init(self._broker, arguments[0], sent)
            case "add":
                return await client.add(self._broker, arguments, sent)
            case "send":
                records, sequence, value = (
                    given.get("records", 1),
                    given.get("sequence"),
                    given.get("value", 0),
                )
                return await client.send(
                    self._broker, arguments[0], records, sent, sequence=sequence, value=value
                )
            case "commit" | "abort":
                return await client.end(self._broker, sent, commit=request == "commit")
        raise ValueError(f"no such request: {request}")

    def _produce(self, word: str, records: int) -> None:
        batch = build_batch([NewRecord(b"v")] * records)
        self._broker.partition(word).append_plain(memoryview(batch), None, records, lambda _offset: None)

    async def _end_process(self) -> None:
        for request, client in self._requests.items():
            request.cancel()
            self._tell(client, "<- the connection is closed")
        for task in self._upkeep:
            task.cancel()
        self._requests.clear()
        await self._come_to_rest()

    # -- processes -------------------------------------------------------------------------------------------

    async def _started(self) -> ScriptedBroker:
        return ScriptedBroker(
            self._journals, self._logs, self._clock, self._next_producer_id, self._acks_durably
        )

    def _next_producer_id(self) -> int:
        self._last_producer_id += 1
        return self._last_producer_id

    async def _stop(self) -> None:
        while not all(journal.is_durable for journal in self._journals.values()):
            for journal in self._journals.values():
                journal.sync()
            await self._come_to_rest()
        await self._start_anew(Survival.EVERYTHING)

    async def _start_anew(self, survival: Survival) -> None:
        await self._end_process()
        for journal in self._journals.values():
            journal.pass_on(lost_power=survival is Survival.SYNCED)
        self._broker = await self._started()
        self._broker.settle(survival)
