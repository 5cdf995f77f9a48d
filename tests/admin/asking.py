"""What administrators' tools ask for, in few words."""

from __future__ import annotations

from typing import Any

from faircopy.api.routes import schema_of
from faircopy.client.connection import BrokerConnection
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.codec import Message
from faircopy.wire.error_codes import ErrorCode
from tests.broker_process import BrokerProcess

TOPIC, BROKER = 2, 4  # kinds of resources
SET, DELETE, APPEND, SUBTRACT = range(4)


def ask(broker: BrokerProcess, api_key: ApiKey, version: int, body: dict[str, Any]) -> Message:
    with BrokerConnection(broker.address) as connection:
        return connection.ask(schema_of(api_key), version, body)


def create(
    broker: BrokerProcess,
    name: str,
    configs: dict[str, str] | None = None,
    *,
    validate_only: bool = False,
    **fields: Any,
) -> Message:
    asked: dict[str, Any] = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": []}
    asked["configs"] = [{"name": key, "value": value} for key, value in (configs or {}).items()]
    body = {"topics": [asked | fields], "timeout_ms": 5_000, "validate_only": validate_only}
    answer: Message = ask(broker, ApiKey.CREATE_TOPICS, 7, body).topics[0]
    return answer


def describe(broker: BrokerProcess, kind: int, name: str) -> dict[str, Message]:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    answer = ask(broker, ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [resource], "include_documentation": True})
    assert answer.results[0].error_code == ErrorCode.NONE
    return {config.name: config for config in answer.results[0].configs}


def alter(
    broker: BrokerProcess,
    kind: int,
    name: str,
    *changes: tuple[str, int, str | None],
    validate_only: bool = False,
) -> ErrorCode:
    configs = [
        {"name": key, "config_operation": operation, "value": value} for key, operation, value in changes
    ]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    body = {"resources": [resource], "validate_only": validate_only}
    return ErrorCode(ask(broker, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, body).responses[0].error_code)
