"""Open transactions while the broker is restarted: in order, and by kill -9."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from faircopy.storage.data_directory import UNCLEAN_MARK
from tests.broker_process import BrokerProcess
from tests.clients.adapter import Client, ClientFailed
from tests.clients.conftest import CLIENTS
from tests.clients.talk import Talk, commit_values, create_topic, failure, poll_until
from tests.crash.test_kill import (
    JOIN_SECONDS,
    PARTITIONS,
    TOPICS,
    Writer,
    await_commits,
    check,
)
from tests.power_loss import lose_power, note_loss_of_power
from tests.rot.test_starts import add_misfit
from tests.seeds import seed_for

TRANSACTION_ABORTABLE = 120


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker for each test, which restarts it."""
    with BrokerProcess(tmp_path, "plain.enabled=false") as process:
        yield process
        process.ensure_no_traceback()


@pytest.mark.parametrize("kill", [True, False])
def test_an_open_transaction_outlives_the_broker(
    broker: BrokerProcess, client: Client, topic: str, kill: bool
) -> None:
    """P9: what was acknowledged is there, and the producer goes on."""
    create_topic(broker.address, topic, 2)
    with Talk(client, broker.address) as talk:
        producer = talk.transactional(topic)
        consumer = talk.consumer(group=topic)
        producer.begin()
        producer.send(topic, b"before", partition=0)
        producer.flush()
        producer.send_offsets(consumer, {(topic, 0): 7})
        broker.restart(kill=kill)
        assert consumer.ends([(topic, 0)]) == {(topic, 0): 0}
        producer.send(topic, b"after", partition=0)
        producer.send(topic, b"added", partition=1)
        producer.commit()
        assert talk.values((topic, 0)) == [b"before", b"after"]
        assert talk.values((topic, 1)) == [b"added"]
        assert consumer.committed([(topic, 0)]) == {(topic, 0): 7}


@pytest.mark.parametrize("then", ["commits", "sends", "adds"])
def test_a_loss_of_power_aborts_an_open_transaction(
    broker: BrokerProcess, client: Client, topic: str, then: str
) -> None:
    """Whatever its producer does next fails; having aborted, it goes on, or a new producer does."""
    create_topic(broker.address, topic, 2)
    with Talk(client, broker.address) as talk:
        producer = talk.transactional(topic)
        commit_values(producer, (topic, 0), [b"first"])
        producer.begin()
        producer.send(topic, b"lost", partition=0)
        producer.flush()
        lose_power(broker)

        def go_on() -> None:
            if then != "commits":
                producer.send(topic, b"lost, too", partition=1 if then == "adds" else 0)
                producer.flush()
            producer.commit()

        failure(go_on)
        if client.name == "confluent-kafka":
            error = failure(producer.commit)
            assert (error.code, error.must_abort) == (TRANSACTION_ABORTABLE, True)
        try:
            producer.abort()
        except ClientFailed:
            # These libraries take any error of these requests for the end of the producer.
            assert (client.name, then) in FATAL_FOR
            producer = talk.transactional(topic)
        else:
            assert (client.name, then) not in FATAL_FOR
        for number in range(5):
            commit_values(producer, (topic, 0), [b"%d" % number])
        producer.begin()
        producer.send(topic, b"aborted", partition=1)
        producer.flush()
        producer.abort()
        assert talk.values((topic, 0)) == [b"first", b"0", b"1", b"2", b"3", b"4"]
        assert talk.values((topic, 1)) == []


FATAL_FOR = {
    ("kafka-python", "commits"),
    ("aiokafka", "commits"),
    ("aiokafka", "adds"),
}


def test_an_idle_producer_does_not_notice_a_kill(broker: BrokerProcess, client: Client, topic: str) -> None:
    create_topic(broker.address, topic)
    with Talk(client, broker.address) as talk:
        producer = talk.transactional(topic)
        commit_values(producer, (topic, 0), [b"before"])
        broker.restart()
        commit_values(producer, (topic, 0), [b"after"])
        assert talk.values((topic, 0)) == [b"before", b"after"]


@pytest.mark.parametrize("kill", [True, False])
def test_who_reads_gets_over_the_leader_epoch_of_a_restart(
    broker: BrokerProcess, client: Client, topic: str, kill: bool
) -> None:
    """What a client knows of who leads is over then: it asks anew, and goes on where it was (KIP-320)."""
    create_topic(broker.address, topic)
    with Talk(client, broker.address) as talk:
        producer = talk.transactional(topic)
        consumer = talk.consumer()
        consumer.assign({(topic, 0): 0})
        commit_values(producer, (topic, 0), [b"0"])
        found = poll_until(consumer, 1)
        for number in range(1, 4):
            broker.restart(kill=kill)
            commit_values(producer, (topic, 0), [b"%d" % number])
            found += poll_until(consumer, 1)
            assert consumer.ends([(topic, 0)]) == {(topic, 0): number + 1}
        assert [(each.offset, each.value) for each in found] == [(n, b"%d" % n) for n in range(4)]


