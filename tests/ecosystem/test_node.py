"""Libraries of Node.js that consume in a group and produce answer each message once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ecosystem.greeting import ensure_each_is_greeted
from tests.ecosystem.node_program import node_program


@pytest.mark.parametrize("script", ["kafkajs_greet.mjs", "kafkajs_transactions.mjs"])
def test_kafkajs(tmp_path: Path, script: str) -> None:
    """KafkaJS commits the offsets of what it has answered, after it or with it."""
    ensure_each_is_greeted(tmp_path, lambda broker: node_program(script, [broker], tmp_path / "program"))


@pytest.mark.parametrize("script", ["platformatic_greet.mjs", "platformatic_transactions.mjs"])
def test_platformatic(tmp_path: Path, script: str) -> None:
    """So does the client of Platformatic, which makes and deletes a topic too."""
    ensure_each_is_greeted(tmp_path, lambda broker: node_program(script, [broker], tmp_path / "program"))
