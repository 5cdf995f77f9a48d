"""Faults of a commit, as clients of three libraries meet them, and as the log shows them."""

from __future__ import annotations

import pytest

from faircopy.testing import Broker, OrderRefused
from tests.broker_process import eventually
from tests.clients import confluent_adapter
from tests.clients.adapter import Client, ClientFailed
from tests.testing_library.writer import VALUE, InBackground, each_library, open_transaction

LONG_SECONDS = 600.0
"""A delay that no test waits for."""


@each_library
@pytest.mark.parametrize("fault", ["lose_next_ack", "lose_next_commit"])
def test_a_commit_without_an_answer_is_sent_again(faulty: Broker, library: Client, fault: str) -> None:
    topic = faulty.create_topic()
    with open_transaction(library, faulty, topic) as producer:
        getattr(faulty, fault)(transactional_id=topic)
        producer.commit()
    assert faulty.values(topic) == [VALUE]
    assert faulty.requests("EndTxn") == 2


@each_library
@pytest.mark.parametrize("fault", ["kill_before_commit", "kill_before_ack", "kill_after_ack"])
def test_a_killed_broker_comes_back_with_what_was_acknowledged(
    faulty: Broker, library: Client, fault: str
) -> None:
    topic, starts = faulty.create_topic(), faulty.starts
    with open_transaction(library, faulty, topic) as producer:
        getattr(faulty, fault)(transactional_id=topic)
        producer.commit()
        eventually(lambda: faulty.starts == starts + 1)
    assert faulty.values(topic) == [VALUE]


@each_library
def test_a_commit_is_refused(faulty: Broker, library: Client) -> None:
    topic = faulty.create_topic()
    with open_transaction(library, faulty, topic) as producer:
        faulty.fail_next_commit()
        with pytest.raises(ClientFailed):
            producer.commit()
        assert faulty.planned_faults() == []
    assert faulty.values(topic) == []


@each_library
@pytest.mark.parametrize("fault", ["fence_next_commit", "expire_next_commit"])
def test_a_producer_is_too_late(faulty: Broker, library: Client, fault: str) -> None:
    topic = faulty.create_topic()
    with open_transaction(library, faulty, topic) as producer:
        getattr(faulty, fault)()
        with pytest.raises(ClientFailed):
            producer.commit()
    with pytest.raises(OrderRefused, match="no open transaction"):
        faulty.expire(topic)
    assert faulty.values(topic) == []


@each_library
@pytest.mark.parametrize("fault", ["delay", "time_out"])
@pytest.mark.parametrize("takes_effect", [True, False])
def test_a_commit_waits_for_its_answer(
    faulty: Broker, library: Client, fault: str, takes_effect: bool
) -> None:
    topic = faulty.create_topic()
    with open_transaction(library, faulty, topic) as producer:
        seconds = (LONG_SECONDS,) if fault == "delay" else ()
        getattr(faulty, f"{fault}_next_commit")(*seconds, takes_effect=takes_effect)
        committing = InBackground(producer.commit)
        eventually(lambda: faulty.requests("EndTxn") == 1)
        if takes_effect:
            eventually(lambda: faulty.values(topic) == [VALUE])
        assert committing.is_under_way
        assert faulty.values(topic) == ([VALUE] if takes_effect else [])
        faulty.drop_connections()
        assert committing.result() is None
    assert faulty.values(topic) == [VALUE]


def test_an_abort_is_no_commit(faulty: Broker) -> None:
    topic = faulty.create_topic()
    with open_transaction(confluent_adapter, faulty, topic) as producer:
        faulty.fail_next_commit()
        producer.abort()
    assert len(faulty.planned_faults()) == 1


def test_other_producers_go_on(faulty: Broker) -> None:
    topic = faulty.create_topic()
    with open_transaction(confluent_adapter, faulty, topic, "one") as one:
        faulty.fail_next_commit(transactional_id="one")
        with open_transaction(confluent_adapter, faulty, topic, "other") as other:
            other.commit()
        with pytest.raises(ClientFailed):
            one.commit()
    assert faulty.values(topic) == [VALUE]