def test_a_loss_of_power_is_noticed_by_idle_producers_too(broker: BrokerProcess, topic: str) -> None:
    """The start of a transaction may be lost, with its drafts: then the rest must not be committed."""
    create_topic(broker.address, topic)
    with Talk(CLIENTS[0], broker.address) as talk:
        producer = talk.transactional(topic)
        commit_values(producer, (topic, 0), [b"before"])
        lose_power(broker)
        broker.restart(kill=False)
        producer.begin()
        producer.send(topic, b"perhaps the second half", partition=0)
        assert failure(producer.commit).must_abort
        producer.abort()
        commit_values(producer, (topic, 0), [b"after"])
        assert talk.values((topic, 0)) == [b"before", b"after"]


@pytest.mark.parametrize("loss", ["a disk failed", "entries are passed over"])
def test_other_losses_abort_an_open_transaction(broker: BrokerProcess, topic: str, loss: str) -> None:
    create_topic(broker.address, topic)
    with Talk(CLIENTS[0], broker.address) as talk:
        producer = talk.transactional(topic)
        producer.begin()
        producer.send(topic, b"lost", partition=0)
        producer.flush()
        broker.kill()
        if loss == "a disk failed":
            (broker.data_directory / UNCLEAN_MARK).touch()
        else:
            (journal,) = (broker.data_directory / "journal").glob(f"{topic}.*/0/*.journal")
            add_misfit(journal)
            broker.arguments = ("--repair",)
        broker.start()
        error = failure(producer.commit)
        assert (error.code, error.must_abort) == (TRANSACTION_ABORTABLE, True)
        producer.abort()
        commit_values(producer, (topic, 0), [b"after"])
        assert talk.values((topic, 0)) == [b"after"]


DURABLE = "transactional.ack=durable"


@pytest.mark.parametrize("whose", ["the broker's", "the topic's"])
def test_with_durable_acks_an_open_transaction_outlives_a_loss_of_power(
    tmp_path: Path, client: Client, topic: str, whose: str
) -> None:
    """P9, by choice also then: what was acknowledged is there, and the producer goes on."""
    is_brokers = whose == "the broker's"
    with BrokerProcess(tmp_path, "plain.enabled=false", *([DURABLE] if is_brokers else [])) as broker:
        create_topic(broker.address, topic, 2, **({} if is_brokers else {"transactional_ack": "durable"}))
        with Talk(client, broker.address) as talk:
            producer = talk.transactional(topic)
            consumer = talk.consumer(group=topic)
            producer.begin()
            producer.send(topic, b"before", partition=0)
            producer.flush()
            if is_brokers:
                producer.send_offsets(consumer, {(topic, 0): 7})
            lose_power(broker)
            producer.send(topic, b"after", partition=0)
            producer.send(topic, b"added", partition=1)
            producer.commit()
            assert talk.values((topic, 0)) == [b"before", b"after"]
            assert talk.values((topic, 1)) == [b"added"]
            if is_brokers:
                assert consumer.committed([(topic, 0)]) == {(topic, 0): 7}
                lose_power(broker)
                commit_values(producer, (topic, 0), [b"it was idle, and notices nothing"])
        broker.ensure_no_traceback()


def test_a_transaction_that_also_wrote_where_acks_are_not_durable_is_aborted(
    broker: BrokerProcess, topic: str
) -> None:
    durable = f"{topic}-durable"
    create_topic(broker.address, topic)
    create_topic(broker.address, durable, transactional_ack="durable")
    with Talk(CLIENTS[0], broker.address) as talk:
        producer = talk.transactional(topic)
        producer.begin()
        producer.send(durable, b"safe", partition=0)
        producer.send(topic, b"not safe", partition=0)
        producer.flush()
        lose_power(broker)
        assert failure(producer.commit).code == TRANSACTION_ABORTABLE
        producer.abort()
        assert talk.values((topic, 0)) == talk.values((durable, 0)) == []


