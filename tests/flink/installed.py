"""Flink with its connector to Kafka, from Maven Central by a pom of ours, and our program."""

from __future__ import annotations

from pathlib import Path

from bench.systems.maven import jars_of

HERE = Path(__file__).parent
FLINK = jars_of("flink", HERE / "pom.xml")
JAVA = HERE / "java"
PROGRAM = "CopyJob"
