"""Adds with Celery, as its first steps have it, with Kafka as its broker.

Usage: celery_tasks.py FIRST END, to ask for a sum of each number in this range and one.
"""

from __future__ import annotations

import os
import sys

from celery import Celery

app = Celery("celery_tasks", broker=f"confluentkafka://{os.environ['BROKER']}/")
app.conf.broker_transport_options = {"allow_create_topics": True}
app.conf.broker_connection_retry_on_startup = True


@app.task
def add(first: int, second: int) -> int:
    """The worker prints what comes of it."""
    return first + second


if __name__ == "__main__":
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        add.delay(number, 1)
