"""How `table_format_*.tar.gz` were made: data directories of brokers with a plain table, after kill -9.

Run it with a faircopy that writes the format, such as commit 8d856aa for 2 (the data directory
has format 4 then), and 3076044 for 3:

    git worktree add ../format-2 8d856aa
    cp tests/upgrade/make_old_table.py ../format-2/tests/ && cd ../format-2
    PYTHONPATH=. python -m tests.make_old_table DIRECTORY
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from faircopy.publish.files import Files
from faircopy.publish.live_files import live_files
from faircopy.publish.schema import FORMAT
from tests.broker_process import BrokerProcess, eventually

SETTINGS = (
    "journal.segment.bytes=1048576",
    "metadata.journals=2",
    "offsets.partitions=2",
    "disk.reserve.bytes=0",
    "auto.create.topics=false",
    "plain.interval.ms=50",
)
PARTITIONS = 2
PUBLICATIONS = 25
VALUE = b'{"id": %d}'
ROWS = PARTITIONS * PUBLICATIONS  # of each partition: one of a transaction and one without, in a publication


def make(directory: Path) -> None:
    """A broker's directory, in a tar file."""
    with BrokerProcess(directory, *SETTINGS) as broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.create_topics([NewTopic("orders", PARTITIONS)])["orders"].result(60)
        table = broker.data_directory / "plain" / "orders"
        plain = Producer({"bootstrap.servers": broker.address})
        producer = Producer({"bootstrap.servers": broker.address, "transactional.id": "orders/1"})
        producer.init_transactions(60)
        for number in range(PUBLICATIONS):
            before = count(table)
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                producer.produce("orders", VALUE % number, partition=partition)
                plain.produce("orders", VALUE % number, partition=partition)
            producer.commit_transaction(60)
            plain.flush(60)
            eventually(lambda before=before: count(table) > before)  # type: ignore[misc]
        broker.kill()
    with tarfile.open(directory / f"table_format_{FORMAT}.tar.gz", "w:gz") as archive:
        archive.add(directory / "data", "data")


def count(table: Path) -> int:
    """How many files the table lists."""
    try:
        return len(live_files(Files(), table))
    except Exception:  # it is not there yet
        return 0


if __name__ == "__main__":
    made = Path(sys.argv[1])
    made.mkdir(parents=True)
    make(made)
