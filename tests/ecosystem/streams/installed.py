"""Kafka Streams, from Maven Central by a pom of ours, and the program of its quick start."""

from __future__ import annotations

from pathlib import Path

from bench.systems.maven import jars_of

HERE = Path(__file__).parent
STREAMS = jars_of("kafka-streams", HERE / "pom.xml")
JAVA = HERE / "java"
PROGRAM = "WordCount"
APPLICATION = "streams-wordcount"
INPUT = "streams-plaintext-input"
OUTPUT = "streams-wordcount-output"
CHANGELOG = f"{APPLICATION}-counts-changelog"
