"""Greets with Pathway, as its page on Kafka has it: a table that is read from one topic, and one written.

Usage: pathway_greet.py BROKER
"""

from __future__ import annotations

import sys

import pathway as pw

settings = {"bootstrap.servers": sys.argv[1], "group.id": "greeters", "auto.offset.reset": "earliest"}
names = pw.io.kafka.read(settings, topic="names", format="plaintext", autocommit_duration_ms=1000)
greetings = names.select(text="hello " + pw.this.data)
pw.io.kafka.write(greetings, settings, topic_name="greetings", format="plaintext", value=greetings.text)

if __name__ == "__main__":
    pw.run()
