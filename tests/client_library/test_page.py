"""The examples of docs/CLIENT.md do what the page says."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from faircopy.client import BlockingClient, Client
from tests.broker_process import BrokerProcess, environment
from tests.joint.asking import TOPIC

PAGE = Path(__file__).parents[2] / "docs" / "CLIENT.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def adapted(example: str, broker: BrokerProcess) -> str:
    """An example for this broker, and for the topic of these tests."""
    return example.replace("127.0.0.1:9092", broker.address).replace('"orders"', f'"{TOPIC}"')


def test_five_processes_commit_one_transaction(
    own_broker: BrokerProcess, seen: Callable[[], list[bytes]], tmp_path: Path
) -> None:
    program = tmp_path / "load.py"
    program.write_text(adapted(EXAMPLES[0], own_broker))
    for _ in range(2):
        subprocess.run([sys.executable, str(program)], env=environment(), check=True, timeout=120)
    assert sorted(seen()) == sorted(b"part %d, order %d" % (p, n) for p in range(5) for n in range(100))


def test_many_transactions_are_open_at_once(
    own_broker: BrokerProcess, seen: Callable[[], list[bytes]]
) -> None:
    names: dict[str, object] = {}
    exec(EXAMPLES[1].replace('"shipped"', f'"{TOPIC}"').replace('"billed"', f'"{TOPIC}"'), names)
    move = names["move"]
    assert callable(move)

    async def main() -> None:
        async with Client(own_broker.address) as client:
            await asyncio.gather(*(move(client, b"%d" % number) for number in range(5)))

    asyncio.run(main())
    assert sorted(seen()) == sorted([b"%d" % number for number in range(5)] * 2)


def test_a_cut_is_read(own_broker: BrokerProcess) -> None:
    names: dict[str, object] = {}
    example = EXAMPLES[2].replace('"orders"', f'"{TOPIC}"').replace('("payments", 0)', f'("{TOPIC}", 2)')
    exec(example, names)
    totals = names["totals"]
    assert callable(totals)
    with BlockingClient(own_broker.address) as client:
        with client.begin() as transaction:
            transaction.send(TOPIC, b"12345", partition=2)
        assert totals(client) == 5


def test_all_examples_are_tried() -> None:
    assert len(EXAMPLES) == 3