def test_what_a_transaction_began_with_stays(broker: BrokerProcess, topic: str) -> None:
    """If its topic is changed meanwhile, its acks mean what they meant before."""
    create_topic(broker.address, topic, transactional_ack="durable")
    with Talk(CLIENTS[0], broker.address) as talk:
        producer = talk.transactional(topic)
        producer.begin()
        producer.send(topic, b"before", partition=0)
        producer.flush()
        set_config(broker.address, topic, "transactional.ack", "written")
        producer.send(topic, b"after", partition=0)
        producer.flush()
        lose_power(broker)
        producer.commit()
        producer.begin()
        producer.send(topic, b"of the next", partition=0)
        producer.flush()
        lose_power(broker)
        assert failure(producer.commit).code == TRANSACTION_ABORTABLE
        producer.abort()
        assert talk.values((topic, 0)) == [b"before", b"after"]


def set_config(address: str, topic: str, name: str, value: str) -> None:
    """Change a setting of a topic."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": address})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(60)


@pytest.mark.parametrize("case", ["durability=os", "entries are passed over", "a kill, then passed over"])
def test_durable_acks_do_not_help_if_nothing_was_fsynced_or_more_is_lost(
    tmp_path: Path, topic: str, case: str
) -> None:
    settings = ["durability=os"] if case == "durability=os" else []
    with BrokerProcess(tmp_path, "plain.enabled=false", DURABLE, *settings) as broker:
        create_topic(broker.address, topic)
        with Talk(CLIENTS[0], broker.address) as talk:
            producer = talk.transactional(topic)
            producer.begin()
            producer.send(topic, b"perhaps the first half", partition=0)
            producer.flush()
            if case == "durability=os":
                lose_power(broker)
            else:
                broker.kill()
                (journal,) = (broker.data_directory / "journal").glob(f"{topic}.*/0/*.journal")
                add_misfit(journal)
                broker.arguments = ("--repair",)
                if case == "entries are passed over":
                    note_loss_of_power(broker)
                broker.start()
            assert failure(producer.commit).code == TRANSACTION_ABORTABLE
            producer.abort()
            commit_values(producer, (topic, 0), [b"after"])
            assert talk.values((topic, 0)) == [b"after"]


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_what_was_fsynced_is_known_from_the_last_life(tmp_path: Path, topic: str, durability: str) -> None:
    """The broker was restarted with another durability, on the same start of the machine."""
    other = {"os": "fsync", "fsync": "os"}[durability]
    with BrokerProcess(tmp_path, "plain.enabled=false", DURABLE, f"durability={other}") as broker:
        create_topic(broker.address, topic)
        broker.settings = (*broker.settings[:-1], f"durability={durability}")
        broker.restart()
        with Talk(CLIENTS[0], broker.address) as talk:
            producer = talk.transactional(topic)
            producer.begin()
            producer.send(topic, b"open", partition=0)
            producer.flush()
            lose_power(broker)
            if durability == "os":
                assert failure(producer.commit).code == TRANSACTION_ABORTABLE
                producer.abort()
            else:
                producer.commit()
            assert talk.values((topic, 0)) == ([] if durability == "os" else [b"open"])


class StubbornWriter(Writer):
    """One producer for all its life. It never needs to abort."""

    def __init__(self, address: str, number: int, stop: threading.Event) -> None:
        super().__init__(address, number, stop)
        self.errors: list[KafkaException] = []

    def _transaction(self, producer: Producer) -> None:
        try:
            super()._transaction(producer)
        except KafkaException as error:
            self.errors.append(error)
            raise


def test_producers_go_on_after_many_kills(tmp_path: Path) -> None:
    """No producer notices one, wherever it comes (P9). What was acked is there, whole and once; what its
    producer has aborted is not.
    """
    chance = random.Random(seed_for("producers go on after many kills"))
    with BrokerProcess(tmp_path, "checkpoint.bytes=65536", "plain.enabled=false") as broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        for made in admin.create_topics([NewTopic(topic, PARTITIONS) for topic in TOPICS]).values():
            made.result(60)
        stop = threading.Event()
        writers = [StubbornWriter(broker.address, number, stop) for number in range(3)]
        for writer in writers:
            writer.start()
        kills = 0
        # A kill may come between transactions only; some must come into the middle of one.
        while kills < 4 or (kills < 60 and not went_on(broker)):
            await_commits(writers, chance.randint(1, 40))
            broker.restart()
            kills += 1
        await_commits(writers, 20)
        stop.set()
        for writer in writers:
            writer.join(JOIN_SECONDS)
        assert went_on(broker) > 0
        assert [error for writer in writers for error in writer.errors] == []
        assert sum(len(writer.acked) for writer in writers) > 20
        check(broker.address, writers)
        broker.restart()
        check(broker.address, writers)
        broker.ensure_no_traceback()


def went_on(broker: BrokerProcess) -> int:
    """How many open transactions the starts of a broker have found, and not aborted."""
    return sum(map(int, re.findall(r"(\d+) go on", broker.log)))
