"""What consumers see: places, times, ends, and at either isolation level only whole transactions."""

from __future__ import annotations

import threading

import pytest

from tests.broker_process import eventually
from tests.clients.adapter import Got
from tests.clients.talk import Talk, commit_values, create_topic, poll_until

LEVELS = ("read_uncommitted", "read_committed")
READ_YOUR_COMMITS = 200


def produce(talk: Talk, topic: str, values: list[bytes], first_ms: int | None = None) -> None:
    producer = talk.producer()
    for number, value in enumerate(values):
        producer.send(topic, value, partition=0, time_ms=None if first_ms is None else first_ms + 10 * number)
        if number % 10 == 9:
            producer.flush()  # so that there are several batches
    producer.flush()


@pytest.mark.parametrize("isolation", LEVELS)
def test_assign_and_seek(talk: Talk, topic: str, isolation: str) -> None:
    create_topic(talk.address, topic)
    produce(talk, topic, [b"%d" % number for number in range(100)])
    consumer = talk.consumer(isolation=isolation)
    for offset in (0, 99, 37, 50):
        consumer.assign({(topic, 0): offset})
        found = poll_until(consumer, 1)
        assert (found[0].offset, found[0].value) == (offset, b"%d" % offset)


def test_from_the_beginning_and_from_the_end(talk: Talk, topic: str) -> None:
    create_topic(talk.address, topic)
    produce(talk, topic, [b"%d" % number for number in range(20)])
    early = talk.consumer(group=f"{topic}-early")
    late = talk.consumer(group=f"{topic}-late", from_end=True)
    early.subscribe([topic])
    assert [each.offset for each in poll_until(early, 20)] == list(range(20))
    late.subscribe([topic])
    producer = talk.transactional(topic)

    def something_new() -> list[Got]:
        """When it asks for the end, only it knows: it may miss some of what is new."""
        commit_values(producer, (topic, 0), [b"new"])
        return late.poll(0.2)

    assert {each.value for each in eventually(something_new)} == {b"new"}


def test_an_offset_out_of_range_is_reset(talk: Talk, topic: str) -> None:
    create_topic(talk.address, topic)
    produce(talk, topic, [b"only"])
    consumer = talk.consumer()
    consumer.assign({(topic, 0): 1_000})
    assert [each.offset for each in poll_until(consumer, 1)] == [0]


def test_offsets_of_times(talk: Talk, topic: str) -> None:
    create_topic(talk.address, topic)
    produce(talk, topic, [b"%d" % number for number in range(100)], first_ms=1_000_000)
    consumer = talk.consumer()
    place = (topic, 0)
    assert consumer.at_times({place: 0}) == {place: 0}
    assert consumer.at_times({place: 1_000_005}) == {place: 1}
    assert consumer.at_times({place: 1_000_370}) == {place: 37}
    assert consumer.at_times({place: 1_000_990}) == {place: 99}
    assert consumer.at_times({place: 1_000_991})[place] is None


def test_beginnings_and_ends(talk: Talk, topic: str) -> None:
    create_topic(talk.address, topic, 3)
    produce(talk, topic, [b"x"] * 25)
    places = [(topic, number) for number in range(3)]
    consumer = talk.consumer()
    assert consumer.beginnings(places) == dict.fromkeys(places, 0)
    assert consumer.ends(places) == {places[0]: 25, places[1]: 0, places[2]: 0}


def test_read_your_commits(talk: Talk, topic: str) -> None:
    """P8: whoever asks for the end after a commit was acked is told one that includes it, every time."""
    create_topic(talk.address, topic, 2)
    places = [(topic, 0), (topic, 1)]
    producer = talk.transactional(topic)
    consumer = talk.consumer()
    for number in range(1, READ_YOUR_COMMITS + 1):
        producer.begin()
        for place in places:
            producer.send(topic, b"%d" % number, partition=place[1])
        producer.commit()
        assert consumer.ends(places) == dict.fromkeys(places, number)
    for place in places:
        assert len(talk.read(place)) == READ_YOUR_COMMITS


def test_levels_agree_under_commits_and_aborts(talk: Talk, topic: str) -> None:
    """P1: two consumers of the two levels read along while writers commit and abort, and see the same."""
    create_topic(talk.address, topic)
    writers = [talk.transactional(f"{topic}/{number}") for number in range(2)]
    committed: list[list[bytes]] = [[], []]

    def write(number: int) -> None:
        for turn in range(15):
            writers[number].begin()
            values = [b"%d.%d.%d" % (number, turn, part) for part in range(5)]
            for value in values:
                writers[number].send(topic, value, partition=0)
            if turn % 3 == 2:
                writers[number].flush()
                writers[number].abort()
            else:
                writers[number].commit()
                committed[number] += values

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    readers = [talk.consumer(isolation=level) for level in LEVELS]
    for reader in readers:
        reader.assign({(topic, 0): 0})
    for thread in threads:
        thread.start()
    seen = [poll_until(reader, 2 * 10 * 5) for reader in readers]
    for thread in threads:
        thread.join()
    assert seen[0] == seen[1]
    assert [each.offset for each in seen[0]] == list(range(100)), "P3"
    values = [each.value for each in seen[0] if each.value is not None]
    assert len(values) == 100
    for number in range(2):
        assert [value for value in values if value.startswith(b"%d." % number)] == committed[number]


@pytest.mark.parametrize("isolation", LEVELS)
def test_an_open_transaction_delays_nobody(talk: Talk, topic: str, isolation: str) -> None:
    """P4: one hangs; what others write, plain or in transactions, is read at once, and the lag reaches 0."""
    create_topic(talk.address, topic)
    place = (topic, 0)
    hanging = talk.transactional(f"{topic}-hanging")
    hanging.begin()
    hanging.send(topic, b"hanging", partition=0)
    hanging.flush()
    other = talk.transactional(f"{topic}-other")
    plain = talk.producer()
    for number in range(10):
        commit_values(other, place, [b"transactional %d" % number])
        plain.send(topic, b"plain %d" % number, partition=0)
        plain.flush()
    consumer = talk.consumer(isolation=isolation)
    consumer.assign({place: 0})
    found = poll_until(consumer, 20)
    assert [each.offset for each in found] == list(range(20)), "P3"
    assert consumer.ends([place])[place] == found[-1].offset + 1, "the lag is 0"
    hanging.commit()
    assert [each.value for each in poll_until(consumer, 1)] == [b"hanging"]


def test_reading_along_an_idle_log_wakes_up_quickly(talk: Talk, topic: str) -> None:
    create_topic(talk.address, topic)
    consumer = talk.consumer()
    consumer.assign({(topic, 0): 0})
    assert not consumer.poll(0.1)
    producer = talk.transactional(topic)
    for number in range(5):
        commit_values(producer, (topic, 0), [b"%d" % number])
        assert [each.value for each in poll_until(consumer, 1)] == [b"%d" % number]
