"""Spring Kafka and Spring Cloud Stream, from Maven Central by poms of ours, and a program for each."""

from __future__ import annotations

from pathlib import Path

from bench.systems.maven import jars_of

HERE = Path(__file__).parent
SPRING_KAFKA = jars_of("spring-kafka", HERE / "kafka" / "pom.xml")
KAFKA_JAVA = HERE / "kafka" / "java"
KAFKA_PROGRAM = "greeting.ListenerApplication"
SPRING_STREAM = jars_of("spring-cloud-stream", HERE / "stream" / "pom.xml")
STREAM_JAVA = HERE / "stream" / "java"
STREAM_PROGRAM = "greeting.FunctionApplication"
