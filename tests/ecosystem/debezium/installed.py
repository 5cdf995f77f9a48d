"""Debezium's connector, from Maven Central by a pom of ours."""

from __future__ import annotations

from pathlib import Path

from bench.systems.maven import jars_of

DEBEZIUM = jars_of("debezium", Path(__file__).parent / "pom.xml")
